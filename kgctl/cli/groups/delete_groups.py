"""``kgctl delete-groups``."""

from __future__ import annotations

from typing import Annotated

import typer

from kgctl.cli.options import GroupArguments, GroupOptions, Yes, merged_groups
from kgctl.cli.output.report import Column, Report
from kgctl.cli.output.result_rows import group_failure, result_report
from kgctl.cli.selection import confirm
from kgctl.cli.session import session_of
from kgctl.errors import UsageError

EPILOG = "Example: kgctl delete-groups payments-old payments-test --yes"
MOST_NAMED = 10


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog=EPILOG)(delete_groups)


def delete_groups(
    ctx: typer.Context,
    groups: GroupArguments = None,
    *,
    group: GroupOptions = None,
    yes: Yes = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show which groups could be deleted now.")] = False,
) -> Report:
    """Delete groups with all their committed offsets. Asks first, unless --yes.

    A group with members cannot be deleted, and fails alone: the others are deleted, and the exit code says partial.
    """
    group_ids = merged_groups(groups, group)
    if not group_ids or "" in group_ids:
        raise UsageError("no group is named: give the ids of the groups to delete")
    session = session_of(ctx)
    if dry_run:
        return _rehearse(ctx, group_ids)
    confirm(session, f"Delete {_named(group_ids)} with all committed offsets?", yes=yes)
    with session.connect() as admin:
        errors = admin.delete_groups(group_ids).errors
    rows = [({"group": group_id}, group_failure(errors, group_id)) for group_id in group_ids]
    return result_report((Column("group"),), rows, "deleted", ("group",))


def _rehearse(ctx: typer.Context, group_ids: list[str]) -> Report:
    """What would be refused, by the groups' state now."""
    from dataclasses import replace

    from kgctl.errors import RefusedError

    with session_of(ctx).connect() as admin:
        described = admin.describe_groups(group_ids)
    active = {
        group_id: RefusedError(
            f"group {group_id!r} is active ({description.state.value})", code="NON_EMPTY_GROUP", group=group_id
        )
        for group_id, description in described.values.items()
        if not description.state.is_inactive
    }
    rows = [({"group": group_id}, active.get(group_id) or group_failure(described.errors, group_id)) for group_id in group_ids]
    report = result_report((Column("group"),), rows, "deletable", ("group",))
    return replace(report, notices=(*report.notices, "Dry run: nothing was changed."))


def _named(group_ids: list[str]) -> str:
    shown = ", ".join(map(repr, group_ids[:MOST_NAMED]))
    more = len(group_ids) - MOST_NAMED
    return f"{len(group_ids)} group{'s' if len(group_ids) > 1 else ''} ({shown}{f' and {more} more' if more > 0 else ''})"
