"""The tasks of a Kafka Streams application: changelogs that grow, instances that restore them, and what is on their disks.

A task runs when its instance has restored its changelog to the end; until then nobody reads its partitions. Active tasks come
first: copies (standbys, warm-ups) are brought up to date by what is left of the rate (DefaultStateUpdater). What an instance has
on disk lives as long as the disk does: up to close(), or to the last checkpoint before a crash (with exactly-once, nothing).

Offsets are records times `UNIT_PR`. In the warm-up states are there at once: the application has run before.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from kgctl.assignors.high_availability import LATEST_OFFSET, NumberedTask
from kgctl.assignors.streams.partition_assignor import TaskTopology
from kgctl.simulate.engine.context import RunContext, draw_uuid
from kgctl.simulate.engine.pods import Pod
from kgctl.simulate.recording.recording import Counted, TaskHistory
from kgctl.simulate.scenario.quantities import UNIT_PR
from kgctl.simulate.scenario.streams import StreamsApplication

CHECKPOINT_RECORDS = 10_000
"""A running task writes a checkpoint with a commit when so much is new (StateManagerUtil#checkpointNeeded)."""
POLL_US = 100_000
"""poll.ms: the restore consumer waits so long for records before it sees that there are none (StoreChangelogReader#restore)."""


class Changelogs:
    """The topics in which the states are kept. Each record that a task reads updates its state, and is a record more there.

    ``settle`` brings what is read of a partition up to the present.
    """

    def __init__(
        self, context: RunContext, application: StreamsApplication, topics: tuple[str, ...], settle: Callable[[int], None]
    ) -> None:
        self._context = context
        self._settle = settle
        self._application = application
        parts = application.parts
        stateful = frozenset(number for number, part in enumerate(parts) if part.store[0])
        self.topology = TaskTopology(tuple(part.topics or topics for part in parts), stateful)
        self._ends: dict[NumberedTask, int] = {}

    def tasks(self) -> dict[NumberedTask, list[int]]:
        """All tasks that there are, with the numbers of their partitions."""
        present, numbers = self._context.partitions.present, self._context.partitions.numbers
        tasks = self.topology.tasks({name: len(found) for name, found in present.items()})
        return {task: [numbers[partition] for partition in partitions] for task, partitions in tasks.items()}

    def is_stateful(self, task: NumberedTask) -> bool:
        return task.subtopology in self.topology.stateful

    def end_pr(self, task: NumberedTask, tasks: Mapping[NumberedTask, list[int]]) -> int:
        """Where the task's changelog ends now."""
        part = self._application.parts[task.subtopology]
        count = sum(other.subtopology == task.subtopology for other in tasks)
        end_pr = self._application.records(part.store) // max(count, 1) * UNIT_PR
        for number in tasks.get(task, ()) if self._context.has_traffic else ():
            self._settle(number)
            end_pr += self._context.ledger.position_pr(number, self._context.loop.now_us)
        self._ends[task] = max(self._ends.get(task, 0), end_pr)
        return self._ends[task]


@dataclass(slots=True)
class Disk:
    """What a pod has of states: task -> offset, and since when it is nobody's. ``process_id`` is kept there, too."""

    process_id: UUID
    offsets: dict[NumberedTask, int] = field(default_factory=dict)
    left_us: dict[NumberedTask, int] = field(default_factory=dict)


class TaskInstance:
    """One process with its tasks: a `kgctl.member.streams_api.TaskHost`. ``on_running``: these tasks run from now on."""

    def __init__(self, pod: Pod, disk: Disk, group: TaskGroup, on_running: Callable[[Collection[NumberedTask]], None]) -> None:
        self._pod = pod
        self._context = pod.context
        self._disk = disk
        self._group = group
        self._on_running = on_running
        self._config = pod.member_config()
        self._restore_uhz = application_of(pod).restore_uhz
        self._begun_us = pod.context.loop.now_us
        self.active: dict[NumberedTask, None] = {}
        self.standby: dict[NumberedTask, None] = {}
        self.running: dict[NumberedTask, None] = {}
        self._checkpoints: dict[NumberedTask, int] = {}
        self._ready_us: dict[NumberedTask, int] = {}
        self._at_us = pod.context.loop.now_us
        self._look: object | None = None

    # --- what its member asks (TaskHost)

    @property
    def number(self) -> int:
        """The pod's."""
        return self._pod.number

    @property
    def process_id(self) -> UUID:
        return self._disk.process_id

    @property
    def topology(self) -> TaskTopology:
        return self._group.changelogs.topology

    def offset_sums(self, now_us: int) -> dict[NumberedTask, int]:
        """What is on disk, but for what has been nobody's for ``state.cleanup.delay.ms``."""
        self.advance()
        self._clean(now_us)
        found = {task: offset // UNIT_PR for task, offset in self._disk.offsets.items()}
        stateful = (task for task in self.running if self._group.changelogs.is_stateful(task))
        return {**found, **dict.fromkeys(stateful, LATEST_OFFSET)}

    def end_offset_sums(self, tasks: Collection[NumberedTask], _: int) -> dict[NumberedTask, int]:
        return {task: self._group.end_pr(task) // UNIT_PR for task in tasks}

    def assigned(self, active: Collection[NumberedTask], standby: Collection[NumberedTask], now_us: int) -> None:
        self.advance()
        self._clean(now_us)
        for task in [task for task in self.running if task not in active]:
            self._stop(task)
        for task in [*self.active, *self.standby]:
            if task not in active and task not in standby:
                self._disk.left_us[task] = now_us
        begun = [task for task in standby if task not in self.standby and task not in self.active]
        self.active, self.standby = dict.fromkeys(active), dict.fromkeys(standby)
        for task in (*active, *standby):
            self._disk.left_us.pop(task, None)
        new = (task for task in active if task not in self.running and task not in self._ready_us)
        self._ready_us.update((task, now_us + POLL_US * self._group.changelogs.is_stateful(task)) for task in new)
        self._ready_us = {task: at_us for task, at_us in self._ready_us.items() if task in active}
        if self._config.group_protocol == "classic":  # the streams protocol has no warm-ups yet
            self._group.begun_copies(self, begun, self._config.num_standby_replicas)
        self.plan()
        self._group.note_copies()

    def probes(self, now_us: int) -> None:
        self._group.history.probes.append(Counted(now_us, 1, self._pod.number))

    # --- restoring

    def offset_pr(self, task: NumberedTask) -> int:
        """How far the task's state is here, at the last `advance`."""
        return self._group.end_pr(task) if task in self.running else self._disk.offsets.get(task, 0)

    def has_copy(self, task: NumberedTask) -> bool:
        """Whether it could take the task over at once: it has a copy of it within the acceptable lag."""
        return task in self.standby and self._left_pr(task) <= self._config.acceptable_recovery_lag * UNIT_PR

    def advance(self) -> None:
        """Bring the states up to the present: the active tasks first, then the copies."""
        now_us = self._context.loop.now_us
        spare_pr = self._restore_uhz * (now_us - self._at_us)
        self._at_us = now_us
        restoring = self._restoring()
        if self._context.loop.now_us < self._context.warmup_us:
            spare_pr = sum(self._group.end_pr(task) for task in (*restoring, *self.standby))
        spare_pr = self._fill(restoring, spare_pr, self._group.history.restored)
        self._fill(
            [task for task in self.standby if self._group.changelogs.is_stateful(task)], spare_pr, self._group.history.copied
        )

    def plan(self) -> None:
        """Tasks that are restored run; look again when the next one will be."""
        self.advance()
        ready = [task for task in self.active if task not in self.running and self._waits_us(task) <= 0]
        self.running.update(dict.fromkeys(ready))
        for task in ready:
            self._disk.offsets.pop(task, None)
            self._ready_us.pop(task, None)
            self._checkpoints[task] = self._group.end_pr(task)
        if ready:
            self._on_running(ready)
        self._arm()

    def _arm(self) -> None:
        self._look = look = object()
        waits = [self._waits_us(task) for task in self.active if task not in self.running]
        if waits:
            self._context.loop.at(self._context.loop.now_us + min(waits), self._on_look, look)

    def _waits_us(self, task: NumberedTask) -> int:
        """How long it is at least until an active task can run."""
        now_us = self._context.loop.now_us
        restores_us = -(-self._left_pr(task) * len(self._restoring()) // self._restore_uhz) if self._left_pr(task) > 0 else 0
        return max(restores_us, self._ready_us.get(task, 0) - now_us)

    def _on_look(self, look: object) -> None:
        if look is self._look:
            self.plan()

    def _restoring(self) -> list[NumberedTask]:
        return [task for task in self.active if task not in self.running and self._left_pr(task) > 0]

    def _left_pr(self, task: NumberedTask) -> int:
        if not self._group.changelogs.is_stateful(task):
            return 0
        return self._group.end_pr(task) - self._disk.offsets.get(task, 0)

    def _fill(self, tasks: Iterable[NumberedTask], spare_pr: int, told: list[Counted]) -> int:
        """Spread so much over the states that lag, evenly; return what is left of it."""
        lagging = sorted((left, task) for task in tasks if (left := self._left_pr(task)) > 0)
        for position, (left, task) in enumerate(lagging):
            part = min(left, spare_pr // (len(lagging) - position))
            spare_pr -= part
            before = self._disk.offsets.get(task, 0)
            self._disk.offsets[task] = before + part
            if records := (before + part) // UNIT_PR - before // UNIT_PR:
                told.append(Counted(self._at_us, records, self._pod.number, str(task)))
        return spare_pr

    # --- ends

    def end(self, *, is_clean: bool) -> None:
        """The process is gone. What is on its disk stays, if the disk does."""
        self.advance()
        now_us = self._context.loop.now_us
        for task in list(self.running):
            self._stop(task) if is_clean else self._crash(task)
        if not is_clean and self._config.processing_guarantee != "at_least_once":
            for task in self.active:  # what is there may not be committed (ProcessorStateManager#initializeStoreOffsets)
                self._disk.offsets.pop(task, None)
        self._disk.left_us.update(dict.fromkeys((*self.active, *self.standby), now_us))
        self._look = None
        self.active, self.standby = {}, {}
        self._group.gone(self._pod)

    def _stop(self, task: NumberedTask) -> None:
        del self.running[task]
        if self._group.changelogs.is_stateful(task):
            self._disk.offsets[task] = self._group.end_pr(task)

    def _crash(self, task: NumberedTask) -> None:
        del self.running[task]
        if self._group.changelogs.is_stateful(task):
            checkpoint, committed_pr = self._checkpoints.get(task, 0), self._committed_pr(task)
            has_new = committed_pr - checkpoint > CHECKPOINT_RECORDS * UNIT_PR
            self._disk.offsets[task] = committed_pr if has_new else checkpoint

    def _committed_pr(self, task: NumberedTask) -> int:
        """Where the changelog ended at the last commit, if it has kept up with what was written since."""
        now_us = self._context.loop.now_us
        since_us = (now_us - self._begun_us) % self._config.auto_commit_interval_us
        arrivals, numbers = self._context.ledger.arrivals, self._group.tasks.get(task, ())
        new_pr = sum(arrivals.total_pr(each, now_us) - arrivals.total_pr(each, now_us - since_us) for each in numbers)
        return max(self._group.end_pr(task) - new_pr, 0)

    def _clean(self, now_us: int) -> None:
        kept_us = self._config.state_cleanup_delay_ms * 1000
        old = [task for task, at_us in self._disk.left_us.items() if now_us - at_us > kept_us]
        for task in old:
            del self._disk.left_us[task]
            self._disk.offsets.pop(task, None)


class TaskGroup:
    """What the instances of one application share: its changelogs, the disks of its pods, what is told of its tasks."""

    def __init__(self, context: RunContext, changelogs: Changelogs) -> None:
        self._context = context
        self._rng = context.randomness.stream("state directories")
        self._disks: dict[int, Disk] = {}
        self._instances: dict[int, TaskInstance] = {}
        self._tasks: tuple[int, dict[NumberedTask, list[int]]] = (-1, {})
        self.changelogs = changelogs
        self.history = context.recording.tasks = TaskHistory()

    def start(self, pod: Pod, on_running: Callable[[Collection[NumberedTask]], None]) -> TaskInstance:
        """A process of this pod begins, with what is on the pod's disk."""
        if pod.number not in self._disks:
            self._disks[pod.number] = Disk(draw_uuid(self._rng))
        self._instances[pod.number] = found = TaskInstance(pod, self._disks[pod.number], self, on_running)
        return found

    def gone(self, pod: Pod) -> None:
        """Its process has ended; without a volume its disk has, too."""
        self._instances.pop(pod.number, None)
        if application_of(pod).disk == "lost":
            self._disks.pop(pod.number, None)
        self.note_copies()

    @property
    def tasks(self) -> dict[NumberedTask, list[int]]:
        """All tasks that there are now, with the numbers of their partitions."""
        version = self._context.image.version
        if self._tasks[0] != version:
            self._tasks = version, self.changelogs.tasks()
            self.history.tasks.update((str(task), tuple(numbers)) for task, numbers in self._tasks[1].items())
        return self._tasks[1]

    def end_pr(self, task: NumberedTask) -> int:
        return self.changelogs.end_pr(task, self.tasks)

    def begun_copies(self, instance: TaskInstance, tasks: Iterable[NumberedTask], replicas: int) -> None:
        """The instance has these copies from now on; those beyond the standbys are there to warm up."""
        others = [other for other in self._instances.values() if other is not instance]
        for task in tasks:
            if sum(task in other.standby for other in others) >= replicas:
                left = max(self.end_pr(task) - instance.offset_pr(task), 0) // UNIT_PR
                self.history.warmups.append(Counted(self._context.loop.now_us, left, instance.number, str(task)))

    def note_copies(self) -> None:
        """Of how many tasks another instance could take over within the acceptable lag."""
        instances = list(self._instances.values())
        for instance in instances:
            instance.advance()
        stateful = [task for task in self.tasks if self.changelogs.is_stateful(task)]
        covered = sum(any(instance.has_copy(task) for instance in instances) for task in stateful)
        point = (self._context.loop.now_us, covered, len(stateful))
        if not self.history.copies or self.history.copies[-1][1:] != point[1:]:
            self.history.copies.append(point)


def application_of(pod: Pod) -> StreamsApplication:
    """What the scenario says of the pod's set as an application."""
    return pod.members.streams or StreamsApplication()
