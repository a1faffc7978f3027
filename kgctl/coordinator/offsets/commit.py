"""OffsetCommit, TxnOffsetCommit and the end of a transaction.

Kafka: OffsetMetadataManager#commitOffset and #commitTransactionalOffset.
"""

from __future__ import annotations

from dataclasses import replace

from kgctl.coordinator.classic.group import ClassicGroup
from kgctl.coordinator.classic.rebalance import extend_session
from kgctl.coordinator.classic.states import RESPONSES
from kgctl.coordinator.refusals import refuse_commit
from kgctl.coordinator.requests import EndTransaction, OffsetCommit, OffsetCommitPartition, TxnOffsetCommit
from kgctl.coordinator.results import Done, PartitionErrors
from kgctl.coordinator.shard import Shard
from kgctl.model.error_codes import ErrorCode
from kgctl.model.partitions import TopicPartition
from kgctl.model.records import OffsetCommitKey, OffsetCommitValue, TransactionMarker

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
    if isinstance(group, ClassicGroup) and RESPONSES[group.state].extends_session_on_commit:
        extend_session(shard, group.members[request.member_id])
    expire_ms = _NO_EXPIRY if request.retention_ms is None else shard.now_ms + request.retention_ms
    _append_offsets(shard, request, expire_ms)


def handle_txn_offset_commit(shard: Shard, request: TxnOffsetCommit) -> None:
    """TxnOffsetCommit: the offsets are pending until the transaction ends."""
    error = ErrorCode.NONE if request.group_id else ErrorCode.INVALID_GROUP_ID
    error = error or _commit_error(shard, request)
    if error:
        shard.reply(request.request_id, refuse_commit(request, error))
    else:
        _append_offsets(shard, request, _NO_EXPIRY)


def handle_end_transaction(shard: Shard, request: EndTransaction) -> None:
    """The marker: what the producer's transaction held back counts now, or never."""
    shard.append_marker(TransactionMarker(request.producer_id, request.producer_epoch, request.committed))
    shard.reply(request.request_id, Done())


def _commit_error(shard: Shard, request: OffsetCommit | TxnOffsetCommit) -> ErrorCode:
    if request.group_id is None:
        return ErrorCode.INVALID_GROUP_ID
    group = shard.groups.get(request.group_id)
    if group is not None:
        return group.offset_commit_error(_looked_at(shard, request), shard.image)
    if request.generation_id < 0:
        return ErrorCode.NONE
    if isinstance(request, OffsetCommit) and request.api_version >= _GROUP_ID_NOT_FOUND_VERSION:
        return ErrorCode.GROUP_ID_NOT_FOUND
    return ErrorCode.ILLEGAL_GENERATION


def _looked_at(shard: Shard, request: OffsetCommit | TxnOffsetCommit) -> OffsetCommit | TxnOffsetCommit:
    """The request without the partitions that fail alone: whether a member may commit those is not asked."""
    fitting = tuple(partition for partition in request.partitions if _fits(shard, partition))
    return request if len(fitting) == len(request.partitions) else replace(request, partitions=fitting)


def _append_offsets(shard: Shard, request: OffsetCommit | TxnOffsetCommit, expire_ms: int) -> None:
    """A record for each partition whose metadata is not too long; the others fail alone. The first one creates the group."""
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
        topic_id=partition.topic_id,
    )
    key = OffsetCommitKey(request.group_id or "", partition.topic, partition.partition)
    if isinstance(request, TxnOffsetCommit):
        shard.append(
            key, value, producer_id=request.producer_id, producer_epoch=request.producer_epoch, member_id=request.member_id
        )
    else:
        shard.append(key, value, member_id=request.member_id)


def _fits(shard: Shard, partition: OffsetCommitPartition) -> bool:
    """Whether the metadata is not too long."""
    return partition.metadata is None or _utf16_length(partition.metadata) <= shard.config.offset_metadata_max_bytes


def _utf16_length(text: str) -> int:
    """The length as Java counts it, in UTF-16 units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
