"""Compaction in the background."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from kgctl.errors import StorageError


class Compacting(Protocol):
    """What can be compacted in small steps."""

    def compact_step(self, now_ms: int, max_records: int = 500) -> bool:
        """See `kgctl.storage.protocols.RecordLog`."""
        ...

    def close(self) -> None:
        """Give files back."""
        ...


class Maintenance(threading.Thread):
    """Compacts step by step, resting between steps so that commits go first, and touches the folder's lock now and then.

    ``open_log`` is called in the thread and gives a connection of its own, so that only single steps stand in a commit's way.
    """

    _REST_S = 0.01

    def __init__(
        self, open_log: Callable[[], Compacting], touch: Callable[[], None], clock_ms: Callable[[], int], interval_s: float
    ) -> None:
        super().__init__(name="kgctl-maintenance", daemon=True)
        self._open_log = open_log
        self._touch = touch
        self._clock_ms = clock_ms
        self._interval_s = interval_s
        self._stopping = threading.Event()

    def run(self) -> None:
        """Until `stop`. A folder that cannot be written just now is tried again later: commits report the same trouble."""
        log: Compacting | None = None
        pause = self._interval_s
        while not self._stopping.wait(pause):
            try:
                log = log or self._open_log()
                self._touch()
                more = log.compact_step(self._clock_ms())
            except (StorageError, OSError):
                more = False
            pause = self._REST_S if more else self._interval_s
        if log is not None:
            log.close()

    def stop(self) -> None:
        """Return when the step under way is done."""
        self._stopping.set()
        if self.is_alive():
            self.join()
