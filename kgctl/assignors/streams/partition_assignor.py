"""The assignor of a Kafka Streams application, as the leader of its classic group runs it.

Kafka: StreamsPartitionAssignor#assign. Left out: other task assignors (``task.assignor.class``), racks
(``rack.aware.assignment.strategy``), named topologies, and members of versions that 4.3 does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from kgctl.assignors.high_availability import (
    LATEST_OFFSET,
    ClientState,
    HighAvailabilityTaskAssignor,
    NumberedTask,
    TaskSettings,
    lags_of,
    number_hash,
)
from kgctl.assignors.partition_space import java_text_key
from kgctl.assignors.spec import AssignorError
from kgctl.assignors.streams.threads import Threads, by_lag
from kgctl.assignors.streams.user_data import (
    INCOMPLETE_SOURCE_TOPIC_METADATA,
    LATEST_VERSION,
    NO_REBALANCE_MS,
    SHUTDOWN_REQUESTED,
    AssignmentInfo,
    Host,
    Partitions,
    PartitionsByHost,
    SubscriptionInfo,
    partition_hash,
)
from kgctl.model.groups import TopicPartition
from kgctl.model.values import (
    frozen_in_order,
    grown_capacity,
    hash_map_order,
    power_of_two_at_least,
    string_hash,
    uuid_hash,
)

EndOffsets = Callable[[Collection[NumberedTask]], Mapping[NumberedTask, int]]
PROBING_INTERVAL_MS = 600_000
"""``probing.rebalance.interval.ms`` where it is not set."""


@frozen_in_order
class StreamThread:
    """A stream thread as its subscription describes it."""

    member_id: str
    info: SubscriptionInfo
    owned: Sequence[TopicPartition] = ()


@frozen_in_order
class TaskTopology:
    """What an application consists of.

    ``sources``: the topics that each subtopology reads, by its number, repartition topics too; ``stateful``: those with stores.
    """

    sources: tuple[tuple[str, ...], ...]
    stateful: frozenset[int] = frozenset()

    def tasks(self, counts: Mapping[str, int]) -> dict[NumberedTask, Partitions]:
        """Return each task with the partitions that it reads, in the order of their ``HashSet``. Kafka: PartitionGrouper.

        One task for each partition of the largest topic.
        """
        found = {}
        for number, topics in enumerate(self.sources):
            ordered = hash_map_order(dict.fromkeys(topics))
            for partition in range(max((counts.get(topic, 0) for topic in topics), default=0)):
                there = [TopicPartition(topic, partition) for topic in ordered if partition < counts.get(topic, 0)]
                capacity = grown_capacity(len(there), power_of_two_at_least(len(ordered)))
                found[NumberedTask(number, partition)] = tuple(hash_map_order(there, capacity=capacity, hash_of=partition_hash))
        return found

    def missing(self, counts: Mapping[str, int]) -> set[str]:
        """Return the topics that are not there."""
        return {topic for topics in self.sources for topic in topics if not counts.get(topic)}


@frozen_in_order
class ThreadAssignment:
    """What a stream thread gets: partitions, sorted, and what its user data says."""

    partitions: Partitions
    info: AssignmentInfo


@frozen_in_order
class ApplicationAssignment:
    """Of each member its part. ``is_stable``: nobody is to join again, at once or later. Kafka: AssignmentListener."""

    members: dict[str, ThreadAssignment]
    is_stable: bool


@frozen_in_order
class Leader:
    """Who leads, when and by which settings; its instance is asked to join again for probing."""

    process_id: UUID
    now_ms: int
    settings: TaskSettings = field(default_factory=TaskSettings)
    probing_interval_ms: int = PROBING_INTERVAL_MS


def assign_streams(
    members: Sequence[StreamThread],
    topology: TaskTopology,
    counts: Mapping[str, int],
    end_offsets: EndOffsets,
    leader: Leader,
) -> ApplicationAssignment:
    """Who runs what. ``members`` in the order of the JoinGroup response; ``counts``: partitions of topics.

    ``end_offsets`` is asked for the sum of the ends of each stateful task's changelogs; 0 where it tells none.

    An application that is shut down, or whose sources are missing, gets an assignment that says so, in an error code.

    Raises:
        AssignorError: what a member owns is of no task; Kafka's leader fails.
    """
    by_id = {member.member_id: member for member in members}
    ordered = [by_id[member_id] for member_id in hash_map_order(by_id)]
    if any(member.info.error_code == SHUTDOWN_REQUESTED for member in ordered):
        return _error(ordered, SHUTDOWN_REQUESTED)
    if topology.missing(counts):
        return _error(ordered, INCOMPLETE_SOURCE_TOPIC_METADATA)
    partitions = topology.tasks(counts)
    stateful = {task for task in partitions if task.subtopology in topology.stateful}
    instances = _instances(ordered, partitions, {**dict.fromkeys(stateful, 0), **end_offsets(sorted(stateful))})
    states = [instance.state for instance in instances]
    is_probing = HighAvailabilityTaskAssignor().assign(states, partitions, stateful, leader.settings)
    answer = _Answer(ordered, partitions, instances)
    for instance in instances:
        probes = is_probing and instance.state.process_id == leader.process_id
        answer.add(instance, leader.now_ms + leader.probing_interval_ms if probes else NO_REBALANCE_MS)
    return ApplicationAssignment({member.member_id: answer.members[member.member_id] for member in members}, answer.is_stable)


def _error(members: Iterable[StreamThread], code: int) -> ApplicationAssignment:
    told = ThreadAssignment((), AssignmentInfo(error_code=code))
    return ApplicationAssignment({each.member_id: told for each in members}, is_stable=True)


@dataclass(slots=True)
class _Instance:
    """An instance with its threads, sorted by id. Kafka: ClientMetadata, ClientState."""

    threads: list[StreamThread]
    state: ClientState
    was_standby: set[NumberedTask]
    owners: dict[TopicPartition, str]
    host: Host | None = field(init=False)

    def __post_init__(self) -> None:
        self.threads.sort(key=lambda member: java_text_key(member.member_id))

    def previous_by_lag(self) -> dict[str, list[NumberedTask]]:
        """Of each thread what it had, of that which is still a stateful task."""
        lags = self.state.lags
        return {
            thread.member_id: by_lag([task for task in thread.info.offset_sums if task in lags], lags.__getitem__)
            for thread in self.threads
        }


def _instances(
    members: Iterable[StreamThread], partitions: Mapping[NumberedTask, Partitions], ends: Mapping[NumberedTask, int]
) -> list[_Instance]:
    """The instances in the order of their ``HashMap``."""
    found: dict[UUID, list[StreamThread]] = {}
    for member in members:
        found.setdefault(member.info.process_id, []).append(member)
    task_of = {partition: task for task, listed in partitions.items() for partition in listed}
    return [_instance(each, found[each], task_of, ends) for each in hash_map_order(found, hash_of=uuid_hash)]


def _instance(
    process_id: UUID,
    threads: list[StreamThread],
    task_of: Mapping[TopicPartition, NumberedTask],
    ends: Mapping[NumberedTask, int],
) -> _Instance:
    sums = {task: offset for thread in threads for task, offset in thread.info.offset_sums.items()}
    owners = {partition: thread.member_id for thread in threads for partition in thread.owned}
    was_active = {task_of[partition] for partition in owners if partition in task_of}
    if owners and not was_active:
        raise AssignorError("Must initialize prevActiveTasks from ownedPartitions before initializing remaining tasks.")
    was_standby = {task for task, offset in sums.items() if task not in was_active and offset != LATEST_OFFSET}
    endpoint = threads[0].info.user_endpoint
    instance = _Instance(
        threads,
        ClientState(process_id, len(threads), lags_of(sums, ends), dict(threads[0].info.client_tags)),
        was_standby,
        owners,
    )
    instance.host = _host(endpoint) if endpoint else None
    return instance


def _host(endpoint: str) -> Host:
    host, _, port = endpoint.rpartition(":")
    return host.strip("[]"), int(port)


def _host_hash(host: Host) -> int:
    """``hashCode`` of a ``HostInfo``."""
    return 31 * string_hash(host[0]) + host[1]


class _Answer:
    """The assignments, thread by thread."""

    def __init__(
        self, members: Sequence[StreamThread], partitions: Mapping[NumberedTask, Partitions], instances: Sequence[_Instance]
    ) -> None:
        self.members: dict[str, ThreadAssignment] = {}
        self.is_stable = True
        self._partitions = partitions
        self._owned = {partition for member in members for partition in member.owned}
        self._version = min(LATEST_VERSION, *(member.info.version for member in members))
        self._supported = min(LATEST_VERSION, *(member.info.latest_supported_version for member in members))
        self._hosts = self._by_host(instances, lambda state: state.active)
        self._standby_hosts = self._by_host(instances, lambda state: state.standby)

    def _by_host(self, instances: Sequence[_Instance], tasks_of: Callable[[ClientState], set[NumberedTask]]) -> PartitionsByHost:
        found = {each.host: each.state for each in instances if each.host is not None}
        return {host: self._all_partitions(tasks_of(found[host])) for host in hash_map_order(found, hash_of=_host_hash)}

    def _all_partitions(self, tasks: Iterable[NumberedTask]) -> Partitions:
        listed = dict.fromkeys(partition for task in sorted(tasks) for partition in self._partitions[task])
        return tuple(hash_map_order(listed, hash_of=partition_hash))

    def add(self, instance: _Instance, probing_ms: int) -> None:
        """One instance; ``probing_ms``: when one of its threads is to join again to see whether states have caught up."""
        state, threads = instance.state, Threads([each.member_id for each in instance.threads], instance.previous_by_lag())
        stateful = hash_map_order([task for task in sorted(state.active) if task in state.lags], hash_of=number_hash)
        stateless = hash_map_order([task for task in sorted(state.active) if task not in state.lags], hash_of=number_hash)
        active = threads.assign(stateful, is_stateful=True)
        standby = threads.assign(sorted(state.standby), is_stateful=True)
        for thread, tasks in threads.assign(stateless, is_stateful=False).items():
            active[thread] += tasks
        self.is_stable &= probing_ms == NO_REBALANCE_MS
        for thread in active:
            withheld = sorted(task for task in active[thread] if self._is_owned_elsewhere(task, thread, instance))
            at_ms, probing_ms = (0 if withheld else probing_ms), NO_REBALANCE_MS
            self.is_stable &= not withheld
            kept = [task for task in withheld if task in instance.was_standby and task in state.lags]
            given = [task for task in active[thread] if task not in withheld]
            self.members[thread] = self._assignment(given, [*standby[thread], *kept], at_ms)

    def _is_owned_elsewhere(self, task: NumberedTask, thread: str, instance: _Instance) -> bool:
        """Whether another thread has to give a partition of the task up first."""
        return any(each in self._owned and instance.owners.get(each) != thread for each in self._partitions[task])

    def _assignment(self, active: Iterable[NumberedTask], standby: Iterable[NumberedTask], next_ms: int) -> ThreadAssignment:
        pairs = sorted((partition, task) for task in active for partition in self._partitions[task])
        info = AssignmentInfo(
            tuple(task for _, task in pairs),
            {task: self._partitions[task] for task in hash_map_order(dict.fromkeys(standby), hash_of=number_hash)},
            self._hosts,
            self._standby_hosts,
            next_rebalance_ms=next_ms,
            version=self._version,
            commonly_supported_version=self._supported,
        )
        return ThreadAssignment(tuple(partition for partition, _ in pairs), info)
