"""range: each topic cut into one run of partitions per subscriber, the first subscribers one longer.

The extra partitions are given topic by topic, so the first members collect them. With racks (KIP-881) a pass before it gives
members the partitions that have a replica in their rack; topics with the same subscribers and the same number of partitions stay
aligned, and that comes before the rack. Kafka: ``RangeAssignor``.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence

from kgctl.assignors.client.members import have_equal_subscriptions, sorted_members, subscribed_space
from kgctl.assignors.client.range_racks import TopicState, assign_with_racks
from kgctl.assignors.partition_space import PartitionSpace
from kgctl.assignors.spec import GroupAssignment, GroupSpec, MemberSpec, Promises
from kgctl.model.java_order import hash_map_order


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
        """Topics in map order, partitions ascending."""
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
