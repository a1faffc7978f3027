"""Resetting offsets as a plan: what each partition has, what it shall have, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from enum import StrEnum
from typing import assert_never

from kgctl.admin import LATEST_TIERED, MAX_TIMESTAMP, ItemError
from kgctl.admin.notation import FromFile
from kgctl.admin.times import format_instant
from kgctl.admin.topic_scopes import TopicScope
from kgctl.errors import KgctlError, RefusedError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import NO_OFFSET, GroupDescription, GroupState, LogOffsets, OffsetAndMetadata, StartOffset, TopicPartition
from kgctl.model.lag import lag_of
from kgctl.model.values import frozen_in_order


@frozen_in_order
class ToEarliest:
    """Resets to the start of the log."""


@frozen_in_order
class ToLatest:
    """To the end of the log: everything now there is skipped."""


@frozen_in_order
class ToOffset:
    """Resets to one offset, the same in every partition."""

    offset: int


@frozen_in_order
class ShiftBy:
    """By so many records from the committed offset, back if negative."""

    records: int


@frozen_in_order
class ToTime:
    """To the first record at or after a moment; to the end of the log where there is none."""

    timestamp_ms: int


@frozen_in_order
class ToMark:
    """To an offset that the broker marks: `kgctl.admin.MAX_TIMESTAMP` (the end of an empty log), `EARLIEST_LOCAL`, or
    `LATEST_TIERED` (KIP-405), which there is none of where nothing is in remote storage.
    """

    timestamp_ms: int = MAX_TIMESTAMP


@frozen_in_order
class ToCurrent:
    """Keep the committed offset where it is valid; the end of the log where nothing is committed."""


@frozen_in_order
class Heal:
    """Bring commits that lie outside their log to its nearer end, and leave everything else alone."""


@frozen_in_order
class PastOffset:
    """What was committed for one partition at a moment of the past, and why that is not certain, where it is not.

    ``target`` None: something may have been committed, and what is not known; then there is a ``doubt``.
    """

    target: OffsetAndMetadata | None
    doubt: str | None = None


@frozen_in_order
class ToHistory:
    """To what was committed at a moment of the past, by group. A partition left out had no commit then and is left alone."""

    timestamp_ms: int
    groups: Mapping[str, Mapping[TopicPartition, PastOffset]] = field(default_factory=dict)


Strategy = ToEarliest | ToLatest | ToOffset | ShiftBy | ToTime | ToMark | ToCurrent | Heal | FromFile | ToHistory


class ResetResult(StrEnum):
    """What became of a row."""

    PLANNED = "planned"
    UNCHANGED = "unchanged"
    RESET = "reset"
    DELETED = "deleted"
    FAILED = "failed"
    REFUSED = "refused"
    MOVED = "moved"
    UNKNOWN = "unknown"
    NOT_TRIED = "not-tried"


@frozen_in_order
class Clamp:
    """An offset that was asked for and lies outside the log."""

    requested: int
    applied: int

    def __str__(self) -> str:
        bound = "past the log end" if self.requested > self.applied else "before the log start"
        return f"{self.requested} is {bound} {self.applied}"


@frozen_in_order
class PartitionFacts:
    """What is known of one partition before a plan is made.

    ``at_time`` counts for `ToTime` and `ToMark` alone: None for no such record.
    """

    committed: OffsetAndMetadata | None
    log: LogOffsets
    at_time: int | None = None
    error: ItemError | None = None


@frozen_in_order
class ResetRow:
    """One partition of the plan. ``new`` None in a planned row takes the commit away; in a failed row it is unknown.

    A row that failed or is refused has the cluster's ``error``, or else a ``note`` that says why, with a ``code`` for programs.
    """

    group_id: str
    partition: TopicPartition
    old: OffsetAndMetadata | None
    new: OffsetAndMetadata | None
    log: LogOffsets
    result: ResetResult = ResetResult.PLANNED
    note: str | None = None
    clamp: Clamp | None = None
    code: str | None = None
    error: ItemError | None = None

    @property
    def delta(self) -> int | None:
        """How far the offset moves, in records; None where there is no old or no new one."""
        return None if self.old is None or self.new is None else self.new.offset - self.old.offset

    @property
    def lag_after(self) -> int | None:
        """The lag that a consumer starts with, in records."""
        return lag_of(self.new.offset if self.new else None, self.log.log_start_offset, self.log.log_end_offset)

    def to_exception(self) -> KgctlError | None:
        """Why the row failed or is refused; None for a row that did not."""
        if self.error:
            return self.error.to_exception(group=self.group_id, partition=self.partition)
        kind = {ResetResult.FAILED: KgctlError, ResetResult.REFUSED: RefusedError, ResetResult.MOVED: RefusedError}.get(
            self.result
        )
        if kind is None:
            return None
        topic, number = self.partition
        return kind(self.note or "", code=self.code, group=self.group_id, topic=topic, partition=number)


def plan_partition(
    strategy: Strategy, group_id: str, partition: TopicPartition, facts: PartitionFacts, *, clamp: bool = True
) -> ResetRow:
    """The row of one partition. What cannot be planned is a FAILED row that says why, never an exception.

    With ``clamp`` False an offset outside the log fails instead of being brought to its nearer end.
    """
    old = facts.committed
    row = ResetRow(group_id, partition, None if old is None or old.offset == NO_OFFSET else old, None, facts.log)
    start, end = facts.log.log_start_offset, facts.log.log_end_offset
    if facts.error:
        return replace(row, result=ResetResult.FAILED, note=facts.error.message, error=facts.error)
    if start is None or end is None:
        return _without_log(strategy, row, facts, clamp=clamp)
    wanted = _wanted(strategy, row, facts, start, end)
    return wanted if isinstance(wanted, ResetRow) else _aimed(row, *wanted, clamp=clamp)


LOG_UNKNOWN = "LOG_UNKNOWN"
NOTHING_COMMITTED = "NOTHING_COMMITTED"
NOTHING_TIERED = "NOTHING_TIERED"
NOT_IN_THE_HISTORY = "NOT_IN_THE_HISTORY"
OUT_OF_RANGE = "OFFSET_OUT_OF_RANGE"
PLAN_OUTDATED = "PLAN_OUTDATED"
CHANGED_MEANWHILE = "CHANGED_MEANWHILE"
"""The code of what is refused, or has no effect, because somebody else was there meanwhile."""
LEFT_ALONE = "left alone: other partitions of the group are not as they were"
LEFT_OUTSIDE = "left alone: other offsets of the plan lie outside their logs"

_INSISTS = " (--overwrite insists)"
UNCHECKED = "the bounds of the log are not known: not checked"

_Wanted = tuple[OffsetAndMetadata | None, str | None]
# They go by an offset; where any other target lies in a log of unknown length nobody knows.
_KNOWN_WITHOUT_LOG = (ToOffset, ShiftBy, ToCurrent, Heal, FromFile, ToHistory)


def _without_log(strategy: Strategy, row: ResetRow, facts: PartitionFacts, *, clamp: bool) -> ResetRow:
    """A target that needs no log, where nobody can tell how long that is: only brokers can, and groups in ZooKeeper have none."""
    needs_log = not isinstance(strategy, _KNOWN_WITHOUT_LOG) or (isinstance(strategy, ToCurrent) and row.old is None)
    if needs_log or not clamp:
        return _failed(row, LOG_UNKNOWN, "the bounds of the log are not known")
    wanted = _wanted(strategy, row, facts, 0, 0)
    if isinstance(wanted, ResetRow):
        return wanted
    target, note = wanted
    if target is None:
        return _taken_away(row)
    if target.offset < 0:
        return _failed(row, OUT_OF_RANGE, f"{target.offset} is before the log start")
    return _planned(row, target, note or UNCHECKED)


def _wanted(strategy: Strategy, row: ResetRow, facts: PartitionFacts, start: int, end: int) -> _Wanted | ResetRow:
    wanted: _Wanted | ResetRow
    match strategy:
        case ToEarliest():
            wanted = OffsetAndMetadata(start), None
        case ToLatest():
            wanted = OffsetAndMetadata(end), None
        case ToOffset(offset):
            wanted = OffsetAndMetadata(offset), None
        case ShiftBy(records):
            wanted = _shifted(row, records)
        case ToTime() | ToMark():
            wanted = _at_time(row, facts, strategy, end)
        case ToCurrent():
            wanted = (row.old, None) if row.old else (OffsetAndMetadata(end), "nothing was committed; log end")
        case Heal():
            wanted = (row.old, None) if row.old else replace(row, result=ResetResult.UNCHANGED)
        case FromFile():
            wanted = _from_file(strategy, row)
        case ToHistory():
            wanted = _from_history(strategy, row)
        case _:
            assert_never(strategy)
    return wanted


def _shifted(row: ResetRow, records: int) -> _Wanted | ResetRow:
    if row.old is None:
        return _failed(row, NOTHING_COMMITTED, "nothing is committed that could be shifted")
    return OffsetAndMetadata(row.old.offset + records), None


def _at_time(row: ResetRow, facts: PartitionFacts, strategy: ToTime | ToMark, end: int) -> _Wanted | ResetRow:
    if facts.at_time is None:
        if strategy.timestamp_ms == LATEST_TIERED:
            return _failed(row, NOTHING_TIERED, "nothing of this log is in remote storage")
        what = f"no record at or after {format_instant(strategy.timestamp_ms)}" if isinstance(strategy, ToTime) else "no record"
        return OffsetAndMetadata(end), f"{what}; log end"
    return OffsetAndMetadata(facts.at_time), None


def _from_file(strategy: FromFile, row: ResetRow) -> _Wanted | ResetRow:
    planned = strategy.groups[row.group_id][row.partition]
    found = None if row.old is None else row.old.offset
    target = None if planned.target is None else planned.target.offset
    is_untouched = row.old is None or row.old.is_all(row.log.log_end_offset)
    if planned.verify and found != target and row.partition.topic in strategy.made_anew:
        note = f"the topic was deleted and made anew since: offsets of the old one mean nothing in it{_INSISTS * planned.undoes}"
        code = CHANGED_MEANWHILE if planned.undoes else PLAN_OUTDATED
        return replace(row, new=planned.target, result=ResetResult.REFUSED, note=note, code=code)
    if not planned.verify or (found in (planned.expected_old, target) and is_untouched):  # nothing to refuse where it is done
        return planned.target, None
    then, now = _shown(planned.expected_old), f"{_shown(found)}{'' if is_untouched else _past(row.old)}"
    if planned.undoes:
        note, code = f"went on since: the change left {then}, {now} now{_INSISTS}", CHANGED_MEANWHILE
    else:
        note, code = f"changed since the plan was made: {then} then, {now} now", PLAN_OUTDATED
    return replace(row, new=planned.target, result=ResetResult.REFUSED, note=note, code=code)


def _past(start: OffsetAndMetadata | None) -> str:
    """What is done of a share group past its start offset."""
    is_told = isinstance(start, StartOffset) and start.records_left is not None
    return (
        " with records past it acknowledged"
        if is_told
        else ", past which its coordinator tells no lag: records may be acknowledged,"
    )


def _from_history(strategy: ToHistory, row: ResetRow) -> _Wanted | ResetRow:
    past = strategy.groups[row.group_id].get(row.partition)
    if past is None:
        note = f"the history has no commit at {format_instant(strategy.timestamp_ms)}; left alone"
        return replace(row, new=row.old, result=ResetResult.UNCHANGED, note=note)
    if past.target is None:
        return _failed(row, NOT_IN_THE_HISTORY, past.doubt or "not known")
    return past.target, past.doubt


def _shown(offset: int | None) -> str:
    return "no commit" if offset is None else str(offset)


def _aimed(row: ResetRow, target: OffsetAndMetadata | None, note: str | None, *, clamp: bool) -> ResetRow:
    """Return the row with its target brought into the log."""
    if target is None:
        return _taken_away(row)
    start, end = row.log.log_start_offset, row.log.log_end_offset
    assert start is not None
    assert end is not None
    if start <= target.offset <= end:
        return _planned(row, target, note)
    applied = min(max(target.offset, start), end)
    change = Clamp(target.offset, applied)
    if not clamp:
        return _failed(row, OUT_OF_RANGE, str(change))
    told = f"{change}; {applied} is used"
    return replace(_planned(row, type(target)(applied), f"{told}; {note}" if note else told), clamp=change)


def _taken_away(row: ResetRow) -> ResetRow:
    unchanged = ResetResult.UNCHANGED if row.old is None else ResetResult.PLANNED
    return replace(row, result=unchanged, note="the commit is taken away" if row.old else None)


def _planned(row: ResetRow, new: OffsetAndMetadata, note: str | None) -> ResetRow:
    """Only a file and the history bring metadata; a reset to the same offset leaves the metadata that is there alone."""
    old = row.old
    same = old is not None and old.offset == new.offset and new.metadata in ("", old.metadata)
    result = ResetResult.UNCHANGED if same else ResetResult.PLANNED
    return ResetRow(row.group_id, row.partition, old, new, row.log, result, note)  # half the time of `replace`, and every row's


def _failed(row: ResetRow, code: str, why: str) -> ResetRow:
    return replace(row, result=ResetResult.FAILED, note=why, code=code)


def _left_alone(row: ResetRow, why: str = LEFT_ALONE, code: str = CHANGED_MEANWHILE) -> ResetRow:
    return replace(row, result=ResetResult.REFUSED, note=why, code=code) if row.result is ResetResult.PLANNED else row


# By type of group: rows are planned as for consumer groups, and made here what Kafka can do. A share group has start offsets; a
# streams group has topics of its own, and none of others than its topology has.

FORGETS = "which records past {} are acknowledged is forgotten, and no undo brings that back"


def is_own_topic(description: GroupDescription, topic: str) -> bool:
    """Whether it is a topic that the application itself writes: by its topology, else by its name."""
    topology = description.topology
    if topology is None:
        return False
    if topology.subtopologies is None:
        from kgctl.model.streams import is_inferred_internal  # for these alone

        return is_inferred_internal(topic, description.group_id)
    return topic in topology.internal_topics


def of_type(row: ResetRow, description: GroupDescription) -> ResetRow:
    """The row with what a group of this type has in the place of a commit; failed where it can have none there."""
    if description.type.has_start_offsets:
        return _of_share_group(row)
    if row.old is None and row.new is not None and not _may_have(description, row.partition.topic):
        why = f"topic '{row.partition.topic}' is not part of the streams group '{description.group_id}'"
        return replace(row, result=ResetResult.FAILED, note=why, error=ItemError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, why))
    if isinstance(row.new, StartOffset):
        return replace(row, new=OffsetAndMetadata(row.new.offset, "", row.new.leader_epoch))
    return row


def of_same_type(strategy: Strategy, row: ResetRow, description: GroupDescription) -> ResetRow:
    """The row; refused where the group is another by now than the one that a plan or an undo file is about, by its type."""
    if not isinstance(strategy, FromFile) or strategy.header is None or row.result is not ResetResult.PLANNED:
        return row
    planned = strategy.groups[row.group_id][row.partition]
    is_share = isinstance(planned.target, StartOffset)
    if not planned.verify or planned.target is None or is_share is description.type.has_start_offsets:
        return row
    note = f"the group was {'a' if is_share else 'no'} share group then, and is a {description.type.value} group now"
    code = CHANGED_MEANWHILE if planned.undoes else PLAN_OUTDATED
    return replace(row, result=ResetResult.REFUSED, note=f"{note}{_INSISTS * planned.undoes}", code=code)


def made_anew(strategy: Strategy, group_id: str, committed: Mapping[TopicPartition, OffsetAndMetadata]) -> str | None:
    """Why a group that was deleted is another one by now: what it has committed that its undo file has not; None for nothing."""
    if not isinstance(strategy, FromFile) or strategy.header is None or not strategy.header.whole_groups:
        return None
    before = strategy.groups[group_id]
    present = (partition for partition, commit in sorted(committed.items()) if commit.offset != NO_OFFSET)
    new = next((partition for partition in present if partition not in before), None)
    if new is None or not any(each.verify for each in before.values()):
        return None
    return f"the group was deleted, and is there again, with {committed[new].offset} committed on {new}{_INSISTS}"


def _may_have(description: GroupDescription, topic: str) -> bool:
    """Kafka's own tool goes by the commits alone; the topology is what these come from."""
    topology = description.topology
    return topology is None or topology.subtopologies is None or topic in topology.source_topics | topology.repartition_topics


