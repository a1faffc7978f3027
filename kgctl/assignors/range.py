"""The two assignors called "range": each topic cut into one run of partitions per subscriber, the first ones one longer.

range, the consumers': the extra partitions are given topic by topic, so the first members collect them. With racks (KIP-881) a
pass before it gives members the partitions that have a replica in their rack; topics with the same subscribers and the same
number of partitions stay aligned, and that comes before the rack. Kafka: ``org.apache.kafka.clients.consumer.RangeAssignor``.

server-range, the coordinator's: static members first, by instance id, then the others by member id; history and racks are
ignored. Kafka: ``org.apache.kafka.coordinator.group.assignor.RangeAssignor``.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

from kgctl.assignors.partition_space import PartitionSpace, java_text_key
from kgctl.assignors.spec import (
    GroupAssignment,
    GroupSpec,
    IndexedGroup,
    IndexedMember,
    IndexedTarget,
    MemberSpec,
    Move,
    Promises,
    TargetSpec,
    TopicSpec,
    assign_by_name,
    by_id,
    have_equal_subscriptions,
    indexed,
    partition_racks,
    sorted_members,
    subscribed_space,
    use_racks,
)
from kgctl.model.values import hash_map_order


class TopicState:
    """One topic while it is handed out. Kafka: ``RangeAssignor.TopicAssignmentState``."""

    def __init__(self, offset: int, topic: TopicSpec, subscribers: Sequence[MemberSpec]) -> None:
        self.offset = offset
        self.count = topic.partition_count
        self.consumers = {member.member_id: member.rack or None for member in subscribers}
        wanted = {rack for rack in self.consumers.values() if rack}
        self.racks = partition_racks(topic) if wanted else []
        self.needs_racks = use_racks(wanted, self.racks)
        self.unassigned = dict.fromkeys(range(self.count))
        self._taken = dict.fromkeys(self.consumers, 0)
        self._quota, self._extra = divmod(self.count, len(self.consumers))

    def matches(self, member_id: str, partition: int) -> bool:
        """Whether the member may take the partition for its rack; one without a rack takes any."""
        rack = self.consumers[member_id]
        return rack is None or (bool(self.racks) and rack in self.racks[partition])

    def allowance(self, member_id: str) -> int:
        """How many partitions the member may still take; the extra ones go to who asks first."""
        return max(0, self._quota + (self._extra > 0) - self._taken[member_id])

    def take(self, member_id: str, partitions: Sequence[int]) -> None:
        """Note that the member has got these partitions."""
        self._taken[member_id] += len(partitions)
        if self._taken[member_id] > self._quota:
            self._extra -= 1
        for partition in partitions:
            del self.unassigned[partition]


Give = Callable[[str, TopicState, Sequence[int]], None]


def assign_with_racks(states: Sequence[TopicState], members: Sequence[MemberSpec]) -> dict[str, list[int]]:
    """Rack pass, then the plain pass; numbers of the partition space, ascending."""
    ids: dict[str, list[int]] = {member.member_id: [] for member in members}

    def give(member_id: str, state: TopicState, partitions: Sequence[int]) -> None:
        ids[member_id].extend([state.offset + partition for partition in partitions])
        state.take(member_id, partitions)

    for aligned in _aligned_topics(states):
        if len(aligned) > 1:
            _assign_aligned(aligned, give)
        elif aligned[0].needs_racks:
            _assign_runs(aligned[0], give, aligned[0].matches)
    for state in states:
        _assign_runs(state, give, lambda _member_id, _partition: True)
    return {member_id: sorted(numbers) for member_id, numbers in ids.items()}


def _aligned_topics(states: Sequence[TopicState]) -> list[list[TopicState]]:
    """Topics with the same members in the same racks and the same number of partitions (as far as racks are known at all)."""
    groups: dict[tuple[frozenset[tuple[str, str | None]], int], list[TopicState]] = {}
    for state in states:
        groups.setdefault((frozenset(state.consumers.items()), len(state.racks)), []).append(state)
    return list(groups.values())


def _assign_runs(state: TopicState, give: Give, may_take: Callable[[str, int], bool]) -> None:
    for member_id in state.consumers:
        if not state.unassigned:
            break
        allowed = state.allowance(member_id)
        found: list[int] = []
        for partition in state.unassigned:
            if len(found) >= allowed:
                break
            if may_take(member_id, partition):
                found.append(partition)
        if found:
            give(member_id, state, found)


def _assign_aligned(states: Sequence[TopicState], give: Give) -> None:
    """Partition by partition, the first member that matches in all of the topics gets that partition of every one."""
    remaining = list(states[0].consumers)
    for partition in range(len(states[0].racks)):
        taker = next((member_id for member_id in remaining if _may_take_all(states, member_id, partition)), None)
        if taker is None:
            continue
        for state in states:
            give(taker, state, [partition])
        if not any(state.allowance(taker) for state in states):
            remaining.remove(taker)
            if not remaining:
                break


def _may_take_all(states: Sequence[TopicState], member_id: str, partition: int) -> bool:
    return all(state.matches(member_id, partition) and state.allowance(member_id) for state in states)


class RangeAssignor:
    """Members sorted: static ones by instance id, then the others by member id. History is ignored."""

    name = "range"
    promises = Promises(even_per_topic=True, ignores_member_order=True)

    def assign(self, group: GroupSpec) -> GroupAssignment:
        """Runs of partitions, per topic balanced to one partition."""
        space = subscribed_space(group)
        members = sorted_members(group.members)
        if any(member.rack for member in members):
            states = _topic_states(space, group, members)
            if any(state.needs_racks for state in states):
                return GroupAssignment(space, _in_group_order(group, assign_with_racks(states, members)))
        if have_equal_subscriptions(members):
            return _RangeAssignment(space, _in_group_order(group, _equal_runs(space, members)))
        return _RangeAssignment(space, _in_group_order(group, _runs(space, members)))


class _RangeAssignment(GroupAssignment):
    """Without racks Kafka lists topics in the order of a ``HashMap``."""

    __slots__ = ("_keys",)

    def __init__(self, space: PartitionSpace, ids: Mapping[str, Sequence[int]]) -> None:
        super().__init__(space, ids)
        self._keys: array[int] | None = None

    def ordered_ids(self, member_id: str) -> Sequence[int]:
        """Return the member's partitions: topics in map order, partitions ascending."""
        if self._keys is None:
            self._keys = self._sort_keys()
        return sorted(self.ids(member_id), key=self._keys.__getitem__)

    def _sort_keys(self) -> array[int]:
        space = self.space
        starts, start = {}, 0
        for name in hash_map_order(space.names):
            starts[name] = start
            start += space.counts[space.index[name]]
        keys = array("q")
        for name, count in zip(space.names, space.counts, strict=True):
            keys.extend(range(starts[name], starts[name] + count))
        return keys


