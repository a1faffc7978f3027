"""What commands that change a cluster have alike: options, the undo file, the report of what became of each thing."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

from kgctl.admin import GroupAdmin, ItemError
from kgctl.admin.changes import Account, ItemOutcome
from kgctl.admin.notation import FileHeader, UndoRow, kafka_rows, named_groups, plan_rows, seal
from kgctl.admin.offset_reset import CHANGED_MEANWHILE, GroupPlan, ResetPlan, ResetResult, ResetRow
from kgctl.admin.resets import Executed, execute_reset
from kgctl.cli.columns import DELTA, ERROR, GROUP, LAG_AFTER, LOG_END, LOG_START, PARTITION, RESULT, STATE, TOPIC
from kgctl.cli.environment import StopSignals
from kgctl.cli.exit_codes import ExitCode
from kgctl.cli.groups.internal_topics import InternalTopics
from kgctl.cli.groups.undo_files import Backup, start_change
from kgctl.cli.parameters import flag
from kgctl.cli.report import TEXTS, WHOLE, Column, Report
from kgctl.cli.selection import ChangedGroups, confirm
from kgctl.cli.session import NamedCluster, Session
from kgctl.errors import KgctlError, RefusedError, UsageError, plural
from kgctl.files import at_home, write_new
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import StartOffset, TopicPartition
from kgctl.model.lag import total_of
from kgctl.model.values import frozen_in_order

Execute = Annotated[bool, flag("--execute", "Do it; without it this is a dry run.")]
DryRun = Annotated[bool, flag("--dry-run", "Only show the plan (the default).")]
AtOnce = Annotated[bool, flag("--execute", "Do it; asks only where groups are selected, not named.")]
Summary = Annotated[bool, flag("--summary", "One row a group, not one a partition.")]
PerPartition = Annotated[
    bool, flag("--per-partition", "Go on with a group's other partitions where some have changed meanwhile.")
]
OtherCluster = Annotated[bool, flag("--other-cluster", "Take a file of another cluster, for a migration.")]


def check_deed(*, execute: bool, dry_run: bool, yes: bool = False, backup: Backup | None = None) -> None:
    """Refuse two answers to whether it is to be done; and what only the deed has a use for, where it is not.

    Raises:
        UsageError: it is so.
    """
    if execute and dry_run:
        raise UsageError("--execute and --dry-run exclude each other")
    of_deed = "--yes" if yes else "--backup" if backup and backup.backup else None
    if of_deed and not (execute or dry_run):
        raise UsageError(f"{of_deed} without --execute does nothing, and this would be a dry run: add --execute, or --dry-run")


def is_answered(groups: ChangedGroups, *, execute: bool, dry_run: bool, yes: bool, takes_more: bool = False) -> bool:
    """Whether a command that asks first has its answer: ``--execute`` is one where all that it changes is named, not selected,
    and nothing more goes with it.

    Raises:
        UsageError: as `check_deed` and `ChangedGroups.check`.
    """
    check_deed(execute=execute, dry_run=dry_run)
    groups.check()
    return yes or (execute and groups.is_by_name and not takes_more)


K = TypeVar("K", bound=Hashable)

RESULT_AND_ERROR = (RESULT, ERROR)


class ItemRow(NamedTuple):
    """A row: an item of a change, and what became of it."""

    of: Any
    result: str
    error: str | None


@frozen_in_order
class ItemChange(Generic[K]):
    """A change of items of a cluster, each by itself: what it is about, and how that is told.

    ``items``: what the columns read of each, as ``of``. ``refused``: items that were decided against before anything was sent,
    and why; ``unsure``: of which only the deed will tell; ``errors``: what else could not be learnt. ``can`` and ``done`` are the
    results of a dry run and of the deed.
    """

    session: Session
    cluster: NamedCluster
    columns: Sequence[Column]
    name_keys: Sequence[str]
    items: Mapping[K, object]
    can: str
    done: str
    explain: Callable[[K, ItemError], KgctlError]
    refused: Mapping[K, KgctlError] = field(default_factory=dict)
    unsure: Mapping[K, KgctlError] = field(default_factory=dict)
    errors: Sequence[KgctlError] = ()
    remarks: Sequence[str] = ()
    internal: InternalTopics = field(default_factory=InternalTopics)

    def show(self) -> Report:
        """The dry run."""
        failures = {**self.refused, **self.unsure}
        words = dict.fromkeys(self.items, self.can) | dict.fromkeys(self.refused, ItemOutcome.FAILED.value)
        words |= dict.fromkeys(self.unsure, ItemOutcome.UNKNOWN.value)
        found = Counter({self.can: 0})
        found.update(words.values())
        counts = [f"{', '.join(f'{count} {word}' for word, count in found.items())}."] if failures else []
        told = (*counts, *self.remarks, *self.internal.planned(), f"Dry run on {self.cluster}: nothing was changed.")
        return self._report(self._rows(words, failures), failures, told, something_done=bool(found[self.can]))

    def execute(
        self,
        admin: GroupAdmin,
        act: Callable[[StopSignals], Account[K]],
        *,
        groups: Collection[str],
        saved: Sequence[UndoRow] = (),
        backup: Backup | None = None,
        whole_groups: bool = False,
        progress: tuple[Collection[object], str] | None = None,
    ) -> Report:
        """The deed, with what it takes away ``saved``; ``groups`` are changed, or deleted where they are ``whole_groups``. Raises
        `KgctlError` where it cannot be saved.

        ``progress``: of how many of what it is told that they are settled, where these are not the groups.
        """
        stop = self.session.stop_signals()
        change = partial(start_change, groups=list(groups), whole_groups=whole_groups)
        started = change(self.session, admin, self.cluster, saved, backup or Backup())
        with self.session.telling(how_far(stop, *(progress or (groups,)))):
            account = act(stop)
        report = with_internal(self._told(account), self.internal)
        changed = {*account.having(ItemOutcome.DONE), *account.having(ItemOutcome.UNKNOWN)}
        started.settle({row[:2] for row in saved if row.group_id in changed or row[:2] in changed}, report.summary or {})
        return report

    def _told(self, account: Account[K]) -> Report:
        """Rows with what became of each item: done, failed, refused, moved, unknown or not-tried; the counts are the summary."""
        why = account.ended_by.message if account.ended_by else None
        moved = {item: _moved(self.explain(item, ItemError(ErrorCode.NONE, note))) for item, note in account.notes.items()}
        failures = {item: self.explain(item, error) for item, error in account.errors.items()} | moved | dict(self.refused)
        outcomes = account.outcomes | dict.fromkeys(self.refused, ItemOutcome.FAILED)
        words = {item: self.done if outcomes[item] is ItemOutcome.DONE else outcomes[item].value for item in self.items}
        rows = self._rows(words, failures)
        summary = dict(Counter(row.result for row in rows))
        executed = f"Executed on {self.cluster}: {counted(summary)}." if account.may_have_changed else "Nothing was changed."
        errors = {item: error for item, error in failures.items() if error.message != why}
        told = (*self.internal.told(), *self.remarks, executed)
        report = self._report(rows, errors, told, something_done=account.may_have_changed)
        return ended(replace(report, summary=summary, is_change=True), account.ended_by, account.signal)

    def _rows(self, words: Mapping[K, str], failures: Mapping[K, KgctlError]) -> list[ItemRow]:
        codes = {item: error.code for item, error in failures.items()}
        return [ItemRow(of, words[item], codes.get(item)) for item, of in self.items.items()]

    def _report(
        self, rows: Sequence[ItemRow], failures: Mapping[K, KgctlError], notices: Sequence[str], *, something_done: bool
    ) -> Report:
        errors = (*self.errors, *(failures[item] for item in self.items if item in failures))
        columns = (*self.columns, *RESULT_AND_ERROR)
        return Report(columns, rows, errors, notices, self.name_keys, something_done=something_done)


def _moved(error: KgctlError) -> RefusedError:
    code, partition = CHANGED_MEANWHILE, error.partition
    return RefusedError(error.message, code=code, group=error.group, topic=error.topic, partition=partition)


def ended(report: Report, ended_by: KgctlError | None, signal: int | None) -> Report:
    """The report with what ended the change early: its error, and the exit code that says so.

    A change that may have reached the cluster is partial, whatever ended it; one that surely did not is its error's alone.
    """
    errors = [*report.errors, *([ended_by] if ended_by else [])]
    code = report.fixed_exit_code
    if signal is not None:
        code = ExitCode(128 + signal)
    elif ended_by is not None and report.something_done:
        code = ExitCode.PARTIAL
    return replace(report, errors=errors, fixed_exit_code=code)


def counted(counts: Mapping[str, int | str | float | bool | Sequence[str] | None]) -> str:
    """``138 reset, 862 not-tried``, none left out but those that are nothing."""
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count)


def _results(rows: Iterable[ResetRow]) -> list[str]:
    return [f"{count} {result}" for result, count in sorted(Counter(row.result.value for row in rows).items())]


COLUMNS = (
    GROUP.of("group_id"),
    TOPIC.of("partition.topic"),
    PARTITION.of("partition.partition"),
    Column("old_offset", "the committed offset before the change", WHOLE, read="old?.offset"),
    Column("new_offset", "that after it; null where the commit is deleted", WHOLE, read="new?.offset"),
    DELTA.of("delta"),
    LAG_AFTER.of("lag_after"),
    LOG_START.of("log.log_start_offset"),
    LOG_END.of("log.log_end_offset", wide=True),
    RESULT.of("result.value"),
    Column("note", "why, in words", wide=True),
)
_TAKEN_AWAY = (ResetResult.PLANNED, ResetResult.DELETED)
SUMMARY = (
    GROUP.of("group_id"),
    STATE.of("state.value"),
    Column("partitions", "how many partitions the change has", WHOLE, header="#PARTITIONS", read="rows", shown=len),
    DELTA.of(lambda group: sum(row.delta for row in group.rows if row.delta is not None)),
    Column(
        "lag_before",
        "the lag before the change",
        WHOLE,
        "records",
        read=lambda group: total_of(_lag_before(row) for row in group.rows if row.old),
    ),
    LAG_AFTER.of(lambda group: total_of(row.lag_after for row in group.rows if row.new or row.result not in _TAKEN_AWAY)),
    Column("results", "how many partitions have which result", TEXTS, read="rows", shown=_results),
)


def _lag_before(row: ResetRow) -> int | None:
    from kgctl.admin.group_view import lag_behind

    return lag_behind(row.old, row.log)


_DONE = (ResetResult.PLANNED, ResetResult.UNCHANGED, ResetResult.RESET, ResetResult.DELETED)


def reset_report(plan: ResetPlan, notices: Sequence[str]) -> Report:
    """One row a partition; rows that failed or were refused are errors too."""
    errors = [*plan.errors, *(error for row in plan.rows if (error := row.to_exception()))]
    counts = _counts(plan)
    return Report(
        COLUMNS,
        plan.rows,
        errors,
        notices,
        ("group", "topic", "partition"),
        ExitCode.FAILED if plan.is_out_of_range else None,
        any(_is_something(group) for group in plan.groups),
        summary={result.value: counts[result] for result in ResetResult if counts[result]},
    )


def _is_something(group: GroupPlan) -> bool:
    """Whether something of it is, or can be, done; that nothing is to do counts only where nothing is refused."""
    results = {row.result for row in group.rows} if group.state.is_inactive else set()
    return bool(results & {*_DONE, ResetResult.MOVED} - {ResetResult.UNCHANGED}) or (
        ResetResult.UNCHANGED in results and not group.is_refused
    )


def summarised(report: Report, plan: ResetPlan) -> Report:
    """The report with one row a group: how many partitions of each result, how far they move, and the lag before and after."""
    return replace(report, columns=SUMMARY, rows=[group for group in plan.groups if group.rows], name_keys=("group",))


def executed_report(executed: Executed, notices: Sequence[str]) -> Report:
    """As `reset_report`, with what ended the execution early: what was reset, is unknown, or was not tried."""
    report = reset_report(executed.plan, notices)
    if executed.ended_by or executed.signal:
        told = executed.ended_by.message if executed.ended_by else ""
        errors = [error for error in report.errors if error.message != told]
        report = replace(report, errors=errors, something_done=executed.may_have_changed)
    return ended(replace(report, is_change=True), executed.ended_by, executed.signal)


def row_warnings(plan: ResetPlan) -> Iterator[str]:
    """One line for each partition that does not get what was asked for."""
    several = len(plan.groups) > 1
    for row in plan.rows:
        if row.note and row.result in _DONE:
            yield f"{f'{row.group_id}: ' if several else ''}{row.partition}: {row.note}"


def dry_run_notices(plan: ResetPlan, cluster: NamedCluster) -> Iterator[str]:
    """That nothing was changed, and what stands in the way of changing it."""
    changed = {row.group_id for row in plan.to_change()}
    for group in plan.groups:
        if not group.state.is_inactive and group.rows:
            yield f"Group {group.group_id!r} is active ({group.state.value}): --execute is refused until its members have left."
        elif group.description is None and group.group_id in changed:
            yield f"Group {group.group_id!r} does not exist: --execute makes it."
    if plan.rows:
        changes = plan.to_change()
        groups = len({row.group_id for row in changes})
        todo = f" Add --execute to change {plural(len(changes), 'partition')} of {plural(groups, 'group')}." if changes else ""
        yield f"Dry run on {cluster}: nothing was changed.{todo}"
    elif not plan.errors:
        yield f"Nothing is to do on {cluster}."


def executed_notices(executed: Executed, cluster: NamedCluster) -> Iterator[str]:
    """Yield a line on what was done, and on which cluster."""
    counts = _counts(executed.plan)
    refused = sum(isinstance(error, RefusedError) and error.partition is None for error in executed.plan.errors)
    parts = [f"{counts[result]} {result.value}" for result in ResetResult if counts[result] and result is not ResetResult.PLANNED]
    if refused:
        parts.append(f"{plural(refused, 'group')} refused")
    summary = ", ".join(parts)
    if executed.may_have_changed:
        yield f"Executed on {cluster}: {summary}."
    elif set(counts) <= {ResetResult.UNCHANGED} and not executed.plan.errors:
        yield f"Nothing was to do on {cluster}: every partition is where it should be."
    else:
        yield f"Nothing was changed on {cluster}{f': {summary}' if summary else ''}."


def _counts(plan: ResetPlan) -> Counter[ResetResult]:
    return Counter(row.result for row in plan.rows)


def left_alone(plan: ResetPlan, internal: InternalTopics) -> Iterator[str]:
    """What a reset of a streams group leaves as it is: by it, what is read again is counted again."""
    for description in (group.description for group in plan.groups if group.rows):
        own = description.topology.internal_topics if description and description.topology else ()
        if description and own:
            going = internal.topics.get(description.group_id, ())
            kept = ", ".join(topic for topic in own if topic not in going)
            what = f"its own topics ({kept}) and its instances' local state stay" if kept else "its instances' local state stays"
            yield f"Streams group {description.group_id!r}: {what} as {'they are' if kept else 'it is (KafkaStreams.cleanUp())'}."


_CHANGED = (ResetResult.RESET, ResetResult.DELETED, ResetResult.UNKNOWN)


@frozen_in_order
class OffsetChange:
    """A change of offsets on a cluster; ``remarks`` are told beside its result. ``export`` shows Kafka's CSV for the rows."""

    session: Session
    cluster: NamedCluster
    remarks: Sequence[str]
    backup: Backup
    export: bool = False
    summary: bool = False
    internal: InternalTopics = field(default_factory=InternalTopics)

    def write_plan(self, admin: GroupAdmin, plan: ResetPlan, path: str) -> None:
        """Keep what executing would change, in a file that knows its cluster.

        Raises:
            KgctlError: there is nothing to change, or it cannot be written.
        """
        rows = plan.to_change()
        if not rows:
            raise RefusedError("the plan has nothing that could be changed now; no file is written", code="NOTHING_TO_DO")
        groups = tuple(dict.fromkeys(row.group_id for row in rows))
        now_ms = self.session.environment.now_ms()
        cluster = self.cluster
        topic_ids = admin.topic_ids(sorted({row.partition.topic for row in rows}))
        about = (cluster.identity, cluster.label, self.session.command_line, now_ms, groups, len(rows))
        shared = tuple(dict.fromkeys(row.group_id for row in rows if isinstance(row.new, StartOffset)))
        header = FileHeader("plan", *about, shared, topic_ids)
        text = plan_rows([(row.group_id, row.partition, row.old.offset if row.old else None, row.new) for row in rows])
        write_new(at_home(path), seal(header, text))
        create = ["--create"] if any(group.description is None for group in plan.groups) else []
        line = ["kgctl", *cluster.arguments, "reset-offsets", "--plan", path, *create, *self.internal.words, "--execute"]
        self.session.notice(f"Plan written; to execute: {shlex.join(line)}")

    def show(self, plan: ResetPlan) -> Report:
        """The dry run."""
        notices = [*self.remarks, *row_warnings(plan), *left_alone(plan, self.internal), *self.internal.planned()]
        notices += dry_run_notices(plan, self.cluster)
        return self._shown(reset_report(plan, notices), plan)

    def execute(self, admin: GroupAdmin, plan: ResetPlan, again: Callable[[], ResetPlan] | None, *, yes: bool) -> Report:
        """The deed, and what it takes away saved. Asked for first where ``again`` makes the plan anew, for a look at what has
        changed while the question stood.

        Raises:
            KgctlError: the answer is no, another change came between, or the offsets cannot be saved; nothing was changed.
        """
        rows = plan.to_change()
        if (again is not None and rows) or self.internal.loss:
            groups = len({row.group_id for row in rows})
            question = f"Change the offsets of {plural(len(rows), 'partition')} of {plural(groups, 'group')} on {self.cluster}?"
            question += f" Delete {self.internal.loss}?" * bool(self.internal.loss)
            is_as_shown = partial(_is_unchanged, plan, again)
            confirm(self.session, question, yes=yes, cluster=self.cluster, is_as_shown=is_as_shown)
        saved = [UndoRow(row.group_id, row.partition, row.old, row.new.offset if row.new else None) for row in rows]
        stop = self.session.stop_signals()
        started = start_change(self.session, admin, self.cluster, saved, self.backup)
        with self.session.telling(how_far(stop, {row.group_id for row in rows})):
            executed = execute_reset(admin, plan, stop)
            self.internal.delete(admin, _whole(executed))
        changed = {(row.group_id, row.partition) for row in executed.plan.rows if row.result in _CHANGED}
        results = {result.value: count for result, count in _counts(executed.plan).items()}
        started.settle(changed, {**results, **self.internal.summary})
        return self._told(executed)

    def _told(self, executed: Executed) -> Report:
        notices = [*self.remarks, *row_warnings(executed.plan), *left_alone(executed.plan, self.internal)]
        notices += [*self.internal.told(), *executed_notices(executed, self.cluster)]
        return self._shown(with_internal(executed_report(executed, notices), self.internal), executed.plan)

    def _shown(self, report: Report, plan: ResetPlan) -> Report:
        if self.summary:
            report = summarised(report, plan)
        if not self.export:
            return report
        return replace(report, text=kafka_rows([(row.group_id, row.partition, row.new.offset) for row in plan.rows if row.new]))


