"""OffsetCommit, TxnOffsetCommit, the end of a transaction, OffsetFetch, OffsetDelete, and the expiry of offsets.

Kafka: OffsetMetadataManager#commitOffset and #commitTransactionalOffset.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from uuid import UUID

from kgctl.coordinator.classic.group import RESPONSES, ClassicGroup
from kgctl.coordinator.classic.rebalance import extend_session
from kgctl.coordinator.effects import refuse, refuse_commit
from kgctl.coordinator.group import Group
from kgctl.coordinator.offset_store import fetched_offset
from kgctl.coordinator.shard import Shard
from kgctl.coordinator.timers import Timer, TimerKey, TimerKind
from kgctl.model.coordinator_records import OffsetCommitKey, OffsetCommitValue, TransactionMarker
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import ZERO_UUID, GroupType, TopicMetadata, TopicPartition
from kgctl.model.requests import (
    Done,
    EndTransaction,
    FetchedOffset,
    OffsetCommit,
    OffsetCommitPartition,
    OffsetDelete,
    OffsetDeleteResult,
    OffsetFetch,
    OffsetFetchResult,
    PartitionErrors,
    TxnOffsetCommit,
)

_GROUP_ID_NOT_FOUND_VERSION = 9
"""From this version on a commit to an unknown group says so."""
_NO_EXPIRY = -1


def handle_offset_commit(shard: Shard, request: OffsetCommit) -> None:
    """OffsetCommit: from a member, or from outside (generation -1) while the group is empty or does not exist yet."""
    error = _commit_error(shard, request)
    if error:
        shard.reply(request.request_id, refuse_commit(request, error))
        return
    group = shard.groups.get(request.group_id or "")
    # Who commits is alive: a sign of life of the classic protocol alone
    # (GroupMetadataManager#rescheduleClassicGroupMemberHeartbeat); the other has its own heartbeat for it.
    if isinstance(group, ClassicGroup) and RESPONSES[group.state].extends_session_on_commit:
        extend_session(shard, group.members[request.member_id])
    expire_ms = _NO_EXPIRY if request.retention_ms is None else _as_java_long(shard.now_ms + request.retention_ms)
    _append_offsets(shard, request, expire_ms)


def _as_java_long(number: int) -> int:
    """Return what Java's long has after an overflow: a retention without end makes a commit that expires at once.

    Kafka: OffsetMetadataManager#expireTimestampMs adds the retention to the clock without a check.
    """
    return (number + 2**63) % 2**64 - 2**63


def handle_txn_offset_commit(shard: Shard, request: TxnOffsetCommit) -> None:
    """Commit offsets inside a transaction: they are pending until it ends (KIP-98, KIP-447).

    Kafka: OffsetMetadataManager#commitTransactionalOffset.
    """
    error = ErrorCode.NONE if request.group_id else ErrorCode.INVALID_GROUP_ID
    error = error or _commit_error(shard, request)
    if error:
        shard.reply(request.request_id, refuse_commit(request, error))
    else:
        _append_offsets(shard, request, _NO_EXPIRY)


def handle_end_transaction(shard: Shard, request: EndTransaction) -> None:
    """Write the marker: what the producer's transaction held back counts now, or never.

    Kafka: OffsetMetadataManager#replayEndTransactionMarker.
    """
    shard.append_marker(TransactionMarker(request.producer_id, request.producer_epoch, request.committed))
    shard.reply(request.request_id, Done())


def _commit_error(shard: Shard, request: OffsetCommit | TxnOffsetCommit) -> ErrorCode:
    # "" is a group like others here, as it was before groups had members; only JoinGroup and the like refuse it.
    if request.group_id is None:
        return ErrorCode.INVALID_GROUP_ID
    group = shard.groups.get(request.group_id)
    if group is not None:
        error = group.offset_commit_error(_looked_at(shard, request), shard.image)
        return error or _too_large(request)
    # Who names no generation manages its partitions itself: its commit makes the group (a "simple" one, without protocol type).
    if request.generation_id < 0:
        return _too_large(request)
    if isinstance(request, OffsetCommit) and request.api_version >= _GROUP_ID_NOT_FOUND_VERSION:
        return ErrorCode.GROUP_ID_NOT_FOUND
    return ErrorCode.ILLEGAL_GENERATION


def _too_large(request: OffsetCommit | TxnOffsetCommit) -> ErrorCode:
    """Kafka: CoordinatorOperationExceptionHelper, which has no other error for a RecordTooLargeException."""
    return ErrorCode.UNKNOWN_SERVER_ERROR if request.is_too_large else ErrorCode.NONE


def _looked_at(shard: Shard, request: OffsetCommit | TxnOffsetCommit) -> OffsetCommit | TxnOffsetCommit:
    """Return the request without the partitions that fail alone: whether a member may commit those is not asked."""
    fitting = tuple(partition for partition in request.partitions if _fits(shard, partition))
    return request if len(fitting) == len(request.partitions) else replace(request, partitions=fitting)


def _append_offsets(shard: Shard, request: OffsetCommit | TxnOffsetCommit, expire_ms: int) -> None:
    """Append a record for each partition whose metadata is not too long; the others fail alone.

    The first one creates the group. Kafka: OffsetMetadataManager#commitOffset, #isMetadataInvalid.
    """
    results = []
    for partition in request.partitions:
        fits = _fits(shard, partition)
        results.append(
            (
                TopicPartition(partition.topic, partition.partition),
                ErrorCode.NONE if fits else ErrorCode.OFFSET_METADATA_TOO_LARGE,
            )
        )
        if fits:
            _append_offset(shard, request, partition, expire_ms)
    group_id = request.group_id or ""
    if group_id not in shard.groups:
        # Kafka makes the group before it looks at the metadata; without a record it is gone with the coordinator.
        shard.add_without_record(ClassicGroup(group_id, shard.now_ms))
    shard.reply(request.request_id, PartitionErrors(partitions=tuple(results)))


def _append_offset(
    shard: Shard, request: OffsetCommit | TxnOffsetCommit, partition: OffsetCommitPartition, expire_ms: int
) -> None:
    value = OffsetCommitValue(
        offset=partition.offset,
        leader_epoch=partition.leader_epoch,
        metadata=partition.metadata or "",
        commit_timestamp_ms=shard.now_ms,
        expire_timestamp_ms=expire_ms,
        topic_id=partition.topic_id if shard.config.profile.keeps_topic_ids else ZERO_UUID,
    )
    key = OffsetCommitKey(request.group_id or "", partition.topic, partition.partition)
    if isinstance(request, TxnOffsetCommit):
        shard.append(
            key, value, producer_id=request.producer_id, producer_epoch=request.producer_epoch, member_id=request.member_id
        )
    else:
        shard.append(key, value, member_id=request.member_id)


def _fits(shard: Shard, partition: OffsetCommitPartition) -> bool:
    """Return whether the metadata has at most `offset.metadata.max.bytes` UTF-16 units."""
    return partition.metadata is None or _utf16_length(partition.metadata) <= shard.config.offset_metadata_max_bytes


def _utf16_length(text: str) -> int:
    """Return the length as Java counts it, in UTF-16 units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def handle_offset_delete(shard: Shard, request: OffsetDelete) -> None:
    """Delete offsets (KIP-496); those of topics that a member uses are kept. Kafka: OffsetMetadataManager#deleteOffsets."""
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
    is_kept = shard.config.profile.keeps_groups_without_offsets or bool(shard.offsets.count_of(group.group_id))
    if not is_kept and group.is_empty:
        shard.delete_group(group)
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


