"""Which processes run each task, or have not given it up yet: a task is free for somebody else when nobody does.

Kafka: StreamsGroup#currentActiveTaskProcessId and its neighbours.
"""

from __future__ import annotations

from kgctl.coordinator.streams.member import HeldTasks, StreamsMember


class TaskProcesses:
    """The processes by task. Members of one process have one state directory, so it has a task in one place only."""

    def __init__(self) -> None:
        self._active: dict[tuple[str, int], str] = {}
        self._copies: tuple[dict[tuple[str, int], set[str]], ...] = ({}, {})
        """Of standby tasks and of warm-up tasks."""

    def replace(self, old: StreamsMember | None, new: StreamsMember | None) -> None:
        """Take note that a member is another than it was, comes or goes."""
        if old is not None:
            for tasks in (old.assigned, old.pending_revocation):
                self._remove(tasks, old.process_id)
        if new is not None and new.has_metadata:
            for tasks in (new.assigned, new.pending_revocation):
                self._add(tasks, new.process_id)

    def _add(self, tasks: HeldTasks, process_id: str) -> None:
        for key, numbers in tasks.active.items():
            self._active.update(dict.fromkeys(((key, number) for number in numbers), process_id))
        for kind, held in zip(self._copies, tasks[1:], strict=True):
            for key, numbers in held.items():
                for number in numbers:
                    kind.setdefault((key, number), set()).add(process_id)

    def _remove(self, tasks: HeldTasks, process_id: str) -> None:
        for key, numbers in tasks.active.items():
            for number in numbers:
                # Somebody else may have got it already.
                if self._active.get((key, number)) == process_id:
                    del self._active[key, number]
        for kind, held in zip(self._copies, tasks[1:], strict=True):
            for key, numbers in held.items():
                for number in numbers:
                    kind.get((key, number), set()).discard(process_id)

    def is_like(self, other: TaskProcesses) -> bool:
        """Whether the same processes have the same tasks.

        Of a copy that two members of one process have, the process is forgotten with the first that gives it up, as in Kafka.
        """
        pairs = zip(self._copies, other._copies, strict=True)
        has_too = all(processes <= theirs.get(task, set()) for own, theirs in pairs for task, processes in own.items())
        return has_too and self._active == other._active

    def is_processed(self, key: str, number: int) -> bool:
        """Whether any process runs it as an active task."""
        return (key, number) in self._active

    def is_processed_by(self, process_id: str, key: str, number: int) -> bool:
        """Whether this process runs it as an active task."""
        return self._active.get((key, number)) == process_id

    def is_copied_by(self, process_id: str, key: str, number: int) -> bool:
        """Whether this process has it as a standby or warm-up task."""
        return any(process_id in kind.get((key, number), ()) for kind in self._copies)
