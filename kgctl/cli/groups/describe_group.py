"""``kgctl describe group``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from kgctl.cli.groups.thresholds import (
    AllowUnknown,
    FailIfLagOver,
    FailIfPartitionLagOver,
    FailIfTimeLagOver,
    judge,
    read_thresholds,
)
from kgctl.cli.options import GroupArguments, GroupOptions, TopicOptions, merged_groups
from kgctl.cli.output.report import Column, Report
from kgctl.cli.selection import (
    AllGroupsOption,
    ExcludeOption,
    MatchOption,
    check_selection,
    name_filter,
    parse_names,
    select_groups,
)
from kgctl.cli.session import session_of
from kgctl.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from kgctl.admin.client import GroupAdmin
    from kgctl.admin.group_view import GroupViews
    from kgctl.admin.plan.scope import TopicScope

EPILOG = """Examples:

\b
kgctl describe group payments
kgctl describe group payments --members --verbose
kgctl describe group --all-groups -o csv
kgctl describe group payments --fail-if-lag-over 1000
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog=EPILOG)(describe_group)


def describe_group(
    ctx: typer.Context,
    groups: GroupArguments = None,
    *,
    group: GroupOptions = None,
    all_groups: AllGroupsOption = False,
    match: MatchOption = None,
    exclude: ExcludeOption = None,
    offsets: Annotated[bool, typer.Option("--offsets", help="Offsets and lag of each partition (the default).")] = False,
    members: Annotated[bool, typer.Option("--members", help="The members, and how many partitions each owns.")] = False,
    state: Annotated[bool, typer.Option("--state", help="State, coordinator, assignor and number of members.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="All columns in the table, as -o wide has them.")] = False,
    topic: TopicOptions = None,
    only_lagging: Annotated[bool, typer.Option("--only-lagging", help="Only partitions with lag, or with a flag.")] = False,
    sort: Annotated[str | None, typer.Option(metavar="KEY", help="Rows by lag, partition or consumer.")] = None,
    fail_if_lag_over: FailIfLagOver = None,
    fail_if_partition_lag_over: FailIfPartitionLagOver = None,
    fail_if_time_lag_over: FailIfTimeLagOver = None,
    allow_unknown: AllowUnknown = False,
) -> Report:
    """Show groups: offsets and lag of each partition, or their members, or their state.

    Partitions of the group's topics that have no commit are shown too, with `-`; total lag counts them as nothing, and no
    --fail-if limit holds for them. Flags: below-log-start and past-log-end are commits that no consumer can start from;
    no-consumer is a partition that no member of a stable group reads; stale one whose topic no member subscribes to any more;
    no-leader one whose log cannot be asked now.
    """
    group_ids = merged_groups(groups, group)
    names = name_filter(match, exclude)
    check_selection(group_ids, all_groups=all_groups, names=names)
    view = _chosen_view(offsets=offsets, members=members, state=state)
    limits = read_thresholds(fail_if_lag_over, fail_if_partition_lag_over, fail_if_time_lag_over, allow_unknown=allow_unknown)
    if view != "offsets" and (topic or limits or only_lagging or sort):
        raise UsageError(f"--topic, --only-lagging, --sort and the --fail-if options belong to --offsets, not to --{view}")
    from kgctl.admin.group_view import view_groups, view_offsets
    from kgctl.admin.plan.scope import parse_topic_scopes
    from kgctl.cli.groups import describe_rows

    scopes = parse_topic_scopes(topic or ())
    (sort_key,) = parse_names("--sort", [sort], tuple(describe_rows.SORTS)) if sort else ("",)
    shown = describe_rows.Shown(scopes, only_lagging, sort_key)
    session = session_of(ctx)
    with session.connect() as admin:
        chosen = select_groups(admin, group_ids, names)
        ids = chosen.group_ids
        found = view_offsets(admin, ids, scopes) if view == "offsets" else view_groups(admin, ids)
        found = replace(found, errors=(*chosen.errors, *found.errors))
        if scopes:
            check_topics(admin, found, scopes)
        verdict = judge(admin, found, limits, session.environment.now_ms()) if limits else None
    builders: dict[str, Callable[[GroupViews], Report]] = {
        "offsets": lambda views: describe_rows.offsets_report(views, shown, verdict),
        "members": describe_rows.members_report,
        "state": describe_rows.state_report,
    }
    report = builders[view](found)
    return replace(report, columns=_widened(report.columns)) if verbose else report


def check_topics(admin: GroupAdmin, found: GroupViews, scopes: Sequence[TopicScope]) -> None:
    """Tell a topic that is not there from one that a group has nothing on.

    Raises:
        NotFoundError: no group has anything on a topic, and there is none of its name that this user may see.
    """
    present = {each.lag.partition.topic for view in found.views for each in view.partitions}
    wanted = [scope.topic for scope in scopes if scope.topic not in present]
    if wanted and found.views and (missing := [topic for topic in wanted if topic not in admin.list_topics(wanted)]):
        raise NotFoundError(
            f"topic {missing[0]!r} does not exist, or this user may not see it",
            code="UNKNOWN_TOPIC_OR_PARTITION",
            topic=missing[0],
        )


def _chosen_view(**views: bool) -> str:
    chosen = [name for name, wanted in views.items() if wanted]
    if len(chosen) > 1:
        raise UsageError(" and ".join(f"--{name}" for name in chosen) + " exclude each other")
    return chosen[0] if chosen else "offsets"


def _widened(columns: Sequence[Column]) -> tuple[Column, ...]:
    return tuple(replace(column, wide=False) for column in columns)
