"""The leader's assignor of a classic group of Kafka Streams: from the members' subscriptions to tasks, partitions and user data.

Kafka: StreamsPartitionAssignor, DefaultPartitionGrouper. One stream thread an instance.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeAlias
from uuid import UUID

from kgctl.assignors.high_availability import (
    LATEST_OFFSET,
    ClientState,
    HighAvailabilityTaskAssignor,
    NumberedTask,
    TaskSettings,
    lags_of,
)
from kgctl.assignors.spec import AssignorError, GroupSpec, MemberSpec
from kgctl.model.groups import ConsumerAssignment, TopicPartition
from kgctl.model.values import frozen_in_order
from kgctl.serde.consumer_protocol import encode_assignment
from kgctl.serde.streams_protocol import NO_REBALANCE_MS, AssignmentInfo, decode_subscription_info, encode_assignment_info

PROTOCOL = "stream"
EndOffsets: TypeAlias = Callable[[Collection[NumberedTask]], Mapping[NumberedTask, int]]


@frozen_in_order
class TaskTopology:
    """What an application consists of. ``sources``: the topics that each part reads, by its number; ``stateful``: those parts
    that have stores.
    """

    sources: tuple[tuple[str, ...], ...]
    stateful: frozenset[int] = frozenset()

    def tasks(self, counts: Mapping[str, int]) -> dict[NumberedTask, tuple[TopicPartition, ...]]:
        """Every task with its partitions, where the topics have so many: one task for each partition of the largest."""
        found = {}
        for subtopology, topics in enumerate(self.sources):
            for partition in range(max((counts.get(topic, 0) for topic in topics), default=0)):
                there = (topic for topic in sorted(topics) if partition < counts.get(topic, 0))
                found[NumberedTask(subtopology, partition)] = tuple(TopicPartition(topic, partition) for topic in there)
        return found


class StreamsPartitionAssignor:
    """``process_id``: the leader's instance, which is to look again where a later look may do better."""

    def __init__(self, topology: TaskTopology, settings: TaskSettings, probing_interval_ms: int, process_id: UUID) -> None:
        self._topology = topology
        self._settings = settings
        self._probing_interval_ms = probing_interval_ms
        self._process_id = process_id
        self.is_probing = False
        """Whether the last assignment has tasks that wait for a copy to catch up."""

    def assign(self, group: GroupSpec, end_offsets: EndOffsets, now_ms: int) -> dict[str, bytes]:
        """Return each member's assignment as bytes. Raises `AssignorError`: a member cannot be understood."""
        tasks = self._topology.tasks({name: topic.partition_count for name, topic in group.topics.items()})
        stateful = [task for task in tasks if task.subtopology in self._topology.stateful]
        ends = end_offsets(stateful)
        clients, sums = {}, {}
        for member in group.members:
            process_id, sums[member.member_id] = _decoded(member)
            lags = lags_of({NumberedTask(*task): offset for task, offset in sums[member.member_id].items()}, ends)
            clients[member.member_id] = ClientState(process_id, 1, lags)
        self.is_probing = HighAvailabilityTaskAssignor().assign(clients.values(), tasks, stateful, self._settings)
        owned = {member.member_id: _owned(member) for member in group.members}
        found = {}
        for member_id, client in clients.items():
            others = {partition for other, held in owned.items() if other != member_id for partition in held}
            probes = self.is_probing and client.process_id == self._process_id
            at_ms = now_ms + self._probing_interval_ms if probes else NO_REBALANCE_MS
            found[member_id] = _encoded(client, tasks, others, sums[member_id], at_ms)
        return found


def _decoded(member: MemberSpec) -> tuple[UUID, dict[tuple[int, int], int]]:
    data = member.user_data
    if not isinstance(data, bytes):
        raise AssignorError(f"member {member.member_id!r} says nothing of its tasks")
    try:
        return decode_subscription_info(data)
    except ValueError as error:
        raise AssignorError(f"member {member.member_id!r}: {error}") from None


def _owned(member: MemberSpec) -> frozenset[TopicPartition]:
    by_topic = member.owned if isinstance(member.owned, Mapping) else member.owned.by_topic()
    return frozenset(TopicPartition(topic, number) for topic, numbers in by_topic.items() for number in numbers)


def _encoded(
    client: ClientState,
    tasks: Mapping[NumberedTask, Sequence[TopicPartition]],
    others: set[TopicPartition],
    sums: Mapping[tuple[int, int], int],
    next_rebalance_ms: int,
) -> bytes:
    """What another member still has to give up is left out, and is asked for again at once; a copy of it that is here stays."""
    withheld = {task for task in client.active if not others.isdisjoint(tasks[task])}
    active = sorted((partition, task) for task in client.active - withheld for partition in tasks[task])
    kept = {task for task in withheld if sums.get(task, LATEST_OFFSET) != LATEST_OFFSET and task in client.lags}
    standby = tuple((task, tasks[task]) for task in sorted(client.standby | kept))
    info = AssignmentInfo(tuple(task for _, task in active), standby, 0 if withheld else next_rebalance_ms)
    return encode_assignment(ConsumerAssignment(tuple(partition for partition, _ in active), encode_assignment_info(info)))
