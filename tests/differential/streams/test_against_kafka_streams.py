"""Topologies, streams groups and Kafka Streams applications, as Kafka's own classes have them; `search` takes many more."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conformance.replay import load
from tests.differential.java_partner import JavaPartner
from tests.differential.streams.search import RECORDED, kafka_streams_tasks, run

pytestmark = [pytest.mark.kafka, pytest.mark.needs("javac")]

REACHED = {
    "topology": {
        "INCORRECTLY_PARTITIONED_TOPICS Existing topic",
        "INCORRECTLY_PARTITIONED_TOPICS Following topics do not have the same number of partitions",
        "INCORRECTLY_PARTITIONED_TOPICS of repartition topic",
        "MISSING_INTERNAL_TOPICS Internal topics are missing",
        "MISSING_SOURCE_TOPICS Source topics",
        "endpoint",
        "endpoint without a topic",
        "more than twelve topics to be made",
        "ready",
        "thrown INVALID_TOPIC_EXCEPTION Topic name is invalid",
        "thrown STREAMS_INVALID_TOPOLOGY No source topics found",
        "thrown STREAMS_INVALID_TOPOLOGY loops in the topology",
        "thrown STREAMS_INVALID_TOPOLOGY never used as a sink topic",
        "thrown UNKNOWN_SERVER_ERROR ",
    },
    "tasks": {
        "active tasks move",
        "members that share a process",
        "nobody to run tasks",
        "standby tasks",
        "too few processes for the standby tasks",
    },
    "classic": {
        "another rebalance is asked for",
        "at once",
        "endpoints",
        "error 1",
        "error 4",
        "probing",
        "stable",
        "standby tasks",
        "standby tasks apart from each other",
        "threads that share an instance",
        "warm-ups",
        *(f"version {version}" for version in (1, 2, 6, 7, 11)),
    },
    "user_data": {f"version {version}" for version in range(1, 12)},
}
"""What has to occur in any run: a generator that no longer gets there proves less than it seems to."""

COUNTS = {"topology": 500, "tasks": 500, "classic": 150, "user_data": 500}
"""Applications take as long as many of the others."""


@pytest.fixture(scope="module")
def kafka() -> Iterator[JavaPartner]:
    """Kafka's own classes."""
    partner = kafka_streams_tasks()
    try:
        yield partner
    finally:
        partner.close()


@pytest.mark.parametrize("times", [1, pytest.param(40, marks=pytest.mark.deep)])
@pytest.mark.parametrize("kind", REACHED)
def test_generated_questions_are_answered_as_by_kafka_and_reach_what_they_should(
    kafka: JavaPartner, kind: str, times: int
) -> None:
    reached, differing = run(kafka, kind, times * COUNTS[kind], seed=1)

    assert differing == []
    assert REACHED[kind] - reached.keys() == set()


def test_recorded_questions_are_answered_as_recorded_by_kafka_itself(kafka: JavaPartner) -> None:
    """The oracle answers what was recorded, so that its word can be taken."""
    assert [case["id"] for case in list(load(RECORDED))[::10] if kafka.ask(case) != case["expect"]] == []
