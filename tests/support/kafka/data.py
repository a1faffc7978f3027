"""Topics, records and commits that a test puts into a cluster before it looks at them through kgctl."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Mapping
from concurrent.futures import Future
from typing import TypeVar

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    ElectionType,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic, TopicMetadata

from tests.support.patience import PATIENCE_S

TIMEOUT_S = PATIENCE_S

_T = TypeVar("_T")
_Key = TypeVar("_Key")
_numbers = itertools.count(1)

# Answers of a coordinator that has only just got its partition: ask again.
_NOT_YET = frozenset({
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
})  # fmt: skip


def unique(prefix: str) -> str:
    """A name that no other test of this or an earlier run uses."""
    return f"{prefix}-{os.getpid()}-{next(_numbers)}"


def admin_client(bootstrap: str, properties: Mapping[str, str] | None = None) -> AdminClient:
    """An admin client of confluent-kafka; ``properties`` are librdkafka's."""
    return AdminClient({"bootstrap.servers": bootstrap, "reconnect.backoff.ms": 1, **(properties or {})})


def result_of(futures: Mapping[_Key, Future[_T]]) -> _T:
    """The result of a call that was made for one thing."""
    (future,) = futures.values()
    return future.result(TIMEOUT_S)


def wait_until_coordinating(bootstrap: str, partitions: int = 1) -> None:
    """Returns once the offsets topic is there and each of its ``partitions`` is loaded; leaves no group behind.

    A consumer asks: librdkafka 2.16's admin client ends the whole process by SIGSEGV (its OffsetFetch handler wants a consumer
    group handle that it has not) where a coordinator answers that it is none, as one of a new cluster does.
    """
    for number in range(partitions):  # the names' Java hashes are consecutive, so each partition has one
        _wait_until_coordinating(bootstrap, f"nobody-{number}")


def _wait_until_coordinating(bootstrap: str, group: str) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "reconnect.backoff.ms": 1})
    deadline = time.monotonic() + TIMEOUT_S
    try:
        while not _answers_for_group(consumer):
            assert time.monotonic() < deadline, f"no coordinator after {TIMEOUT_S} s"
            time.sleep(0.02)
    finally:
        consumer.close()


def _answers_for_group(consumer: Consumer) -> bool:
    try:
        consumer.committed([TopicPartition("nothing", 0)], timeout=TIMEOUT_S)
    except KafkaException as error:
        if error.args[0].code() not in _NOT_YET:
            raise
        return False
    return True


def wait_for_brokers(bootstrap: str, count: int) -> None:
    """Returns once ``count`` brokers are registered."""
    admin = admin_client(bootstrap)
    deadline = time.monotonic() + TIMEOUT_S
    while len(admin.list_topics(timeout=TIMEOUT_S).brokers) < count:
        assert time.monotonic() < deadline, f"fewer than {count} brokers after {TIMEOUT_S} s"
        time.sleep(0.05)


def create_topic(
    bootstrap: str, topic: str, partitions: int = 1, *, replication: int = 1, config: Mapping[str, str] | None = None
) -> str:
    """Creates ``topic``, waits until each partition has a leader, and returns its name."""
    admin = admin_client(bootstrap)
    result_of(
        admin.create_topics([NewTopic(topic, partitions, replication, config=dict(config or {}))], request_timeout=TIMEOUT_S)
    )
    deadline = time.monotonic() + TIMEOUT_S
    while not _has_leaders(admin, topic, partitions):
        assert time.monotonic() < deadline, f"{topic} has no leaders after {TIMEOUT_S} s"
        time.sleep(0.02)
    return topic


def _has_leaders(admin: AdminClient, topic: str, partitions: int) -> bool:
    found = admin.list_topics(topic, timeout=TIMEOUT_S).topics[topic]
    return found.error is None and len(found.partitions) == partitions and all(p.leader >= 0 for p in found.partitions.values())


def elect_preferred_leaders(bootstrap: str) -> None:
    """Returns once every partition is led by its first replica, as when it was made."""
    admin = admin_client(bootstrap)
    deadline = time.monotonic() + TIMEOUT_S
    while not all(led_as_made(topic) for topic in admin.list_topics(timeout=TIMEOUT_S).topics.values()):
        assert time.monotonic() < deadline, f"leaders are not as made after {TIMEOUT_S} s"
        admin.elect_leaders(ElectionType.PREFERRED, None).result(TIMEOUT_S)
        time.sleep(0.1)


def led_as_made(topic: TopicMetadata) -> bool:
    """Whether each partition's first replica leads it."""
    return all(partition.leader == partition.replicas[0] for partition in topic.partitions.values())


def delete_topic(bootstrap: str, topic: str) -> None:
    """Deletes ``topic``."""
    admin = admin_client(bootstrap)  # kept in a name: futures of a client that is gone never end
    result_of(admin.delete_topics([topic], request_timeout=TIMEOUT_S))


def produce(bootstrap: str, topic: str, counts: Mapping[int, int], *, timestamp_ms: int | None = None, step_ms: int = 0) -> None:
    """Produces ``counts[partition]`` records to each partition.

    Record ``i`` of a partition has the timestamp ``timestamp_ms + i * step_ms`` (without ``timestamp_ms``: the time of sending).
    """
    failed: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: object) -> None:
        if error is not None:
            failed.append(error)

    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "reconnect.backoff.ms": 1})
    for partition, count in counts.items():
        for number in range(count):
            when = int(time.time() * 1000) if timestamp_ms is None else timestamp_ms + number * step_ms
            producer.produce(topic, b"%d" % number, partition=partition, on_delivery=delivered, timestamp=when)
        producer.poll(0)
    assert producer.flush(TIMEOUT_S) == 0, f"records for {topic} are still waiting after {TIMEOUT_S} s"
    assert not failed, failed


def commit(bootstrap: str, group: str, offsets: Mapping[tuple[str, int], int], *, metadata: str = "") -> None:
    """Commits for a group without members, through the admin API; asks again while the coordinator or a new topic is loading."""
    admin = admin_client(bootstrap)
    deadline = time.monotonic() + TIMEOUT_S
    waiting = [TopicPartition(topic, partition, offset, metadata=metadata) for (topic, partition), offset in offsets.items()]
    while True:
        asked = ConsumerGroupTopicPartitions(group, waiting)
        answer = result_of(admin.alter_consumer_group_offsets([asked], request_timeout=TIMEOUT_S))
        refused = [row for row in answer.topic_partitions if row.error is not None]
        if not refused:
            return
        assert all(row.error.code() in _NOT_YET for row in refused), refused
        assert time.monotonic() < deadline, f"commits of {group} not taken after {TIMEOUT_S} s: {refused}"
        waiting = [TopicPartition(row.topic, row.partition, row.offset, metadata=metadata) for row in refused]
        time.sleep(0.05)


def committed(bootstrap: str, group: str) -> dict[tuple[str, int], int]:
    """The committed offsets of ``group`` as confluent-kafka reads them."""
    admin = admin_client(bootstrap)
    answer = result_of(admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)], request_timeout=TIMEOUT_S))
    return {(row.topic, row.partition): row.offset for row in answer.topic_partitions}
