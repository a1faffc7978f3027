"""Server assignors for groups with topics by name: how names become ids, and in which order Java sees them.

A topic without an id has the one that ``java.util.UUID.nameUUIDFromBytes`` makes of its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import md5
from uuid import UUID

from kgctl.assignors.client.members import have_equal_subscriptions, java_map_order
from kgctl.assignors.partition_space import PartitionSpace
from kgctl.assignors.server.indexed import IndexedGroup, IndexedMember, IndexedTarget
from kgctl.assignors.spec import GroupAssignment, GroupSpec, MemberSpec, OwnedPartitions
from kgctl.model.java_order import copied_set_order

AssignIndexed = Callable[[IndexedGroup], Sequence[IndexedTarget]]


def topic_id_of_name(name: str) -> UUID:
    """``UUID.nameUUIDFromBytes`` of the name in UTF-8."""
    return UUID(bytes=md5(name.encode("utf-8", "surrogatepass"), usedforsecurity=False).digest(), version=3)


def assign_by_name(assign: AssignIndexed, group: GroupSpec) -> GroupAssignment:
    """The targets of a group with topics by name; for the order of members and topics Java's rules hold."""
    space = PartitionSpace({name: topic.partition_count for name, topic in group.topics.items() if topic.partition_count > 0})
    members = java_map_order(group.members)
    index = dict(space.index)
    for member in members:
        for name in member.owned if isinstance(member.owned, Mapping) else ():
            index.setdefault(name, len(index))
    known: dict[tuple[str, ...], list[int]] = {}
    for member in members:
        if member.topics not in known:
            known[member.topics] = [space.index[name] for name in copied_set_order(member.topics) if name in space.index]
    found = assign(
        IndexedGroup(
            [IndexedMember(m.member_id, known[m.topics], _target(m.owned, index), m.instance_id) for m in members],
            [_topic_id(group, name) for name in index],
            [*space.counts, *[-1] * (len(index) - len(space.counts))],
            have_equal_subscriptions(members),
            len(set(members[0].topics)) if members else 0,
        )
    )
    return GroupAssignment(space, _in_group_order(group.members, members, [_numbers(space, target) for target in found]))


def _topic_id(group: GroupSpec, name: str) -> UUID:
    topic = group.topics.get(name)
    return topic.topic_id if topic is not None and topic.topic_id is not None else topic_id_of_name(name)


def _target(owned: OwnedPartitions, index: Mapping[str, int]) -> IndexedTarget:
    named = owned if isinstance(owned, Mapping) else owned.by_topic()
    return {
        index[name]: partitions if len(partitions) == 1 else list(dict.fromkeys(partitions))
        for name, partitions in named.items()
        if partitions and name in index
    }


def _in_group_order(
    members: Sequence[MemberSpec], in_map_order: Sequence[MemberSpec], numbers: Sequence[Sequence[int]]
) -> dict[str, Sequence[int]]:
    by_id = {member.member_id: found for member, found in zip(in_map_order, numbers, strict=True)}
    return {member.member_id: by_id[member.member_id] for member in members}


def _numbers(space: PartitionSpace, target: Mapping[int, Sequence[int]]) -> Sequence[int]:
    numbers: list[int] = []
    for topic, partitions in target.items():
        offset = space.offsets[topic]
        if isinstance(partitions, range) and partitions.step == 1:
            run = range(offset + partitions.start, offset + partitions.stop)
            if len(target) == 1:
                return run
            numbers.extend(run)
        elif len(partitions) == 1:
            numbers.append(offset + partitions[0])
        else:
            numbers.extend([offset + partition for partition in partitions])
    return numbers