def with_internal(report: Report, internal: InternalTopics) -> Report:
    """The report of a change, with what became of the internal topics that went with it."""
    if not internal.is_asked:
        return report
    errors, summary = (*report.errors, *internal.errors), {**(report.summary or {}), **internal.summary}
    return replace(report, errors=errors, summary=summary, something_done=report.something_done or bool(internal.gone))


def _whole(executed: Executed) -> set[str]:
    """The groups of which everything was done; none where something ended it early."""
    if executed.ended_by or executed.signal:
        return set()
    groups = (group for group in executed.plan.groups if group.state.is_inactive)
    return {group.group_id for group in groups if all(row.result in _DONE for row in group.rows)}


def how_far(stop: StopSignals, wanted: Collection[object], noun: str = "group") -> Callable[[], str]:
    """Return what tells of how many groups, or members, it is settled what became of them."""
    return lambda: f"{len(stop.through):,} of {plural(len(wanted), noun)}"


def _is_unchanged(plan: ResetPlan, again: Callable[[], ResetPlan] | None) -> bool:
    return again is None or _old_offsets(plan) == _old_offsets(again())


def _old_offsets(plan: ResetPlan) -> Mapping[tuple[str, TopicPartition], int | None]:
    return {(row.group_id, row.partition): row.old.offset if row.old else None for row in plan.to_change()}


