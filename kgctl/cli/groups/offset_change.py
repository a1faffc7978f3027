"""What every command that moves committed offsets does with its plan: show it, or ask, save, carry out and tell."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kgctl.admin.client import GroupAdmin
from kgctl.admin.plan.offset_file import kafka_rows, plan_rows
from kgctl.admin.plan.offset_reset import ResetResult
from kgctl.admin.plan.sealed_file import FileHeader, named_groups, seal
from kgctl.admin.reset import Executed, ResetPlan, execute_reset
from kgctl.cli.groups.reset_rows import dry_run_notices, executed_notices, executed_report, reset_report, row_warnings, summarised
from kgctl.cli.groups.undo_files import save_undo, settle_undo
from kgctl.cli.output.files import write_new
from kgctl.cli.output.report import Report
from kgctl.cli.selection import confirm, plural
from kgctl.cli.session import NamedCluster, Session
from kgctl.cli.signals import StopSignals
from kgctl.errors import RefusedError

_CHANGED = (ResetResult.RESET, ResetResult.DELETED, ResetResult.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Change:
    """A change of offsets on a cluster; ``remarks`` are told beside its result. ``export`` shows Kafka's CSV for the rows."""

    session: Session
    cluster: NamedCluster
    remarks: Sequence[str] = ()
    backup: str | None = None
    no_backup: bool = False
    export: bool = False
    summary: bool = False

    def write_plan(self, plan: ResetPlan, path: str) -> None:
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
        header = FileHeader("plan", cluster.identity, cluster.label, self.session.command_line, now_ms, groups, len(rows))
        text = plan_rows([(row.group_id, row.partition, row.old.offset if row.old else None, row.new) for row in rows])
        write_new(Path(path).expanduser(), seal(header, text))
        self.session.notice(
            f"Plan written; to execute: {shlex.join(['kgctl', *cluster.arguments, 'reset-offsets', '--plan', path, '--execute'])}"
        )

    def show(self, plan: ResetPlan, plan_out: str | None = None) -> Report:
        """The dry run, kept as a plan where ``plan_out`` names a file."""
        if plan_out is not None:
            self.write_plan(plan, plan_out)
        notices = [*self.remarks, *row_warnings(plan), *dry_run_notices(plan, self.cluster)]
        return self._shown(reset_report(plan, notices), plan)

    def execute(self, admin: GroupAdmin, plan: ResetPlan, *, ask: bool, yes: bool) -> Report:
        """The deed: asked for first where ``ask``, and what it takes away saved.

        Raises:
            KgctlError: the answer is no, or the offsets cannot be saved; nothing was changed.
        """
        rows = plan.to_change()
        if ask and rows:
            groups = len({row.group_id for row in rows})
            confirm(
                self.session,
                f"Change the offsets of {plural(len(rows), 'partition')} of {plural(groups, 'group')} on {self.cluster}?",
                yes=yes,
            )
        saved = [(row.group_id, row.partition, row.old) for row in rows]
        with StopSignals() as stop:
            file = None if self.no_backup else save_undo(self.session, self.cluster, saved, self.backup)
            with self.session.waiting():
                executed = execute_reset(admin, plan, stop)
        changed = {(row.group_id, row.partition) for row in executed.plan.rows if row.result in _CHANGED}
        settle_undo(self.session, file, saved, changed)
        return self._told(executed)

    def _told(self, executed: Executed) -> Report:
        notices = [*self.remarks, *row_warnings(executed.plan), *executed_notices(executed, self.cluster)]
        return self._shown(executed_report(executed, notices), executed.plan)

    def _shown(self, report: Report, plan: ResetPlan) -> Report:
        if self.summary:
            report = summarised(report, plan)
        if not self.export:
            return report
        return replace(report, text=kafka_rows([(row.group_id, row.partition, row.new.offset) for row in plan.rows if row.new]))


POLL_MS = 500


def wait_until_empty(session: Session, admin: GroupAdmin, group_ids: Sequence[str], wait_ms: int) -> None:
    """Watch the groups until their members have left, and say once that it waits; not at all where ``wait_ms`` is 0.

    Raises:
        RefusedError: there still are members after the time; nothing was changed.
    """
    environment = session.environment
    until_ms = environment.now_ms() + wait_ms
    is_told = False
    while wait_ms:
        described = admin.describe_groups(group_ids).values
        active = [group_id for group_id, description in described.items() if not description.state.is_inactive]
        if not active:
            return
        if environment.now_ms() >= until_ms:
            what = f"{plural(len(active), 'group')} ({named_groups(active)}) still have members after {wait_ms / 1000:g} s"
            raise RefusedError(f"{what}; nothing was changed", code="NON_EMPTY_GROUP", group=active[0])
        if not is_told:
            session.notice(f"Waiting up to {wait_ms / 1000:g} s for the members of {named_groups(active)} to leave.")
            is_told = True
        environment.sleep_ms(min(POLL_MS, max(1, until_ms - environment.now_ms())))
