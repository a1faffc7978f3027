"""The core does what Kafka's share coordinator did with recorded sequences."""

from __future__ import annotations

from tests.conformance.replay import load
from tests.differential.share_state.search import RECORDED, own_of


def test_recorded_sequences_go_as_in_kafka() -> None:
    cases = list(load(RECORDED))

    assert [case["id"] for case in cases if own_of(case) != case["expect"]] == []
    assert len(cases) > 100
