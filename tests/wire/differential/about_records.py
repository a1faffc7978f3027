"""Conversations about records: writing, reading, where they stand."""

from __future__ import annotations

import struct
from typing import Any
from uuid import UUID

from kgctl.serde.record_batch import Record, build_batch
from tests.wire.differential.probe import Probe
from tests.wire.differential.talk import (
    DELETE_RECORDS,
    DESCRIBE_TOPIC_PARTITIONS,
    FETCH,
    INIT_PRODUCER_ID,
    LIST_OFFSETS,
    METADATA,
    NO_TOPIC_ID,
    OFFSET_FOR_LEADER_EPOCH,
    batch,
    create_topic,
    produce,
    resealed,
)


def producing(probe: Probe, version: int, name: str) -> None:
    topic_id = create_topic(probe, name)
    good = batch()
    produce(probe, version, name, topic_id, good)
    produce(probe, version, name, topic_id, batch(3))
    produce(probe, version, name, topic_id, good, acks=1, partition=1)
    produce(probe, version, name, topic_id, good, acks=2)
    produce(probe, version, name, topic_id, good, partition=7)
    produce(probe, version, "nosuch", UUID(NO_TOPIC_ID), good)
    produce(probe, version, name, topic_id, good[:-1] + b"x")
    produce(probe, version, name, topic_id, good[:40])
    produce(probe, version, name, topic_id, good + good)
    produce(probe, version, name, topic_id, good[:16] + b"\x01" + good[17:])
    produce(probe, version, name, topic_id, b"")
    for base_offset in (1, -5):
        produce(probe, version, name, topic_id, struct.pack(">q", base_offset) + good[8:])
    produce(probe, version, name, topic_id, resealed(good, 21, b"\x00\x20"))
    produce(probe, version, name, topic_id, batch(1, timestamp_ms=0) + b"")
    produce(probe, version, name, topic_id, build_batch([Record(0, 0, None, b"v" * 1_100_000)]))


def producing_idempotently(probe: Probe, version: int, name: str) -> None:
    topic_id = create_topic(probe, name)
    body = probe.until(
        INIT_PRODUCER_ID, 4, {"transactional_id": None, "transaction_timeout_ms": 1000}, lambda body: body.error_code == 0
    )
    producer_id = body.producer_id

    def write(sequence: int, count: int = 2, epoch: int = 0) -> None:
        data = batch(count, producer_id=producer_id, producer_epoch=epoch)
        produce(probe, version, name, topic_id, resealed(data, 53, struct.pack(">i", sequence)))

    write(0)
    write(2)
    write(0)
    write(2)
    write(9)
    write(4)
    write(5)
    write(1, 1)
    write(3, epoch=1)
    write(0, epoch=1)
    write(2, epoch=0)
    write(2, epoch=1)


def producer_ids(probe: Probe, version: int, name: str) -> None:
    probe.call(INIT_PRODUCER_ID, version, {"transactional_id": None, "transaction_timeout_ms": 1000})
    probe.call(INIT_PRODUCER_ID, version, {"transactional_id": "", "transaction_timeout_ms": 1000})
    for known in ((5, -1), (-1, 5), (5, 0), (-2, -2)) if version >= 3 else ():
        identity = dict(zip(("producer_id", "producer_epoch"), known, strict=True))
        probe.call(INIT_PRODUCER_ID, version, {"transactional_id": None, "transaction_timeout_ms": 1000, **identity})


def listing_offsets(probe: Probe, version: int, name: str) -> None:
    topic_id = create_topic(probe, name)
    produce(probe, 9, name, topic_id, batch(3))
    produce(probe, 9, name, topic_id, batch(2, timestamp_ms=1_600_000_000_000))
    for timestamp in (-1, -2, -3, -4, -5, -6, -7, 0, 1_600_000_000_001, 1_700_000_000_001, 1_800_000_000_000):
        partitions = [{"partition_index": index, "timestamp": timestamp} for index in (0, 1, 9)]
        topics = [{"name": name, "partitions": partitions}, {"name": "nosuch", "partitions": partitions[:1]}]
        probe.call(LIST_OFFSETS, version, {"replica_id": -1, "isolation_level": 0, "topics": topics})
    for epoch in (0, 5):
        topics = [{"name": name, "partitions": [{"partition_index": 0, "timestamp": -1, "current_leader_epoch": epoch}]}]
        probe.call(LIST_OFFSETS, version, {"replica_id": -1, "isolation_level": 1, "topics": topics})


