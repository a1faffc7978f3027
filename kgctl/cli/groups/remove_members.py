"""``kgctl remove-members``."""

from __future__ import annotations

from typing import Annotated

import typer

from kgctl.admin.client import GroupAdmin
from kgctl.cli.options import GroupArguments, GroupOptions, Yes, merged_groups
from kgctl.cli.output.report import Column, Report
from kgctl.cli.output.result_rows import result_report
from kgctl.cli.selection import confirm
from kgctl.cli.session import session_of
from kgctl.errors import KgctlError, NotFoundError, UsageError
from kgctl.model.groups import MemberDescription

COLUMNS = (Column("group"), Column("consumer_id"), Column("group_instance_id"))
EPILOG = """Examples:

\b
kgctl remove-members payments --instance worker-7
kgctl remove-members payments --all --yes
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog=EPILOG)(remove_members)


def remove_members(
    ctx: typer.Context,
    groups: GroupArguments = None,
    *,
    group: GroupOptions = None,
    member: Annotated[list[str] | None, typer.Option(metavar="ID", help="A member id (CONSUMER-ID); repeatable.")] = None,
    instance: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="A group instance id, for static members; repeatable.")
    ] = None,
    all_members: Annotated[bool, typer.Option("--all", help="Every member of the group.")] = False,
    reason: Annotated[str | None, typer.Option(metavar="TEXT", help="Why, for the broker's log.")] = None,
    yes: Yes = False,
) -> Report:
    """Make members leave a group, which then rebalances. Asks first, unless --yes.

    A consumer that still runs joins again: stop it first. It is meant for members that are gone and whose session, a static
    member's above all, has long to run.
    """
    group_ids = merged_groups(groups, group)
    if len(group_ids) != 1 or not group_ids[0]:
        raise UsageError("give exactly one group")
    if bool(member or instance) == all_members:
        raise UsageError("say which members: --member ID, --instance ID, or --all")
    group_id, session = group_ids[0], session_of(ctx)
    with session.connect() as admin:
        member_ids, instances = member or [], instance or []
        if all_members:
            present = _members(admin, group_id)
            member_ids = [one.member_id for one in present if one.group_instance_id is None]
            instances = [one.group_instance_id for one in present if one.group_instance_id is not None]
        names = [*member_ids, *instances]
        confirm(session, f"Remove {', '.join(map(repr, names))} from group {group_id!r}?", yes=yes)
        errors = admin.remove_members(group_id, member_ids=member_ids, group_instance_ids=instances, reason=reason).errors
    failures: dict[str, KgctlError] = {name: error.to_exception(group=group_id) for name, error in errors.items()}
    rows = [
        (
            {
                "group": group_id,
                "consumer_id": name if number < len(member_ids) else None,
                "group_instance_id": None if number < len(member_ids) else name,
            },
            failures.get(name),
        )
        for number, name in enumerate(names)
    ]
    return result_report(
        (Column("group"), Column("consumer_id"), Column("group_instance_id")),
        rows,
        "removed",
        ("consumer_id", "group_instance_id"),
    )


def _members(admin: GroupAdmin, group_id: str) -> tuple[MemberDescription, ...]:
    described = admin.describe_groups([group_id])
    if error := described.errors.get(group_id):
        raise error.to_exception(group=group_id)
    members = described.values[group_id].members
    if not members:
        raise NotFoundError(f"group {group_id!r} has no members", group=group_id)
    return members
