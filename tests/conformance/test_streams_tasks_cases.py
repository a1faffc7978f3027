"""The core makes of recorded topologies and streams groups what Kafka made of them."""

from __future__ import annotations

from tests.conformance.replay import load
from tests.differential.streams.search import KINDS, RECORDED, differences


def test_recorded_questions_are_answered_as_by_kafka() -> None:
    cases = list(load(RECORDED))

    assert {case["id"]: found for case in cases if (found := differences(KINDS[case["kind"]].answer(case), case["expect"]))} == {}
    assert {case["kind"] for case in cases} == set(KINDS)
    assert len(cases) > 500
