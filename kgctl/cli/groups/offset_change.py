"""What every command that moves committed offsets does with its plan: show it, or ask, save, carry out and tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kgctl.admin.client import GroupAdmin
from kgctl.admin.plan.offset_file import kafka_rows
from kgctl.admin.plan.offset_reset import ResetResult
from kgctl.admin.reset import Executed, ResetPlan, execute_reset
from kgctl.cli.groups.reset_rows import dry_run_notices, executed_notices, executed_report, reset_report, row_warnings
from kgctl.cli.groups.undo_files import save_undo, settle_undo
from kgctl.cli.output.report import Report
from kgctl.cli.selection import confirm, plural
from kgctl.cli.session import NamedCluster, Session
from kgctl.cli.signals import StopSignals

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

    def show(self, plan: ResetPlan) -> Report:
        """The dry run."""
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
            executed = execute_reset(admin, plan, stop)
        changed = {(row.group_id, row.partition) for row in executed.plan.rows if row.result in _CHANGED}
        settle_undo(self.session, file, saved, changed)
        return self._told(executed)

    def _told(self, executed: Executed) -> Report:
        notices = [*self.remarks, *row_warnings(executed.plan), *executed_notices(executed, self.cluster)]
        return self._shown(executed_report(executed, notices), executed.plan)

    def _shown(self, report: Report, plan: ResetPlan) -> Report:
        if not self.export:
            return report
        return replace(report, text=kafka_rows([(row.group_id, row.partition, row.new.offset) for row in plan.rows if row.new]))
