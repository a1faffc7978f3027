"""What the server does besides answering: idle connections, a word about rebalances that do not end."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Awaitable, Collection
from time import monotonic, perf_counter

from kgctl.errors import StorageError
from kgctl.server.api.transactions import abort_overdue, finish_unfinished
from kgctl.server.cleaner import expire_all
from kgctl.server.operator import rebalances
from kgctl.server.request_context import Services
from kgctl.server.traffic import ServedConnection

INTERVAL_S = 5.0
ROUNDS_ALONE = 12
_LONG_PASS_S = 0.01
_MIDDLE_PASSES = 6
_OLDEST = 2
"""The generation whose passes go over everything."""

log = logging.getLogger(__name__)


class Collector:
    """Keeps Python's collector of cycles from holding the loop: its passes over everything grow with the state.

    What survived a pass that took long is left out of later ones (`gc.freeze`); nearly all of it is state without cycles, which
    goes by itself when nothing names it any more. What is left out is looked through again once nobody was connected for a
    minute. Python makes such a pass when a quarter was added to what there is; here it comes after `_MIDDLE_PASSES`, so that it
    stays short.
    """

    def __init__(self) -> None:
        self.frozen = 0
        self._began_s = 0.0
        self._middle_passes = 0
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Watch this process's collector until `stop`; passes are made in the running loop."""
        self._loop = asyncio.get_running_loop()
        gc.callbacks.append(self._passes)

    def stop(self) -> None:
        """Restore the collector's settings."""
        gc.callbacks.remove(self._passes)
        gc.unfreeze()

    def look_through(self) -> None:
        """Collect what was left out. The process stands still meanwhile."""
        if self.frozen:
            self.frozen = 0
            gc.unfreeze()
            gc.collect()

    def _passes(self, phase: str, info: dict[str, int]) -> None:
        if info["generation"] != _OLDEST:
            if phase == "stop" and info["generation"] == _OLDEST - 1:
                self._middle_passes += 1
                if self._middle_passes == _MIDDLE_PASSES and self._loop is not None:
                    self._loop.call_soon_threadsafe(gc.collect)
            return
        self._middle_passes = 0
        if phase == "start":
            self._began_s = perf_counter()
        elif perf_counter() - self._began_s > _LONG_PASS_S:
            gc.freeze()
            self.frozen += 1


class Upkeep:
    """One background task."""

    def __init__(
        self, services: Services, connections: Collection[ServedConnection], max_idle_ms: int, collector: Collector
    ) -> None:
        self._services = services
        self._connections = connections
        self._max_idle_s = max_idle_ms / 1000
        self._collector = collector
        self._stuck: set[tuple[str, int]] = set()
        self._rounds_alone = 0
        self._expired_s = monotonic()
        self._expired_topics: set[str] = set()
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
            for step in (
                self.close_idle_connections,
                self.report_stuck_rebalances,
                self.abort_overdue_transactions,
                self.collect_when_alone,
                self.expire_records,
                self.tend_share_state,
            ):
                try:
                    await step()
                except StorageError as error:
                    self._services.data.storage_failed(error)
                except Exception:  # the next round tries again, and the other steps go on
                    log.exception("upkeep failed")

    async def collect_when_alone(self) -> None:
        """Look through what the collector left out, while nobody waits for anything.

        Not at once: who has just left may come again, and would wait for a pass over everything.
        """
        self._rounds_alone = 0 if self._connections else self._rounds_alone + 1
        if self._rounds_alone == ROUNDS_ALONE:
            self._collector.look_through()

    async def abort_overdue_transactions(self) -> None:
        """Abort what is open for longer than its producer said, and go on with ends that could not be written."""
        await finish_unfinished(self._services)
        await abort_overdue(self._services)

    async def expire_records(self) -> None:
        """Take off what topics keep no longer, as often as ``log.retention.check.interval.ms`` says."""
        services = self._services
        if monotonic() - self._expired_s >= services.config.log_retention_check_interval_ms / 1000:
            self._expired_s = monotonic()
            await services.data.in_thread(expire_all, services, services.runtime.clock(), self._expired_topics)

    async def tend_share_state(self) -> None:
        """Write anew what is kept of share groups and was long not touched, and prune its log."""
        self._services.shares.persister.tend(self._services.runtime.clock())

    async def close_idle_connections(self) -> None:
        now_s = monotonic()
        for connection in list(self._connections):
            if connection.is_stalled(now_s):
                connection.close("it began a large request and does not go on with it")
            elif connection.is_idle() and now_s - connection.last_active_s > self._max_idle_s:
                connection.end()

    async def report_stuck_rebalances(self) -> None:
        """One warning for each rebalance that the coordinator calls stuck, saying whom it waits for."""
        found = self._services.pieces.begin(rebalances(self._services))
        under_way = await found if isinstance(found, Awaitable) else found
        stuck = {(status.group_id, status.generation_id): status for status in under_way if status.is_stuck}
        for key, status in stuck.items():
            if key not in self._stuck:
                members = ", ".join(member.member_id for member in status.awaited)
                log.warning(
                    "the rebalance of group %s is stuck, waiting for %s of: %s", status.group_id, status.waiting_for, members
                )
        self._stuck = set(stuck)