_DELETION_TIMER = TimerKey(TimerKind.DELETE_OFFSETS)
_DELETED_AT_ONCE = 300
"""Groups and offsets that one step of a deletion looks at."""


def delete_offsets_of_topics(shard: Shard, topics: Iterable[TopicMetadata]) -> None:
    """Tombstones for the offsets of deleted topics in every group, also for those that transactions still hold back.

    Offsets of a newer topic of the same name stay. A partition that has both kinds gets a tombstone for each, as in Kafka. Over
    many groups the deletion goes on a millisecond later, so that requests come in between.

    Kafka: OffsetMetadataManager#onTopicsDeleted.
    """
    groups = shard.offsets.group_ids()
    groups.reverse()
    shard.left_to_delete.append(({topic.name: topic for topic in topics}, groups))
    if len(shard.left_to_delete) == 1:
        _go_on_deleting(shard)


def on_deletion_timer(shard: Shard, _timer: Timer) -> None:
    """Go on with a deletion that is under way."""
    _go_on_deleting(shard)


def _go_on_deleting(shard: Shard) -> None:
    seen = 0
    while shard.left_to_delete and seen < _DELETED_AT_ONCE:
        gone, groups = shard.left_to_delete[0]
        # Read before the groups' tombstones take them away: Kafka writes one for each of the two.
        held = _doomed(shard, gone, shard.offsets.pending()) if len(groups) <= _DELETED_AT_ONCE else []
        while groups and seen < _DELETED_AT_ONCE:
            group_id = groups.pop()
            topics = [topic for topic in shard.offsets.topics(group_id) if topic in gone]
            found = [entry for topic in topics for entry in shard.offsets.of_topic(group_id, topic)]
            shard.append_tombstones(_doomed(shard, gone, ((group_id, *entry) for entry in found)))
            seen += 1 + len(found)
        if not groups:
            shard.append_tombstones(held)
            shard.left_to_delete.popleft()
    if shard.left_to_delete:
        shard.arm_for_next_call(_DELETION_TIMER)


