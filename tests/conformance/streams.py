"""Streams groups as the cases write them: steps, answers, states. What has an order is one text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any
from uuid import UUID

from kgctl.coordinator.streams.group import StreamsGroup
from kgctl.coordinator.streams.member import HeldTasks, StreamsMember, StreamsTarget
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import MetadataImage
from kgctl.model.requests import Request
from kgctl.model.streams_records import TaskIds, UserEndpoint
from kgctl.model.streams_requests import StreamsGroupDescribe, StreamsGroupHeartbeat, TaskOffset
from kgctl.model.streams_results import (
    EndpointPartitions,
    StreamsAssignment,
    StreamsGroupDescribedMember,
    StreamsGroupDescribeResult,
    StreamsGroupHeartbeatResult,
)
from kgctl.model.streams_topology import CopartitionGroup, CreatableTopic, DeclaredSubtopology, StreamsTopology, TopicInfo

Step = dict[str, Any]
View = dict[str, Any]
Names = Mapping[UUID, str]


# Steps.


def _heartbeat(step: Step, common: dict[str, Any], _: MetadataImage) -> Request:
    endpoint, tags = step.get("endpoint"), step.get("tags")
    return StreamsGroupHeartbeat(
        **common,
        member_id=step["member"],
        member_epoch=step["epoch"],
        endpoint_information_epoch=step.get("endpoint_epoch", 0),
        instance_id=step.get("instance"),
        rack_id=step.get("rack"),
        rebalance_timeout_ms=step.get("rebalance", -1),
        topology=_topology(step["topology"]) if step.get("topology") else None,
        active_tasks=_task_ids(step.get("active")),
        standby_tasks=_task_ids(step.get("standby")),
        warmup_tasks=_task_ids(step.get("warmup")),
        process_id=step.get("process"),
        user_endpoint=None if endpoint is None else UserEndpoint(*endpoint),
        client_tags=None if tags is None else tuple(map(tuple, tags)),
        task_offsets=_offsets(step.get("offsets")),
        task_end_offsets=_offsets(step.get("end_offsets")),
        shutdown_application=step.get("shutdown", False),
    )


def _topology(view: View) -> StreamsTopology:
    return StreamsTopology(view["epoch"], tuple(map(_subtopology, view["subtopologies"])))


def _subtopology(view: View) -> DeclaredSubtopology:
    return DeclaredSubtopology(
        view["id"],
        tuple(view.get("sources", ())),
        tuple(view.get("regex", ())),
        tuple(map(_topic, view["changelogs"])),
        tuple(view.get("sinks", ())),
        tuple(map(_topic, view["repartitions"])),
        tuple(
            CopartitionGroup(source_topics=tuple(sources), repartition_source_topics=tuple(repartitions))
            for sources, repartitions in view["copartitioned"]
        ),
    )


def _topic(view: list[Any]) -> TopicInfo:
    name, partitions, replication_factor, configs = view
    return TopicInfo(name, partitions, replication_factor, tuple(map(tuple, configs)))


def _task_ids(tasks: list[Any] | None) -> tuple[TaskIds, ...] | None:
    return None if tasks is None else tuple(TaskIds(key, tuple(numbers)) for key, numbers in tasks)


def _offsets(offsets: list[Any] | None) -> tuple[TaskOffset, ...] | None:
    return None if offsets is None else tuple(TaskOffset(*each) for each in offsets)


def _describe(step: Step, common: dict[str, Any], _: MetadataImage) -> Request:
    del common["group_id"]
    return StreamsGroupDescribe(**common, group_ids=tuple(step["groups"]))


STREAMS_OPERATIONS: dict[str, tuple[int, Callable[[Step, dict[str, Any], MetadataImage], Request]]] = {
    "streams_heartbeat": (0, _heartbeat),
    "describe_streams_groups": (0, _describe),
}


# Answers.


def _error(error: ErrorCode, message: str | None) -> View:
    return {"error": error.name, "message": message}


def _comma(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))


def _tasks(tasks: Iterable[tuple[str, Iterable[int]]]) -> str:
    return " ".join(f"{key}:{_comma(numbers)}" for key, numbers in tasks)


def _told(tasks: tuple[TaskIds, ...] | None) -> str | None:
    return None if tasks is None else _tasks(tasks)


def _endpoint(found: EndpointPartitions) -> str:
    """Over more than one subtopology the order of what is active is that of a map with a random salt."""
    host, port = found.user_endpoint
    active = " ".join(sorted(_tasks([each]) for each in found.active_partitions))
    return f"{host}:{port} active {active} standby {_tasks(found.standby_partitions)}"


def _creatable(topic: CreatableTopic) -> str:
    return f"{topic.name}/{topic.num_partitions}/{topic.replication_factor}/{_pairs(topic.configs)}"


def _pairs(pairs: Iterable[tuple[str, str]]) -> str:
    return ",".join(f"{key}={value}" for key, value in pairs)


def _heartbeat_reply(result: StreamsGroupHeartbeatResult, _: Step, __: Names) -> View:
    reply = _error(result.error, result.error_message)
    if result.error:
        return reply
    endpoints, status = result.partitions_by_user_endpoint, result.status
    return reply | {
        "member": result.member_id,
        "epoch": result.member_epoch,
        "heartbeat_interval_ms": result.heartbeat_interval_ms,
        "status": None if status is None else " | ".join(f"{int(code)} {detail}" for code, detail in status),
        "active": _told(result.active_tasks),
        "standby": _told(result.standby_tasks),
        "warmup": _told(result.warmup_tasks),
        "endpoint_epoch": result.endpoint_information_epoch,
        "endpoints": None if endpoints is None else " | ".join(map(_endpoint, endpoints)),
        "creatable": " ".join(map(_creatable, result.creatable_topics)),
        "unused": 0,
    }


def _describe_reply(result: StreamsGroupDescribeResult, _: Step, __: Names) -> View:
    groups = []
    for group in result.groups:
        entry = _error(group.error, group.error_message) | {"id": group.group_id}
        if not group.error:
            assert group.topology is not None
            subtopologies = " | ".join(map(_described_subtopology, group.topology.subtopologies))
            entry |= {"state": group.state, "epoch": group.group_epoch, "assignment_epoch": group.assignment_epoch}
            entry |= {
                "topology": f"{group.topology.epoch} {subtopologies}",
                "members": " | ".join(map(_described, group.members)),
            }
        groups.append(entry)
    return {"groups": groups}


def _described_subtopology(each: DeclaredSubtopology) -> str:
    repartitions, changelogs = (
        " ".join(f"{topic.name}/{topic.partitions}/{topic.replication_factor}/{_pairs(topic.topic_configs)}" for topic in topics)
        for topics in (each.repartition_source_topics, each.state_changelog_topics)
    )
    reads, writes = (f"[{', '.join(topics)}]" for topics in (each.source_topics, each.repartition_sink_topics))
    return f"{each.subtopology_id} reads {reads} and {repartitions} writes {writes} keeps {changelogs}"


def _described(member: StreamsGroupDescribedMember) -> str:
    endpoint = None if member.user_endpoint is None else "{}:{}".format(*member.user_endpoint)
    names = f"instance {_java(member.instance_id)} rack {_java(member.rack_id)} client {member.client_id}@{member.client_host}"
    process = f"topology {member.topology_epoch} process {member.process_id} endpoint {_java(endpoint)}"
    tasks = f"has {_described_tasks(member.assignment)} wants {_described_tasks(member.target_assignment)}"
    return f"{member.member_id} epoch {member.member_epoch} {names} {process} tags {_pairs(member.client_tags)} {tasks} [][]false"


def _described_tasks(tasks: StreamsAssignment) -> str:
    return ";".join(map(_tasks, (tasks.active_tasks, tasks.standby_tasks, tasks.warmup_tasks)))


def _java(text: str | None) -> str:
    return "null" if text is None else text


STREAMS_REPLIES: dict[type, Callable[[Any, Step, Names], View]] = {
    StreamsGroupHeartbeatResult: _heartbeat_reply,
    StreamsGroupDescribeResult: _describe_reply,
}


# States.


def streams_view(group: StreamsGroup) -> View:
    """The group as it is now."""
    return {
        "exists": True,
        "type": "streams",
        "state": group.group_state.value,
        "epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "hash": str(group.metadata_hash),
        "validated": group.validated_topology_epoch,
        "topology": None if group.topology is None else group.topology.epoch,
        "configs": _java_map(dict(sorted(group.last_assignment_configs.items()))),
        "endpoint_epoch": group.endpoint_epoch,
        "shutdown": group.shutdown_member_id,
        "details": [_member(group.members[key], group.targets.get(key)) for key in sorted(group.members)],
    }


def _member(member: StreamsMember, target: StreamsTarget | None) -> View:
    metadata, placed = member.has_metadata, member.has_assignment
    return {
        "id": member.member_id,
        "epoch": member.member_epoch if placed else None,
        "previous_epoch": member.previous_member_epoch if placed else None,
        "state": member.state.name if placed else None,
        "process": member.process_id if metadata else None,
        "rebalance": member.rebalance_timeout_ms if metadata else None,
        "topology": member.topology_epoch if metadata else None,
        "assigned": _held(member.assigned) if placed else None,
        "revoking": _held(member.pending_revocation) if placed else None,
        "target": None if target is None else "".join(map(_sets, target)),
    }


def _held(tasks: HeldTasks) -> str:
    active = {key: _java_map(dict(sorted(tasks.active[key].items()))) for key in sorted(tasks.active)}
    return _java_map(active) + _sets(tasks.standby) + _sets(tasks.warmup)


def _sets(tasks: Mapping[str, Iterable[int]]) -> str:
    return _java_map({key: f"[{', '.join(map(str, sorted(tasks[key])))}]" for key in sorted(tasks)})


def _java_map(entries: Mapping[Any, Any]) -> str:
    return "{" + ", ".join(f"{key}={value}" for key, value in entries.items()) + "}"
