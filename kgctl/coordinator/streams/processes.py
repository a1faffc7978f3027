"""Which processes run each task, or have not given it up yet: a task is free for somebody else when nobody does.

Kafka: StreamsGroup#currentActiveTaskProcessId and its neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kgctl.coordinator.streams.member import HeldTasks, StreamsMember

Copy = tuple[int, str, int, str]
"""Of a standby task (0) or of a warm-up task (1): its subtopology, its number, the process."""


class TaskProcesses:
    """The processes by task. Members of one process have one state directory, so it has a task in one place only."""

    def __init__(self) -> None:
        self._active: dict[tuple[str, int], str] = {}
        self._copies: set[Copy] = set()
        self._shared: set[Copy] = set()
        """Copies that two members of one process have had at a time: as in Kafka, the first that gives one up takes it along."""

    def replace(self, old: StreamsMember | None, new: StreamsMember | None) -> None:
        """Take note that a member is another than it was, comes or goes."""
        if old is not None and old.has_metadata:
            for tasks in (old.assigned, old.pending_revocation):
                self._remove(tasks, old.process_id)
        if new is not None and new.has_metadata:
            for tasks in (new.assigned, new.pending_revocation):
                self._add(tasks, new.process_id)

    def _add(self, tasks: HeldTasks, process_id: str) -> None:
        for key, numbers in tasks.active.items():
            self._active.update(dict.fromkeys(((key, number) for number in numbers), process_id))
        copies = set(_copies(tasks, process_id))
        self._shared |= self._copies & copies
        self._copies |= copies

    def _remove(self, tasks: HeldTasks, process_id: str) -> None:
        for key, numbers in tasks.active.items():
            for number in numbers:
                # Somebody else may have got it already.
                if self._active.get((key, number)) == process_id:
                    del self._active[key, number]
        self._copies.difference_update(_copies(tasks, process_id))

    def agrees_with(self, members: Iterable[StreamsMember]) -> bool:
        """Whether this is what the members have; of copies that were shared, some may be missing."""
        known = TaskProcesses()
        for member in members:
            known.replace(None, member)
        is_missing = known._copies - self._copies
        return self._active == known._active and self._copies <= known._copies and is_missing <= self._shared

    def is_processed(self, key: str, number: int) -> bool:
        """Whether any process runs it as an active task."""
        return (key, number) in self._active

    def is_processed_by(self, process_id: str, key: str, number: int) -> bool:
        """Whether this process runs it as an active task."""
        return self._active.get((key, number)) == process_id

    def is_copied_by(self, process_id: str, key: str, number: int) -> bool:
        """Whether this process has it as a standby or warm-up task."""
        return any((kind, key, number, process_id) in self._copies for kind in (0, 1))


def _copies(tasks: HeldTasks, process_id: str) -> Iterator[Copy]:
    for kind, held in enumerate(tasks[1:]):
        for key, numbers in held.items():
            for number in numbers:
                yield kind, key, number, process_id
