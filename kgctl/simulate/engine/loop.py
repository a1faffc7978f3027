"""The event loop: a heap of (time, order of scheduling). Nothing else decides what comes next."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, TypeAlias

Task: TypeAlias = Callable[[Any], None]


class Loop:
    """Virtual time in microseconds. What is scheduled for one moment happens in the order of scheduling."""

    __slots__ = ("_sequence", "executed", "heap", "now_us")

    def __init__(self) -> None:
        self.heap: list[tuple[int, int, Task, Any]] = []
        """(time, order of scheduling, task, its argument): for whoever runs the tasks."""
        self._sequence = 0
        self.now_us = 0
        self.executed = 0

    def at(self, time_us: int, task: Task, argument: Any = None) -> None:
        """Call ``task(argument)`` at this time, which is now or later."""
        self._sequence += 1
        heappush(self.heap, (time_us, self._sequence, task, argument))

    @property
    def next_us(self) -> int | None:
        """When the next task is due; None: there is none."""
        return self.heap[0][0] if self.heap else None

    def run_one(self) -> None:
        """Do the next task. There has to be one."""
        self.now_us, _, task, argument = heappop(self.heap)
        self.executed += 1
        task(argument)