POLL_MS = 500


def wait_until_empty(session: Session, admin: GroupAdmin, group_ids: Sequence[str], wait_ms: int) -> None:
    """Watch the groups until their members have left, and say once that it waits; not at all where ``wait_ms`` is 0.

    A group that cannot be described at present may have members. What cannot be by the end is for the change to tell.

    Raises:
        RefusedError: there still are members after the time; nothing was changed.
    """
    environment = session.environment
    until_ms = environment.now_ms() + wait_ms
    is_told = False
    while wait_ms:
        session.begin_look()
        answers = admin.describe_groups(group_ids)
        active = [group_id for group_id, description in answers.values.items() if not description.state.is_inactive]
        hidden = [group_id for group_id, error in answers.errors.items() if error.code.is_retriable]
        is_over = environment.now_ms() >= until_ms
        if not active and (is_over or not hidden):
            return
        if is_over:
            have = "has" if len(active) == 1 else "have"
            what = f"{plural(len(active), 'group')} ({named_groups(active)}) still {have} members after {wait_ms / 1000:g} s"
            raise RefusedError(f"{what}; nothing was changed", code="NON_EMPTY_GROUP", group=active[0])
        if not is_told:
            session.notice(f"Waiting up to {wait_ms / 1000:g} s for the members of {named_groups([*active, *hidden])} to leave.")
            is_told = True
        environment.sleep_ms(min(POLL_MS, max(1, until_ms - environment.now_ms())))
