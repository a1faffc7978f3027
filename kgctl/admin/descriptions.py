"""Groups as they are described, whoever tells of them: a broker's answer, or the coordinator of a data folder.

States and types have Kafka's names. Of a streams group (KIP-1071) the topology, and which member runs which task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kgctl.model.groups import Assignment, GroupDescription, GroupState, GroupType, MemberDescription, Node
from kgctl.serde.consumer_protocol import told_assignment, told_subscription

if TYPE_CHECKING:
    from kgctl.model.streams import Subtopology, Tasks, Topology
    from kgctl.wire import Deadline
    from kgctl.wire.cluster import ClusterClient

_CONSUMER = "consumer"
_CLASSIC_MEMBER = 0
_MEMBER_TYPES = (_CLASSIC_MEMBER, 1)


def description(
    group: Any, state: str, kind: GroupType, members: Iterable[MemberDescription], coordinator: Node | None = None
) -> GroupDescription:
    """A group as its coordinator, this one, describes it; with its members by id."""
    return GroupDescription(
        group.group_id or "",
        group_state(state),
        kind,
        getattr(group, "protocol_type", kind.value),
        getattr(group, "assignor_name", None) or getattr(group, "protocol_data", None) or None,
        coordinator,
        tuple(sorted(members, key=lambda member: member.member_id)),
        group_epoch=getattr(group, "group_epoch", None),
        assignment_epoch=getattr(group, "assignment_epoch", None),
        topology=_topology(getattr(group, "topology", None)),
    )


def member(told: Any, **own: Any) -> MemberDescription:
    """A member of a group of any type; ``own``: what is to be known beside what all of them have."""
    own = {"rack_id": getattr(told, "rack_id", None), **own}
    instance_id = getattr(told, "group_instance_id", getattr(told, "instance_id", None))
    epoch = getattr(told, "member_epoch", None)
    return MemberDescription(told.member_id, told.client_id, told.client_host, instance_id, member_epoch=epoch, **own)


def classic_member(group: Any, told: Any, metadata: bytes, assignment: bytes) -> MemberDescription:
    """A member of the classic protocol; only those of consumers can be read."""
    if group.protocol_type != _CONSUMER:
        return member(told)
    topics, rack = told_subscription(metadata)
    return member(told, rack_id=rack, assignment=told_assignment(assignment), subscribed_topics=topics)


def consumer_member(told: Any, by_topic: Callable[[Any], Assignment]) -> MemberDescription:
    """A member of the consumer protocol; ``by_topic`` reads its assignments."""
    kind = getattr(told, "member_type", None)
    return member(
        told,
        assignment=by_topic(told.assignment),
        target_assignment=by_topic(told.target_assignment),
        subscribed_topics=tuple(sorted(told.subscribed_topic_names)),
        subscribed_topic_regex=told.subscribed_topic_regex or None,
        is_classic_in_consumer_group=kind == _CLASSIC_MEMBER if kind in _MEMBER_TYPES else None,
    )


def group_state(text: str) -> GroupState:
    """The state by Kafka's name; UNKNOWN for one of a newer Kafka."""
    try:
        return GroupState(text)
    except ValueError:
        return GroupState.UNKNOWN


def group_type(text: str) -> GroupType:
    """The type by Kafka's name; UNKNOWN for one of a newer Kafka."""
    try:
        return GroupType(text.lower())
    except ValueError:
        return GroupType.UNKNOWN


def _topology(told: Any) -> Topology | None:
    if told is None:
        return None
    from kgctl.model.streams import Topology

    found = told.subtopologies
    return Topology(told.epoch, None if found is None else tuple(sorted(map(_subtopology, found), key=_number)))


def _number(subtopology: Subtopology) -> tuple[bool, int, str]:
    name = subtopology.subtopology_id
    return not name.isdecimal(), int(name) if name.isdecimal() else 0, name


def _subtopology(each: Any) -> Subtopology:
    from kgctl.model.streams import Subtopology

    return Subtopology(
        subtopology_id=each.subtopology_id,
        source_topics=tuple(sorted(each.source_topics)),
        repartition_source_topics=tuple(sorted(topic.name for topic in each.repartition_source_topics)),
        repartition_sink_topics=tuple(sorted(each.repartition_sink_topics)),
        changelog_topics=tuple(sorted(topic.name for topic in each.state_changelog_topics)),
    )


def member_of(told: Any) -> MemberDescription:
    """A member of it, which is not yet assigned what its tasks read."""
    from kgctl.model.streams import StreamsTasks

    now, target = told.assignment, told.target_assignment
    tasks = StreamsTasks(
        told.process_id,
        told.topology_epoch,
        *map(_tasks, (now.active_tasks, now.standby_tasks, now.warmup_tasks)),
        *map(_tasks, (target.active_tasks, target.standby_tasks, target.warmup_tasks)),
    )
    return member(told, is_classic_in_consumer_group=told.is_classic, tasks=tasks)


def _tasks(tasks: Any) -> Tasks:
    return {each.subtopology_id: tuple(sorted(each.partitions)) for each in sorted(tasks, key=lambda one: one.subtopology_id)}


def with_assignments(
    cluster: ClusterClient, descriptions: Mapping[str, GroupDescription], deadline: Deadline
) -> dict[str, GroupDescription]:
    """The groups; members of streams groups are assigned the partitions that their active tasks read.

    A task reads those of its topics that have as many partitions: what they have is asked of the cluster.
    """
    wanted = {group_id: each.topology for group_id, each in descriptions.items() if each.topology and each.members}
    topics = sorted({topic for topology in wanted.values() for topic in (*topology.source_topics, *topology.repartition_topics)})
    layout = cluster.layout(topics, deadline).topics if topics else {}
    counts = {topic: len(each.leaders) for topic, each in layout.items()}
    assigned = {group_id: _assigned(descriptions[group_id], topology, counts) for group_id, topology in wanted.items()}
    return {**descriptions, **assigned}


def _assigned(description: GroupDescription, topology: Topology, counts: Mapping[str, int]) -> GroupDescription:
    if topology.subtopologies is None:
        return description
    subscribed = tuple(sorted(topology.source_topics | topology.repartition_topics))
    members: Sequence[MemberDescription] = [
        replace(
            member,
            assignment=_read(topology, member.tasks.active, counts),
            target_assignment=_read(topology, member.tasks.target_active, counts),
            subscribed_topics=subscribed,
        )
        if member.tasks
        else member
        for member in description.members
    ]
    return replace(description, members=tuple(members))


def _read(topology: Topology, tasks: Tasks, counts: Mapping[str, int]) -> Assignment:
    found: dict[str, set[int]] = {}
    for topic, number in topology.read_by(tasks):
        if number < counts.get(topic, 0):
            found.setdefault(topic, set()).add(number)
    return {topic: tuple(sorted(found[topic])) for topic in sorted(found)}
