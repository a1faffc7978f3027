"""The tasks of one instance among its stream threads. Kafka: StreamsPartitionAssignor#assignTasksToThreads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from kgctl.assignors.high_availability import NumberedTask
from kgctl.assignors.java_queue import PriorityQueue

PreviousByLag = Mapping[str, Sequence[NumberedTask]]
"""Of each thread the tasks whose states it had, the least lag first."""


class Threads:
    """Threads, sorted by id, and how many tasks each has got so far: from one kind of tasks to the next."""

    def __init__(self, ids: Sequence[str], previous: PreviousByLag) -> None:
        self._ids = ids
        self._previous = previous
        self._load = dict.fromkeys(ids, 0)

    def assign(self, tasks: Sequence[NumberedTask], *, is_stateful: bool) -> dict[str, list[NumberedTask]]:
        """Give each thread its share of these tasks: as even as can be with what it has, stateful ones to where they were.

        ``tasks`` stand in the order in which Java fills its queue with them.
        """
        found: dict[str, list[NumberedTask]] = {thread: [] for thread in self._ids}
        if tasks:
            _Dealing(found, self._load, tasks).deal(self._previous if is_stateful else {})
        for thread, given in found.items():
            self._load[thread] += len(given)
        return found


class _Dealing:
    """One kind of tasks."""

    def __init__(self, found: dict[str, list[NumberedTask]], load: Mapping[str, int], tasks: Sequence[NumberedTask]) -> None:
        self._found = found
        self._load = load
        self._least = (sum(load.values()) + len(tasks)) // len(found)
        self._left = PriorityQueue[NumberedTask].heapified(_itself, tasks)
        self._waiting = set(tasks)

    def deal(self, previous: PreviousByLag) -> None:
        passed = self._give_back(previous)
        self._fill_up()
        short = [thread for thread in self._found if self._count(thread) == self._least]
        for task in sorted(passed):
            if passed[task] in short and task in self._waiting:
                self._give(passed[task], task)
                short.remove(passed[task])
        # What is left stands in the order of the heap.
        for thread, task in zip(short, list(self._left), strict=False):
            self._found[thread].append(task)

    def _give_back(self, previous: PreviousByLag) -> dict[NumberedTask, str]:
        """Tasks that threads had, up to the least share; return those that they would have above it."""
        passed = {}
        for thread in self._found:
            for task in previous.get(thread, ()):
                if task in self._waiting:
                    if self._count(thread) < self._least:
                        self._give(thread, task)
                    else:
                        passed[task] = thread
        return passed

    def _fill_up(self) -> None:
        """One task each in turn, until all have the least share."""
        short = [thread for thread in self._found if self._count(thread) < self._least]
        while short:
            for thread in short:
                task = self._left.poll()
                assert task is not None, "the least share is what all have, if they have as many as each other"
                self._waiting.remove(task)
                self._found[thread].append(task)
            short = [thread for thread in short if self._count(thread) < self._least]

    def _give(self, thread: str, task: NumberedTask) -> None:
        self._found[thread].append(task)
        self._left.remove(task)
        self._waiting.remove(task)

    def _count(self, thread: str) -> int:
        return self._load[thread] + len(self._found[thread])


def _itself(task: NumberedTask) -> NumberedTask:
    return task


def by_lag(tasks: Iterable[NumberedTask], lag_of: Callable[[NumberedTask], int]) -> list[NumberedTask]:
    """Sort tasks by lag, and then by their numbers."""
    return sorted(tasks, key=lambda task: (lag_of(task), task))
