"""Groups with their offsets, lag and owners: several calls of `GroupAdmin` put together, failures kept apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any

from kgctl.admin import (
    Committed,
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
from kgctl.admin.topic_scopes import TopicScope, is_within
from kgctl.errors import AuthError, KgctlError, NotFoundError, UnsupportedError, did_you_mean
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import (
    NO_OFFSET,
    GroupDescription,
    GroupListing,
    GroupState,
    GroupType,
    LogOffsets,
    MemberDescription,
    OffsetAndMetadata,
    StartOffset,
    TopicPartition,
)
from kgctl.model.lag import Flag, lag_of, out_of_range
from kgctl.model.values import frozen_in_order


def lag_behind(committed: OffsetAndMetadata | None, log: LogOffsets) -> int | None:
    """Return the records that are still to be read, by `lag_from`."""
    if committed is None:
        return None
    at, start, end = reached(committed.offset, log), log.log_start_offset, log.log_end_offset
    return lag_from(committed, start, end) if at == committed.offset else lag_of(at, start, end)


def lag_from(committed: OffsetAndMetadata, start: int | None, end: int | None) -> int | None:
    """The records that are still to be read: `lag_of`; of a start offset what its coordinator tells, where the log has it."""
    if isinstance(committed, StartOffset):
        return None if out_of_range(committed.offset, start, end) else committed.records_left
    return lag_of(committed.offset, start, end)


def reached(committed: int, log: LogOffsets) -> int:
    """Return where a commit counts as: one of a member that reads open transactions can be past the last stable offset."""
    if log.high_watermark is None or log.log_end_offset is None or committed > log.high_watermark:
        return committed
    return min(committed, log.log_end_offset)


def total_lag(lags: Iterable[int | None]) -> int:
    """The records that are still to be read, as far as is known: a partition whose lag is unknown counts nothing."""
    return sum(lag for lag in lags if lag is not None)


@frozen_in_order
class GroupLag:
    """A group's lag: None where that of a partition with a commit is unknown. ``flags`` are those of its commits."""

    lag: int | None
    flags: tuple[Flag, ...] = ()


NO_LAG = GroupLag(None)


def lag_by_group(committed: Mapping[str, Committed], logs: PartitionResults[LogOffsets]) -> dict[str, GroupLag]:
    """The lag of each group, over the partitions with a commit.

    Made for many groups: no row is built a partition.
    """
    bounds = {partition: (log.log_start_offset, log.log_end_offset) for partition, log in logs.values.items()}
    return {group_id: _lag_of_group(offsets, bounds, logs.errors) for group_id, offsets in committed.items()}


def _lag_of_group(
    offsets: Committed,
    bounds: Mapping[TopicPartition, tuple[int | None, int | None]],
    errors: Mapping[TopicPartition, ItemError],
) -> GroupLag:
    total, flags, is_known = 0, set(), True
    for partition, committed in offsets.items():
        if committed.offset == NO_OFFSET:
            continue
        start, end = bounds.get(partition, _NO_BOUNDS)
        lag = lag_of(committed.offset, start, end) if type(committed) is OffsetAndMetadata else lag_from(committed, start, end)
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


@frozen_in_order
class PartitionView:
    """One partition of a group, as columns read it: what brokers said, and what follows from it. Unknown is None, never a guess.

    ``commit`` is None where nothing is committed. ``lag`` is in records. What lies at the committed offset, and when that was
    committed, is there where it was asked for, ``asked_ms`` then.
    """

    description: GroupDescription
    partition: TopicPartition
    commit: OffsetAndMetadata | None
    log: LogOffsets
    lag: int | None
    owner: MemberDescription | None = None
    flags: tuple[Flag, ...] = ()
    record_time_ms: int | None = None
    commit_time_ms: int | None = None
    next_record: Record | None = None
    asked_ms: int = 0

    @property
    def current_offset(self) -> int | None:
        """The offset of the record that is read next."""
        return None if self.commit is None else self.commit.offset

    @property
    def place(self) -> Place | None:
        """Return the committed offset in its log."""
        return None if self.commit is None else (self.partition, self.commit.offset)

    @property
    def knows_next(self) -> bool:
        """Whether the record at the offset is for certain the one that is read next: past a start offset any may be."""
        return self.commit is None or self.commit.is_all(self.log.log_end_offset)

    @property
    def is_unmeasured(self) -> bool:
        """Whether nobody knows what is left to read: no lag, and a commit, or a log with records or unknown."""
        start, end = self.log.log_start_offset, self.log.log_end_offset
        return self.lag is None and (self.commit is not None or end is None or start != end)

    @property
    def is_out_of_range(self) -> bool:
        """Whether something is committed from where no consumer can go on."""
        return Flag.BELOW_LOG_START in self.flags or Flag.PAST_LOG_END in self.flags


