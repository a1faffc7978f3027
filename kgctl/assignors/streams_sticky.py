"""sticky for streams groups: tasks stay where they are, as far as no member gets more than its share (KIP-1071).

Kafka: StickyTaskAssignor of the group coordinator, ProcessState. What is equal is told apart by the order of its maps and queues.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kgctl.assignors.java_queue import PriorityQueue
from kgctl.assignors.spec import AssignorError
from kgctl.assignors.task_spec import TaskId, TaskMember, TaskSpec, TaskTarget, by_partition, by_subtopology, task_hash
from kgctl.model.values import copied_map_order, grown_capacity, hash_map_order, integer_hash, power_of_two_at_least


class StickyTaskAssignor:
    """Active tasks: as before, else where there is a standby task, else where there is least to do; standby tasks likewise."""

    name = "sticky"

    def assign_tasks(self, spec: TaskSpec) -> dict[str, TaskTarget]:
        """The target of every member.

        Raises:
            AssignorError: there is nobody to run the tasks.
        """
        work = _Assignment(spec)
        work.assign_active()
        if spec.num_standby_replicas > 0:
            work.assign_standby()
        return {member.member_id: work.target(member) for member in spec.members}


class _Process:
    """The members of one process and what they have been given. Kafka: ProcessState."""

    def __init__(self, members: Sequence[str]) -> None:
        self.counts = dict.fromkeys(hash_map_order(members), 0)
        self.active: dict[str, dict[TaskId, None]] = {member: {} for member in members}
        self.standby: dict[str, dict[TaskId, None]] = {member: {} for member in members}
        self.tasks: set[TaskId] = set()
        self._queue: PriorityQueue[tuple[str, int]] | None = None
        self._given = 0

    def load(self) -> float:
        """Return the tasks for each member."""
        return self._given / len(self.counts)

    def add(self, member_id: str, task: TaskId, *, is_active: bool) -> int:
        """Give a member a task; return how many it has then."""
        self._queue = None
        return self._add(member_id, task, is_active=is_active)

    def _add(self, member_id: str, task: TaskId, *, is_active: bool) -> int:
        self._given += 1
        self.tasks.add(task)
        (self.active if is_active else self.standby)[member_id][task] = None
        self.counts[member_id] += 1
        return self.counts[member_id]

    def add_to_least_loaded(self, task: TaskId, *, is_active: bool) -> int:
        """Give the task to the member with the fewest; return how many that has then."""
        if self._queue is None:
            self._queue = PriorityQueue(lambda entry: entry[1], self.counts.items())
        first = self._queue.poll()
        assert first is not None
        count = self._add(first[0], task, is_active=is_active)
        self._queue.offer((first[0], count))
        return count


@dataclass(slots=True)
class _Share:
    """How many of some tasks a member may have: the rest among those that have not reached their share."""

    tasks: int
    members: int
    each: int = field(init=False)

    def __post_init__(self) -> None:
        self._divide()

    def _divide(self) -> None:
        self.each = -(-self.tasks // self.members) if self.members else 0

    def note(self, count: int) -> None:
        """A member has so many tasks now."""
        if count == self.each:
            self.members -= 1
            self.tasks -= count
            self._divide()


class _Assignment:
    """One run of the assignor."""

    def __init__(self, spec: TaskSpec) -> None:
        self._spec = spec
        self._replicas = spec.num_standby_replicas
        self._processes = _processes(spec.members)
        active = sum(each.partitions for each in spec.subtopologies)
        standby = sum(each.partitions * self._replicas for each in spec.subtopologies if each.is_stateful)
        self._active_share = _Share(active, len(spec.members))
        self._total_share = _Share(active + standby, len(spec.members))
        self._was_active: dict[TaskId, TaskMember] = {}
        self._was_standby: dict[TaskId, list[TaskMember]] = {}
        for member in spec.members:
            for task in _ids(member.active.items()):
                self._was_active[task] = member
            for task in _ids(member.standby.items()):
                self._was_standby.setdefault(task, []).append(member)

    def target(self, member: TaskMember) -> TaskTarget:
        process = self._processes[member.process_id]
        return TaskTarget(_compacted(process.active[member.member_id]), _compacted(process.standby[member.member_id]))

    def assign_active(self) -> None:
        tasks = sorted(_ids((each.subtopology_id, range(each.partitions)) for each in self._spec.subtopologies), key=by_partition)
        tasks = [task for task in tasks if not self._give_active(task, self._was_active.get(task))]
        tasks = [task for task in tasks if not self._give_active(task, self._least_loaded(self._was_standby.get(task, ()), None))]
        queue = self._by_load()
        for task in sorted(tasks, key=by_subtopology):
            process = queue.poll()
            if process is None:
                raise AssignorError(f"No process available to assign active task {task}.")
            self._note_active(process.add_to_least_loaded(task, is_active=True))
            queue.offer(process)

    def _give_active(self, task: TaskId, member: TaskMember | None) -> bool:
        if member is None:
            return False
        process = self._processes[member.process_id]
        if process.counts[member.member_id] >= self._active_share.each:
            return False
        self._note_active(process.add(member.member_id, task, is_active=True))
        return True

    def _note_active(self, count: int) -> None:
        self._active_share.note(count)
        self._total_share.note(count)

    def _by_load(self) -> PriorityQueue[_Process]:
        return PriorityQueue(_Process.load, self._processes.values())

    def _least_loaded(self, members: Sequence[TaskMember], task: TaskId | None) -> TaskMember | None:
        """Of those that had the task the one with the least to do; none, if the process of the first has it (so does Kafka)."""
        if not members:
            return None
        found = members[0]
        first = self._processes[found.process_id]
        process_load, member_load = first.load(), first.counts[found.member_id]
        for member in members[1:]:
            process = self._processes[member.process_id]
            load, count = process.load(), process.counts[member.member_id]
            if load < process_load and count < member_load and task not in process.tasks:
                found, process_load, member_load = member, load, count
        return None if task in first.tasks else found

    def assign_standby(self) -> None:
        stateful = [(each.subtopology_id, range(each.partitions)) for each in self._spec.subtopologies if each.is_stateful]
        left = [
            (task, replicas)
            for task in sorted(_ids(stateful), key=by_partition, reverse=True)
            if (replicas := self._replicas - self._give_back_standby(task))
        ]
        queue = self._by_load()
        for task, replicas in sorted(left, key=lambda each: by_subtopology(each[0]), reverse=True):
            for _ in range(replicas):
                if not self._give_standby_to_least_loaded(queue, task):
                    break

    def _give_back_standby(self, task: TaskId) -> int:
        """Give replicas to those that had the task; return how many."""
        for given in range(self._replicas):
            if not (
                self._give_standby(task, self._was_active.get(task))
                or self._give_standby(task, self._least_loaded(self._was_standby.get(task, ()), task))
            ):
                return given
        return self._replicas

    def _give_standby(self, task: TaskId, member: TaskMember | None) -> bool:
        if member is None:
            return False
        process = self._processes[member.process_id]
        if task in process.tasks or process.counts[member.member_id] >= self._total_share.each:
            return False
        self._total_share.note(process.add(member.member_id, task, is_active=False))
        return True

    def _give_standby_to_least_loaded(self, queue: PriorityQueue[_Process], task: TaskId) -> bool:
        """Processes that have the task stand aside, and come back the last first."""
        passed = []
        process = queue.poll()
        while process is not None and task in process.tasks and len(queue):
            passed.append(process)
            process = queue.poll()
        is_given = process is not None and task not in process.tasks
        if process is not None:
            if is_given:
                self._total_share.note(process.add_to_least_loaded(task, is_active=False))
            passed.append(process)
        for each in reversed(passed):
            queue.offer(each)
        return is_given


def _processes(members: Sequence[TaskMember]) -> dict[str, _Process]:
    """The processes in the order of a ``HashMap`` made for as many as there are members."""
    found: dict[str, list[str]] = {}
    for member in members:
        found.setdefault(member.process_id, []).append(member.member_id)
    capacity = grown_capacity(len(found), power_of_two_at_least(len(members)))
    return {process: _Process(found[process]) for process in hash_map_order(found, capacity=capacity)}


def _ids(tasks: Iterable[tuple[str, Iterable[int]]]) -> list[TaskId]:
    return [TaskId(subtopology, partition) for subtopology, partitions in tasks for partition in partitions]


def _compacted(tasks: Iterable[TaskId]) -> dict[str, tuple[int, ...]]:
    """Tasks by subtopology, as the maps and sets have them that they were put into in the order of the set of tasks."""
    found: dict[str, list[int]] = {}
    for subtopology, partition in hash_map_order(tasks, hash_of=task_hash):
        found.setdefault(subtopology, []).append(partition)
    order = copied_map_order(hash_map_order(found))
    return {subtopology: tuple(hash_map_order(found[subtopology], hash_of=integer_hash)) for subtopology in order}
