"""Groups with their offsets, lag and owners: several calls of `GroupAdmin` put together, failures kept apart. Watched over time:
how fast they read, how fast records come, when they will be done, and whether they are well."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise

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
    item_error,
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

BELOW_LOG_START = "below-log-start"
PAST_LOG_END = "past-log-end"
STALE = "stale"
NO_LEADER = "no-leader"


def partition_lag(partition: TopicPartition, committed: OffsetAndMetadata | None, log: LogOffsets) -> PartitionLag:
    """One row. A committed offset of -1 stands for no commit, as brokers answer it."""
    if committed is None or committed.offset == NO_OFFSET:
        return PartitionLag(partition, None, log.log_start_offset, log.log_end_offset, None)
    end = log.log_end_offset
    return PartitionLag(
        partition,
        committed.offset,
        log.log_start_offset,
        end,
        None if end is None else lag_of(committed.offset, log.log_start_offset, end),
        None if committed.leader_epoch == NO_LEADER_EPOCH else committed.leader_epoch,
        committed.metadata,
    )


def lag_of(committed: int, start: int | None, end: int) -> int:
    """Return the records between a commit and the end of the log: never more than the log holds, negative past its end."""
    return end - committed if start is None else min(end - committed, end - start)


def total_lag(rows: Iterable[PartitionLag]) -> int:
    """The records that are still to be read. Partitions without a commit, or with an unknown end, count nothing, and so does a
    commit past the end of its log: it must not hide what others have to read."""
    return sum(max(0, row.lag) for row in rows if row.lag is not None)


def range_flags(row: PartitionLag) -> tuple[str, ...]:
    """What is wrong with the commit: a consumer that starts there finds no such offset in the log."""
    if row.current_offset is None:
        return ()
    if row.log_start_offset is not None and row.current_offset < row.log_start_offset:
        return (BELOW_LOG_START,)
    if row.log_end_offset is not None and row.current_offset > row.log_end_offset:
        return (PAST_LOG_END,)
    return ()


def lag_by_group(
    committed: Mapping[str, Mapping[TopicPartition, OffsetAndMetadata]], logs: Mapping[TopicPartition, LogOffsets]
) -> dict[str, int | None]:
    """Total lag of each group. None where the end of a partition with a commit is unknown.

    Made for many groups: no row is built a partition.
    """
    bounds = {partition: (log.log_start_offset, log.log_end_offset) for partition, log in logs.items()}
    return {group_id: _sum_of_lags(offsets, bounds) for group_id, offsets in committed.items()}


def _sum_of_lags(
    offsets: Mapping[TopicPartition, OffsetAndMetadata], bounds: Mapping[TopicPartition, tuple[int | None, int | None]]
) -> int | None:
    total = 0
    for partition, committed in offsets.items():
        if committed.offset == NO_OFFSET:
            continue
        start, end = bounds.get(partition, (None, None))
        if end is None:
            return None
        total += max(0, lag_of(committed.offset, start, end))
    return total


NO_CONSUMER = "no-consumer"

Committed = Mapping[TopicPartition, OffsetAndMetadata]


@dataclass(frozen=True, slots=True)
class PartitionView:
    """One partition of a group: its lag, the member that owns it, and what stands out about it."""

    lag: PartitionLag
    owner: MemberDescription | None = None
    flags: tuple[str, ...] = ()
    record_time_ms: int | None = None
    commit_time_ms: int | None = None
    next_record: Record | None = None


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
    views = [_view(described.values[group_id], wanted[group_id], committed.values[group_id], logs) for group_id in known]
    errors = [*_group_errors({**described.errors, **committed.errors}, group_ids)]
    errors += [*_flaws(described.flaws), *_flaws(committed.flaws)]
    errors += [logs.errors[partition].to_exception(partition=partition) for partition in sorted(logs.errors)]
    return GroupViews(tuple(views), tuple(errors))


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
    ahead = [Span(lag.partition, offset, after) for _, lag, offset in commits if after and (lag.lag or 0) > 0]
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
        flags, owner = list(range_flags(row)), owners.get(partition)
        if owner is None and description.state is GroupState.STABLE:
            is_stale = subscribed is not None and partition.topic not in subscribed
            flags.append(STALE if is_stale else NO_CONSUMER)
        error = logs.errors.get(partition)
        if error and error.code is ErrorCode.LEADER_NOT_AVAILABLE:
            flags.append(NO_LEADER)
        views.append(PartitionView(row, owner, tuple(flags)))
    return GroupView(description, tuple(views))


def subscribed_topics(description: GroupDescription) -> set[str] | None:
    """Return the topics that members subscribe to; None where a member does not tell, or subscribes by a pattern."""
    topics: set[str] = set()
    for member in description.members:
        if member.subscribed_topics is None or member.subscribed_topic_regex:
            return None
        topics |= {*member.subscribed_topics, *(member.assignment or {})}
    return topics


WINDOW = 10
"""How many samples a verdict looks back, as many as Burrow's window has by default."""


class Verdict(StrEnum):
    """How a partition or a group does, in Burrow's words; from the worst partition for a group."""

    OK = "OK"
    WARN = "WARN"
    STALL = "STALL"
    STOP = "STOP"
    REWIND = "REWIND"
    UNKNOWN = "-"


WORST_LAST = (Verdict.UNKNOWN, Verdict.OK, Verdict.WARN, Verdict.STALL, Verdict.STOP, Verdict.REWIND)