_FIELDS = tuple(each.name for each in fields(PartitionView))
_values_of = attrgetter(*_FIELDS)


def _with(view: PartitionView, learnt: Mapping[str, Any]) -> PartitionView:
    """As `dataclasses.replace`, in half of its time: there may be 100,000."""
    return PartitionView(**{**dict(zip(_FIELDS, _values_of(view), strict=True)), **learnt})


@frozen_in_order
class GroupView:
    """One group with its partitions, by topic, then by number."""

    description: GroupDescription
    partitions: tuple[PartitionView, ...] = ()

    @property
    def total_lag(self) -> int:
        """Return the sum of the known lags, in records."""
        return total_lag(each.lag for each in self.partitions)


@frozen_in_order
class GroupViews:
    """What could be learnt, in the order asked for, and what failed."""

    views: tuple[GroupView, ...]
    errors: tuple[KgctlError, ...] = ()

    @property
    def partitions(self) -> Iterator[PartitionView]:
        """Yield the partitions of all groups."""
        return (each for view in self.views for each in view.partitions)

    def enriched(self, more: Callable[[PartitionView], Mapping[str, Any]], errors: Iterable[KgctlError]) -> GroupViews:
        """Return these with fields of partitions set to what was learnt ``more`` of them, and what could not be."""
        views = [
            replace(view, partitions=tuple(_with(each, learnt) if (learnt := more(each)) else each for each in view.partitions))
            for view in self.views
        ]
        return GroupViews(tuple(views), (*self.errors, *errors))


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


def with_record_times(admin: GroupAdmin, found: GroupViews, now_ms: int) -> GroupViews:
    """With the time of the next record that each group has to read, where it has one; what cannot be read is an error."""
    behind = _behind(found)
    times = admin.list_record_times(sorted(behind)) if behind else Results[Place, int | None]()

    def more(each: PartitionView) -> Mapping[str, Any]:
        at_ms = times.values.get(place) if (place := each.place) else None
        return {} if at_ms is None else {"record_time_ms": at_ms, "asked_ms": now_ms}

    return found.enriched(more, _errors_of_places(times.errors))


def with_next_records(admin: GroupAdmin, found: GroupViews) -> GroupViews:
    """With the record that each group reads next, where it has one; what cannot be read is an error.

    Raises:
        UnsupportedError: records cannot be read here.
    """
    if not isinstance(admin, ReadsRecords):
        raise UnsupportedError("records cannot be read here: only from a cluster of brokers")
    read = admin.read_records([Span(*place) for place in sorted(_behind(found))])

    def more(each: PartitionView) -> Mapping[str, Any]:
        records = read.values.get(Span(*each.place)) if each.lag and each.place else ()
        return {"next_record": records[0]} if records else {}

    return found.enriched(more, _errors_of_places(read.errors))


def _errors_of_places(errors: Mapping[Any, ItemError]) -> list[KgctlError]:
    """One error a partition, of keys that begin with it."""
    by_partition = {key[0]: error for key, error in sorted(errors.items(), key=lambda item: item[0])}
    return [error.to_exception(partition=partition) for partition, error in by_partition.items()]


@frozen_in_order
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
    commits = [each for each in found.partitions if each.place and each.log.log_end_offset is not None]
    ahead = [Span(*each.place, after) for each in commits if after and each.place and each.place[1] < _end(each)]
    read = admin.read_records(ahead) if ahead else Results[Span, tuple[Record, ...]]()
    errors = dict(read.errors)
    places = [(each.partition, min(each.current_offset or 0, _end(each))) for each in commits]
    starts = {place: each.log.log_start_offset or 0 for each, place in zip(commits, places, strict=True)}
    back = _read_back(admin, starts, before, errors)
    neighbours = []
    for each, place in zip(commits, places, strict=True):
        offset = each.current_offset or 0
        unread = read.values.get(Span(each.partition, offset, after), ())
        neighbours.append(Neighbours(each.description.group_id, each.partition, offset, back.get(place, ()), unread))
    return neighbours, _errors_of_places(errors)


def _end(each: PartitionView) -> int:
    return each.log.log_end_offset or 0


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


def with_commit_times(admin: GroupAdmin, found: GroupViews, now_ms: int) -> GroupViews:
    """With the time at which each commit was made, where that can be told; groups of which it cannot are errors.

    Raises:
        UnsupportedError: nothing tells it here.
    """
    if not isinstance(admin, TellsCommitTimes):
        raise UnsupportedError("nothing tells here when groups committed: it is read from a cluster's __consumer_offsets")
    wanted: dict[str, set[TopicPartition]] = {}
    for each in found.partitions:
        if each.commit:
            wanted.setdefault(each.description.group_id, set()).add(each.partition)
    times = admin.list_commit_times(wanted)

    def more(each: PartitionView) -> Mapping[str, Any]:
        at_ms = times.values.get(each.description.group_id, {}).get(each.partition)
        return {} if at_ms is None else {"commit_time_ms": at_ms, "asked_ms": now_ms}

    return found.enriched(more, _group_errors(times.errors, list(wanted)))