def _of_share_group(row: ResetRow) -> ResetRow:
    """A start offset that stays is set all the same where records past it are, or may be, acknowledged."""
    if row.new is None:
        return row
    new = StartOffset(row.new.offset, "", row.new.leader_epoch)
    if row.old is None or row.old.is_all(row.log.log_end_offset) or row.result not in _TO_DO:
        return replace(row, new=new)
    forgets = FORGETS.format(row.old.offset)
    return replace(row, new=new, result=ResetResult.PLANNED, note=f"{row.note}; {forgets}" if row.note else forgets)


_TO_DO = (ResetResult.PLANNED, ResetResult.UNCHANGED)


@frozen_in_order
class ResetRequest:
    """What to reset, and to where.

    ``scopes`` None means every partition with a commit, with `ToHistory` also those that had one then; a strategy from a file
    brings its own scope. ``create`` allows groups that do not exist, which the reset then makes. ``skip_missing`` leaves out
    topics and partitions that do not exist, which are errors else. ``per_partition`` goes on with the partitions of a group where
    others are not as a file says; else the whole group is left alone.
    """

    group_ids: tuple[str, ...]
    strategy: Strategy
    scopes: tuple[TopicScope, ...] | None = None
    clamp: bool = True
    create: bool = False
    skip_missing: bool = False
    per_partition: bool = False


