"""Groups that no file describes: a quick question on the command line, or a group of a live cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kgctl.assignors import assignor_names
from kgctl.assignors.spec import TopicSpec
from kgctl.errors import UsageError
from kgctl.model.groups import GroupDescription, GroupType
from kgctl.simulate.assign.group_document import GroupDocument, Member

MAX_MEMBERS = 100_000
MAX_PARTITIONS = 10_000_000


def quick_group(members: int, topics: Iterable[str]) -> GroupDocument:
    """A fresh group of ``members`` members, all subscribed to all ``topics``, each written NAME:PARTITIONS.

    Raises:
        UsageError: a number is out of bounds, a topic is not NAME:PARTITIONS or stands twice.
    """
    if not 1 <= members <= MAX_MEMBERS:
        raise UsageError(f"--members: between 1 and {MAX_MEMBERS}, not {members}")
    counts: dict[str, TopicSpec] = {}
    for text in topics:
        name, _, count = text.rpartition(":")
        if not name or not count.isascii() or not count.isdigit() or not 0 < int(count) <= MAX_PARTITIONS:
            raise UsageError(f"--topic: {text!r} is not NAME:PARTITIONS")
        if name in counts:
            raise UsageError(f"--topic: {name!r} stands twice")
        counts[name] = TopicSpec(int(count))
    if not counts:
        raise UsageError("--members needs at least one --topic NAME:PARTITIONS")
    width = len(str(members))
    return GroupDocument(1, counts, [Member(f"consumer-{n:0{width}}", tuple(counts)) for n in range(1, members + 1)])


def live_group(group: GroupDescription, partition_counts: Mapping[str, int]) -> GroupDocument:
    """A group of a cluster as it is now: what its members have is what they own.

    Where the cluster does not tell a member's subscription it is taken to be all topics that somebody in the group has.
    """
    assigned = {topic for member in group.members for topic in member.assignment or ()}
    generation = group.group_epoch or 1
    members = [
        Member(
            member.member_id,
            tuple(sorted(assigned)) if member.subscribed_topics is None else member.subscribed_topics,
            owned=None if member.assignment is None else {t: list(p) for t, p in member.assignment.items()},
            generation=None if member.assignment is None else generation,
            rack=member.rack_id,
            instance_id=member.group_instance_id,
        )
        for member in group.members
    ]
    subscribed = dict.fromkeys(topic for member in members for topic in (*member.topics, *(member.owned or ())))
    topics = {topic: TopicSpec(partition_counts[topic]) for topic in subscribed if topic in partition_counts}
    return GroupDocument(group.group_id, topics, members, _assignors(group))


def _assignors(group: GroupDescription) -> tuple[str, ...] | None:
    """The group's own assignor, where it is one of those that are known here."""
    name = group.assignor
    if group.type is GroupType.CONSUMER:
        name = {"range": "server-range"}.get(name or "", name)
    return (name,) if name in assignor_names() else None
