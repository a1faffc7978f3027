"""Groups with their offsets, lag and owners: several calls of `GroupAdmin` put together, failures kept apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from kgctl.admin import (
    GroupAdmin,
    ItemError,
    PartitionResults,
    Place,
    ReadsRecords,
    Record,
    Results,
    Span,
    TellsCommitTimes,
)
from kgctl.admin.offset_reset import TopicScope, is_within
from kgctl.errors import AuthError, KgctlError, NotFoundError, UnsupportedError, did_you_mean
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import (
    NO_LEADER_EPOCH,
    NO_OFFSET,
    GroupDescription,
    GroupListing,
    GroupState,
    GroupType,
    LogOffsets,
    MemberDescription,
    OffsetAndMetadata,
    PartitionLag,
    TopicPartition,
)
from kgctl.model.lag import Flag, lag_of, out_of_range


def partition_lag(partition: TopicPartition, committed: OffsetAndMetadata | None, log: LogOffsets) -> PartitionLag:
    """One row. A committed offset of -1 stands for no commit, as brokers answer it."""
    if committed is None or committed.offset == NO_OFFSET:
        return PartitionLag(partition, None, log.log_start_offset, log.log_end_offset, None)
    return PartitionLag(
        partition,
        committed.offset,
        log.log_start_offset,
        log.log_end_offset,
        lag_of(reached(committed.offset, log), log.log_start_offset, log.log_end_offset),
        None if committed.leader_epoch == NO_LEADER_EPOCH else committed.leader_epoch,
        committed.metadata,
    )


def reached(committed: int, log: LogOffsets) -> int:
    """Return where a commit counts as: one of a member that reads open transactions can be past the last stable offset."""
    if log.high_watermark is None or log.log_end_offset is None or committed > log.high_watermark:
        return committed
    return min(committed, log.log_end_offset)


def total_lag(rows: Iterable[PartitionLag]) -> int:
    """The records that are still to be read, as far as is known: a partition whose lag is unknown counts nothing."""
    return sum(row.lag for row in rows if row.lag is not None)


@dataclass(frozen=True, slots=True)
class GroupLag:
    """A group's lag: None where that of a partition with a commit is unknown. ``flags`` are those of its commits."""

    lag: int | None
    flags: tuple[Flag, ...] = ()


def lag_by_group(
    committed: Mapping[str, Mapping[TopicPartition, OffsetAndMetadata]], logs: PartitionResults[LogOffsets]
) -> dict[str, GroupLag]:
    """The lag of each group, over the partitions with a commit.

    Made for many groups: no row is built a partition.
    """
    bounds = {partition: (log.log_start_offset, log.log_end_offset) for partition, log in logs.values.items()}
    return {group_id: _lag_of_group(offsets, bounds, logs.errors) for group_id, offsets in committed.items()}


def _lag_of_group(
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    bounds: Mapping[TopicPartition, tuple[int | None, int | None]],
    errors: Mapping[TopicPartition, ItemError],
) -> GroupLag:
    total, flags, is_known = 0, set(), True
    for partition, committed in offsets.items():
        if committed.offset == NO_OFFSET:
            continue
        start, end = bounds.get(partition, _NO_BOUNDS)
        lag = lag_of(committed.offset, start, end)
        if lag is None:
            is_known = False
            flags.add(out_of_range(committed.offset, start, end) or unreadable(errors.get(partition)))
        else:
            total += lag
    return GroupLag(total if is_known else None, tuple(flag for flag in Flag if flag in flags))


_NO_BOUNDS = (None, None)


def unreadable(error: ItemError | None) -> Flag | None:
    """Return the flag of a partition whose log could not be asked about, where the error is a state of the partition."""
    return _OF_ERROR.get(error.code) if error else None


_OF_ERROR = {
    ErrorCode.LEADER_NOT_AVAILABLE: Flag.NO_LEADER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Flag.UNKNOWN_TOPIC,
}


Committed = Mapping[TopicPartition, OffsetAndMetadata]


@dataclass(frozen=True, slots=True)
class PartitionView:
    """One partition of a group: its lag, the member that owns it, and what stands out about it."""

    lag: PartitionLag
    owner: MemberDescription | None = None
    flags: tuple[Flag, ...] = ()
    record_time_ms: int | None = None
    commit_time_ms: int | None = None
    next_record: Record | None = None

    @property
    def is_out_of_range(self) -> bool:
        """Whether something is committed from where no consumer can go on."""
        return Flag.BELOW_LOG_START in self.flags or Flag.PAST_LOG_END in self.flags


