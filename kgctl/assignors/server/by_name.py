"""Server assignors for groups with topics by name: how names become ids, and in which order Java sees them.

A topic without an id has the one that ``java.util.UUID.nameUUIDFromBytes`` makes of its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import md5
from uuid import UUID

from kgctl.assignors.client.members import have_equal_subscriptions, java_map_order
from kgctl.assignors.partition_space import PartitionIds, PartitionSpace
from kgctl.assignors.server.spec import TargetAssignor, TargetMember, TargetSpec
from kgctl.assignors.spec import GroupAssignment, GroupSpec, TopicSpec
from kgctl.model.java_order import copied_set_capacity, hash_map_order


def topic_id_of_name(name: str) -> UUID:
    """``UUID.nameUUIDFromBytes`` of the name in UTF-8."""
    return UUID(bytes=md5(name.encode("utf-8", "surrogatepass"), usedforsecurity=False).digest(), version=3)


def subscribed_order(names: Sequence[str]) -> list[str]:
    """A subscription as the ``HashSet`` copied from the list of its names iterates over it."""
    return hash_map_order(dict.fromkeys(names), capacity=copied_set_capacity(len(names)))


def assign_by_name(assignor: TargetAssignor, group: GroupSpec) -> GroupAssignment:
    """The targets of a group with topics by name; for the order of members and topics Java's rules hold."""
    existing = {name: topic for name, topic in group.topics.items() if topic.partition_count > 0}
    ids = _topic_ids(existing, group)
    space = PartitionSpace({name: topic.partition_count for name, topic in existing.items()})
    members = java_map_order(group.members)
    known: dict[tuple[str, ...], list[UUID]] = {}
    targets = []
    for member in members:
        if member.topics not in known:
            known[member.topics] = [ids[name] for name in subscribed_order(member.topics) if name in existing]
        owned = member.owned.space.by_topic(member.owned.ids) if isinstance(member.owned, PartitionIds) else member.owned
        target = {ids[name]: list(dict.fromkeys(partitions)) for name, partitions in owned.items() if partitions}
        targets.append(TargetMember(member.member_id, known[member.topics], target, member.instance_id, member.rack))
    spec = TargetSpec(
        targets,
        {ids[name]: topic.partition_count for name, topic in existing.items()},
        have_equal_subscriptions(members),
        len(set(members[0].topics)) if members else None,
    )
    assigned = assignor.assign_targets(spec)
    offsets = {ids[name]: space.offsets[position] for position, name in enumerate(space.names)}
    return GroupAssignment(
        space, {member.member_id: _numbers(offsets, assigned.get(member.member_id, {})) for member in group.members}
    )


def _topic_ids(existing: Mapping[str, TopicSpec], group: GroupSpec) -> dict[str, UUID]:
    names: Iterable[str] = [*existing, *(name for member in group.members for name in _owned_names(member.owned))]
    ids = {}
    for name in dict.fromkeys(names):
        topic = group.topics.get(name)
        ids[name] = topic.topic_id if topic is not None and topic.topic_id is not None else topic_id_of_name(name)
    return ids


def _owned_names(owned: Mapping[str, Sequence[int]] | PartitionIds) -> Iterable[str]:
    return owned.space.names if isinstance(owned, PartitionIds) else owned


def _numbers(offsets: Mapping[UUID, int], target: Mapping[UUID, Sequence[int]]) -> Sequence[int]:
    runs = [
        range(offsets[topic] + part.start, offsets[topic] + part.stop)
        if isinstance(part, range) and part.step == 1
        else [offsets[topic] + partition for partition in part]
        for topic, part in target.items()
    ]
    return runs[0] if len(runs) == 1 else [number for run in runs for number in run]
