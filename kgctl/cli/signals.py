"""SIGINT and SIGTERM while a cluster is being changed: the request under way is finished, the next is not begun."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

from kgctl.errors import Interrupted

AGAIN_S = 0.5
"""How soon the end is told again: an exception that falls into a callback of the garbage collector or of C code is lost."""
GRACE_S = 2.0
"""How long the request under way may take after the first signal; a second signal ends it at once."""
AT_ONCE_S = 0.001


class StopSignals:
    """A `kgctl.admin.execution.Stop` that is in force inside of its ``with`` block, where it has the two signals to itself."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self._is_over = False
        self._before: dict[int, Any] = {}

    def allow(self, seconds: float) -> None:
        """Raise `Interrupted` after this time; 0: from here on never, as the change is over."""
        self._is_over = not seconds
        if self._before:
            signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_S if seconds else 0)

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            handlers = {signal.SIGINT: self._asked, signal.SIGTERM: self._asked, signal.SIGALRM: self._time_is_up}
            self._before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        return self

    def __exit__(self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        if self._before:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _asked(self, number: int, _frame: FrameType | None) -> None:
        if self._is_over:
            return
        is_first = self.signal is None
        self.signal = self.signal or number
        self.allow(GRACE_S if is_first else AT_ONCE_S)

    def _time_is_up(self, _number: int, _frame: FrameType | None) -> None:
        if not self._is_over:
            raise Interrupted
