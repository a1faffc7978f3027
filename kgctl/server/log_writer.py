"""Writes the coordinator's records, and lets replies go when what they depend on is durable."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Protocol

from kgctl.coordinator.effects import AppendRecord

log = logging.getLogger(__name__)


class CoordinatorLog(Protocol):
    """The part of a record log that is written here."""

    def append(self, effects: Sequence[AppendRecord], now_ms: int) -> None:
        """Make the records durable."""


class LogWriter:
    """Collects what one turn of the event loop appends and writes it in one transaction; what comes meanwhile waits for the next.

    With ``in_thread`` the loop goes on while the disk is busy; without, writing takes no time worth a thread. When a write fails,
    the coordinator's memory is ahead of its log: ``on_failure`` must end the server, nothing is released any more.
    """

    def __init__(
        self,
        record_log: CoordinatorLog,
        clock: Callable[[], int],
        on_failure: Callable[[BaseException], None],
        *,
        in_thread: bool,
    ) -> None:
        self._log = record_log
        self._clock = clock
        self._on_failure = on_failure
        self._thread = ThreadPoolExecutor(1, "kgctl-log") if in_thread else None
        self._batch: list[AppendRecord] = []
        self._held: list[Callable[[], None]] = []
        self._write: asyncio.Future[None] | None = None
        self._is_scheduled = False
        self.has_failed = False
        self.written: list[Callable[[], None]] = []
        """Called after each write."""

    @property
    def is_idle(self) -> bool:
        """Whether everything is written and nothing is held."""
        return not self._batch and not self._held and self._write is None

    def append(self, record: AppendRecord) -> None:
        self._batch.append(record)
        self._schedule()

    def after_writes(self, release: Callable[[], None]) -> None:
        """RequestContext ``release`` when everything appended so far is durable."""
        self._held.append(release)
        self._schedule()

    async def drain(self) -> None:
        """Return when everything is written, or writing has failed."""
        while not self.is_idle and not self.has_failed:
            if self._write is not None:
                await asyncio.wait([self._write])
            await asyncio.sleep(0)

    def close(self) -> None:
        if self._thread is not None:
            self._thread.shutdown()

    def _schedule(self) -> None:
        if not self._is_scheduled and self._write is None:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._is_scheduled = False
        if self.has_failed:
            return
        batch, self._batch = self._batch, []
        held, self._held = self._held, []
        if batch and self._thread is not None:
            write = partial(self._log.append, batch, self._clock())
            self._write = asyncio.get_running_loop().run_in_executor(self._thread, write)
            self._write.add_done_callback(partial(self._finished, held))
            return
        try:
            if batch:
                self._log.append(batch, self._clock())
        except Exception as error:  # noqa: BLE001 - whatever it is, the memory is ahead of the log now
            self._failed(error)
        else:
            self._release(held, has_written=bool(batch))

    def _finished(self, held: list[Callable[[], None]], write: asyncio.Future[None]) -> None:
        self._write = None
        error = write.exception()
        if error is not None:
            self._failed(error)
            return
        self._release(held, has_written=True)
        if self._batch or self._held:
            self._schedule()

    def _release(self, held: list[Callable[[], None]], *, has_written: bool) -> None:
        if has_written:
            held = [*self.written, *held]
        for release in held:
            try:
                release()
            except Exception:  # one answer that cannot be given keeps back no other
                log.exception("an answer failed")

    def _failed(self, error: BaseException) -> None:
        self.has_failed = True
        log.critical("cannot write to the log, no further request is answered: %s", error)
        self._on_failure(error)
