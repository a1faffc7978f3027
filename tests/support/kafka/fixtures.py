"""pytest's side: Apache Kafka as fixtures, fetched before the first test so that no test's time limit pays for it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TypeVar

import pytest

from tests.support.gates import needs_of, what_is_missing
from tests.support.kafka.broker import KafkaBroker, class_data_archive
from tests.support.kafka.cluster import KafkaCluster
from tests.support.kafka.data import wait_until_coordinating
from tests.support.kafka.lossy import LossyCluster
from tests.support.kafka.security import SecureKafkaBroker
from tests.support.machine import Unavailable

_Broker = TypeVar("_Broker", bound=KafkaBroker)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Fetches Apache Kafka once, if a selected test needs it."""
    wanted = any(item.get_closest_marker("kafka") and not what_is_missing(needs_of(item)) for item in session.items)
    if wanted and not session.config.option.collectonly:
        with contextlib.suppress(Unavailable):
            class_data_archive()


@pytest.fixture(scope="session")
def kafka_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """One plain node of Apache Kafka for the whole run: use names of your own (`unique`), and leave it running."""
    broker = KafkaBroker(tmp_path_factory.mktemp("kafka"))
    yield from _started(broker)


@pytest.fixture(scope="session")
def secure_kafka_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureKafkaBroker]:
    """One node with TLS, SASL and access control lists."""
    broker = SecureKafkaBroker(tmp_path_factory.mktemp("kafka-secure"))
    yield from _started(broker)


@pytest.fixture
def own_kafka_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A plain node for one test alone, which may freeze, stop or kill it."""
    broker = KafkaBroker(tmp_path_factory.mktemp("kafka-own"))
    yield from _started(broker)


@pytest.fixture(scope="session")
def three_kafka_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """Three brokers."""
    cluster = KafkaCluster(tmp_path_factory.mktemp("kafka-cluster"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="session")
def lossy_kafka_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LossyCluster]:
    """Three brokers, and proxies before them that lose connections when they are told to; tell them no more afterwards."""
    cluster = LossyCluster(tmp_path_factory.mktemp("kafka-lossy"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def _started(broker: _Broker) -> Iterator[_Broker]:
    try:
        broker.start()
        wait_until_coordinating(broker.bootstrap)
        yield broker
    finally:
        broker.stop()
