"""The balancers of the client library kafka-go (segmentio), where they differ from Kafka's assignors of the same name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from kgctl.assignors.spec import GroupAssignment, GroupSpec, MemberSpec, Promises, TopicSpec, by_member_id, subscribed_space

Cut = Callable[[int, int, int], range]


class KafkaGoRange:
    """Per topic the subscriber i of n gets the partitions from i*P/n to (i+1)*P/n: the *later* members get the extra ones."""

    name = "kafka-go:range"
    promises = Promises(even_per_topic=True, ignores_member_order=True)

    def assign(self, group: GroupSpec) -> GroupAssignment:
        """Runs of partitions, per topic balanced to one; instance ids and racks do not count."""
        return _cut(group, lambda seat, members, count: range(seat * count // members, (seat + 1) * count // members))


class KafkaGoRoundRobin:
    """Per topic partition p goes to subscriber p mod n: every topic starts again with the first member."""

    name = "kafka-go:roundrobin"
    promises = Promises(even_per_topic=True, ignores_member_order=True)

    def assign(self, group: GroupSpec) -> GroupAssignment:
        """Every n-th partition, per topic balanced to one; instance ids and racks do not count."""
        return _cut(group, lambda seat, members, count: range(seat, count, members))


def _cut(group: GroupSpec, cut: Cut) -> GroupAssignment:
    space = subscribed_space(group)
    ids: dict[str, list[int]] = {member.member_id: [] for member in group.members}
    subscribers: list[list[str]] = [[] for _ in space.names]
    for member in by_member_id(group.members):
        for topic in _topics(member.topics, space.index):
            subscribers[topic].append(member.member_id)
    for topic, member_ids in enumerate(subscribers):
        offset = space.offsets[topic]
        for seat, member_id in enumerate(member_ids):
            part = cut(seat, len(member_ids), space.counts[topic])
            ids[member_id].extend(range(offset + part.start, offset + part.stop, part.step))
    return GroupAssignment(space, ids)


def _topics(names: tuple[str, ...], index: dict[str, int]) -> Iterator[int]:
    return (index[name] for name in dict.fromkeys(names) if name in index)


class RackAffinityAssignor:
    """rack-affinity: partitions go to members in the zone of their leader, as far as balance allows.

    Per topic a member's share is P / n, and P mod n members may have one more. Zone by zone the zone's members take from its
    partitions, at most their share, and extras as far as there are any; what is left goes to members below their share, in the
    order of the group, which members keep. The zone of a partition is the rack of its leader, the first of its ``racks``; a
    member or partition without a rack is in the zone "". kafka-go: ``RackAffinityGroupBalancer``; its order of zones is that of
    a Go map, which Go leaves open: here it is the order in which they first lead a partition, one of those that kafka-go takes.
    """

    name = "rack-affinity"
    promises = Promises(even_per_topic=True)

    def user_data(self, member: MemberSpec) -> bytes:
        """Return the rack, which kafka-go's members send in this way."""
        return (member.rack or "").encode()

    def assign(self, group: GroupSpec) -> GroupAssignment:
        """Per topic balanced to one partition, with as many partitions in their own zone as that allows."""
        space = subscribed_space(group)
        ids: dict[str, list[int]] = {member.member_id: [] for member in group.members}
        for topic, name in enumerate(space.names):
            subscribers = [member for member in group.members if name in member.topics]
            for member_id, partitions in _Topic(group.topics[name], subscribers).assign().items():
                ids[member_id].extend([space.offsets[topic] + partition for partition in partitions])
        return GroupAssignment(space, ids)


def _rack(member: MemberSpec) -> str:
    """The rack as the subscription has it since version 3; else as kafka-go's members say it."""
    data = member.user_data
    return member.rack or (data.decode("utf-8", "replace") if isinstance(data, bytes) else "")


class _Topic:
    """The partitions of a topic that are not handed out yet, and its subscribers."""

    def __init__(self, topic: TopicSpec, subscribers: Sequence[MemberSpec]) -> None:
        self._share, self._extras = divmod(topic.partition_count, len(subscribers))
        self._members: dict[str, list[str]] = {}
        for member in subscribers:
            self._members.setdefault(_rack(member), []).append(member.member_id)
        self._partitions: dict[str, list[int]] = {}
        for partition in range(topic.partition_count):
            racks = topic.racks[partition] if topic.racks else ()
            self._partitions.setdefault(racks[0] if racks else "", []).append(partition)
        self._taken: dict[str, list[int]] = {member.member_id: [] for member in subscribers}

    def assign(self) -> dict[str, list[int]]:
        for zone, partitions in self._partitions.items():
            if zone in self._members:
                self._assign_zone(partitions, self._members[zone])
        self._assign_rest([partition for partitions in self._partitions.values() for partition in partitions])
        return self._taken

    def _assign_zone(self, partitions: list[int], members: Sequence[str]) -> None:
        share = min(len(partitions) // len(members), self._share)
        for member_id in members:
            self._take(member_id, partitions, share)
        extras = len(partitions)
        if share == self._share:
            extras = min(extras, self._extras)
        extras = min(extras, len(members))
        for member_id in members[:extras]:
            self._take(member_id, partitions, 1)
        if share == self._share:
            self._extras -= extras

    def _assign_rest(self, partitions: list[int]) -> None:
        for member_id, taken in self._taken.items():
            if len(taken) <= self._share:
                missing = self._share - len(taken)
                if self._extras > 0:
                    missing += 1
                    self._extras -= 1
                self._take(member_id, partitions, missing)

    def _take(self, member_id: str, partitions: list[int], count: int) -> None:
        self._taken[member_id].extend(partitions[:count])
        del partitions[:count]
