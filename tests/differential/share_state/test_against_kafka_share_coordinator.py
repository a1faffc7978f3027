"""Kafka's own share coordinator and ours do the same with generated sequences, byte for byte, and combine batches alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.conformance.replay import load
from tests.differential.java_partner import JavaPartner
from tests.differential.share_state.search import RECORDED, kafkas_share_coordinator, lists_that_differ, sequences_that_differ

pytestmark = [pytest.mark.kafka, pytest.mark.needs("javac")]

REACHED = {
    *(f"{op}: {error}" for op in ("initialize", "write") for error in ("NONE", "INVALID_REQUEST", "FENCED_STATE_EPOCH")),
    *(f"{op}: {error}" for op in ("read", "write") for error in ("NONE", "INVALID_REQUEST", "FENCED_LEADER_EPOCH")),
    *(f"{op}: UNKNOWN_TOPIC_OR_PARTITION" for op in ("initialize", "read", "write", "summary", "delete")),
    *(f"{op}: {error}" for op in ("summary", "delete") for error in ("NONE", "INVALID_REQUEST")),
    *("snapshot", "update", "tombstone", "cold: NONE", "forget: NONE", "load: NONE", "topics: NONE", "place: NONE"),
}
"""What has to occur in any run: a generator that no longer gets there proves less than it seems to."""


@pytest.fixture(scope="module")
def kafka() -> Iterator[JavaPartner]:
    """Kafka's share coordinator in virtual time."""
    partner = kafkas_share_coordinator()
    try:
        yield partner
    finally:
        partner.close()


@pytest.mark.parametrize("sequences", [200, pytest.param(20_000, marks=pytest.mark.deep)])
def test_sequences_go_as_in_kafka_and_reach_what_they_should(kafka: JavaPartner, sequences: int) -> None:
    seen: Counter[str] = Counter()

    assert sequences_that_differ(kafka, sequences, 1, seen) == []
    assert REACHED - seen.keys() == set()


@pytest.mark.parametrize("lists", [400, pytest.param(50_000, marks=pytest.mark.deep)])
def test_batches_are_combined_as_in_kafka(kafka: JavaPartner, lists: int) -> None:
    assert lists_that_differ(kafka, lists, 1) == []


def test_recorded_sequences_go_as_recorded_in_kafka_itself(kafka: JavaPartner) -> None:
    """The oracle answers what was recorded, so that its word can be taken."""
    assert [case["id"] for case in list(load(RECORDED))[::10] if kafka.ask(case) != case["expect"]] == []
