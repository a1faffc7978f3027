"""``kgctl reset-offsets``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import typer

from kgctl.admin.client import GroupAdmin
from kgctl.admin.plan.offset_reset import FromFile, Strategy, ToHistory
from kgctl.admin.plan.times import parse_duration_ms
from kgctl.admin.reset import ResetPlan, ResetRequest, plan_reset
from kgctl.admin.reset import from_group as copied
from kgctl.cli.groups.changes import Backup, DryRun, Execute, NoBackup, OtherCluster, check_backup, check_cluster, check_new_file
from kgctl.cli.groups.offset_change import Change, wait_until_empty
from kgctl.cli.groups.reset_options import (
    AllTopics,
    ByDurationOption,
    Clamp,
    Create,
    Export,
    FromFileOption,
    FromGroupOption,
    GivenStrategy,
    HealFlag,
    HistoryCluster,
    HistoryWarehouse,
    PlanOption,
    PlanOut,
    ShiftByOption,
    SkipMissing,
    Summary,
    ToCurrentFlag,
    ToDatetimeOption,
    ToEarliestFlag,
    ToEarliestLocalFlag,
    ToHistoryOption,
    ToLatestFlag,
    ToLatestTieredFlag,
    ToMaxTimestampFlag,
    ToOffsetOption,
    WaitEmpty,
    read_scopes,
    read_strategy,
)
from kgctl.cli.history.undo import from_history, open_for_undo
from kgctl.cli.options import GroupArguments, GroupOptions, TopicOptions, Yes, merged_groups
from kgctl.cli.report import Report
from kgctl.cli.selection import (
    AllGroupsOption,
    ExcludeOption,
    MatchOption,
    MaxGroupsOption,
    NameFilter,
    Selection,
    check_count,
    check_selection,
    name_filter,
    select_groups,
)
from kgctl.cli.session import Session, session_of
from kgctl.cli.settings import connection_settings
from kgctl.errors import UnsupportedError, UsageError

if TYPE_CHECKING:
    from kgctl.pipeline.answers.history import History

EPILOG = """Examples:

