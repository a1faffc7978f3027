"""``kgctl describe group``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from kgctl.cli.options import GroupArguments, GroupOptions, TopicOptions, merged_groups
from kgctl.cli.output.report import Column, Report
from kgctl.cli.selection import AllGroupsOption, ExcludeOption, MatchOption, check_selection, name_filter, select_groups
from kgctl.cli.session import session_of
from kgctl.errors import UsageError

if TYPE_CHECKING:
    from kgctl.admin.group_view import GroupViews

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
    fail_if_lag_over: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="Exit with 6 if a group's total lag is more than N records."),
    ] = None,
) -> Report:
    """Show groups: offsets and lag of each partition, or their members, or their state.

    Partitions of the group's topics that have no commit are shown too, with `-`; total lag counts them as nothing. Flags:
    below-log-start and past-log-end are commits that no consumer can start from; no-consumer is a partition that no member of a
    stable group reads.
    """
    group_ids = merged_groups(groups, group)
    names = name_filter(match, exclude)
    check_selection(group_ids, all_groups=all_groups, names=names)
    view = _chosen_view(offsets=offsets, members=members, state=state)
    if view != "offsets" and (topic or fail_if_lag_over is not None):
        raise UsageError(f"--topic and --fail-if-lag-over belong to --offsets, not to --{view}")
    from kgctl.admin.group_view import view_groups, view_offsets
    from kgctl.admin.plan.scope import parse_topic_scopes
    from kgctl.cli.groups import describe_rows

    scopes = parse_topic_scopes(topic or ())
    with session_of(ctx).connect() as admin:
        chosen = select_groups(admin, group_ids, names)
        ids = chosen.group_ids
        found = view_offsets(admin, ids, scopes) if view == "offsets" else view_groups(admin, ids)
    found = replace(found, errors=(*chosen.errors, *found.errors))
    builders: dict[str, Callable[[GroupViews], Report]] = {
        "offsets": lambda views: describe_rows.offsets_report(views, scopes, fail_if_lag_over),
        "members": describe_rows.members_report,
        "state": describe_rows.state_report,
    }
    report = builders[view](found)
    return replace(report, columns=_widened(report.columns)) if verbose else report


def _chosen_view(**views: bool) -> str:
    chosen = [name for name, wanted in views.items() if wanted]
    if len(chosen) > 1:
        raise UsageError(" and ".join(f"--{name}" for name in chosen) + " exclude each other")
    return chosen[0] if chosen else "offsets"


def _widened(columns: Sequence[Column]) -> tuple[Column, ...]:
    return tuple(replace(column, wide=False) for column in columns)
