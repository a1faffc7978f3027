"""Share groups on an EmbeddedServer, with confluent-kafka's ShareConsumer: restarts, time that is moved, groups waited for."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from confluent_kafka import Message, ShareConsumer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from kgctl.testing import EmbeddedServer
from tests.support.patience import PATIENCE_S

pytestmark = [pytest.mark.interop, pytest.mark.timeout(120)]

GROUP, TOPIC = "workers", "orders"


def from_the_start(cluster: EmbeddedServer) -> None:
    """Let the group begin at the start of its topics."""
    earliest = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    group = ConfigResource(ResourceType.GROUP, GROUP, incremental_configs=[earliest])
    client = AdminClient({"bootstrap.servers": cluster.bootstrap})
    client.incremental_alter_configs([group])[group].result()


def worker(cluster: EmbeddedServer) -> ShareConsumer:
    """One that acknowledges what it is told to."""
    settings = {"bootstrap.servers": cluster.bootstrap, "group.id": GROUP, "share.acknowledgement.mode": "explicit"}
    consumer = ShareConsumer(settings)
    consumer.subscribe([TOPIC])
    return consumer


def polled(consumer: ShareConsumer, count: int) -> Sequence[Message]:
    """So many records, or what has come when patience ends."""
    found: list[Message] = []
    end_s = time.monotonic() + PATIENCE_S
    while len(found) < count and time.monotonic() < end_s:
        found += consumer.poll(0.2)
    return found


def deliveries(messages: Sequence[Message]) -> list[tuple[bytes | None, int | None]]:
    return [(message.value(), message.delivery_count()) for message in messages]


def test_what_is_acknowledged_is_there_after_a_restart(tmp_path: Path) -> None:
    with EmbeddedServer({TOPIC: 1}, data=tmp_path, quick=True) as cluster:
        from_the_start(cluster)
        cluster.produce(TOPIC, "a", "b", "c")
        consumer = worker(cluster)
        first, *_ = polled(consumer, 3)
        consumer.acknowledge(first)
        consumer.commit_sync(PATIENCE_S)
        consumer.close()
    with EmbeddedServer(data=tmp_path, quick=True) as cluster:
        consumer = worker(cluster)
        assert deliveries(polled(consumer, 2)) == [(b"b", 2), (b"c", 2)]
        consumer.close()


def test_locks_end_with_the_time_that_is_moved() -> None:
    with EmbeddedServer({TOPIC: 1}, quick=True) as cluster:
        from_the_start(cluster)
        cluster.produce(TOPIC, "a")
        slow, other = worker(cluster), worker(cluster)
        assert deliveries(polled(slow, 1)) == [(b"a", 1)]
        cluster.advance(30_000, keep=[])
        assert deliveries(polled(other, 1)) == [(b"a", 2)]
        other.close()
        slow.close()


def test_a_share_group_is_waited_for() -> None:
    with EmbeddedServer({TOPIC: 1}, quick=True) as cluster:
        from_the_start(cluster)
        cluster.produce(TOPIC, "a", "b")
        consumer = worker(cluster)
        for message in polled(consumer, 2):
            consumer.acknowledge(message)
        consumer.commit_sync(PATIENCE_S)
        consumer.close()
        found = cluster.wait_for_group(GROUP, state="Empty")
        assert (found.group_id, str(found.state)) == (GROUP, "Empty")
