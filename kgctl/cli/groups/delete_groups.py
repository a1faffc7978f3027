"""``kgctl delete-groups``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import typer

from kgctl.admin.client import GroupAdmin
from kgctl.admin.execution import Account, Decision, Outcome, decide_deletion, execute_deletion
from kgctl.admin.plan.sealed_file import named_groups
from kgctl.admin.results import Sight
from kgctl.cli.groups.changes import (
    Backup,
    NoBackup,
    UndoRow,
    account_report,
    check_backup,
    counted,
    result_report,
    save_undo,
    settle_undo,
)
from kgctl.cli.options import GroupArguments, GroupOptions, Yes, merged_groups
from kgctl.cli.report import Column, Report, Row
from kgctl.cli.selection import (
    AllGroupsOption,
    ExcludeOption,
    MatchOption,
    MaxGroupsOption,
    check_as_shown,
    check_count,
    check_selection,
    confirm,
    name_filter,
    plural,
    select_groups,
)
from kgctl.cli.session import NamedCluster, Session, session_of
from kgctl.errors import KgctlError
from kgctl.model.groups import GroupListing, GroupType

EPILOG = """Examples:

\b
kgctl delete-groups payments-old payments-test --dry-run
kgctl delete-groups --match '^tmp-' --exclude keep --max-groups 50 --yes
"""
COLUMNS = (Column("group"), Column("type"), Column("state"), Column("offsets", "#OFFSETS"))


def register(app: typer.Typer) -> None:
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
    group_ids = merged_groups(groups, group)
    names = name_filter(match, exclude)
    check_selection(group_ids, all_groups=all_groups, names=names)
    check_backup(backup, no_backup=no_backup)
    session = session_of(ctx)
    with session.connect() as admin:
        cluster = session.cluster(admin)
        chosen = select_groups(admin, group_ids, names)
        check_count(len(chosen.group_ids), max_groups)
        plan = _plan(admin, chosen.group_ids)
        if dry_run:
            rows = [(row, plan.refused.get(group_id)) for group_id, row in plan.rows.items()]
            report = result_report(COLUMNS, rows, "deletable", ("group",))
            told = (*report.notices, *plan.lost, f"Dry run on {cluster}: nothing was changed.")
            return replace(report, errors=(*chosen.errors, *plan.flaws, *report.errors), notices=told)
        if plan.deletable:
            if _ask(session, cluster, plan, yes=yes):
                now = _plan(admin, chosen.group_ids)
                check_as_shown((set(plan.deletable), plan.saved), (set(now.deletable), now.saved), cluster)
            if plan.unread and not no_backup:
                raise plan.unread[0]
        stop = session.stop_signals()
        file = None if no_backup else save_undo(session, cluster, plan.saved, backup)
        account = execute_deletion(admin, plan.decisions, stop)
    gone = {*account.having(Outcome.DONE), *account.having(Outcome.UNKNOWN)}
    settle_undo(session, file, plan.saved, {row[:2] for row in plan.saved if row[0] in gone})
    return _report(plan, account, (*chosen.errors, *plan.flaws), cluster)


@dataclass(frozen=True, slots=True)
class _Plan:
    """Which groups can be deleted, what is committed for them, and what of that cannot be learnt."""

    decisions: Mapping[str, Decision]
    saved: list[UndoRow]
    unread: list[KgctlError]
    sight: Sight
    flaws: tuple[KgctlError, ...] = ()

    @property
    def deletable(self) -> dict[str, GroupListing]:
        return {group_id: one for group_id, one in self.decisions.items() if isinstance(one, GroupListing)}

    @property
    def lost(self) -> list[str]:
        """Return what no undo brings back."""
        shared = sum(listing.type is GroupType.SHARE for listing in self.deletable.values())
        lines = [f"{plural(shared, 'share group')} cannot be brought back"] if shared else []
        lines += [f"{error.message}: not saved" for error in self.flaws]
        if self.sight.lacks_topics:
            lines.append(f"{self.sight.lacks_topics}: commits on others are deleted and not saved")
        return lines

    @property
    def refused(self) -> dict[str, KgctlError]:
        errors = {group_id: one for group_id, one in self.decisions.items() if not isinstance(one, GroupListing)}
        return {group_id: error.to_exception(group=group_id) for group_id, error in errors.items()}

    @property
    def rows(self) -> dict[str, Row]:
        counts = Counter(group_id for group_id, _, _ in self.saved)
        return {group_id: _row(group_id, decision, counts) for group_id, decision in self.decisions.items()}


def _plan(admin: GroupAdmin, group_ids: Sequence[str]) -> _Plan:
    decisions = decide_deletion(admin, group_ids)
    groups = [
        group_id for group_id, one in decisions.items() if isinstance(one, GroupListing) and one.type is not GroupType.SHARE
    ]
    found = admin.list_committed_offsets(groups)
    rows = [(group_id, partition, commit) for group_id, commits in found.values.items() for partition, commit in commits.items()]
    unread = [error.to_exception(group=group_id) for group_id, error in found.errors.items()]
    flaws = tuple(error for group_id in sorted(found.flaws) for error in found.flaws[group_id])
    return _Plan(decisions, list(rows), unread, admin.sight() if groups else Sight(), flaws)


def _report(plan: _Plan, account: Account[str], errors: Sequence[KgctlError], cluster: NamedCluster) -> Report:
    report = account_report(
        COLUMNS,
        plan.rows,
        account,
        "deleted",
        name_keys=("group",),
        explain=lambda group_id, error: error.to_exception(group=group_id),
        refused=plan.refused,
    )
    told = f"Executed on {cluster}: {counted(report.summary or {})}." if account.may_have_changed else "Nothing was changed."
    return replace(report, errors=(*errors, *report.errors), notices=(*plan.lost, told))


def _ask(session: Session, cluster: NamedCluster, plan: _Plan, *, yes: bool) -> bool:
    deletable = plan.deletable
    named, offsets = named_groups(list(deletable), 10), plural(len(plan.saved), "committed offset")
    lost = "".join(f"; {line}" for line in plan.lost)
    return confirm(session, f"Delete {plural(len(deletable), 'group')} ({named}) with {offsets} on {cluster}{lost}?", yes=yes)


def _row(group_id: str, decision: Decision, counts: Mapping[str, int]) -> Row:
    listing = decision if isinstance(decision, GroupListing) else None
    return {
        "group": group_id,
        "type": listing.type.value if listing else None,
        "state": listing.state.value if listing else None,
        "offsets": counts.get(group_id, 0) if listing else None,
    }
