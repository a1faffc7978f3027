"""Where share groups begin to read: DescribeShareGroupOffsets, AlterShareGroupOffsets, and what comes of the calls that these and
heartbeats have made.

Kafka: GroupCoordinatorService, with the Persister and the PartitionMetadataClient that it calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from kgctl.coordinator.modern.member import Refusal
from kgctl.coordinator.shard import Shard
from kgctl.coordinator.share.group import ShareGroup
from kgctl.coordinator.share.heartbeat import find_group, write_partitions
from kgctl.coordinator.share.partitions import (
    NOBODYS,
    NotedPartitions,
    begun,
    by_hash,
    copies,
    given_up,
    made,
)
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import ZERO_UUID, TopicPartition
from kgctl.model.requests import Done
from kgctl.model.share import NO_DELIVERY_COMPLETE_COUNT, NO_START_OFFSET
from kgctl.model.share_requests import (
    AlterPurpose,
    AlterShareGroupOffsets,
    DescribePurpose,
    DescribeShareGroupOffsets,
    InitializeShareState,
    LagPurpose,
    LatestOffsetsListed,
    ListLatestOffsets,
    PartitionStart,
    ReadShareStateSummary,
    ShareStateError,
    ShareStateInitialized,
    ShareStateSummary,
    ShareStateSummaryRead,
    ShareTopicStart,
)
from kgctl.model.share_results import (
    AlteredSharePartition,
    AlteredShareTopic,
    AlterShareGroupOffsetsResult,
    DescribedSharePartition,
    DescribedShareTopic,
    DescribeShareGroupOffsetsResult,
)
from kgctl.model.values import hash_map_order, integer_hash

_NOTHING_TO_DELETE = "There is no offset information to delete."
_UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def first_error(partitions: Iterable[ShareStateError]) -> ErrorCode:
    """Return the first error of these."""
    return next((partition.error for partition in partitions if partition.error), ErrorCode.NONE)


def handle_alter_share_group_offsets(shard: Shard, request: AlterShareGroupOffsets) -> None:
    """Have the state of partitions made anew, of an empty group or of one that this makes; answered when that is done.

    Kafka: GroupMetadataManager#alterShareGroupOffsets.
    """
    if not request.group_id or request.topics is None:
        error = ErrorCode.NONE if request.group_id else ErrorCode.INVALID_GROUP_ID
        shard.reply(request.request_id, AlterShareGroupOffsetsResult(error=error))
        return
    try:
        group = find_group(shard, request.group_id, may_create=True)
        if group.members:
            raise Refusal(ErrorCode.NON_EMPTY_GROUP)
    except Refusal as refusal:
        result = AlterShareGroupOffsetsResult(error=refusal.error, error_message=refusal.message or None)
        shard.reply(request.request_id, result)
    else:
        _alter(shard, request, group)


def _alter(shard: Shard, request: AlterShareGroupOffsets, group: ShareGroup) -> None:
    answered, noted, starts = [], {}, dict[UUID, dict[int, int]]()
    for name, partitions in request.topics or ():
        topic = shard.image.topics.get(name)
        count, topic_id = (0, ZERO_UUID) if topic is None else (topic.partition_count, topic.topic_id)
        answered.append(AlteredShareTopic(name, topic_id, tuple(_altered(number, count) for number, _ in partitions)))
        if topic is None:
            continue
        fitting = {number: start for number, start in partitions if number < count}
        numbers = hash_map_order(fitting, hash_of=integer_hash)
        noted[topic_id] = NotedPartitions(name, tuple(numbers), shard.now_ms)
        if fitting:
            starts.setdefault(topic_id, {}).update(fitting)
    if noted:
        write_partitions(shard, group.group_id, begun(shard.share_partitions.get(group.group_id), by_hash(noted), shard.image))
    result = AlterShareGroupOffsetsResult(topics=tuple(answered))
    if starts:
        topics = tuple(
            _starts(topic_id, each, group.group_epoch) for topic_id, each in by_hash(starts, newest_first=True).items()
        )
        shard.emit(InitializeShareState(group.group_id, topics, AlterPurpose(request.request_id, result)))
    else:
        shard.reply(request.request_id, result)


def _altered(number: int, count: int) -> AlteredSharePartition:
    return AlteredSharePartition(number, ErrorCode.NONE if number < count else _UNKNOWN)


def _starts(topic_id: UUID, offsets: Mapping[int, int], epoch: int) -> ShareTopicStart:
    numbers = hash_map_order(offsets, hash_of=integer_hash)
    return ShareTopicStart(topic_id, tuple(PartitionStart(number, epoch, offsets[number]) for number in numbers))


def handle_share_state_initialized(shard: Shard, request: ShareStateInitialized) -> None:
    """Note that the state is there, or that it could not be made; and answer who asked for it.

    Kafka: GroupCoordinatorService#persisterInitialize.
    """
    purpose, group_id = request.call.purpose, request.call.group_id
    topics = by_hash({topic_id: _in_set(partitions) for topic_id, partitions in request.topics})
    failed = request.error or next(
        (first_error(partitions) for _, partitions in request.topics if first_error(partitions)), ErrorCode.NONE
    )
    if not failed:
        # A group that is gone meanwhile makes Kafka's code fail, after which there is nothing left to take back.
        if topics and isinstance(shard.groups.get(group_id), ShareGroup):
            write_partitions(shard, group_id, made(shard.share_partitions.get(group_id), topics, shard.image))
    elif purpose is None:
        if request.error:
            topics = {topic.topic_id: tuple(start.partition for start in topic.partitions) for topic in request.call.topics}
        known = shard.share_partitions.get(group_id, NOBODYS)
        if known.initializing and topics:
            write_partitions(shard, group_id, given_up(known, topics, shard.image))
    if purpose is not None:
        shard.reply(purpose.request_id, _alter_result(request, purpose) if failed else purpose.result)
    shard.reply(request.request_id, Done())


def _in_set(partitions: Iterable[ShareStateError]) -> tuple[int, ...]:
    return tuple(hash_map_order(dict.fromkeys(partition.partition for partition in partitions), hash_of=integer_hash))


def _alter_result(request: ShareStateInitialized, purpose: AlterPurpose) -> AlterShareGroupOffsetsResult:
    """Kafka: GroupCoordinatorService#buildErrorResponse. State that was being made when it failed stays noted as such."""
    errors = {topic_id: {each.partition: each for each in partitions if each.error} for topic_id, partitions in request.topics}
    topics = []
    for topic in purpose.result.topics:
        found = errors.get(topic.topic_id, {})
        partitions = []
        for each in topic.partitions:
            if request.error:
                partitions.append(AlteredSharePartition(each.partition, request.error))
            elif each.partition not in found:
                partitions.append(each)
            else:
                failed = found[each.partition]
                partitions.append(AlteredSharePartition(each.partition, failed.error, failed.error_message))
        topics.append(AlteredShareTopic(topic.name, topic.topic_id, tuple(partitions)))
    return AlterShareGroupOffsetsResult(error=request.error, error_message=request.error_message, topics=tuple(topics))