@frozen_in_order
class GroupPlan:
    """The rows of one group, by topic, then by number; ``description`` None for a group that is still to be made."""

    group_id: str
    description: GroupDescription | None
    rows: tuple[ResetRow, ...]

    @property
    def state(self) -> GroupState:
        """Return the group's state when the plan was made."""
        return self.description.state if self.description else GroupState.DEAD

    @property
    def is_refused(self) -> bool:
        """Whether a partition of it is refused."""
        return any(row.result is ResetResult.REFUSED for row in self.rows)

    def refused(self, why: str) -> GroupPlan:
        """Return the plan with nothing to do, and why."""
        return replace(self, rows=tuple(_left_alone(row, why) for row in self.rows))

    def as_a_whole(self) -> GroupPlan:
        """Return the plan with nothing to do where a partition is refused."""
        if not self.is_refused:
            return self
        return replace(self, rows=tuple(map(_left_alone, self.rows)))


@frozen_in_order
class ResetPlan:
    """The plans of all groups that could be looked at, and what failed about the others; ``per_partition`` as in the request."""

    groups: tuple[GroupPlan, ...]
    errors: tuple[KgctlError, ...] = ()
    per_partition: bool = False

    @property
    def rows(self) -> tuple[ResetRow, ...]:
        """Return all rows, group by group."""
        return tuple(row for group in self.groups for row in group.rows)

    @property
    def is_out_of_range(self) -> bool:
        """Whether an offset lies outside its log and clamping was not wanted: then nothing at all is executed."""
        return any(row.code == OUT_OF_RANGE for row in self.rows)

    def within_logs(self) -> ResetPlan:
        """Return the plan with nothing to do where it `is_out_of_range`."""
        if not self.is_out_of_range:
            return self
        groups = (
            replace(each, rows=tuple(_left_alone(row, LEFT_OUTSIDE, OUT_OF_RANGE) for row in each.rows)) for each in self.groups
        )
        return replace(self, groups=tuple(groups))

    def to_change(self) -> tuple[ResetRow, ...]:
        """Return the rows that executing would change."""
        groups = [group for group in self.groups if group.state.is_inactive]
        return tuple(row for group in groups for row in group.rows if row.result is ResetResult.PLANNED)