@dataclass(frozen=True, slots=True)
class GroupView:
    """One group with its partitions, by topic, then by number."""

    description: GroupDescription
    partitions: tuple[PartitionView, ...] = ()

    @property
    def total_lag(self) -> int:
        """Return the sum of the known lags, in records."""
        return total_lag(view.lag for view in self.partitions)


@dataclass(frozen=True, slots=True)
class GroupViews:
    """What could be learnt, in the order asked for, and what failed."""

    views: tuple[GroupView, ...]
    errors: tuple[KgctlError, ...] = ()


def is_consumer_group(listing: GroupListing) -> bool:
    """Whether a listed group can have committed offsets: what Kafka's own tool calls a consumer group."""
    return listing.type not in (GroupType.SHARE, GroupType.STREAMS) and listing.protocol_type in ("", "consumer")


def view_groups(admin: GroupAdmin, group_ids: Sequence[str]) -> GroupViews:
    """State and members of groups, without their offsets."""
    described = admin.describe_groups(group_ids)
    views = [GroupView(described.values[group_id]) for group_id in group_ids if group_id in described.values]
    return GroupViews(tuple(views), (*_group_errors(described.errors, group_ids), *_flaws(described.flaws)))


def view_offsets(
    admin: GroupAdmin, group_ids: Sequence[str], scopes: Sequence[TopicScope] = (), *, read_committed: bool = False
) -> GroupViews:
    """Groups with all partitions of every topic that they have a commit on or a member for, or of ``scopes`` alone.

    A partition that nobody committed or owns is a row too: records there are read by no one. Each partition's log is asked about
    once, however many groups share it. With ``read_committed`` logs end, and lag is counted, at their last stable offset.
    """
    described = admin.describe_groups(group_ids)
    present = [group_id for group_id in group_ids if group_id in described.values]
    committed = admin.list_committed_offsets(present)
    known = [group_id for group_id in present if group_id in committed.values]
    wanted = _wanted_partitions(
        admin, {group_id: (described.values[group_id], committed.values[group_id]) for group_id in known}, scopes
    )
    partitions = sorted({partition for rows in wanted.values() for partition in rows})
    logs = admin.list_log_offsets(partitions, read_committed=read_committed)
    if read_committed:
        logs = _with_high_watermarks(admin, logs, [committed.values[group_id] for group_id in known])
    views = [_view(described.values[group_id], wanted[group_id], committed.values[group_id], logs) for group_id in known]
    errors = [*_group_errors({**described.errors, **committed.errors}, group_ids)]
    errors += [*_flaws(described.flaws), *_flaws(committed.flaws)]
    errors += [logs.errors[partition].to_exception(partition=partition) for partition in sorted(logs.errors)]
    return GroupViews(tuple(views), tuple(errors))


def _with_high_watermarks(
    admin: GroupAdmin, logs: PartitionResults[LogOffsets], committed: Iterable[Committed]
) -> PartitionResults[LogOffsets]:
    """With the end in records of logs in which a commit is past the last stable offset."""
    past = {
        partition
        for offsets in committed
        for partition, commit in offsets.items()
        if partition in logs.values and commit.offset > (logs.values[partition].log_end_offset or 0)
    }
    ends = admin.list_log_offsets(sorted(past)).values if past else {}
    found = {key: replace(logs.values[key], high_watermark=log.log_end_offset) for key, log in ends.items()}
    return replace(logs, values={**logs.values, **found})


def with_record_times(admin: GroupAdmin, found: GroupViews) -> GroupViews:
    """With the time of the next record that each group has to read, where it has one; what cannot be read is an error."""
    behind = _behind(found)
    times = admin.list_record_times(sorted(behind)) if behind else Results[Place, int | None]()
    views = tuple(replace(view, partitions=tuple(_timed(each, times.values) for each in view.partitions)) for view in found.views)
    failed = {partition: error for (partition, _), error in sorted(times.errors.items(), key=lambda item: item[0])}
    errors = [error.to_exception(partition=partition) for partition, error in failed.items()]
    return GroupViews(views, (*found.errors, *errors))


def with_next_records(admin: GroupAdmin, found: GroupViews) -> GroupViews:
    """With the record that each group reads next, where it has one; what cannot be read is an error.

    Raises:
        UnsupportedError: records cannot be read here.
    """
    if not isinstance(admin, ReadsRecords):
        raise UnsupportedError("records cannot be read here: only from a cluster of brokers")
    read = admin.read_records([Span(*place) for place in sorted(_behind(found))])
    views = []
    for view in found.views:
        known = [read.values.get(Span(each.lag.partition, each.lag.current_offset or 0)) for each in view.partitions]
        partitions = [
            replace(each, next_record=records[0]) if each.lag.lag and records else each
            for each, records in zip(view.partitions, known, strict=True)
        ]
        views.append(replace(view, partitions=tuple(partitions)))
    return GroupViews(tuple(views), (*found.errors, *_span_errors(read.errors)))