def _behind(found: GroupViews) -> set[Place]:
    """The offsets at which groups have something to read."""
    return {place for each in found.partitions if each.lag and (place := each.place) and each.knows_next}


def _group_errors(errors: Mapping[str, ItemError], group_ids: Sequence[str]) -> tuple[KgctlError, ...]:
    return tuple(errors[group_id].to_exception(group=group_id) for group_id in group_ids if group_id in errors)


def _flaws(flaws: Mapping[str, tuple[KgctlError, ...]]) -> list[KgctlError]:
    return [error for group_id in sorted(flaws) for error in flaws[group_id]]


def _wanted_partitions(
    admin: GroupAdmin, groups: Mapping[str, tuple[GroupDescription, Committed]], scopes: Sequence[TopicScope]
) -> dict[str, list[TopicPartition]]:
    known = {group_id: {*offsets, *_owners(description)} for group_id, (description, offsets) in groups.items()}
    topics = {partition.topic for partitions in known.values() for partition in partitions}
    if scopes:
        topics &= {scope.topic for scope in scopes}
    counts = admin.list_topics(sorted(topics)) if topics else {}
    return {group_id: sorted(_in_scope(_completed(partitions, counts), scopes)) for group_id, partitions in known.items()}


def _completed(partitions: set[TopicPartition], counts: Mapping[str, int]) -> set[TopicPartition]:
    """With the partitions of the same topics that the group has nothing to do with yet."""
    topics = {partition.topic for partition in partitions}
    return partitions | {TopicPartition(topic, number) for topic in topics for number in range(counts.get(topic, 0))}


def _in_scope(partitions: Iterable[TopicPartition], scopes: Sequence[TopicScope]) -> Iterable[TopicPartition]:
    if not scopes:
        return partitions
    return [partition for partition in partitions if is_within(partition, scopes)]


def _owners(description: GroupDescription) -> dict[TopicPartition, MemberDescription | None]:
    """The member that owns each partition; None where several do, as in a share group."""
    found: dict[TopicPartition, MemberDescription | None] = {}
    for member in description.members:
        for topic, numbers in (member.assignment or {}).items():
            for number in numbers:
                partition = TopicPartition(topic, number)
                found[partition] = None if partition in found else member
    return found


def _view(
    description: GroupDescription, partitions: Sequence[TopicPartition], committed: Committed, logs: PartitionResults[LogOffsets]
) -> GroupView:
    owners, subscribed = _owners(description), subscribed_topics(description)
    own = description.topology.repartition_topics if description.topology else ()
    views = []
    for partition in partitions:
        commit, log = committed.get(partition), logs.values.get(partition, _NO_LOG)
        if commit is not None and commit.offset == NO_OFFSET:
            commit = None  # as brokers answer where nothing is committed
        lag, owner = lag_behind(commit, log), owners.get(partition)
        if commit is None and partition.topic in own:  # Kafka Streams reads its own topics from their beginning
            lag = lag_of(log.log_start_offset, log.log_start_offset, log.log_end_offset)
        found = [_flag_of_log(commit, log, logs.errors.get(partition))] if lag is None else []
        if partition not in owners and description.state is GroupState.STABLE:
            is_stale = subscribed is not None and partition.topic not in subscribed
            found.append(Flag.STALE if is_stale else Flag.NO_CONSUMER)
        views.append(PartitionView(description, partition, commit, log, lag, owner, tuple(flag for flag in found if flag)))
    return GroupView(description, tuple(views))


_NO_LOG = LogOffsets()


def _flag_of_log(commit: OffsetAndMetadata | None, log: LogOffsets, error: ItemError | None) -> Flag | None:
    """Return what is wrong with a log, or with a commit in it, where no lag is known."""
    if commit is None or error is not None:
        return unreadable(error)
    return out_of_range(reached(commit.offset, log), log.log_start_offset, log.log_end_offset)


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
    for error in out_of_sight(admin, missing).values():
        raise error.to_exception()


def out_of_sight(admin: GroupAdmin, missing: Iterable[str]) -> dict[str, ItemError]:
    """The topics, of those that are missing to this user, that are so for want of a right, there or not."""
    asked = [TopicPartition(topic, 0) for topic in missing]
    errors = admin.list_log_offsets(asked).errors if asked else {}
    return {partition.topic: error for partition, error in errors.items() if isinstance(error.to_exception(), AuthError)}