def handle_describe_share_group_offsets(shard: Shard, request: DescribeShareGroupOffsets) -> None:
    """Look where partitions begin, and how far they are from the ends of their logs; a group that does not exist has none.

    Kafka: GroupCoordinatorService#describeShareGroupOffsets, #describeShareGroupAllOffsets.
    """
    names: dict[UUID, str] = {}
    topics: list[tuple[UUID, tuple[int, ...]]] = []
    absent = []
    if request.topics is None:
        existing = {topic.topic_id: topic.name for topic in shard.image.topics.values()}
        initialized = initialized_partitions(shard, request.group_id)
        topics = [(topic_id, numbers) for topic_id, numbers in initialized.items() if topic_id in existing]
        names = {topic_id: existing[topic_id] for topic_id, _ in topics}
    for name, numbers in request.topics or ():
        topic = shard.image.topics.get(name)
        if topic is None:
            absent.append(DescribedShareTopic(name, ZERO_UUID, tuple(map(DescribedSharePartition, numbers))))
        else:
            names[topic.topic_id] = name
            topics.append((topic.topic_id, tuple(numbers)))
    purpose = DescribePurpose(request.request_id, tuple(names.items()), tuple(absent))
    if topics:
        shard.emit(ReadShareStateSummary(request.group_id, tuple(topics), purpose))
    else:
        shard.reply(request.request_id, DescribeShareGroupOffsetsResult(group_id=request.group_id, topics=purpose.absent))


