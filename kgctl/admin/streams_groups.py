"""Streams groups (KIP-1071) over kgctl's own connection: their topology, and which member runs which task.

Their offsets are commits as those of other groups, which `kgctl.admin.live` and `kgctl.admin.writes` read and write.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kgctl.admin.answers import group_state
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import Assignment, GroupDescription, GroupType, MemberDescription
from kgctl.wire import Deadline
from kgctl.wire.asking import Failure
from kgctl.wire.cluster import ClusterClient
from kgctl.wire.connection import Connection

if TYPE_CHECKING:
    from kgctl.model.streams import Subtopology, Tasks, Topology


def described(group: Any, connection: Connection) -> GroupDescription | Failure:
    """A group of StreamsGroupDescribe's answer, whose members are not yet assigned what their tasks read."""
    if group.error_code:
        return Failure(ErrorCode(group.error_code), group.error_message)
    return GroupDescription(
        group_id=group.group_id,
        state=group_state(group.group_state),
        type=GroupType.STREAMS,
        protocol_type=GroupType.STREAMS.value,
        coordinator=connection.node,
        members=tuple(sorted(map(_member, group.members), key=lambda member: member.member_id)),
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        topology=_topology(group.topology),
    )


def _topology(topology: Any) -> Topology | None:
    from kgctl.model.streams import Topology

    if topology is None:
        return None
    found = topology.subtopologies
    return Topology(topology.epoch, None if found is None else tuple(sorted(map(_subtopology, found), key=_number)))


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


def _member(member: Any) -> MemberDescription:
    from kgctl.model.streams import StreamsTasks

    now, target = member.assignment, member.target_assignment
    tasks = StreamsTasks(
        member.process_id,
        member.topology_epoch,
        *map(_tasks, (now.active_tasks, now.standby_tasks, now.warmup_tasks)),
        *map(_tasks, (target.active_tasks, target.standby_tasks, target.warmup_tasks)),
    )
    return MemberDescription(
        member_id=member.member_id,
        client_id=member.client_id,
        host=member.client_host,
        group_instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        is_classic_in_consumer_group=member.is_classic,
        tasks=tasks,
    )


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
