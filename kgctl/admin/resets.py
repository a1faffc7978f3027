"""Resets: planned from what the cluster has, and executed where the plan still holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from kgctl.admin import AltersManyGroups, Committed, GroupAdmin, ItemError, PartitionResults, lacking
from kgctl.admin.changes import (
    Account,
    ChangeStep,
    CommitKey,
    CommitsAsPlanned,
    ItemOutcome,
    StepAnswer,
    StopRequest,
    carry_out,
    committed_now,
    groups_a_step,
    present,
    taking_away,
)
from kgctl.admin.group_view import check_rights_on, missing_topic, out_of_sight
from kgctl.admin.notation import FromFile, PlannedOffset
from kgctl.admin.offset_reset import (
    CHANGED_MEANWHILE,
    GroupPlan,
    Heal,
    PartitionFacts,
    ResetPlan,
    ResetRequest,
    ResetResult,
    ResetRow,
    Strategy,
    ToHistory,
    ToMark,
    ToTime,
    is_own_topic,
    made_anew,
    of_same_type,
    of_type,
    plan_partition,
)
from kgctl.admin.rights import COMMIT, DELETE_OFFSETS
from kgctl.admin.share_groups import in_part
from kgctl.admin.topic_scopes import TopicScope, is_within, present_scopes, resolve_scopes
from kgctl.errors import AuthError, KgctlError, NotFoundError, RefusedError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import NO_OFFSET, GroupDescription, LogOffsets, OffsetAndMetadata, StartOffset, TopicPartition
from kgctl.model.values import frozen_in_order


def plan_reset(admin: GroupAdmin, request: ResetRequest) -> ResetPlan:
    """Look at the cluster, change nothing, and say what a reset would do. Works on active groups too.

    Raises:
        NotFoundError: a topic or partition of the scope does not exist.
    """
    described = admin.describe_groups(request.group_ids)
    missing = {group_id for group_id, error in described.errors.items() if error.code is ErrorCode.GROUP_ID_NOT_FOUND}
    there = {*described.values, *(missing if request.create else ())}
    found = {group_id: described.values.get(group_id) for group_id in request.group_ids if group_id in there}
    failed = {group_id: error for group_id, error in described.errors.items() if group_id not in found}
    return _plan_groups(admin, request, found, {each: error.to_exception(group=each) for each, error in failed.items()})


def _plan_groups(
    admin: GroupAdmin, request: ResetRequest, found: Mapping[str, GroupDescription | None], errors: dict[str, KgctlError]
) -> ResetPlan:
    scopes: dict[str, Sequence[TopicPartition]] = {}
    offsets: Mapping[str, Committed] = {}
    flaws: Mapping[str, tuple[KgctlError, ...]] = {}
    if found:
        common = _common_scope(admin, request)
        committed = admin.list_committed_offsets(list(found))
        offsets, flaws = committed.values, committed.flaws
        errors.update((group_id, error.to_exception(group=group_id)) for group_id, error in committed.errors.items())
        scopes = {each: _scope(request, each, found[each], offsets[each], common) for each in found if each in offsets}
    if bare := [group_id for group_id, partitions in scopes.items() if not partitions]:
        lacks = admin.sight().lacks_topics
        errors.update((group_id, _nothing_to_reset(request, group_id, lacks)) for group_id in bare)
        scopes = {group_id: partitions for group_id, partitions in scopes.items() if partitions}
    facts = _Facts.gather(admin, request.strategy, {p for partitions in scopes.values() for p in partitions})
    plans = []
    for group_id, partitions in scopes.items():
        group = found[group_id]
        rows = _rows(request, group_id, partitions, offsets[group_id], facts, flaws=flaws.get(group_id, ()), description=group)
        plan = GroupPlan(group_id, group, rows)
        if not request.per_partition:
            why = made_anew(request.strategy, group_id, offsets[group_id])
            plan = plan.refused(why) if why else plan.as_a_whole()
        plans.append(plan)
    of_groups = ((scopes.get(group_id, ()), flaw) for group_id, of_group in flaws.items() for flaw in of_group)
    apart = [flaw for scope, flaw in of_groups if (flaw.topic, flaw.partition) not in scope]
    failed = (errors[group_id] for group_id in request.group_ids if group_id in errors)
    return _within_rights(admin, ResetPlan(tuple(plans), (*failed, *apart), request.per_partition).within_logs())


def _within_rights(admin: GroupAdmin, plan: ResetPlan) -> ResetPlan:
    """The plan; a row fails that this user has no right to change, as far as brokers tell it."""
    planned = [row for row in plan.rows if row.result is ResetResult.PLANNED]
    denied: dict[CommitKey, ItemError] = {}
    for change, rows in (
        (COMMIT, [row for row in planned if row.new is not None]),
        (DELETE_OFFSETS, [row for row in planned if row.new is None]),
    ):
        found = lacking(admin, change, (row.group_id for row in rows), (row.partition.topic for row in rows))
        errors = ((row, found.of(row.group_id, row.partition.topic)) for row in rows)
        denied |= {(row.group_id, row.partition): error for row, error in errors if error}
    if not denied:
        return plan
    groups = (replace(group, rows=tuple(_denied(row, denied) for row in group.rows)) for group in plan.groups)
    return replace(plan, groups=tuple(groups))


def _denied(row: ResetRow, denied: Mapping[CommitKey, ItemError]) -> ResetRow:
    error = denied.get((row.group_id, row.partition))
    return row if error is None else _told_failed(row, ItemOutcome.FAILED, error)


def _nothing_to_reset(request: ResetRequest, group_id: str, lacks: str) -> KgctlError:
    if request.scopes is None:
        return _nothing_committed(group_id, "nothing to reset", lacks)
    return NotFoundError(f"group {group_id!r}: none of these topics or partitions exists: nothing to reset", group=group_id)


def _nothing_committed(group_id: str, so: str, lacks: str) -> KgctlError:
    """``lacks``: the right for want of which nobody can tell."""
    if lacks:
        return AuthError(f"group {group_id!r} has no committed offsets that are to be seen: {lacks}; {so}", group=group_id)
    return NotFoundError(f"group {group_id!r} has no committed offsets: {so}", group=group_id)


def _common_scope(admin: GroupAdmin, request: ResetRequest) -> Sequence[TopicPartition]:
    if request.scopes is None or isinstance(request.strategy, FromFile):
        return ()
    counts = admin.list_topics([scope.topic for scope in request.scopes])
    missing = [scope.topic for scope in request.scopes if scope.topic not in counts]
    check_rights_on(admin, missing)
    scopes = present_scopes(request.scopes, counts) if request.skip_missing else request.scopes
    if missing and not request.skip_missing:
        raise missing_topic(admin, missing[0])
    return sorted(resolve_scopes(scopes, counts))


def _scope(
    request: ResetRequest,
    group_id: str,
    description: GroupDescription | None,
    committed: Committed,
    common: Sequence[TopicPartition],
) -> Sequence[TopicPartition]:
    """Of a streams group all partitions are those of its input topics: its own topics come with what it writes there anew."""
    if isinstance(request.strategy, FromFile):
        return sorted(request.strategy.groups[group_id])
    if request.scopes is not None:
        return common
    present = {partition for partition, commit in committed.items() if commit.offset != NO_OFFSET}
    if isinstance(request.strategy, ToHistory):
        present |= request.strategy.groups[group_id].keys()
    return sorted(each for each in present if description is None or not is_own_topic(description, each.topic))


def _rows(
    request: ResetRequest,
    group_id: str,
    partitions: Sequence[TopicPartition],
    committed: Committed,
    facts: _Facts,
    *,
    flaws: Sequence[KgctlError],
    description: GroupDescription | None,
) -> tuple[ResetRow, ...]:
    """A partition whose commit could not be read has a flaw, and is not reset: nobody could undo it."""
    unread = {
        (flaw.topic, flaw.partition): ItemError(ErrorCode.UNKNOWN_SERVER_ERROR, flaw.message)
        for flaw in flaws
        if flaw.partition is not None
    }
    chosen = [each for each in partitions if not (request.skip_missing and facts.is_missing(each))]
    known = {each: facts.of(each, committed.get(each), unread.get(each)) for each in chosen}
    rows = [plan_partition(request.strategy, group_id, each, fact, clamp=request.clamp) for each, fact in known.items()]
    if isinstance(request.strategy, Heal):
        rows = [row for row in rows if row.result is not ResetResult.UNCHANGED]
    if description is None:
        return tuple(rows)
    rows = [of_type(of_same_type(request.strategy, row, description), description) for row in rows]
    return tuple(_in_whole_topics(rows, committed) if description.type.has_start_offsets else rows)


def _in_whole_topics(rows: Sequence[ResetRow], starts: Committed) -> Iterator[ResetRow]:
    """The rows of a share group; those fail that take a start offset away where the topic keeps, or gets, others."""
    planned = [row for row in rows if row.result is ResetResult.PLANNED]
    after = {**starts, **{row.partition: row.new for row in planned if row.new is not None}}
    apart = in_part(after, {row.partition for row in planned if row.new is None})
    for row in rows:
        error = apart.get(row.partition)
        yield row if error is None else _told_failed(row, ItemOutcome.FAILED, error)


@frozen_in_order
class _Facts:
    """The logs of all partitions of a plan, each asked about once however many groups share it."""

    logs: Mapping[TopicPartition, LogOffsets]
    at_time: Mapping[TopicPartition, int | None]
    errors: Mapping[TopicPartition, ItemError]

    @classmethod
    def gather(cls, admin: GroupAdmin, strategy: Strategy, wanted: Iterable[TopicPartition]) -> _Facts:
        partitions = sorted(wanted)
        if not partitions:
            return cls({}, {}, {})
        counts = admin.list_topics(sorted({partition.topic for partition in partitions}))
        present = [partition for partition in partitions if partition.partition < counts.get(partition.topic, 0)]
        unknown, why = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "partition {} does not exist"
        hidden = out_of_sight(admin, sorted({partition.topic for partition in partitions} - counts.keys()))
        absent = sorted({*partitions} - {*present})
        missing = {each: hidden.get(each.topic) or ItemError(unknown, why.format(each)) for each in absent}
        logs = admin.list_log_offsets(present)
        if not isinstance(strategy, ToTime | ToMark):
            return cls(logs.values, {}, {**missing, **logs.errors})
        times = admin.list_offsets_at(present, strategy.timestamp_ms)
        return cls(logs.values, times.values, {**missing, **times.errors, **logs.errors})

    def is_missing(self, partition: TopicPartition) -> bool:
        error = self.errors.get(partition)
        return error is not None and error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def of(
        self, partition: TopicPartition, committed: OffsetAndMetadata | None, unread: ItemError | None = None
    ) -> PartitionFacts:
        log = self.logs.get(partition, LogOffsets())
        return PartitionFacts(committed, log, self.at_time.get(partition), unread or self.errors.get(partition))


@frozen_in_order
class Executed:
    """A plan with what became of each row, and what ended it early: ``ended_by``, ``signal``, neither where nothing did."""

    plan: ResetPlan
    ended_by: KgctlError | None = None
    signal: int | None = None

    @property
    def may_have_changed(self) -> bool:
        """Whether the cluster is, or may be, no longer as it was."""
        changed = (ResetResult.RESET, ResetResult.DELETED, ResetResult.MOVED, ResetResult.UNKNOWN)
        return any(row.result in changed for row in self.plan.rows)


def from_group(admin: GroupAdmin, source: str, group_ids: Sequence[str], scopes: Sequence[TopicScope]) -> FromFile:
    """The commits of another group, as what each of these groups shall have; those within ``scopes``, or all where there are
    none.

    Raises:
        KgctlError: they cannot be read, or there are none.
    """
    found = admin.list_committed_offsets([source])
    if error := found.errors.get(source):
        raise error.to_exception(group=source)
    if flaw := next(iter(found.flaws.get(source, ())), None):
        raise flaw
    wanted = {
        partition: PlannedOffset(commit)
        for partition, commit in found.values[source].items()
        if commit.offset != NO_OFFSET and (not scopes or is_within(partition, scopes))
    }
    check_rights_on(admin, sorted({scope.topic for scope in scopes} - {partition.topic for partition in wanted}))
    if not wanted:
        so = "nothing to copy in this scope" if scopes else "nothing to copy"
        raise _nothing_committed(source, so, admin.sight().lacks_topics)
    return FromFile(dict.fromkeys(group_ids, wanted))


def execute_reset(admin: GroupAdmin, plan: ResetPlan, stop: StopRequest | None = None) -> Executed:
    """Do what the plan says, and tell what became of each row, whatever ends it.

    Groups that are active, or not as the plan says, are left alone as a whole. The caller saves the old offsets first.
    """
    if plan.is_out_of_range:
        return Executed(plan)
    groups = [group for group in plan.groups if group.state.is_inactive]
    errors = [*plan.errors, *(active_group(group) for group in plan.groups if group.rows and not group.state.is_inactive)]
    wanted = {(row.group_id, row.partition): row for group in groups for row in group.rows if row.result is ResetResult.PLANNED}
    steps = list(_steps(admin, groups))
    planned, aim = ({key: getattr(row, side) for key, row in wanted.items()} for side in ("old", "new"))
    watch = CommitsAsPlanned(admin, planned, aim, plan.per_partition)
    account = carry_out(steps, lambda items: _are_done(admin, [wanted[item] for item in items]), stop, watch, admin=admin)
    done = tuple(replace(group, rows=tuple(_told(row, account) for row in group.rows)) for group in groups)
    return Executed(replace(plan, groups=done, errors=tuple(errors)), account.ended_by, account.signal)


GROUPS_AT_ONCE = 32
"""So many groups' commits are under way at once: enough that a broker always has one to write, few enough that those of which
nobody knows after a cut are soon read back."""


def _steps(admin: GroupAdmin, groups: Sequence[GroupPlan]) -> Iterator[ChangeStep[CommitKey]]:
    """Commits first, of several groups at once; then commits are taken away, a request a group."""
    at_once = groups_a_step(admin, GROUPS_AT_ONCE)
    for start in range(0, len(groups), at_once):
        rows = [row for group in groups[start : start + at_once] for row in group.rows]
        commits: dict[str, dict[TopicPartition, OffsetAndMetadata]] = {}
        taken_away: list[CommitKey] = []
        for row in rows:
            if row.result is not ResetResult.PLANNED:
                continue
            if row.new is None:
                taken_away.append((row.group_id, row.partition))
            else:
                commits.setdefault(row.group_id, {})[row.partition] = row.new
        if commits:
            yield _commits(admin, commits)
        yield from taking_away(admin, taken_away)


def _commits(admin: GroupAdmin, wanted: Mapping[str, Committed]) -> ChangeStep[CommitKey]:
    def act(items: Sequence[CommitKey]) -> Iterator[StepAnswer[CommitKey]]:
        still: dict[str, dict[TopicPartition, OffsetAndMetadata]] = {}
        for group_id, partition in items:
            still.setdefault(group_id, {})[partition] = wanted[group_id][partition]
        for group_id, results in _altered(admin, still):
            errors = {(group_id, partition): error for partition, error in results.errors.items()}
            yield StepAnswer([(group_id, partition) for partition in still[group_id]], errors)

    return ChangeStep([(group_id, partition) for group_id, offsets in wanted.items() for partition in offsets], act)


def _altered(admin: GroupAdmin, wanted: Mapping[str, Committed]) -> Iterator[tuple[str, PartitionResults[None]]]:
    """One group after the other where the admin can do no better."""
    if isinstance(admin, AltersManyGroups):
        yield from admin.alter_offsets_of(wanted)
        return
    for group_id, offsets in wanted.items():
        yield group_id, admin.alter_offsets(group_id, offsets)


def _are_done(admin: GroupAdmin, rows: Sequence[ResetRow]) -> Mapping[CommitKey, bool]:
    """Whether the rows have what they should by now, for the groups that the cluster answers for."""
    committed = committed_now(admin, [row.group_id for row in rows]).values
    return {(row.group_id, row.partition): _is_done(row, committed[row.group_id]) for row in rows if row.group_id in committed}


def _is_done(row: ResetRow, committed: Committed) -> bool:
    """Of a start offset that shall stay and lose what is acknowledged past it, nobody can tell: it is set again."""
    found = present(committed.get(row.partition))
    if isinstance(row.old, StartOffset) and row.new is not None and row.new.offset == row.old.offset:
        return False
    return (None if found is None else found.offset) == (None if row.new is None else row.new.offset)


def _told(row: ResetRow, account: Account[CommitKey]) -> ResetRow:
    if row.result is not ResetResult.PLANNED:
        return row
    key = (row.group_id, row.partition)
    outcome, error = account.outcomes[key], account.errors.get(key)
    if outcome is ItemOutcome.DONE:
        result = ResetResult.RESET if row.new else ResetResult.DELETED
        return ResetRow(row.group_id, row.partition, row.old, row.new, row.log, result, row.note, row.clamp, row.code)
    if outcome is ItemOutcome.NOT_TRIED:
        return replace(row, result=ResetResult.NOT_TRIED, note="nothing was sent for it")
    if key in account.notes:
        return replace(row, result=ResetResult(outcome.value), note=account.notes[key], code=CHANGED_MEANWHILE)
    assert error is not None
    return _told_failed(row, outcome, error)


def _told_failed(row: ResetRow, outcome: ItemOutcome, error: ItemError) -> ResetRow:
    if outcome is ItemOutcome.UNKNOWN:
        return replace(row, result=ResetResult.UNKNOWN, note=f"sent, and not answered: {error.message}", error=error)
    if error.code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NON_EMPTY_GROUP):
        # A group with members answers an administrator's commit with UNKNOWN_MEMBER_ID: it became active after the plan was made.
        error = ItemError(ErrorCode.NON_EMPTY_GROUP, "the group has become active; stop its consumers first")
        return replace(row, result=ResetResult.REFUSED, note=error.message, error=error)
    return replace(row, result=ResetResult.FAILED, note=error.message, error=error)


def active_group(group: GroupPlan) -> RefusedError:
    """Return the error by which an active group is not reset."""
    members = len(group.description.members) if group.description else 0
    present = f"{members} member{'s' if members != 1 else ''}"
    return RefusedError(
        f"group {group.group_id!r} is active ({group.state.value}, {present}): stop its consumers first",
        code=ErrorCode.NON_EMPTY_GROUP.name,
        group=group.group_id,
    )
