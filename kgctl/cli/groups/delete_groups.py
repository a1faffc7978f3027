"""``kgctl delete-groups``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated

import typer

from kgctl.admin.client import GroupAdmin
from kgctl.admin.execution import Outcome
from kgctl.admin.plan.sealed_file import named_groups
from kgctl.cli.groups.change_options import Backup, NoBackup, check_backup
from kgctl.cli.groups.undo_files import UndoRow, save_undo, settle_undo
from kgctl.cli.options import GroupArguments, GroupOptions, Yes, merged_groups
from kgctl.cli.output.report import Column, Report
from kgctl.cli.output.result_rows import account_report, counted, result_report
from kgctl.cli.selection import (
    AllGroupsOption,
    ExcludeOption,
    MatchOption,
    MaxGroupsOption,
    check_count,
    check_selection,
    confirm,
    name_filter,
    plural,
    select_groups,
)
from kgctl.cli.session import NamedCluster, Session, session_of
from kgctl.cli.signals import StopSignals
from kgctl.errors import KgctlError
from kgctl.model.groups import GroupListing, GroupType

EPILOG = """Examples:

\b
kgctl delete-groups payments-old payments-test --dry-run
kgctl delete-groups --match '^tmp-' --exclude keep --max-groups 50 --yes
"""
COLUMNS = (Column("group"), Column("type"), Column("state"), Column("offsets", "#OFFSETS"))


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog=EPILOG)(delete_groups)


def delete_groups(
    ctx: typer.Context,
    groups: GroupArguments = None,
    *,
    group: GroupOptions = None,
    all_groups: AllGroupsOption = False,
    match: MatchOption = None,
    exclude: ExcludeOption = None,
    max_groups: MaxGroupsOption = None,
    backup: Backup = None,
    no_backup: NoBackup = False,
    yes: Yes = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show which groups can be deleted now.")] = False,
) -> Report:
    """Delete groups with all their committed offsets. Asks first, unless --yes.

    A group with members cannot be deleted, and fails alone: the others are deleted, and the exit code says partial. The offsets
    are saved first, and kgctl undo commits them again. --match and --all-groups mean consumer groups; others are named.
    """
    from kgctl.admin.deletion import decide_deletion, execute_deletion

    group_ids = merged_groups(groups, group)
    names = name_filter(match, exclude)
    check_selection(group_ids, all_groups=all_groups, names=names)
    check_backup(backup, no_backup=no_backup)
    session = session_of(ctx)
    with session.connect() as admin:
        cluster = session.cluster(admin)
        chosen = select_groups(admin, group_ids, names)
        check_count(len(chosen.group_ids), max_groups)
        decisions = decide_deletion(admin, chosen.group_ids)
        deletable = {group_id: one for group_id, one in decisions.items() if isinstance(one, GroupListing)}
        saved, lost = _offsets_of(admin, deletable)
        counts = _counts(saved)
        rows = {group_id: _row(group_id, decision, counts) for group_id, decision in decisions.items()}
        failures = {
            group_id: one.to_exception(group=group_id) for group_id, one in decisions.items() if not isinstance(one, GroupListing)
        }
        if dry_run:
            report = result_report(
                COLUMNS, [(row, failures.get(group_id)) for group_id, row in rows.items()], "deletable", ("group",)
            )
            return replace(
                report,
                errors=(*chosen.errors, *report.errors),
                notices=(*report.notices, f"Dry run on {cluster}: nothing was changed."),
            )
        if deletable:
            _ask(session, cluster, deletable, len(saved), yes=yes)
            if lost and not no_backup:
                raise lost[0]
        file = None if no_backup else save_undo(session, cluster, saved, backup)
        with StopSignals() as stop:
            account = execute_deletion(admin, decisions, stop)
    gone = {*account.having(Outcome.DONE), *account.having(Outcome.UNKNOWN)}
    settle_undo(session, file, saved, {row[:2] for row in saved if row[0] in gone})
    report = account_report(
        COLUMNS,
        rows,
        account,
        "deleted",
        name_keys=("group",),
        explain=lambda group_id, error: error.to_exception(group=group_id),
        refused=failures,
    )
    told = f"Executed on {cluster}: {counted(report.summary or {})}." if account.may_have_changed else "Nothing was changed."
    return replace(report, errors=(*chosen.errors, *report.errors), notices=(told,))


def _ask(session: Session, cluster: NamedCluster, deletable: Mapping[str, GroupListing], offsets: int, *, yes: bool) -> None:
    named = named_groups(list(deletable), 10)
    shared = sum(listing.type is GroupType.SHARE for listing in deletable.values())
    lost = f"; {plural(shared, 'share group')} cannot be brought back" if shared else ""
    confirm(
        session,
        f"Delete {plural(len(deletable), 'group')} ({named}) with {plural(offsets, 'committed offset')} on {cluster}{lost}?",
        yes=yes,
    )


def _offsets_of(admin: GroupAdmin, groups: Mapping[str, GroupListing]) -> tuple[list[UndoRow], list[KgctlError]]:
    """What is committed for groups that can have commits, and what of that cannot be learnt."""
    found = admin.list_committed_offsets([group_id for group_id, one in groups.items() if one.type is not GroupType.SHARE])
    rows: list[UndoRow] = [
        (group_id, partition, commit) for group_id, commits in found.values.items() for partition, commit in commits.items()
    ]
    return rows, [error.to_exception(group=group_id) for group_id, error in found.errors.items()]


def _counts(rows: list[UndoRow]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for group_id, _, _ in rows:
        counts[group_id] = counts.get(group_id, 0) + 1
    return counts


def _row(group_id: str, decision: object, counts: Mapping[str, int]) -> dict[str, str | int | None]:
    listing = decision if isinstance(decision, GroupListing) else None
    return {
        "group": group_id,
        "type": listing.type.value if listing else None,
        "state": listing.state.value if listing else None,
        "offsets": counts.get(group_id, 0) if listing else None,
    }
