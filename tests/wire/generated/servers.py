"""The two servers of the comparison, with nothing in their configuration that depends on time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

from kgctl.server.background import EmbeddedServer
from kgctl.server.runtime import new_member_id
from tests.support.kafka import KafkaBroker
from tests.support.kafka.data import wait_until_coordinating
from tests.wire.differential.probe import Probe
from tests.wire.differential.talk import create_topic
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
        MavenUnavailable: Apache Kafka cannot be had on this machine.
    """
    broker = KafkaBroker(folder, overrides=CONFIG)
    try:
        broker.start()
        wait_until_coordinating(broker.bootstrap)
        told: deque[str] = deque()
        with patch("kgctl.server.service.new_member_id", told_or_own(told)), EmbeddedServer(config=CONFIG) as embedded:
            yield _with_topics(broker.bootstrap), replace(_with_topics(embedded.bootstrap), next_ids=told)
    finally:
        broker.stop()


def _with_topics(bootstrap: str) -> Server:
    probe = Probe(bootstrap)
    topic_ids = {name: create_topic(probe, name, partitions) for name, partitions in TOPICS.items()}
    probe.close()
    return Server(bootstrap, topic_ids)
