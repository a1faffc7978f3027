"""OffsetDelete, and the end of offsets whose group or topic is deleted.

Kafka: OffsetMetadataManager#deleteOffsets and #deleteAllOffsets.
"""

from __future__ import annotations

from collections.abc import Iterable

from kgctl.coordinator.refusals import refuse
from kgctl.coordinator.requests import OffsetDelete
from kgctl.coordinator.results import OffsetDeleteResult
from kgctl.coordinator.shard import Shard
from kgctl.model.error_codes import ErrorCode
from kgctl.model.partitions import ZERO_UUID, TopicMetadata, TopicPartition
from kgctl.model.records import OffsetCommitKey


def handle_offset_delete(shard: Shard, request: OffsetDelete) -> None:
    """OffsetDelete: offsets of topics that a member uses are kept."""
    group = shard.groups.get(request.group_id or "")
    if not request.group_id:
        error = ErrorCode.INVALID_GROUP_ID
    elif group is None:
        error = ErrorCode.GROUP_ID_NOT_FOUND
    else:
        error = group.offset_delete_error()
    if error or group is None:
        shard.reply(request.request_id, refuse(request, error))
        return
    results = []
    for partition in request.partitions:
        used = group.is_subscribed_to(partition.topic)
        results.append((partition, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if used else ErrorCode.NONE))
        if not used:
            _delete(shard, group.group_id, partition)
    shard.reply(request.request_id, OffsetDeleteResult(partitions=tuple(results)))


def _delete(shard: Shard, group_id: str, partition: TopicPartition) -> None:
    topic, number = partition
    if shard.offsets.get(group_id, topic, number) is not None or shard.offsets.is_pending(group_id, topic, number):
        shard.append(OffsetCommitKey(group_id, topic, number), None)


def append_offset_tombstones(shard: Shard, group_id: str) -> None:
    """Tombstones for all of a group's offsets: the stored ones, then pending ones of other partitions."""
    partitions = [partition for partition, _ in shard.offsets.of_group(group_id)]
    stored = set(partitions)
    partitions += [partition for partition in shard.offsets.pending_partitions(group_id) if partition not in stored]
    for topic, number in partitions:
        shard.append(OffsetCommitKey(group_id, topic, number), None)


def delete_offsets_of_topics(shard: Shard, topics: Iterable[TopicMetadata]) -> None:
    """Tombstones for the offsets of deleted topics in every group, also for those that transactions still hold back.

    Offsets of a newer topic of the same name stay. A partition that has both kinds gets a tombstone for each, as in Kafka.

    Kafka: OffsetMetadataManager#onTopicsDeleted.
    """
    ids = {topic.name: topic.topic_id for topic in topics}
    found = [(group_id, *entry) for group_id in shard.offsets.group_ids() for entry in shard.offsets.of_group(group_id)]
    doomed = [
        OffsetCommitKey(group_id, *partition)
        for group_id, partition, value in (*found, *shard.offsets.pending())
        if partition.topic in ids and value.topic_id in (ZERO_UUID, ids[partition.topic])
    ]
    shard.append_tombstones(doomed)
