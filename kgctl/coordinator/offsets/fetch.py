"""OffsetFetch. Kafka: OffsetMetadataManager#fetchOffsets and #fetchAllOffsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from kgctl.coordinator.refusals import refuse
from kgctl.coordinator.requests import OffsetFetch
from kgctl.coordinator.results import FetchedOffset, OffsetFetchResult
from kgctl.coordinator.shard import Shard
from kgctl.model.error_codes import ErrorCode
from kgctl.model.partitions import ZERO_UUID, TopicPartition
from kgctl.model.records import OffsetCommitValue


def handle_offset_fetch(shard: Shard, request: OffsetFetch) -> None:
    """OffsetFetch: of an unknown group nothing is stored, which is no error."""
    if request.group_id is None:
        shard.reply(request.request_id, refuse(request, ErrorCode.INVALID_GROUP_ID))
        return
    group = shard.groups.get(request.group_id) if request.require_stable else shard.settled_group(request.group_id)
    error = ErrorCode.NONE if group is None else group.offset_fetch_error(request)
    if error:
        shard.reply(request.request_id, refuse(request, error))
        return
    found: Iterable[tuple[TopicPartition, OffsetCommitValue | None]]
    if group is None:
        found = ((partition, None) for partition in request.partitions or ())
    elif request.partitions is None:
        found = shard.offsets.of_group(request.group_id)
    else:
        stored = shard.offsets.get
        found = [(partition, stored(request.group_id, partition[0], partition[1])) for partition in request.partitions]
    if request.topic_ids is None and not (request.require_stable and shard.offsets.has_open_transactions(request.group_id)):
        offsets = tuple([_stored(partition, value) for partition, value in found])
    else:
        offsets = tuple(_answer(shard, request, partition, value) for partition, value in found)
    shard.reply(request.request_id, OffsetFetchResult(group_id=request.group_id, offsets=offsets))


def _answer(shard: Shard, request: OffsetFetch, partition: TopicPartition, value: OffsetCommitValue | None) -> FetchedOffset:
    if request.require_stable and shard.offsets.is_pending(request.group_id or "", *partition):
        return FetchedOffset(partition=partition, error=ErrorCode.UNSTABLE_OFFSET_COMMIT)
    return _stored(partition, None if value is None or _is_of_another_topic(value, partition.topic, request.topic_ids) else value)


def _stored(partition: TopicPartition, value: OffsetCommitValue | None) -> FetchedOffset:
    if value is None:
        return FetchedOffset(partition=partition)
    return FetchedOffset(partition=partition, offset=value.offset, leader_epoch=value.leader_epoch, metadata=value.metadata)


def _is_of_another_topic(value: OffsetCommitValue, topic: str, topic_ids: Mapping[str, UUID] | None) -> bool:
    """Whether the offset was committed for an older topic of the same name."""
    if topic_ids is None or value.topic_id == ZERO_UUID:
        return False
    return topic_ids.get(topic, ZERO_UUID) not in (ZERO_UUID, value.topic_id)
