"""``kgctl reset-offsets``: the options read into a strategy and a scope, the plan, and the change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

from kgctl.admin import GroupAdmin
from kgctl.admin.notation import FromFile
from kgctl.admin.offset_reset import ResetPlan, ResetRequest, Strategy, ToHistory
from kgctl.admin.resets import from_group as copied
from kgctl.admin.resets import plan_reset
from kgctl.admin.times import parse_duration_ms
from kgctl.admin.topic_scopes import TopicScope, absent
from kgctl.cli.columns import BY_RESULT
from kgctl.cli.groups.changes import (
    COLUMNS,
    SUMMARY,
    DryRun,
    Execute,
    OffsetChange,
    OtherCluster,
    PerPartition,
    Summary,
    check_deed,
    wait_until_empty,
)
from kgctl.cli.groups.internal_topics import DELETED, DeleteAll, DeleteSome, InternalTopics
from kgctl.cli.groups.targets import OffsetTarget, read_scopes
from kgctl.cli.groups.undo_files import Backup, beside_topics, check_cluster, check_new_file
from kgctl.cli.history.asking import from_history, open_for_undo
from kgctl.cli.options import TopicOptions, Yes
from kgctl.cli.parameters import flag, option
from kgctl.cli.report import Report, shows
from kgctl.cli.selection import ChangedGroups, Selection, check_count, nothing_on, with_neighbours
from kgctl.cli.session import Session
from kgctl.cli.settings import connection_settings
from kgctl.errors import NotFoundError, UnsupportedError, UsageError

if TYPE_CHECKING:
    from kgctl.pipeline.answers.history import History


WaitEmpty = Annotated[str | None, option("SPAN", "With --execute: wait this long for members to leave first.", "--wait-empty")]
HistoryWarehouse = Annotated[
    str | None, option("DIR", "Where the history of --to-history is. [env: KGCTL_WAREHOUSE]", "--warehouse")
]
HistoryCluster = Annotated[
    str | None, option("NAME", "This cluster's name in the warehouse, if it has several.", "--history-cluster")
]
Clamp = Annotated[
    bool,
    flag("--clamp/--no-clamp", "Bring offsets outside the log to its nearer end (the default), or fail.", show_default=False),
]
Export = Annotated[bool, flag("--export", "Write the new offsets as kafka-consumer-groups.sh does: CSV without a header.")]


EXAMPLES = """
kgctl reset-offsets payments --topic orders --to-earliest
kgctl reset-offsets payments --topic orders:0,2-5 --shift-by -100 --execute
kgctl reset-offsets payments --all-topics --by-duration PT1H --execute
kgctl reset-offsets payments --to-history '2h ago'
kgctl reset-offsets --all-groups --heal --execute
kgctl reset-offsets payments --all-topics --to-latest --plan-out plan.csv
kgctl reset-offsets --plan plan.csv --execute --wait-empty 60s
"""


@shows(COLUMNS, SUMMARY, summary=(*BY_RESULT, DELETED), examples=EXAMPLES)
def reset_offsets(
    session: Session,
    *,
    groups: ChangedGroups,
    topic: TopicOptions = None,
    all_topics: Annotated[bool, flag("--all-topics", "Every partition with a committed offset.")] = False,
    target: OffsetTarget,
    warehouse: HistoryWarehouse = None,
    history_cluster: HistoryCluster = None,
    plan_out: Annotated[str | None, option("FILE", "Write the plan of a dry run here, for --plan.", "--plan-out")] = None,
    skip_missing: Annotated[bool, flag("--skip-missing", "Leave out topics and partitions that do not exist.")] = False,
    wait_empty: WaitEmpty = None,
    summary: Summary = False,
    other_cluster: OtherCluster = False,
    clamp: Clamp = True,
    create: Annotated[bool, flag("--create", "Make groups that do not exist yet.")] = False,
    per_partition: PerPartition = False,
    delete_all_internal_topics: DeleteAll = False,
    delete_internal_topic: DeleteSome = None,
    execute: Execute = False,
    dry_run: DryRun = False,
    export: Export = False,
    backup: Backup,
    yes: Yes = False,
) -> Report:
    """Move the committed offsets of groups. A dry run, which changes nothing and joins nothing, unless --execute is given.

    The plan shows old and new offset, delta, and lag after the reset, for active groups too. An offset outside the log is
    brought to the nearer end of it, with a warning. Executing refuses active groups, asks where groups are selected rather than
    named, saves the previous offsets to a file first (kgctl undo brings them back), and says what became of each partition.
    """
    check_deed(execute=execute, dry_run=dry_run, yes=yes, backup=backup)
    wait_ms = _wait_ms(wait_empty, plan_out, execute=execute)
    if other_cluster and target.file is None:
        raise UsageError("--other-cluster has a place beside --from-file and --plan only")
    _check_export(session, export=export, summary=summary)
    if target.file is None or not groups.is_by_name:
        groups.check()
    strategy = target.strategy(groups.ids, session.environment.now_ms(), session.environment.stdin)
    remarks = target.remarks(strategy, session.environment.now_ms())
    scopes = read_scopes(strategy, topic or (), all_topics=all_topics)
    history = _history(session, strategy, warehouse, history_cluster)
    with session.connect() as admin:
        cluster = session.cluster(admin)
        if isinstance(strategy, FromFile):
            check_cluster(strategy.header, cluster, other_cluster=other_cluster, name=str(target.file))
            strategy = beside_topics(admin, strategy, cluster)
        chosen = _chosen(admin, groups, strategy)
        if target.from_group is not None:
            strategy = _copied(admin, target.from_group, chosen, scopes or (), skip_missing=skip_missing)
        if history is not None:
            chosen, strategy, told = from_history(history, strategy, chosen, cluster.cluster_id, session.environment.now_ms())
            remarks = (*remarks, *told)
            session.begin_look()
        wait_until_empty(session, admin, chosen.group_ids, wait_ms)
        request = ResetRequest(chosen.group_ids, strategy, scopes, clamp, create, skip_missing, per_partition)
        planned = (again := partial(_planned, admin, chosen, request))()
        remarks = (*remarks, *(_hidden(admin, target) if scopes is None and planned.groups else ()))
        described = (group.description for group in planned.groups)
        internal = InternalTopics.of(admin, described, everything=delete_all_internal_topics, named=delete_internal_topic or ())
        change = OffsetChange(session, cluster, remarks, backup, export=export, summary=summary, internal=internal)
        if execute:
            return change.execute(admin, planned, None if groups.is_by_name else again, yes=yes)
        if plan_out is not None:
            change.write_plan(admin, planned, plan_out)
        return change.show(planned)


def _check_export(session: Session, *, export: bool, summary: bool) -> None:
    shown = session.flags.output
    if export and (summary or not (shown is None or shown.is_for_people)):
        raise UsageError(f"--export has a form of its own: {'--summary' if summary else f'-o {shown}'} has no place beside it")


def _copied(admin: GroupAdmin, source: str, chosen: Selection, scopes: Sequence[TopicScope], *, skip_missing: bool) -> FromFile:
    """What another group has committed. Raises `KgctlError` for none, and for the first of ``scopes`` that it has nothing on."""
    strategy = copied(admin, source, chosen.group_ids, scopes)
    there = {partition for offsets in strategy.groups.values() for partition in offsets}
    for error in () if skip_missing else nothing_on(absent(scopes, there), "nothing is committed", source):
        raise error
    return strategy


def _planned(admin: GroupAdmin, chosen: Selection, request: ResetRequest) -> ResetPlan:
    planned = plan_reset(admin, request)
    errors = with_neighbours(admin, (*chosen.errors, *planned.errors))
    if isinstance(request.strategy, FromFile) and request.skip_missing and not planned.rows and not errors:
        errors = (NotFoundError("none of these topics or partitions exists: nothing to reset"),)
    return replace(planned, errors=errors)


def _history(session: Session, strategy: Strategy, warehouse: str | None, cluster: str | None) -> History | None:
    """As `open_for_undo`; raises UnsupportedError for groups of which no history is collected."""
    if isinstance(strategy, ToHistory) and connection_settings(session.flags, session.environment).zookeeper is not None:
        raise UnsupportedError("--to-history: there is no history of groups in ZooKeeper; undo files have what kgctl took away")
    return open_for_undo(session, strategy, warehouse, cluster)


def _hidden(admin: GroupAdmin, target: OffsetTarget) -> Iterator[str]:
    """What may be missing where partitions are chosen by what is committed; a file names its own."""
    if target.file is None and (lacks := admin.sight().lacks_topics):
        so = "stay as they are" if target.from_group is None else "are not copied"
        yield f"{lacks}: commits on others are not shown, and {so}."


def _wait_ms(wait_empty: str | None, plan_out: str | None, *, execute: bool) -> int:
    """How long to wait for members to leave; checks what only a dry run, or only the deed, can take."""
    if plan_out is not None and execute:
        raise UsageError("--plan-out keeps the plan of a dry run: --execute has no place beside it")
    check_new_file("--plan-out", plan_out)
    if wait_empty is None:
        return 0
    if not execute:
        raise UsageError("--wait-empty waits before --execute only: a dry run works on active groups too")
    try:
        return parse_duration_ms(wait_empty)
    except UsageError as error:
        raise UsageError(f"--wait-empty: {error.message}") from None


def _chosen(admin: GroupAdmin, groups: ChangedGroups, strategy: Strategy) -> Selection:
    if not isinstance(strategy, FromFile) or not strategy.groups:
        return groups.select(admin)
    if groups.types:
        raise UsageError("the file says which groups are meant: --type has no place beside it")
    found = [group_id for group_id in strategy.groups if groups.names(group_id)]
    if not found:
        raise UsageError("the file has no offsets for a group that matches")
    check_count(len(found), groups.max_groups)
    return Selection(tuple(found))
