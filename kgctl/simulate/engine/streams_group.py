"""Groups whose pods are instances of a Kafka Streams application: a partition is read when its task's state is restored."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain

from kgctl.assignors.high_availability import NumberedTask
from kgctl.coordinator.config import GroupConfig
from kgctl.member.api import Member, StopReason
from kgctl.member.factory import make_streams_member
from kgctl.model.groups import TopicPartition
from kgctl.simulate.engine.broker import SimulatedBroker
from kgctl.simulate.engine.context import RunContext
from kgctl.simulate.engine.group_kind import GroupKind
from kgctl.simulate.engine.ownership import Ownership
from kgctl.simulate.engine.pods import Pod
from kgctl.simulate.engine.process import Process, ProcessPhase, Surroundings
from kgctl.simulate.engine.tasks import Changelogs, TaskGroup, TaskInstance
from kgctl.simulate.scenario.model import Topic
from kgctl.simulate.scenario.streams import StreamsApplication
from kgctl.simulate.scenario.vocabulary import GapCause, PodChange

_LOST = frozenset({StopReason.LOST, StopReason.POLL_TIMEOUT, StopReason.FAILED})


class StreamsProcess(Process):
    """A pod's process with one stream thread. ``instance``: its tasks; ``held``: partitions that are its and not read yet."""

    __slots__ = ("_group", "held", "instance")

    def __init__(self, pod: Pod, around: Surroundings, group: TaskGroup) -> None:
        super().__init__(pod, around)
        self._group = group
        self.held: dict[TopicPartition, int] = {}
        self.instance: TaskInstance | None = None

    def new_member(self) -> Member:
        self.instance = self._group.start(self.pod, self._on_running)
        return make_streams_member(
            self.config,
            self.pod.identity(),
            self.pod.member_rng,
            positions_of=self._positions_of,
            request_ids=self.context.request_ids,
            host=self.instance,
        )

    def _positions_of(self, partitions: Iterable[TopicPartition], now_us: int) -> dict[TopicPartition, int]:
        read = [partition for partition in partitions if partition not in self.held]
        return self.around.ownership.positions_of(self.flow, read, now_us)

    def runs(self, partition: TopicPartition) -> bool:
        """Whether the task of a partition runs here."""
        number = self.context.partitions.numbers.get(partition, -1)
        running = () if self.instance is None else self.instance.running
        return any(number in self._group.tasks.get(task, ()) for task in running)

    def _on_running(self, _: Collection[NumberedTask]) -> None:
        """These tasks have their state: what is held of them is read now."""
        if not self.held or self.phase is not ProcessPhase.RUNNING:
            return
        self.catch_up()
        ready = {partition: offset for partition, offset in self.held.items() if self.runs(partition)}
        for partition in ready:
            del self.held[partition]
        if ready:
            self.around.ownership.start(self, ready)
            if self.member is not None:
                self.act([])

    def die(self, what: PodChange, *, is_silent: bool = False) -> None:
        if self.phase is not ProcessPhase.GONE and self.instance is not None:
            self.held.clear()
            self.instance.end(is_clean=what is PodChange.STOPPED and self.phase is ProcessPhase.CLOSING)
        super().die(what, is_silent=is_silent)


class StreamsOwnership(Ownership):
    """Partitions of tasks that are restored yet are nobody's."""

    def start(self, process: Process, positions: Mapping[TopicPartition, int]) -> None:
        """The process has these; it reads those whose tasks run."""
        assert isinstance(process, StreamsProcess)
        held = {partition: offset for partition, offset in positions.items() if not process.runs(partition)}
        if held:
            process.held.update(held)
            numbers = self._partitions.numbers_of(held)
            self._owners.set_cause(numbers, GapCause.RESTORE, self._context.loop.now_us)
            self._context.changed()
        if len(held) < len(positions):
            super().start(process, {partition: offset for partition, offset in positions.items() if partition not in held})

    def stop(self, process: Process, partitions: Iterable[TopicPartition], reason: StopReason) -> None:
        """The member says that the process has these no longer."""
        assert isinstance(process, StreamsProcess)
        partitions = list(partitions)
        held = [partition for partition in partitions if process.held.pop(partition, None) is not None]
        if held and process.instance is not None:
            process.instance.advance()
            cause = self._coordinator.cause_of_gap(self._partitions.numbers_of(held), self._cause(process, reason))
            self._owners.set_cause(self._partitions.numbers_of(held), cause, self._context.loop.now_us)
        super().stop(process, [partition for partition in partitions if partition not in held], reason)
        if reason in _LOST and process.instance is not None:  # TaskManager#handleLostAll: copies are kept
            process.instance.assigned((), process.instance.standby, self._context.loop.now_us)


class StreamsKind(GroupKind):
    """The application of one group: that of the first of its sets."""

    def __init__(self, context: RunContext, pods: Sequence[Pod], broker: SimulatedBroker) -> None:
        super().__init__(context, pods, broker)
        first = next(members for members in context.scenario.members if members.streams is not None)
        topics = tuple(topic.name for topic in context.scenario.topics if context.scenario.subscribes(first, topic.name))
        self._ownership = StreamsOwnership(context, pods, broker.observer.check, broker)
        changelogs = Changelogs(context, first.streams or StreamsApplication(), topics, self._settle)
        self._group = TaskGroup(context, changelogs)
        broker.observer.assignments.numbers_of_tasks = self._numbers_of

    def new_ownership(self) -> Ownership:
        return self._ownership

    def own_topics(self) -> list[Topic]:
        """The changelogs: the application has run before. A classic group's coordinator does not ask for them."""
        scenario, topology = self.context.scenario, self._group.changelogs.topology
        if all(members.config.get("group.protocol") != "streams" for members in scenario.members):
            return []
        from kgctl.member.streams_protocol_member import changelog_name

        counts = {topic.name: topic.partitions for topic in scenario.topics}
        sizes = {number: max(counts.get(topic, 0) for topic in topology.sources[number]) for number in sorted(topology.stateful)}
        return [Topic(name=changelog_name(scenario.group_id, number), partitions=size) for number, size in sizes.items()]

    def heartbeat_ms(self, config: GroupConfig) -> int:
        return config.streams_heartbeat_interval_ms

    def _numbers_of(self, tasks: Sequence[tuple[str, Sequence[int]]]) -> tuple[int, ...]:
        known = self._group.tasks
        found = (known.get(NumberedTask(int(part), number), ()) for part, numbers in tasks for number in numbers)
        return tuple(chain.from_iterable(found))

    def new_process(self, pod: Pod, around: Surroundings) -> Process:
        return StreamsProcess(pod, around, self._group)

    def settled(self) -> None:
        self._group.note_copies()
        super().settled()

    def _settle(self, number: int) -> None:
        reader = self._ownership.reader_of(number)
        if reader is not None:
            reader.flow.advance(self.context.loop.now_us)
