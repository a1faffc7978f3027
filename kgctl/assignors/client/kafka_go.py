"""The balancers of the client library kafka-go (segmentio), where they differ from Kafka's assignors of the same name."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kgctl.assignors.client.members import by_member_id, subscribed_space
from kgctl.assignors.spec import GroupAssignment, GroupSpec, Promises

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
