"""What the server does besides answering: idle connections, a word about rebalances that do not end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection

from kgctl.server.request_context import Services
from kgctl.server.status import rebalances
from kgctl.server.traffic import Connection
from kgctl.server.transaction_ends import abort_overdue

INTERVAL_S = 5.0

log = logging.getLogger(__name__)


class Upkeep:
    """One background task."""

    def __init__(self, services: Services, connections: Collection[Connection], max_idle_ms: int) -> None:
        self._services = services
        self._connections = connections
        self._max_idle_s = max_idle_ms / 1000
        self._stuck: set[tuple[str, int]] = set()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(INTERVAL_S)
            for step in (self.close_idle_connections, self.report_stuck_rebalances, self.abort_overdue_transactions):
                try:
                    step()
                except Exception:  # the next round tries again, and the other steps go on
                    log.exception("upkeep failed")

    def abort_overdue_transactions(self) -> None:
        """Those that are open for longer than their producer said."""
        abort_overdue(self._services)

    def close_idle_connections(self) -> None:
        now_s = asyncio.get_running_loop().time()
        for connection in list(self._connections):
            if connection.is_stalled(now_s):
                connection.close("it began a large request and does not go on with it")
            elif connection.is_idle() and now_s - connection.last_active_s > self._max_idle_s:
                connection.end()

    def report_stuck_rebalances(self) -> None:
        """One warning for each rebalance that the coordinator calls stuck, saying whom it waits for."""
        stuck = {(status.group_id, status.generation_id): status for status in rebalances(self._services) if status.is_stuck}
        for key, status in stuck.items():
            if key not in self._stuck:
                members = ", ".join(member.member_id for member in status.awaited)
                log.warning(
                    "the rebalance of group %s is stuck, waiting for %s of: %s", status.group_id, status.waiting_for, members
                )
        self._stuck = set(stuck)
