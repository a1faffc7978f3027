"""Conversations in which one request names a partition twice: in one topic's entry, and in two."""

from __future__ import annotations

from itertools import product
from typing import Any

from tests.wire.differential.probe import Probe
from tests.wire.differential.talk import (
    DELETE_RECORDS,
    FETCH,
    LIST_OFFSETS,
    OFFSET_FOR_LEADER_EPOCH,
    PRODUCE,
    batch,
    create_topic,
    produce,
)


def producing_twice(probe: Probe, version: int, name: str) -> None:
    topic_id = create_topic(probe, name)
    good, three = batch(2), batch(3)
    for batches in product((good, three, good[:40]), repeat=2):
        entries = [{"index": 0, "records": records} for records in batches]
        for topics in _both_ways(entries, "partition_data", name=name, topic_id=topic_id):
            probe.call(PRODUCE, version, {"acks": -1, "timeout_ms": 10_000, "topic_data": topics})
    ends = [{"name": name, "partitions": [{"partition_index": 0, "timestamp": -1}]}]
    probe.call(LIST_OFFSETS, 7, {"replica_id": -1, "isolation_level": 0, "topics": ends})


def fetching_twice(probe: Probe, version: int, name: str) -> None:
    topic_id = create_topic(probe, name)
    produce(probe, 9, name, topic_id, batch(3))
    produce(probe, 9, name, topic_id, batch(2))
    produce(probe, 9, name, topic_id, batch(2), partition=1)
    settings = {"max_wait_ms": 0, "min_bytes": 0, "forgotten_topics_data": []}
    for places in ((0, 3), (3, 0), (0, 9), (9, 0)):
        entries = [{"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1_000_000} for offset in places]
        entries.insert(1, {"partition": 1, "fetch_offset": 0, "partition_max_bytes": 1_000_000})
        for topics in _both_ways(entries, "partitions", topic=name, topic_id=topic_id):
            probe.call(FETCH, version, {**settings, "topics": topics})


def deleting_records_twice(probe: Probe, version: int, name: str) -> None:
    topic_id = create_topic(probe, name)
    produce(probe, 9, name, topic_id, batch(9))
    for offsets in ((1, 2), (3, 2), (4, 99), (99, 5), (6, 6)):
        entries = [{"partition_index": 0, "offset": offset} for offset in offsets]
        for topics in _both_ways(entries, "partitions", name=name):
            probe.call(DELETE_RECORDS, version, {"topics": topics, "timeout_ms": 10_000})


def listing_offsets_twice(probe: Probe, version: int, name: str) -> None:
    topic_id = create_topic(probe, name)
    produce(probe, 9, name, topic_id, batch(3))
    entries = [{"partition_index": 0, "timestamp": timestamp} for timestamp in (-1, -2)]
    for topics in _both_ways(entries, "partitions", name=name):
        probe.call(LIST_OFFSETS, version, {"replica_id": -1, "isolation_level": 0, "topics": topics})


def leader_epochs_twice(probe: Probe, version: int, name: str) -> None:
    topic_id = create_topic(probe, name)
    produce(probe, 9, name, topic_id, batch(3))
    entries = [{"partition": 0, "current_leader_epoch": -1, "leader_epoch": epoch} for epoch in (0, 1)]
    for topics in _both_ways(entries, "partitions", topic=name):
        probe.call(OFFSET_FOR_LEADER_EPOCH, version, {"replica_id": -1, "topics": topics})


def _both_ways(entries: list[dict[str, Any]], key: str, **topic: Any) -> list[list[dict[str, Any]]]:
    return [[{**topic, key: entries}], [{**topic, key: [entry]} for entry in entries]]