def initialized_partitions(shard: Shard, group_id: str) -> dict[UUID, tuple[int, ...]]:
    """The partitions of a group whose state is there. Kafka: GroupMetadataManager#initializedShareGroupPartitions."""
    initialized = copies(shard.share_partitions.get(group_id, NOBODYS).initialized)
    return {topic_id: topic.partitions for topic_id, topic in initialized.items()}


def handle_share_state_summary_read(shard: Shard, request: ShareStateSummaryRead) -> None:
    """Go on to the ends of the logs, of the partitions of which enough is known. What could not be read counts as not there."""
    purpose, group_id = request.call.purpose, request.call.group_id
    names = dict(purpose.names)
    topics = tuple(
        DescribedShareTopic(names[topic_id], topic_id, tuple(map(_described, partitions)))
        for topic_id, partitions in request.topics
    )
    done = tuple(
        (TopicPartition(names[topic_id], each.partition), each.delivery_complete_count)
        for topic_id, partitions in request.topics
        for each in partitions
        if not each.error and each.start_offset != NO_START_OFFSET and each.delivery_complete_count != NO_DELIVERY_COMPLETE_COUNT
    )
    result = DescribeShareGroupOffsetsResult(group_id=group_id, error=request.error, topics=(*topics, *purpose.absent))
    if request.error or not done:
        failed = DescribeShareGroupOffsetsResult(group_id=group_id, error=request.error)
        shard.reply(purpose.request_id, failed if request.error else result)
    else:
        partitions = tuple(dict.fromkeys(partition for partition, _ in done))
        shard.emit(ListLatestOffsets(partitions, LagPurpose(purpose.request_id, result, done)))
    shard.reply(request.request_id, Done())


def _described(summary: ShareStateSummary) -> DescribedSharePartition:
    if summary.error:
        return DescribedSharePartition(summary.partition)
    return DescribedSharePartition(summary.partition, summary.start_offset, summary.leader_epoch)


def handle_latest_offsets_listed(shard: Shard, request: LatestOffsetsListed) -> None:
    """Work the lag out: what is between a partition's start offset and the end of its log and not done."""
    purpose, ends = request.call.purpose, {partition: (end, error) for partition, end, error in request.offsets}
    done = dict(purpose.done)
    topics = []
    for topic in purpose.result.topics:
        partitions = [_with_lag(each, TopicPartition(topic.name, each.partition), done, ends) for each in topic.partitions]
        topics.append(DescribedShareTopic(topic.name, topic.topic_id, tuple(partitions)))
    shard.reply(purpose.request_id, DescribeShareGroupOffsetsResult(group_id=purpose.result.group_id, topics=tuple(topics)))
    shard.reply(request.request_id, Done())


def _with_lag(
    described: DescribedSharePartition,
    partition: TopicPartition,
    done: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, tuple[int, ErrorCode]],
) -> DescribedSharePartition:
    if partition not in done or described.start_offset == NO_START_OFFSET:
        return described
    end, error = ends[partition]
    if error:
        return DescribedSharePartition(described.partition, 0, 0, -1, error)
    lag = end - described.start_offset - done[partition]
    return DescribedSharePartition(described.partition, described.start_offset, described.leader_epoch, lag)
