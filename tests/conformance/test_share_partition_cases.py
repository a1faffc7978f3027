"""The core does what Kafka's SharePartition did with recorded sequences."""

from __future__ import annotations

from tests.conformance.replay import load
from tests.differential.share_partition.search import RECORDED, difference, own_of


def test_recorded_sequences_go_as_in_kafka() -> None:
    cases = list(load(RECORDED))

    assert {case["id"]: found for case in cases if (found := difference(case, own_of(case), case["expect"]))} == {}
    assert len(cases) > 100
