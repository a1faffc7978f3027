"""State of share groups that goes: DeleteShareGroupOffsets, what DeleteGroups has to have dropped first, topics that are gone.

Kafka: GroupCoordinatorService#deleteGroups, #deleteShareGroupOffsets, GroupCoordinatorShard#sharePartitionDeleteRequests.
"""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from kgctl.coordinator.modern.member import Refusal
from kgctl.coordinator.shard import Shard
from kgctl.coordinator.share.group import ShareGroup
from kgctl.coordinator.share.heartbeat import known_group, write_partitions
from kgctl.coordinator.share.offsets import first_error
from kgctl.coordinator.share.partitions import (
    by_hash,
    copies,
    deleted,
    deleting_all,
    deleting_some,
    dropped,
    to_delete_with_group,
)
from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import DeleteGroups
from kgctl.model.share_records import ShareGroupStatePartitionMetadataValue
from kgctl.model.share_requests import (
    DeleteGroupsPurpose,
    DeleteOffsetsPurpose,
    DeleteShareGroupOffsets,
    DeleteShareState,
    GroupStateDeleted,
    ShareGroupPartitions,
)
from kgctl.model.share_results import DeletedShareTopic, DeleteShareGroupOffsetsResult
from kgctl.model.values import hash_map_order

_NOTHING_TO_DELETE = "There is no offset information to delete."
_UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def handle_delete_share_group_offsets(shard: Shard, request: DeleteShareGroupOffsets) -> None:
    """Have the state dropped that an empty group has of topics; answered when that is done."""
    if not request.group_id or request.topics is None:
        error = ErrorCode.NONE if request.group_id else ErrorCode.INVALID_GROUP_ID
        shard.reply(request.request_id, DeleteShareGroupOffsetsResult(error=error))
        return
    try:
        if known_group(shard, request.group_id).members:
            raise Refusal(ErrorCode.NON_EMPTY_GROUP)
    except Refusal as refusal:
        result = DeleteShareGroupOffsetsResult(error=refusal.error, error_message=refusal.message or None)
        shard.reply(request.request_id, result)
    else:
        _delete_offsets(shard, request, request.group_id)


def _delete_offsets(shard: Shard, request: DeleteShareGroupOffsets, group_id: str) -> None:
    """Kafka: GroupMetadataManager#sharePartitionsEligibleForOffsetDeletion."""
    known = shard.share_partitions.get(group_id)
    if known is None:
        shard.reply(request.request_id, DeleteShareGroupOffsetsResult())
        return
    initialized, calls, failed = dict(copies(known.initialized)), [], []
    moved: list[UUID] = []
    for name in request.topics or ():
        topic = shard.image.topics.get(name)
        if topic is None:
            failed.append(DeletedShareTopic(name, error=_UNKNOWN))
        elif topic.topic_id in initialized:
            calls.append((topic.topic_id, initialized.pop(topic.topic_id).partitions))
            moved.append(topic.topic_id)
        elif topic.topic_id in known.deleting or topic.topic_id in moved:
            calls.append((topic.topic_id, tuple(range(topic.partition_count))))
        else:
            failed.append(DeletedShareTopic(name, error=_UNKNOWN, error_message=_NOTHING_TO_DELETE))
    write_partitions(shard, group_id, deleting_some(known, moved, shard.image))
    if calls:
        purpose = DeleteOffsetsPurpose(request.request_id, tuple(failed))
        shard.emit(DeleteShareState((ShareGroupPartitions(group_id, tuple(calls)),), purpose))
    else:
        shard.reply(request.request_id, DeleteShareGroupOffsetsResult(topics=tuple(failed)))


def offsets_deleted(shard: Shard, purpose: DeleteOffsetsPurpose, group: GroupStateDeleted) -> None:
    """Answer which topics' state is dropped. Kafka: GroupCoordinatorService#handleDeleteShareGroupOffsetStateResult."""
    if group.error:
        shard.reply(purpose.request_id, DeleteShareGroupOffsetsResult(error=group.error))
        return
    names: dict[UUID, str | None] = {topic.topic_id: topic.name for topic in shard.image.topics.values()}
    errors = {topic_id: first_error(partitions) for topic_id, partitions in group.topics}
    failed = [
        *purpose.failed,
        *(DeletedShareTopic(names.get(topic_id), topic_id, error) for topic_id, error in errors.items() if error),
    ]
    gone = by_hash({topic_id: names.get(topic_id) for topic_id, error in errors.items() if not error})
    known = shard.share_partitions.get(group.group_id)
    if gone and known is not None:
        write_partitions(shard, group.group_id, deleted(known, gone, shard.image))
    done = [DeletedShareTopic(name, topic_id) for topic_id, name in gone.items()] if known is not None else []
    shard.reply(purpose.request_id, DeleteShareGroupOffsetsResult(topics=(*done, *failed)))


def delete_state_of_groups(shard: Shard, request: DeleteGroups) -> dict[str, ErrorCode] | None:
    """Have the state of the empty share groups among these dropped. None: that is under way, and has the request; else the errors
    of those that are not empty.
    """
    errors: dict[str, ErrorCode] = {}
    calls: dict[str, ShareGroupPartitions] = {}
    records: list[tuple[str, ShareGroupStatePartitionMetadataValue]] = []
    for group_id in request.group_ids:
        group = shard.groups.get(group_id or "")
        if group_id is None or not isinstance(group, ShareGroup):
            continue
        if group.members:
            errors[group_id] = ErrorCode.NON_EMPTY_GROUP
        elif group_id in shard.share_partitions:
            topics = to_delete_with_group(shard.share_partitions[group_id], shard.image)
            records.append((group_id, deleting_all(topics)))
            if topics:
                partitions = tuple((topic_id, topic.partitions) for topic_id, topic in topics.items())
                calls[group_id] = ShareGroupPartitions(group_id, partitions)
    for group_id, value in records:
        write_partitions(shard, group_id, value)
    if not calls:
        return errors
    purpose = DeleteGroupsPurpose(request.request_id, request.group_ids, tuple(errors.items()))
    shard.emit(DeleteShareState(tuple(calls[group_id] for group_id in hash_map_order(calls)), purpose))
    return None


def errors_of_deletion(call: DeleteShareState, groups: Collection[GroupStateDeleted]) -> dict[str, ErrorCode]:
    """The groups whose state is not dropped. Kafka: GroupCoordinatorService#persisterDeleteToGroupIdErrorMap."""
    errors: dict[str, ErrorCode] = {}
    asked = {group.group_id: group.topics for group in call.groups}
    for group in groups:
        if group.error and any(partitions for _, partitions in asked[group.group_id]):
            errors[group.group_id] = group.error
        for _, partitions in group.topics:
            if error := first_error(partitions):
                errors[group.group_id] = error
    return errors


def drop_topics(shard: Shard, topic_ids: Collection[UUID]) -> None:
    """Topics are gone: the state of their partitions goes elsewhere, and is kept for no group any more.

    Kafka: GroupMetadataManager#maybeCleanupShareGroupState.
    """
    gone = frozenset(topic_ids)
    records = [
        (group_id, dropped(shard.share_partitions[group_id], gone.__contains__, shard.image))
        for group_id in shard.share_partitions.java_order()
    ]
    for group_id, value in records:
        if value is not None:
            write_partitions(shard, group_id, value)
