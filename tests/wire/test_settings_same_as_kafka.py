"""Settings of a broker that change answers, with values of their own: what Apache Kafka says then, and kgctl."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping

import pytest

from kgctl.server.background import BackgroundServer
from tests.support.kafka import KafkaBroker
from tests.support.kafka.data import wait_until_coordinating
from tests.wire.differential.differences import differences
from tests.wire.differential.probe import Probe
from tests.wire.differential.talk import CREATE_TOPICS, DELETE_TOPICS, FIND_COORDINATOR, INIT_PRODUCER_ID, METADATA, create_topic

pytestmark = pytest.mark.kafka

CONFIG: Mapping[str, str] = {
    "delete.topic.enable": "false",
    "transaction.max.timeout.ms": "5000",
    "auto.create.topics.enable": "true",
    "default.replication.factor": "3",
}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    kafka = KafkaBroker(tmp_path_factory.mktemp("kafka-settings"), overrides=CONFIG)
    try:
        kafka.start()
        wait_until_coordinating(kafka.bootstrap)
        with BackgroundServer(config=CONFIG) as ours:
            yield kafka.bootstrap, ours.bootstrap
    finally:
        kafka.stop()


def topics_that_stay(probe: Probe) -> None:
    create_topic(probe, "stays")
    for version in range(1, 7):
        for names in (["stays"], ["nosuch"], ["stays", "stays"]):
            topics = [{"name": name} for name in names]
            probe.call(DELETE_TOPICS, version, {"topics": topics, "topic_names": names, "timeout_ms": 10_000})
    topic = {"name": "stays", "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
    probe.call(CREATE_TOPICS, 7, {"topics": [topic], "timeout_ms": 10_000})


def topics_for_too_few_brokers(probe: Probe) -> None:
    for number, factor in enumerate((-1, 1, 2)):
        topic = {"name": f"spread-{number}", "num_partitions": 1, "replication_factor": factor, "assignments": [], "configs": []}
        probe.call(CREATE_TOPICS, 7, {"topics": [topic], "timeout_ms": 10_000, "validate_only": True})
    for _ in range(5):
        probe.call(METADATA, 12, {"topics": [{"name": "when-asked-for"}], "allow_auto_topic_creation": True})
        time.sleep(0.2)  # Kafka's controller would be asked meanwhile


def transactions_that_are_short(probe: Probe) -> None:
    first = {"transactional_id": "first", "transaction_timeout_ms": 1_000}
    probe.until(FIND_COORDINATOR, 3, {"key_type": 1, "key": "first"}, lambda body: body.error_code == 0)
    probe.until(INIT_PRODUCER_ID, 4, first, lambda body: body.error_code == 0)
    for timeout_ms in (5_000, 5_001, 900_000):
        probe.call(INIT_PRODUCER_ID, 4, {"transactional_id": "t", "transaction_timeout_ms": timeout_ms})


@pytest.mark.parametrize("conversation", [topics_that_stay, topics_for_too_few_brokers, transactions_that_are_short])
def test_every_answer_is_kafkas(conversation: Callable[[Probe], None], servers: tuple[str, str]) -> None:
    answers = []
    for bootstrap in servers:
        probe = Probe(bootstrap)
        conversation(probe)
        probe.close()
        answers.append(probe.answers)
    theirs, ours = answers
    found = [
        f"{asked}\n  {line}"
        for (asked, expected), (_, answer) in zip(theirs, ours, strict=True)
        for line in differences("settings", expected, answer)
    ]
    assert not found, "\n".join(found)