def _doomed(
    shard: Shard, gone: Mapping[str, TopicMetadata], offsets: Iterable[tuple[str, TopicPartition, OffsetCommitValue]]
) -> list[OffsetCommitKey]:
    is_of = _is_of_topic if shard.config.profile.deletes_offsets_by_topic_id else _is_of_partition
    return [
        OffsetCommitKey(group_id, *partition)
        for group_id, partition, value in offsets
        if partition.topic in gone and is_of(gone[partition.topic], partition, value)
    ]


def _is_of_topic(topic: TopicMetadata, _: TopicPartition, value: OffsetCommitValue) -> bool:
    return value.topic_id in (ZERO_UUID, topic.topic_id)


def _is_of_partition(topic: TopicMetadata, partition: TopicPartition, _: OffsetCommitValue) -> bool:
    return partition.partition < topic.partition_count


def handle_offset_fetch(shard: Shard, request: OffsetFetch) -> None:
    """OffsetFetch: of an unknown group nothing is stored, which is no error."""
    if request.group_id is None:
        shard.reply(request.request_id, refuse(request, ErrorCode.INVALID_GROUP_ID))
        return
    # With require_stable Kafka reads behind all writes that are under way, else what is safely in the log
    # (GroupCoordinatorService#fetchOffsets).
    group = shard.groups.get(request.group_id) if request.require_stable else shard.settled_group(request.group_id)
    error = ErrorCode.NONE if group is None else group.offset_fetch_error(request)
    if error:
        shard.reply(request.request_id, refuse(request, error))
        return
    is_plain = request.topic_ids is None and not (
        request.require_stable and shard.offsets.has_open_transactions(request.group_id)
    )
    if is_plain and group is not None and request.partitions is not None:
        fetched = tuple(shard.offsets.fetch_each(request.group_id, request.partitions))
        shard.reply(request.request_id, OffsetFetchResult(group_id=request.group_id, offsets=fetched))
        return
    found: Iterable[tuple[TopicPartition, OffsetCommitValue | None]]
    if group is None:
        found = ((partition, None) for partition in request.partitions or ())
    elif request.partitions is None:
        found = shard.offsets.of_group(request.group_id)
    else:
        found = shard.offsets.get_each(request.group_id, request.partitions)
    offsets = tuple(_answer(shard, request, partition, value) for partition, value in found)
    shard.reply(request.request_id, OffsetFetchResult(group_id=request.group_id, offsets=offsets))