@dataclass(frozen=True, slots=True)
class Position:
    """Where a group is in a partition, and where its log begins and ends."""

    committed: int
    start: int
    end: int

    @property
    def lag(self) -> int:
        """Return the records still to read; none for a commit past the end of its log."""
        return max(0, lag_of(self.committed, self.start, self.end))


@dataclass(frozen=True, slots=True)
class Sample:
    """All positions at one moment, by group; ``errors`` are what could not be asked."""

    at_ms: int
    listings: Mapping[str, GroupListing]
    positions: Mapping[str, Mapping[TopicPartition, Position]]
    errors: tuple[KgctlError, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupRate:
    """One group of a frame. Rates are records a second, None before two samples; ``drain_s`` None where it never ends."""

    group_id: str
    state: str
    lag: int | None
    consumed_per_s: float | None
    produced_per_s: float | None
    drain_s: float | None
    verdict: Verdict


def take_sample(admin: GroupAdmin, wanted: Sequence[str], at_ms: int) -> Sample:
    """Ask where the groups are, all consumer groups where none is wanted: three rounds of requests, whatever their number."""
    listed = admin.list_groups()
    chosen = {
        group_id: listing
        for group_id, listing in listed.values.items()
        if (group_id in wanted if wanted else is_consumer_group(listing))
    }
    committed = admin.list_committed_offsets(list(chosen))
    logs = admin.list_log_offsets(sorted({partition for offsets in committed.values.values() for partition in offsets}))
    positions: dict[str, dict[TopicPartition, Position]] = {}
    for group_id, offsets in committed.values.items():
        found = positions.setdefault(group_id, {})
        for partition, commit in offsets.items():
            log = logs.values.get(partition)
            if log and log.log_start_offset is not None and log.log_end_offset is not None:
                found[partition] = Position(commit.offset, log.log_start_offset, log.log_end_offset)
    errors = [error.to_exception() for error in listed.unreachable.values()]
    errors += [_not_found(group_id) for group_id in wanted if group_id not in chosen and not listed.unreachable]
    errors += [error.to_exception(group=group_id) for group_id, error in committed.errors.items()]
    errors += [error.to_exception(partition=partition) for partition, error in logs.errors.items()]
    return Sample(at_ms, chosen, positions, tuple(errors))


def _not_found(group_id: str) -> KgctlError:
    return item_error(ErrorCode.GROUP_ID_NOT_FOUND, group=group_id).to_exception(group=group_id)


class Watch:
    """The last samples, and what they say of each group."""

    def __init__(self) -> None:
        self._samples: deque[Sample] = deque(maxlen=WINDOW)

    def add(self, sample: Sample) -> None:
        """Take the next sample; the oldest is forgotten."""
        self._samples.append(sample)

    def rates(self) -> list[GroupRate]:
        """Return one entry for each group of the last sample, by id."""
        if not self._samples:
            return []
        last = self._samples[-1]
        return [self._rate(group_id, last) for group_id in sorted(last.listings)]

    def _rate(self, group_id: str, last: Sample) -> GroupRate:
        now = last.positions.get(group_id, {})
        history = [sample.positions.get(group_id, {}) for sample in self._samples]
        lag = sum(position.lag for position in now.values()) if now else None
        consumed = produced = drain = None
        seconds = (last.at_ms - self._samples[0].at_ms) / 1000
        if seconds > 0 and now:
            first = history[0]
            both = [(first[partition], position) for partition, position in now.items() if partition in first]
            consumed = sum(after.committed - before.committed for before, after in both) / seconds
            produced = sum(after.end - before.end for before, after in both) / seconds
            drain = _drain_s(lag or 0, consumed, produced)
        is_read = not last.listings[group_id].state.is_inactive
        verdicts = [_verdict([past[each] for past in history if each in past], is_read=is_read) for each in now]
        worst = max(verdicts, key=WORST_LAST.index, default=Verdict.UNKNOWN)
        return GroupRate(group_id, last.listings[group_id].state.value, lag, consumed, produced, drain, worst)


def _drain_s(lag: int, consumed: float, produced: float) -> float | None:
    """Seconds until nothing is left to read at these rates; None where that is never."""
    if lag <= 0:
        return 0.0
    return lag / (consumed - produced) if consumed > produced else None


def _verdict(history: Sequence[Position], *, is_read: bool) -> Verdict:
    """Burrow's rules, in its order: a lag of zero anywhere is well; else rewound, stopped, stalled, falling behind.

    Source: Burrow's evaluator ``caching.go``, calculatePartitionStatus. It tells STOP (no commits any more) from STALL (commits
    that do not move) by the times of commits, which only it sees; here a group that has members stalls, one without has stopped.
    """
    if len(history) < 2:
        return Verdict.OK if history and history[0].lag <= 0 else Verdict.UNKNOWN
    if any(position.lag <= 0 for position in history):
        return Verdict.OK
    steps = list(pairwise(history))
    if any(after.committed < before.committed for before, after in steps):
        return Verdict.REWIND
    if history[0].committed == history[-1].committed:
        stuck = Verdict.STALL if is_read else Verdict.STOP
        return stuck if len(history) >= 3 else Verdict.UNKNOWN
    is_growing = all(after.lag >= before.lag for before, after in steps)
    return Verdict.WARN if is_growing else Verdict.OK


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
