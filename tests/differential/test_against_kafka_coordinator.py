"""Kafka's own coordinator and the core do the same with generated sequences; the deep run is `tests.differential.search`."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from tests.conformance.replay import load
from tests.differential.oracle import KafkaCoordinator
from tests.differential.search import GOLDEN, Tally, compare
from tests.differential.verdict import Verdict
from tests.support.kafka.fixtures import java_or_skip

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]

SEQUENCES = 2_000 if os.environ.get("KGCTL_HYPOTHESIS") == "exhaustive" else 250
RECORDED = GOLDEN.parents[1] / "conformance" / "cases" / "coordinator_generated.jsonl.gz"


@pytest.fixture(scope="module")
def kafka() -> Iterator[KafkaCoordinator]:
    """Kafka's coordinator in virtual time; skips where there is no Java or no Maven Central."""
    with java_or_skip():
        partner = KafkaCoordinator()
    try:
        yield partner
    finally:
        partner.close()


def test_generated_sequences_go_as_in_kafka(kafka: KafkaCoordinator) -> None:
    tally = Tally()

    @settings(max_examples=SEQUENCES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def run(data: DataObject) -> None:
        case, found = compare(kafka, data, tally)

        assert found == [], case

    run()


def test_recorded_sequences_go_as_recorded_in_kafka_itself(kafka: KafkaCoordinator) -> None:
    """The oracle answers what the sequences' authors saw, so that its word can be taken."""
    for case in list(load(RECORDED))[::8]:
        assert Verdict(case, kafka.expect(case)).differences == [], case["id"]
