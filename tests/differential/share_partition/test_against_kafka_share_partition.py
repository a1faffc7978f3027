"""The core does with generated sequences as Kafka's own SharePartition does; `search` beside this takes many more."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from tests.conformance.replay import load
from tests.differential.choices import drawn_by_hypothesis
from tests.differential.java_partner import JavaPartner
from tests.differential.share_partition.search import RECORDED, built, difference, kafka_share_partition, run

pytestmark = [pytest.mark.kafka, pytest.mark.needs("javac")]

SEQUENCES = 2_000 if settings.get_current_profile_name() == "deep" else 20
_NOT_ACQUIRED = "The batch cannot be acknowledged. The batch is not in the acquired state."
REACHED = {
    "acquire: some",
    "acquire: thrown Batch record not found. The request batch offsets are not found in the cache.",
    "acquire: thrown Existing acquisition lock timeout exists, cannot override.",
    "acquire: thrown inconsistent range",
    "acquire: with a gap",
    "acknowledge: write",
    "acknowledge: done UNKNOWN_SERVER_ERROR None",
    "acknowledge: done INVALID_REQUEST Invalid acknowledge type",
    f"acknowledge: done INVALID_RECORD_STATE {_NOT_ACQUIRED}",
    "acknowledge: done INVALID_RECORD_STATE Member is not the owner of offset",
    "acknowledge: done INVALID_RECORD_STATE Renewing acquisition locks is not enabled for the group.",
    "expire: write",
    "release: write",
    "written: done",
    "written: fetches",
    "written: done NOT_LEADER_OR_FOLLOWER write went wrong",
    "read: done UNKNOWN_SERVER_ERROR Unknown record state id",
    "step log_start",
    "step settings",
    "step fence",
}
"""What has to occur in any run: a generator that no longer gets there proves less than it seems to."""


@pytest.fixture(scope="module")
def kafka() -> Iterator[JavaPartner]:
    """Kafka's share partition in virtual time."""
    partner = kafka_share_partition()
    try:
        yield partner
    finally:
        partner.close()


def test_generated_sequences_go_as_in_kafka(kafka: JavaPartner) -> None:
    @settings(max_examples=SEQUENCES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def search(data: DataObject) -> None:
        sequence = built(drawn_by_hypothesis(data))

        assert difference(sequence.case, sequence.own, kafka.ask(sequence.case)) is None, sequence.case

    search()


@pytest.mark.parametrize("sequences", [500, pytest.param(20_000, marks=pytest.mark.deep)])
def test_seeded_sequences_go_as_in_kafka_and_reach_what_they_should(kafka: JavaPartner, sequences: int) -> None:
    """Many more, and the same each time; the command takes other seeds."""
    reached, differing = run(kafka, sequences, seed=1)

    assert differing == []
    assert REACHED - reached.keys() == set()


def test_recorded_sequences_go_as_recorded_in_kafka_itself(kafka: JavaPartner) -> None:
    """The oracle answers what was recorded, so that its word can be taken."""
    assert [case["id"] for case in list(load(RECORDED))[::10] if kafka.ask(case) != case["expect"]] == []
