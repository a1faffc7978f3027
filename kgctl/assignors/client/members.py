"""What Kafka's client assignors share: orders of members, the topics of a group."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kgctl.assignors.partition_space import PartitionSpace, java_text_key, sorted_like_java
from kgctl.assignors.spec import GroupSpec, MemberSpec, TopicSpec
from kgctl.model.java_order import hash_map_order


def java_map_order(members: Sequence[MemberSpec]) -> list[MemberSpec]:
    """Members as the leader's ``HashMap`` of subscriptions iterates over them."""
    by_id = {member.member_id: member for member in members}
    return [by_id[member_id] for member_id in hash_map_order(by_id)]


def sorted_members(members: Sequence[MemberSpec]) -> list[MemberSpec]:
    """Static members first, by instance id, then the others by member id.

    Members that share an instance id stay in map order. Kafka: ``AbstractPartitionAssignor.MemberInfo#compareTo``.
    """
    static = [member for member in members if member.instance_id is not None]
    if not static:
        return by_member_id(members)
    dynamic = [member for member in members if member.instance_id is None]
    ordered = sorted(java_map_order(static) if len(static) < 2 else _in_map_order(members, static), key=_instance_key)
    return ordered + by_member_id(dynamic)


def _in_map_order(members: Sequence[MemberSpec], wanted: Iterable[MemberSpec]) -> list[MemberSpec]:
    ids = {member.member_id for member in wanted}
    return [member for member in java_map_order(members) if member.member_id in ids]


def _instance_key(member: MemberSpec) -> bytes:
    return java_text_key(member.instance_id or "")


def by_member_id(members: Sequence[MemberSpec]) -> list[MemberSpec]:
    """Members in the order of ``String.compareTo`` over their ids."""
    by_id = {member.member_id: member for member in members}
    return [by_id[member_id] for member_id in sorted_like_java(by_id)]


def subscribed_space(group: GroupSpec) -> PartitionSpace:
    """The partitions of all topics that somebody subscribes to and that exist."""
    wanted: set[str] = set()
    last: tuple[str, ...] = ()
    for member in group.members:
        if member.topics is not last:
            last = member.topics
            wanted.update(last)
    return PartitionSpace(
        {name: topic.partition_count for name, topic in group.topics.items() if topic.partition_count > 0 and name in wanted}
    )


def have_equal_subscriptions(members: Sequence[MemberSpec]) -> bool:
    """Whether all members name the same topics, in any order and with any repetition."""
    if not members:
        return True
    first = members[0].topics
    wanted = set(first)
    return all(member.topics is first or member.topics == first or set(member.topics) == wanted for member in members)


Racks = frozenset[str]


def partition_racks(topic: TopicSpec) -> list[Racks]:
    """The racks of each partition's replicas; none where the topic has no racks."""
    if not topic.racks:
        return [frozenset()] * topic.partition_count
    known: dict[tuple[str, ...], Racks] = {}
    return [known.setdefault(racks, frozenset(racks)) for racks in topic.racks]


def use_racks(consumer_racks: Iterable[str], racks: Sequence[Racks]) -> bool:
    """Whether racks can make a difference.

    Some consumer sits in a rack that has a replica, and not every partition is in all of the racks. Kafka:
    ``AbstractPartitionAssignor#useRackAwareAssignment``.
    """
    wanted = frozenset(consumer_racks)
    distinct = set(racks)
    union = frozenset().union(*distinct)
    return not wanted.isdisjoint(union) and distinct != {union}
