"""The two servers of the comparison, with nothing in their configuration that depends on time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

from kgctl.server.background import BackgroundServer
from kgctl.server.runtime import new_member_id
from tests.support.kafka import KafkaBroker
from tests.support.kafka.data import wait_until_coordinating
from tests.wire.differential.probe import Probe
from tests.wire.differential.talk import FIND_COORDINATOR, INIT_PRODUCER_ID, create_topic
from tests.wire.generated.compare import Server
from tests.wire.generated.steps import TOPICS

CONFIG = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.assignors": "range,uniform",
    "group.consumer.session.timeout.ms": "60000",
    "offsets.topic.num.partitions": "1",
}


def told_or_own(told: deque[str]) -> Callable[[str], str]:
    """A source of member ids that gives what it is told to first: who gets which partitions goes by the ids."""
    return lambda prefix: told.popleft() if told else new_member_id(prefix)


@contextmanager
def both_servers(folder: Path) -> Iterator[tuple[Server, Server]]:
    """Apache Kafka and kgctl's server, with the same topics.

    Raises:
        Unavailable: Apache Kafka cannot be had on this machine.
    """
    broker = KafkaBroker(folder, overrides=CONFIG)
    try:
        broker.start()
        wait_until_coordinating(broker.bootstrap)
        _wait_for_transactions(broker.bootstrap)
        kafka = _with_topics(broker.bootstrap)
        told: deque[str] = deque()
        with patch("kgctl.server.service.new_member_id", told_or_own(told)), BackgroundServer(config=CONFIG) as embedded:
            # The same ids, for they decide orders, and by that who gets which partitions.
            with patch("kgctl.server.cluster.new_topic_id", side_effect=list(kafka.topic_ids.values())):
                kgctl = _with_topics(embedded.bootstrap)
            yield kafka, replace(kgctl, next_ids=told)
    finally:
        broker.stop()


def _wait_for_transactions(bootstrap: str) -> None:
    """The first producer makes Kafka create the topic that transactions are kept in."""
    probe = Probe(bootstrap)
    probe.until(FIND_COORDINATOR, 2, {"key": "first", "key_type": 1}, lambda body: body.error_code == 0)
    values = {"transactional_id": "first", "transaction_timeout_ms": 30_000, "producer_id": -1, "producer_epoch": -1}
    probe.until(INIT_PRODUCER_ID, 4, values, lambda body: body.error_code == 0)
    probe.close()


def _with_topics(bootstrap: str) -> Server:
    probe = Probe(bootstrap)
    topic_ids = {name: create_topic(probe, name, partitions) for name, partitions in TOPICS.items()}
    probe.close()
    return Server(bootstrap, topic_ids)
