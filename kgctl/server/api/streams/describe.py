"""StreamsGroupDescribe (KIP-1071)."""

from __future__ import annotations

from typing import Any

from kgctl.model.error_codes import ErrorCode
from kgctl.model.streams_requests import StreamsGroupDescribe
from kgctl.model.streams_results import StreamsGroupDescribedGroup, StreamsGroupDescribedMember, StreamsGroupDescribeResult
from kgctl.model.streams_topology import DeclaredSubtopology, StreamsTopology, TopicInfo
from kgctl.server.acls import AclOperation, Resource
from kgctl.server.api.fields import NOT_ASKED
from kgctl.server.api.streams.heartbeat import rendered_tasks, topic_names
from kgctl.server.request_context import STREAMS_VERSION, ApiSpec, RequestContext
from kgctl.server.runtime import Values
from kgctl.server.traffic import Work, each, waited

UNSEEN = "The described group uses topics that the client is not authorized to describe."


def handle(context: RequestContext, body: Any) -> Work[Values]:
    """First the groups that the user may not see, then the others in the order of the request."""
    refused, answers = [], []
    for group_id in body.group_ids:
        if context.may(AclOperation.DESCRIBE, Resource.GROUP, group_id):
            answers.append(_asked(context, group_id))
        else:
            refused.append(_described(StreamsGroupDescribedGroup(group_id=group_id, error=ErrorCode.GROUP_AUTHORIZATION_FAILED)))
        yield None
    groups = []
    for answer in answers:
        (group,) = (yield from waited(answer)).groups
        with_operations = body.include_authorized_operations and group.error is ErrorCode.NONE
        operations = context.operations(Resource.GROUP, group.group_id) if with_operations else NOT_ASKED
        if _may_see(context, group):
            members = yield from each(group.members, _member)
            groups.append({**_described(group), "members": members, "authorized_operations": operations})
        else:
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            groups.append(_described(StreamsGroupDescribedGroup(group_id=group.group_id, error=error, error_message=UNSEEN)))
        yield None
    return {"groups": refused + groups}


def _asked(context: RequestContext, group_id: str) -> Any:
    error = context.not_coordinator(group_id)
    if error is not None:
        return StreamsGroupDescribeResult(groups=(StreamsGroupDescribedGroup(group_id=group_id, error=error),))
    return context.result(StreamsGroupDescribe(**context.core(), group_ids=(group_id,)))


def _may_see(context: RequestContext, group: StreamsGroupDescribedGroup) -> bool:
    """Whether whoever asks may see each topic of the application."""
    names = set(topic_names(group.topology.subtopologies)) if group.topology and context.services.access.is_asked else set()
    return all(context.may(AclOperation.DESCRIBE, Resource.TOPIC, name) for name in names)


def _described(group: StreamsGroupDescribedGroup) -> Values:
    """All but the members."""
    return {
        "error_code": group.error,
        "error_message": group.error_message,
        "group_id": group.group_id,
        "group_state": group.state,
        "group_epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "topology": None if group.topology is None else _topology(group.topology),
        "members": [],
        "authorized_operations": NOT_ASKED,
    }


def _topology(topology: StreamsTopology) -> Values:
    return {"epoch": topology.epoch, "subtopologies": [_subtopology(each) for each in topology.subtopologies]}


def _subtopology(subtopology: DeclaredSubtopology) -> Values:
    return {
        "subtopology_id": subtopology.subtopology_id,
        "source_topics": subtopology.source_topics,
        "repartition_sink_topics": subtopology.repartition_sink_topics,
        "state_changelog_topics": [_topic(each) for each in subtopology.state_changelog_topics],
        "repartition_source_topics": [_topic(each) for each in subtopology.repartition_source_topics],
    }


def _topic(topic: TopicInfo) -> Values:
    return {
        "name": topic.name,
        "partitions": topic.partitions,
        "replication_factor": topic.replication_factor,
        "topic_configs": _pairs(topic.topic_configs),
    }


def _pairs(pairs: Any) -> list[Values]:
    return [{"key": key, "value": value} for key, value in pairs]


def _member(member: StreamsGroupDescribedMember) -> Values:
    endpoint = member.user_endpoint
    return {
        "member_id": member.member_id,
        "member_epoch": member.member_epoch,
        "instance_id": member.instance_id,
        "rack_id": member.rack_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "topology_epoch": member.topology_epoch,
        "process_id": member.process_id,
        "user_endpoint": None if endpoint is None else {"host": endpoint.host, "port": endpoint.port},
        "client_tags": _pairs(member.client_tags),
        "task_offsets": [],
        "task_end_offsets": [],
        "assignment": _assignment(member.assignment),
        "target_assignment": _assignment(member.target_assignment),
        "is_classic": False,
    }


def _assignment(tasks: Any) -> Values:
    return {
        "active_tasks": rendered_tasks(tasks.active_tasks),
        "standby_tasks": rendered_tasks(tasks.standby_tasks),
        "warmup_tasks": rendered_tasks(tasks.warmup_tasks),
    }


def when_off(_: RequestContext, body: Any) -> Values:
    """The broker has streams groups, which are not on."""
    off = (StreamsGroupDescribedGroup(group_id=group_id, error=ErrorCode.UNSUPPORTED_VERSION) for group_id in body.group_ids)
    return {"groups": [_described(group) for group in off]}


SPEC = ApiSpec(89, "StreamsGroupDescribe", 0, 0, handle, protocol="streams", feature=STREAMS_VERSION, when_off=when_off)