\b
kgctl reset-offsets payments --topic orders --to-earliest
kgctl reset-offsets payments --topic orders:0,2-5 --shift-by -100 --execute
kgctl reset-offsets payments --all-topics --by-duration PT1H --execute
kgctl reset-offsets payments --to-history '2h ago'
kgctl reset-offsets --all-groups --heal --execute
kgctl reset-offsets payments --all-topics --to-latest --plan-out plan.csv
kgctl reset-offsets --plan plan.csv --execute --wait-empty 60s
"""


def register(app: typer.Typer) -> None:
    app.command(epilog=EPILOG)(reset_offsets)


def reset_offsets(
    ctx: typer.Context,
    groups: GroupArguments = None,
    *,
    group: GroupOptions = None,
    all_groups: AllGroupsOption = False,
    match: MatchOption = None,
    exclude: ExcludeOption = None,
    max_groups: MaxGroupsOption = None,
    topic: TopicOptions = None,
    all_topics: AllTopics = False,
    to_earliest: ToEarliestFlag = False,
    to_latest: ToLatestFlag = False,
    to_current: ToCurrentFlag = False,
    to_offset: ToOffsetOption = None,
    shift_by: ShiftByOption = None,
    to_datetime: ToDatetimeOption = None,
    by_duration: ByDurationOption = None,
    to_max_timestamp: ToMaxTimestampFlag = False,
    to_earliest_local: ToEarliestLocalFlag = False,
    to_latest_tiered: ToLatestTieredFlag = False,
    to_history: ToHistoryOption = None,
    warehouse: HistoryWarehouse = None,
    history_cluster: HistoryCluster = None,
    heal: HealFlag = False,
    from_group: FromGroupOption = None,
    from_file: FromFileOption = None,
    plan: PlanOption = None,
    plan_out: PlanOut = None,
    skip_missing: SkipMissing = False,
    wait_empty: WaitEmpty = None,
    summary: Summary = False,
    other_cluster: OtherCluster = False,
    clamp: Clamp = True,
    create: Create = False,
    execute: Execute = False,
    dry_run: DryRun = False,
    export: Export = False,
    backup: Backup = None,
    no_backup: NoBackup = False,
    yes: Yes = False,
) -> Report:
    """Move the committed offsets of groups. A dry run, which changes nothing and joins nothing, unless --execute is given.

    The plan shows old and new offset, delta, and lag after the reset, for active groups too. An offset outside the log is
    brought to the nearer end of it, with a warning. Executing refuses active groups, asks where groups are selected rather than
    named, saves the previous offsets to a file first (kgctl undo brings them back), and says what became of each partition.
    """
    check_backup(backup, no_backup=no_backup)
    wait_ms = _wait_ms(wait_empty, plan_out, execute=execute, dry_run=dry_run)
    session, group_ids, names = session_of(ctx), merged_groups(groups, group), name_filter(match, exclude)
    if (from_file is None and plan is None) or all_groups or names:
        check_selection(group_ids, all_groups=all_groups, names=names)
    targets = (to_earliest, to_latest, to_current, to_offset, shift_by, to_datetime, by_duration, to_history)
    given = GivenStrategy(*targets, from_file, heal, from_group, plan, to_max_timestamp, to_earliest_local, to_latest_tiered)
    strategy, remarks = read_strategy(given, group_ids, session.environment.now_ms(), session.environment.stdin)
    scopes = read_scopes(strategy, topic or (), all_topics=all_topics)
    history = _history(session, strategy, warehouse, history_cluster)
    with session.connect() as admin:
        cluster = session.cluster(admin)
        header = strategy.header if isinstance(strategy, FromFile) else None
        check_cluster(header, cluster, other_cluster=other_cluster, name=str(from_file or plan))
        chosen = _chosen(admin, group_ids, names, strategy)
        check_count(len(chosen.group_ids), max_groups)
        if from_group is not None:
            strategy = copied(admin, from_group, chosen.group_ids, scopes or ())
        if history is not None:
            chosen, strategy, told = from_history(history, strategy, chosen, cluster.cluster_id)
            remarks = (*remarks, *told)
        wait_until_empty(session, admin, chosen.group_ids, wait_ms)
        request = ResetRequest(chosen.group_ids, strategy, scopes, clamp, create, skip_missing)
        planned = (again := partial(_planned, session, admin, chosen, request))()
        remarks = (*remarks, *(_hidden(admin) if all_topics and planned.groups else ()))
        change = Change(session, cluster, remarks, backup, no_backup=no_backup, export=export, summary=summary)
        if execute:
            return change.execute(admin, planned, again if all_groups or names else None, yes=yes)
        return change.show(planned, plan_out)


def _planned(session: Session, admin: GroupAdmin, chosen: Selection, request: ResetRequest) -> ResetPlan:
    with session.waiting():
        planned = plan_reset(admin, request)
    return replace(planned, errors=(*chosen.errors, *planned.errors))


def _history(session: Session, strategy: Strategy, warehouse: str | None, cluster: str | None) -> History | None:
    """As `open_for_undo`; raises UnsupportedError for groups of which no history is collected."""
    if isinstance(strategy, ToHistory) and connection_settings(session.flags, session.environment).zookeeper is not None:
        raise UnsupportedError("--to-history: there is no history of groups in ZooKeeper; undo files have what kgctl took away")
    return open_for_undo(session, strategy, warehouse, cluster)


def _hidden(admin: GroupAdmin) -> Iterator[str]:
    """Yield what rights may hide of "all topics"."""
    if lacks := admin.sight().lacks_topics:
        yield f"{lacks}: commits on others are not shown, and stay as they are."


def _wait_ms(wait_empty: str | None, plan_out: str | None, *, execute: bool, dry_run: bool) -> int:
    """How long to wait for members to leave; checks what only a dry run, or only the deed, can take."""
    if execute and dry_run:
        raise UsageError("--execute and --dry-run exclude each other")
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


def _chosen(admin: GroupAdmin, group_ids: list[str], names: NameFilter, strategy: Strategy) -> Selection:
    if not isinstance(strategy, FromFile) or not strategy.groups:
        return select_groups(admin, group_ids, names)
    found = [group_id for group_id in strategy.groups if names(group_id)]
    if not found:
        raise UsageError("the file has no offsets for a group that matches")
    return Selection(tuple(found))
