"""Conversations about committed offsets."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from kgctl.model.coordinator_records import OffsetCommitKey, OffsetCommitValue
from kgctl.model.groups import ConsumerSubscription
from kgctl.serde.consumer_protocol import encode_subscription
from kgctl.serde.coordinator_records import encode_key, encode_value
from kgctl.serde.record_batch import HEADER_BYTES, record_size
from tests.wire.differential.probe import Probe
from tests.wire.differential.talk import (
    JOIN_GROUP,
    NO_TOPIC_ID,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    OFFSET_FETCH,
    SYNC_GROUP,
    commit_values,
    create_topic,
    fetch_all,
    join_values,
    joined,
    sync_values,
)

_LONGEST = 4_096
"""``offset.metadata.max.bytes``."""
_BATCH_BYTES = 1_048_588
"""``message.max.bytes``."""

COMMITS: tuple[dict[str, Any], ...] = (
    {},
    {"generation_id_or_member_epoch": 3},
    {"member_id": "nosuch"},
    {"member_id": "nosuch", "generation_id_or_member_epoch": 1},
    {"group_id": ""},
)


def committing(probe: Probe, version: int, name: str) -> None:
    topic_id = create_topic(probe, name)
    for settings in COMMITS:
        probe.call(OFFSET_COMMIT, version, commit_values(name, topic_id, **settings))
    probe.call(OFFSET_COMMIT, version, commit_values(name, topic_id, metadata=None, offset=-7))
    probe.call(OFFSET_COMMIT, version, commit_values(name, topic_id, metadata="x" * 5_000))
    probe.call(OFFSET_COMMIT, version, commit_values(name, topic_id, partition=9))
    probe.call(OFFSET_COMMIT, version, commit_values("nosuch", UUID(NO_TOPIC_ID), group_id=name))
    probe.call(OFFSET_COMMIT, version, {**commit_values(name, topic_id), "topics": []})
    mixed = commit_values(name, topic_id)
    mixed["topics"][0]["partitions"] = [
        {**mixed["topics"][0]["partitions"][0], "partition_index": index} for index in (1, 9, 0, -1)
    ]
    mixed["topics"] += commit_values("nosuch", UUID(NO_TOPIC_ID))["topics"]
    probe.call(OFFSET_COMMIT, version, mixed)
    fetch_all(probe, 7, name)


def committing_as_a_member(probe: Probe, version: int, name: str) -> None:
    topic_id = create_topic(probe, name)
    member_id, generation_id = joined(probe, name)
    for member in (member_id, "nosuch", ""):
        for generation in (generation_id, 9, -1):
            values = commit_values(name, topic_id, member_id=member, generation_id_or_member_epoch=generation)
            probe.call(OFFSET_COMMIT, version, values)
    body = probe.call(JOIN_GROUP, 3, join_values(name, member_id=member_id), note=False)
    values = commit_values(name, topic_id, member_id=member_id, generation_id_or_member_epoch=body.generation_id)
    probe.call(OFFSET_COMMIT, version, values)


def committing_too_much(probe: Probe, version: int, name: str) -> None:
    """As many offsets as a batch of records has room for, and one more; metadata that is too long has no part in it."""
    topic_id = create_topic(probe, name)
    values = commit_values(name, topic_id, metadata="x" * _LONGEST)
    (entry,) = values["topics"][0]["partitions"]
    most = _most_that_fit(name)
    values["topics"][0]["partitions"] = [entry] * most
    probe.call(OFFSET_COMMIT, version, values)
    values["topics"][0]["partitions"] = [entry] * (most + 1)
    probe.call(OFFSET_COMMIT, version, values)
    values["topics"][0]["partitions"] = [entry] * most + [{**entry, "committed_metadata": "x" * 5_000}]
    probe.call(OFFSET_COMMIT, version, values)


def _most_that_fit(name: str) -> int:
    key = OffsetCommitKey(name, name, 0)
    value = encode_value(key, OffsetCommitValue(5, 2, "x" * _LONGEST, 0, topic_id=UUID(int=1)))
    left, count = _BATCH_BYTES - HEADER_BYTES, 0
    while (left := left - record_size(len(encode_key(key)), len(value or b""), count)) >= 0:
        count += 1
    return count


def fetching_offsets(probe: Probe, version: int, name: str) -> None:
    topic_id = create_topic(probe, name)
    probe.call(OFFSET_COMMIT, 8, commit_values(name, topic_id))
    probe.call(OFFSET_COMMIT, 8, commit_values(name, topic_id, partition=1, metadata=None))
    for group in (name, "nosuch", ""):
        if version >= 2:
            fetch_all(probe, version, group)
        for topic, id_ in ((name, topic_id), ("nosuch", UUID(NO_TOPIC_ID))):
            topics = [{"name": topic, "topic_id": id_, "partition_indexes": [1, 0, 9]}]
            for extra in ({}, {"member_id": "x", "member_epoch": 4}):
                groups = [{"group_id": group, "topics": topics, **extra}]
                for stable in (False, True):
                    probe.call(
                        OFFSET_FETCH, version, {"group_id": group, "topics": topics, "groups": groups, "require_stable": stable}
                    )
    empty: dict[str, Any] = {"group_id": name, "topics": [], "groups": [{"group_id": name, "topics": []}]}
    probe.call(OFFSET_FETCH, version, empty)
    none = [{"name": name, "topic_id": topic_id, "partition_indexes": []}]
    for group in (name, "nosuch", ""):
        probe.call(OFFSET_FETCH, version, {"group_id": group, "topics": none, "groups": [{"group_id": group, "topics": none}]})
    if version >= 8:
        probe.call(OFFSET_FETCH, version, {"groups": []})
        both = [
            {"name": topic, "topic_id": id_, "partition_indexes": [0]}
            for topic, id_ in (("no", UUID(NO_TOPIC_ID)), (name, topic_id))
        ]
        probe.call(
            OFFSET_FETCH, version, {"groups": [{"group_id": name, "topics": both}, {"group_id": "nosuch", "topics": both}]}
        )


def deleting_offsets(probe: Probe, version: int, name: str) -> None:
    topic_id = create_topic(probe, name)
    create_topic(probe, f"{name}-b")
    probe.call(OFFSET_COMMIT, 8, commit_values(name, topic_id))
    for group in ("", "nosuch", name):
        asked: tuple[list[tuple[str, list[int]]], ...] = (
            [(name, [0, 1])],
            [(name, [0, 9]), ("nosuch", [0])],
            [("nosuch", [0])],
            [],
            [(name, [])],
        )
        for topics in asked:
            values = [{"name": topic, "partitions": [{"partition_index": p} for p in partitions]} for topic, partitions in topics]
            probe.call(OFFSET_DELETE, version, {"group_id": group, "topics": values})
    fetch_all(probe, 7, name)
    subscription = encode_subscription(ConsumerSubscription((name,)))
    body = probe.call(
        JOIN_GROUP, 3, {**join_values(f"{name}-live"), "protocols": [{"name": "range", "metadata": subscription}]}, note=False
    )
    probe.call(SYNC_GROUP, 3, sync_values(f"{name}-live", body.member_id, 1), note=False)
    rows = [{"name": topic, "partitions": [{"partition_index": 0}]} for topic in (name, f"{name}-b", "nosuch")]
    probe.call(OFFSET_DELETE, version, {"group_id": f"{name}-live", "topics": rows})