def _answer(shard: Shard, request: OffsetFetch, partition: TopicPartition, value: OffsetCommitValue | None) -> FetchedOffset:
    if request.require_stable and shard.offsets.is_pending(request.group_id or "", *partition):
        return FetchedOffset(partition=partition, error=ErrorCode.UNSTABLE_OFFSET_COMMIT)
    return fetched_offset(
        partition, None if value is None or _is_of_another_topic(value, partition.topic, request.topic_ids) else value
    )


def _is_of_another_topic(value: OffsetCommitValue, topic: str, topic_ids: Mapping[str, UUID] | None) -> bool:
    """Whether the offset was committed for an older topic of the same name."""
    if topic_ids is None or value.topic_id == ZERO_UUID:
        return False
    return topic_ids.get(topic, ZERO_UUID) not in (ZERO_UUID, value.topic_id)


_TIMER = TimerKey(TimerKind.EXPIRE_OFFSETS)


_SEEN_AT_ONCE = 2_000
"""Groups and offsets that one step of the cycle looks at."""


def start_expiry_cycle(shard: Shard) -> None:
    """Run the cycle one period from now, and then each period."""
    shard.arm(_TIMER, shard.config.offsets_retention_check_interval_ms)


def on_expiry_timer(shard: Shard, _timer: Timer) -> None:
    """Visit every group but the share groups, whose state is no offsets of this kind.

    Over many offsets the visit goes on a millisecond later, so that requests come in between.
    """
    if not shard.left_to_expire:
        shard.left_to_expire = [group.group_id for group in reversed(shard.groups.java_values())]
    seen = 0
    while shard.left_to_expire and seen < _SEEN_AT_ONCE:
        group = shard.groups.get(shard.left_to_expire.pop())
        if group is not None and group.type is not GroupType.SHARE:
            seen += 1 + _expire(shard, group)
    if shard.left_to_expire:
        shard.arm_for_next_call(_TIMER)
    else:
        start_expiry_cycle(shard)


def _expire(shard: Shard, group: Group) -> int:
    """Append tombstones for the group's expired offsets, and for the group once it is empty and nothing is left in it.

    Returns how many offsets were looked at. Topics that somebody subscribes to cost nothing, however many offsets they have.
    Kafka: OffsetMetadataManager#cleanupExpiredOffsets, GroupMetadataManager#maybeDeleteGroup.
    """
    topics = shard.offsets.topics(group.group_id)
    unused = [topic for topic in topics if not group.is_subscribed_to(topic)]
    offsets = [offset for topic in unused for offset in shard.offsets.of_topic(group.group_id, topic)]
    expired = [partition for partition, value in offsets if _is_expired(shard, group, partition, value)]
    for topic, number in expired:
        shard.append(OffsetCommitKey(group.group_id, topic, number), None)
    is_all = len(unused) == len(topics) and len(expired) == len(offsets)
    if is_all and group.is_empty and not shard.offsets.has_open_transactions(group.group_id):
        shard.delete_group(group)
    return len(offsets)


def _is_expired(shard: Shard, group: Group, partition: TopicPartition, value: OffsetCommitValue) -> bool:
    """Return whether this offset, of a topic that nobody in the group subscribes to, has outlived its retention.

    Kafka: OffsetMetadataManager#cleanupExpiredOffsets, OffsetExpirationConditionImpl.
    """
    base_ms = group.expiry_base_ms(value)
    if base_ms is None:
        return False
    if shard.offsets.is_pending(group.group_id, *partition):
        return False
    # Only OffsetCommit 2 to 4 can name a time of its own; the broker's retention is then not looked at.
    if value.expire_timestamp_ms != -1:
        return shard.now_ms >= value.expire_timestamp_ms
    return shard.now_ms - base_ms >= shard.config.offsets_retention_ms
