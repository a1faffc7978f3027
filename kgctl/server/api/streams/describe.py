"""StreamsGroupDescribe (KIP-1071)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kgctl.model.streams_requests import StreamsGroupDescribe
from kgctl.model.streams_results import StreamsGroupDescribedGroup, StreamsGroupDescribedMember, StreamsGroupDescribeResult
from kgctl.model.streams_topology import DeclaredSubtopology, StreamsTopology, TopicInfo
from kgctl.server.api.consumer_group_describe import GroupDescriptions
from kgctl.server.api.streams.heartbeat import rendered_tasks, topic_names
from kgctl.server.cluster import Catalog
from kgctl.server.request_context import STREAMS_VERSION, ApiSpec
from kgctl.server.runtime import Values


def _topics(_: Catalog, group: StreamsGroupDescribedGroup) -> Iterator[Iterable[str]]:
    """What the application uses."""
    if group.topology is not None:
        yield topic_names(group.topology.subtopologies)


def _own(group: StreamsGroupDescribedGroup) -> Values:
    return {"topology": None if group.topology is None else _topology(group.topology)}


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


def _member(_: Catalog, member: StreamsGroupDescribedMember) -> Values:
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


_DESCRIPTIONS = GroupDescriptions(
    StreamsGroupDescribe,
    StreamsGroupDescribeResult,
    StreamsGroupDescribedGroup,
    _own,
    _member,
    _topics,
    unseen="The described group uses topics that the client is not authorized to describe.",
)
SPEC = ApiSpec(
    89,
    "StreamsGroupDescribe",
    0,
    0,
    _DESCRIPTIONS.handle,
    protocol="streams",
    feature=STREAMS_VERSION,
    when_off=_DESCRIPTIONS.when_off,
)
