"""roundrobin: all partitions of all topics dealt in turn around one circle of members.

The circle's position carries on from topic to topic; members that do not subscribe to a topic are passed over. Kafka:
``RoundRobinAssignor``.
"""

from __future__ import annotations

from collections.abc import Sequence

from kgctl.assignors.partition_space import PartitionSpace
from kgctl.assignors.spec import (
    GroupAssignment,
    GroupSpec,
    MemberSpec,
    Promises,
    have_equal_subscriptions,
    sorted_members,
    subscribed_space,
)


class RoundRobinAssignor:
    """Topics by name, partitions ascending, members sorted: static ones by instance id, then the others by member id."""

    name = "roundrobin"
    promises = Promises(even_in_total=True, ignores_member_order=True)

    def assign(self, group: GroupSpec) -> GroupAssignment:
        """One partition to each member in turn. Balanced to one partition where all subscribe alike, else not always."""
        space = subscribed_space(group)
        circle = sorted_members(group.members)
        deal = _deal_evenly if have_equal_subscriptions(circle) else _deal_by_topic
        dealt = dict(zip((member.member_id for member in circle), deal(space, circle), strict=True))
        return GroupAssignment(space, {member.member_id: dealt[member.member_id] for member in group.members})


def _deal_evenly(space: PartitionSpace, circle: Sequence[MemberSpec]) -> Sequence[Sequence[int]]:
    return [range(start, space.total, len(circle)) for start in range(len(circle))]


def _deal_by_topic(space: PartitionSpace, circle: Sequence[MemberSpec]) -> Sequence[Sequence[int]]:
    """Per topic every subscriber gets every n-th partition, from the first subscriber at or after the circle's position."""
    hands: list[list[int]] = [[] for _ in circle]
    position = 0
    for topic, subscribers in enumerate(_subscribers(space, circle)):
        first = next((index for index, seat in enumerate(subscribers) if seat >= position), 0)
        start, end, step = space.offsets[topic], space.offsets[topic + 1], len(subscribers)
        for turn in range(min(step, end - start)):
            hands[subscribers[(first + turn) % step]].extend(range(start + turn, end, step))
        last = subscribers[(first + end - start - 1) % step]
        position = (last + 1) % len(circle)
    return hands


def _subscribers(space: PartitionSpace, circle: Sequence[MemberSpec]) -> list[list[int]]:
    subscribers: list[list[int]] = [[] for _ in space.names]
    for seat, member in enumerate(circle):
        for name in dict.fromkeys(member.topics):
            topic = space.index.get(name)
            if topic is not None:
                subscribers[topic].append(seat)
    return subscribers