def _span_errors(errors: Mapping[Span, ItemError]) -> list[KgctlError]:
    by_partition = {span.partition: error for span, error in sorted(errors.items(), key=lambda item: item[0])}
    return [error.to_exception(partition=partition) for partition, error in by_partition.items()]


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The records around a committed offset: ``read`` lie before it, the first of ``unread`` is the one that is read next."""

    group_id: str
    partition: TopicPartition
    committed: int
    read: tuple[Record, ...]
    unread: tuple[Record, ...]


MOST_LOOKED_BACK = 65_536
"""Offsets that are looked through for the records before a commit: a compacted log may have few of them."""


def read_neighbours(admin: GroupAdmin, found: GroupViews, before: int, after: int) -> tuple[list[Neighbours], list[KgctlError]]:
    """The ``before`` records that lie before each commit and the ``after`` from it on, and what could not be read.

    Raises:
        UnsupportedError: records cannot be read here.
    """
    if not isinstance(admin, ReadsRecords):
        raise UnsupportedError("records cannot be read here: only from a cluster of brokers")
    commits = [
        (view.description.group_id, each.lag, each.lag.current_offset)
        for view in found.views
        for each in view.partitions
        if each.lag.current_offset is not None and each.lag.log_end_offset is not None
    ]
    ahead = [Span(lag.partition, offset, after) for _, lag, offset in commits if after and offset < (lag.log_end_offset or 0)]
    read = admin.read_records(ahead) if ahead else Results[Span, tuple[Record, ...]]()
    errors = dict(read.errors)
    ends = {(lag.partition, min(offset, lag.log_end_offset or 0)): lag.log_start_offset or 0 for _, lag, offset in commits}
    back = _read_back(admin, ends, before, errors)
    around = []
    for group_id, lag, offset in commits:
        behind = back.get((lag.partition, min(offset, lag.log_end_offset or 0)), ())
        unread = read.values.get(Span(lag.partition, offset, after), ())
        around.append(Neighbours(group_id, lag.partition, offset, behind, unread))
    return around, _span_errors(errors)


def _read_back(
    admin: ReadsRecords, starts: Mapping[Place, int], count: int, errors: dict[Span, ItemError]
) -> dict[Place, tuple[Record, ...]]:
    """The last ``count`` records before each place: further back, twice as far each time, as long as there are too few."""
    found: dict[Place, tuple[Record, ...]] = {}
    wanted, reach = ([place for place, start in starts.items() if place[1] > start] if count else []), count
    while wanted:
        spans = {place: Span(place[0], max(starts[place], place[1] - reach), reach, place[1]) for place in wanted}
        read = admin.read_records(list(spans.values()))
        errors.update(read.errors)
        found |= {place: read.values[span][-count:] for place, span in spans.items() if span in read.values}
        few = [place for place, span in spans.items() if len(read.values.get(span, ())) < count and span not in read.errors]
        wanted = [place for place in few if spans[place].start > starts[place] and reach < MOST_LOOKED_BACK]
        reach *= 2
    return found


def with_commit_times(admin: GroupAdmin, found: GroupViews) -> GroupViews:
    """With the time at which each commit was made, where that can be told; groups of which it cannot are errors.

    Raises:
        UnsupportedError: nothing tells it here.
    """
    if not isinstance(admin, TellsCommitTimes):
        raise UnsupportedError("nothing tells here when groups committed: it is read from a cluster's __consumer_offsets")
    wanted = {
        view.description.group_id: {each.lag.partition for each in view.partitions if each.lag.current_offset is not None}
        for view in found.views
    }
    times = admin.list_commit_times({group_id: partitions for group_id, partitions in wanted.items() if partitions})
    views = []
    for view in found.views:
        known = times.values.get(view.description.group_id, {})
        partitions = tuple(replace(each, commit_time_ms=known.get(each.lag.partition)) for each in view.partitions)
        views.append(replace(view, partitions=partitions))
    return GroupViews(tuple(views), (*found.errors, *_group_errors(times.errors, list(wanted))))


def _behind(found: GroupViews) -> set[Place]:
    """The offsets at which groups have something to read."""
    return {
        (each.lag.partition, each.lag.current_offset)
        for view in found.views
        for each in view.partitions
        if each.lag.lag and each.lag.lag > 0 and each.lag.current_offset is not None
    }


def _timed(each: PartitionView, times: Mapping[Place, int | None]) -> PartitionView:
    offset = each.lag.current_offset
    return each if offset is None else replace(each, record_time_ms=times.get((each.lag.partition, offset)))


def _group_errors(errors: Mapping[str, object], group_ids: Sequence[str]) -> tuple[KgctlError, ...]:
    from kgctl.admin import ItemError

    found = [(group_id, errors[group_id]) for group_id in group_ids if group_id in errors]
    return tuple(error.to_exception(group=group_id) for group_id, error in found if isinstance(error, ItemError))


def _flaws(flaws: Mapping[str, tuple[KgctlError, ...]]) -> list[KgctlError]:
    return [error for group_id in sorted(flaws) for error in flaws[group_id]]


def _wanted_partitions(
    admin: GroupAdmin, groups: Mapping[str, tuple[GroupDescription, Committed]], scopes: Sequence[TopicScope]
) -> dict[str, list[TopicPartition]]:
    known = {group_id: _known_partitions(description, offsets) for group_id, (description, offsets) in groups.items()}
    topics = {partition.topic for partitions in known.values() for partition in partitions}
    if scopes:
        topics &= {scope.topic for scope in scopes}
    counts = admin.list_topics(sorted(topics)) if topics else {}
    return {group_id: sorted(_in_scope(_completed(partitions, counts), scopes)) for group_id, partitions in known.items()}


def _known_partitions(description: GroupDescription, offsets: Committed) -> set[TopicPartition]:
    return {*offsets, *_owners(description)}


def _completed(partitions: set[TopicPartition], counts: Mapping[str, int]) -> set[TopicPartition]:
    """With the partitions of the same topics that the group has nothing to do with yet."""
    topics = {partition.topic for partition in partitions}
    return partitions | {TopicPartition(topic, number) for topic in topics for number in range(counts.get(topic, 0))}


def _in_scope(partitions: Iterable[TopicPartition], scopes: Sequence[TopicScope]) -> Iterable[TopicPartition]:
    if not scopes:
        return partitions
    return [partition for partition in partitions if is_within(partition, scopes)]


def _owners(description: GroupDescription) -> dict[TopicPartition, MemberDescription]:
    return {
        TopicPartition(topic, number): member
        for member in description.members
        for topic, numbers in (member.assignment or {}).items()
        for number in numbers
    }


def _view(
    description: GroupDescription, partitions: Sequence[TopicPartition], committed: Committed, logs: PartitionResults[LogOffsets]
) -> GroupView:
    owners, subscribed = _owners(description), subscribed_topics(description)
    views = []
    for partition in partitions:
        row = partition_lag(partition, committed.get(partition), logs.values.get(partition, LogOffsets()))
        owner = owners.get(partition)
        found = {unreadable(logs.errors.get(partition))}
        if row.current_offset is not None:
            log = logs.values.get(partition, LogOffsets())
            found.add(out_of_range(reached(row.current_offset, log), log.log_start_offset, log.log_end_offset))
        if owner is None and description.state is GroupState.STABLE:
            is_stale = subscribed is not None and partition.topic not in subscribed
            found.add(Flag.STALE if is_stale else Flag.NO_CONSUMER)
        views.append(PartitionView(row, owner, tuple(flag for flag in Flag if flag in found)))
    return GroupView(description, tuple(views))


def subscribed_topics(description: GroupDescription) -> set[str] | None:
    """Return the topics that members subscribe to; None where a member does not tell, or subscribes by a pattern."""
    topics: set[str] = set()
    for member in description.members:
        if member.subscribed_topics is None or member.subscribed_topic_regex:
            return None
        topics |= {*member.subscribed_topics, *(member.assignment or {})}
    return topics


def missing_topic(admin: GroupAdmin, topic: str, why: str = "does not exist") -> NotFoundError:
    """The error of a topic that there is none of, with the nearest name that there is."""
    near = did_you_mean(topic, admin.list_topics(), quoted=True)
    return NotFoundError(f"topic {topic!r} {why}{near}", code="UNKNOWN_TOPIC_OR_PARTITION", topic=topic)


def check_rights_on(admin: GroupAdmin, missing: Iterable[str]) -> None:
    """Raise the `kgctl.errors.AuthError` of a topic that is missing to this user for want of a right, there or not."""
    asked = [TopicPartition(topic, 0) for topic in missing]
    for error in admin.list_log_offsets(asked).errors.values() if asked else ():
        if isinstance(refused := error.to_exception(), AuthError):
            raise refused