def fetching(probe: Probe, version: int, name: str) -> None:
    topic_id = create_topic(probe, name)
    produce(probe, 9, name, topic_id, batch(3))
    produce(probe, 9, name, topic_id, batch(2))

    def fetch(offset: int, *, topic: str = name, id_: Any = topic_id, partition: int = 0, **settings: Any) -> None:
        max_bytes = settings.pop("partition_max_bytes", 1_000_000)
        entry = {"partition": partition, "fetch_offset": offset, "partition_max_bytes": max_bytes, **settings.pop("entry", {})}
        topics = [{"topic": topic, "topic_id": id_, "partitions": [entry]}]
        probe.call(FETCH, version, {"max_wait_ms": 0, "min_bytes": 0, **settings, "topics": topics, "forgotten_topics_data": []})

    for offset in (0, 1, 3, 4, 5):
        fetch(offset)
    fetch(0, partition_max_bytes=1)
    fetch(0, max_bytes=1)
    fetch(0, isolation_level=1)
    fetch(6)
    fetch(-1)
    fetch(0, partition=7)
    fetch(0, topic="nosuch", id_=UUID(NO_TOPIC_ID))
    fetch(0, entry={"current_leader_epoch": 0})
    fetch(0, entry={"current_leader_epoch": 3})
    fetch(0, session_id=123, session_epoch=1)
    fetch(0, session_id=0, session_epoch=5)
    fetch(0, session_id=0, session_epoch=-5)
    fetch(0, session_id=123, session_epoch=-1)
    fetch(0, entry={"last_fetched_epoch": 0})
    fetch(0, entry={"last_fetched_epoch": 5})
    fetch(0, partition_max_bytes=-1)
    fetch(5, partition_max_bytes=-1)
    fetch(0, max_bytes=-1)
    nothing = [{"topic": name, "topic_id": topic_id, "partitions": []}]
    probe.call(FETCH, version, {"max_wait_ms": 0, "min_bytes": 0, "topics": nothing, "forgotten_topics_data": []})
    fetch(5, max_wait_ms=50, min_bytes=1)


def leader_epochs(probe: Probe, version: int, name: str) -> None:
    topic_id = create_topic(probe, name)
    produce(probe, 9, name, topic_id, batch(3))
    for current in (-1, 0, 2):
        for wanted in (-1, 0, 1):
            partitions = [{"partition": index, "current_leader_epoch": current, "leader_epoch": wanted} for index in (0, 1, 8)]
            topics = [{"topic": name, "partitions": partitions}, {"topic": "nosuch", "partitions": partitions[:1]}]
            probe.call(OFFSET_FOR_LEADER_EPOCH, version, {"replica_id": -1, "topics": topics})


def deleting_records(probe: Probe, version: int, name: str) -> None:
    topic_id = create_topic(probe, name)
    produce(probe, 9, name, topic_id, batch(3))
    for partition, offset in ((0, 1), (0, 0), (0, 9), (0, -2), (0, -1), (1, -1), (7, 0)):
        topics = [{"name": name, "partitions": [{"partition_index": partition, "offset": offset}]}]
        probe.call(DELETE_RECORDS, version, {"topics": topics, "timeout_ms": 10_000})


def writing_to_internal_topics(probe: Probe, version: int, name: str) -> None:
    """One that Kafka makes when there is a share group, and that anybody may make before."""
    topic = "__share_group_state"
    topic_id = create_topic(probe, topic, 1)
    produce(probe, 9, topic, topic_id, batch())
    for partition in (0, 7):
        topics = [{"name": topic, "partitions": [{"partition_index": partition, "offset": -1}]}]
        probe.call(DELETE_RECORDS, version, {"topics": topics, "timeout_ms": 10_000})
    probe.call(METADATA, 12, {"topics": [{"name": topic}]})
    probe.call(DESCRIBE_TOPIC_PARTITIONS, 0, {"topics": [{"name": topic}], "response_partition_limit": 10})


def deleting_records_by_policy(probe: Probe, version: int, name: str) -> None:
    """Of a topic that is only compacted none go, wherever they should end."""
    for policy in ("compact", "compact,delete", ""):
        topic = f"{name}-{len(policy)}"
        topic_id = create_topic(probe, topic, 2, **{"cleanup.policy": policy})
        produce(probe, 9, topic, topic_id, batch(3))
        for partition, offset in ((0, 1), (0, 9), (0, -1), (7, 0)):
            topics = [{"name": topic, "partitions": [{"partition_index": partition, "offset": offset}]}]
            probe.call(DELETE_RECORDS, version, {"topics": topics, "timeout_ms": 10_000})