def _in_group_order(group: GroupSpec, ids: Mapping[str, Sequence[int]]) -> dict[str, Sequence[int]]:
    return {member.member_id: ids[member.member_id] for member in group.members}


def _subscribers(space: PartitionSpace, members: Sequence[MemberSpec]) -> list[list[MemberSpec]]:
    subscribers: list[list[MemberSpec]] = [[] for _ in space.names]
    for member in members:
        for name in dict.fromkeys(member.topics):
            topic = space.index.get(name)
            if topic is not None:
                subscribers[topic].append(member)
    return subscribers


def _topic_states(space: PartitionSpace, group: GroupSpec, members: Sequence[MemberSpec]) -> list[TopicState]:
    return [
        TopicState(space.offsets[topic], group.topics[space.names[topic]], subscribers)
        for topic, subscribers in enumerate(_subscribers(space, members))
    ]


def _runs(space: PartitionSpace, members: Sequence[MemberSpec]) -> dict[str, list[int]]:
    ids: dict[str, list[int]] = {member.member_id: [] for member in members}
    for topic, subscribers in enumerate(_subscribers(space, members)):
        quota, extra = divmod(space.counts[topic], len(subscribers))
        start = space.offsets[topic]
        for position, member in enumerate(subscribers if quota else subscribers[:extra]):
            end = start + quota + (position < extra)
            ids[member.member_id].extend(range(start, end))
            start = end
    return ids


def _equal_runs(space: PartitionSpace, members: Sequence[MemberSpec]) -> dict[str, Sequence[int]]:
    """The same for equal subscriptions: topics of one size are cut alike, so their cuts are made together."""
    ids: dict[str, Sequence[int]] = {member.member_id: array("i") for member in members}
    offsets_by_count: dict[int, list[int]] = {}
    for offset, count in zip(space.offsets, space.counts, strict=False):
        offsets_by_count.setdefault(count, []).append(offset)
    for count, offsets in offsets_by_count.items():
        quota, extra = divmod(count, len(members))
        start = 0
        for position, member in enumerate(members if quota else members[:extra]):
            end = start + quota + (position < extra)
            run = ids[member.member_id]
            assert isinstance(run, array)
            if end - start < len(offsets):
                for step in range(start, end):
                    run.extend(array("i", [offset + step for offset in offsets]))
            else:
                for offset in offsets:
                    run.extend(range(offset + start, offset + end))
            start = end
    return ids


class ServerRangeAssignor:
    """The assignor that brokers know as "range". Kafka: RangeAssignor of the coordinator."""

    name = "server-range"
    promises = Promises(even_per_topic=True, ignores_member_order=True)

    def assign(self, group: GroupSpec) -> GroupAssignment:
        """Return the targets of a group whose topics are given by name."""
        return assign_by_name(self.assign_indexed, group)

    def assign_targets(self, spec: TargetSpec, moves: list[Move] | None = None) -> dict[str, dict[UUID, Sequence[int]]]:  # noqa: ARG002
        """Runs of partitions, per topic balanced to one; none moves.

        Raises:
            AssignorError: a subscribed topic is not in ``spec.topics``.
        """
        group = indexed(spec)
        return by_id(spec, group.ids, self.assign_indexed(group))

    def assign_indexed(self, group: IndexedGroup) -> list[IndexedTarget]:
        """Assign as `assign`, with indexes for ids, in the order of the members."""
        subscribers = [0] * len(group.counts)
        for member in group.members:
            for topic in member.topics:
                subscribers[topic] += 1
        group.check_topics_exist([topic for topic, count in enumerate(subscribers) if count])
        cuts = [_Cut(group.counts[topic], count) if count else None for topic, count in enumerate(subscribers)]
        targets: list[IndexedTarget] = [{} for _ in group.members]
        for position, member in sorted(enumerate(group.members), key=_order):
            target = targets[position]
            for topic in member.topics:
                cut = cuts[topic]
                assert cut is not None
                if run := cut.next():
                    target[topic] = run
        return targets


def _order(entry: tuple[int, IndexedMember]) -> tuple[bool, bytes]:
    member = entry[1]
    text = member.member_id if member.instance_id is None else member.instance_id
    return member.instance_id is None, java_text_key(text)


class _Cut:
    """A topic that is cut into runs, one for each subscriber."""

    def __init__(self, count: int, subscribers: int) -> None:
        self._quota, self._extras = divmod(count, subscribers)
        self._start = 0

    def next(self) -> range:
        """Return the next subscriber's run of partitions."""
        start = self._start
        self._start += self._quota
        if self._extras:
            self._start += 1
            self._extras -= 1
        return range(start, self._start)
