"""StreamsGroupHeartbeat (KIP-1071), with what brokers do about it outside of the group's coordinator: Kafka's KafkaApis."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from kgctl.model.access import AclOperation, Resource
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import topic_name_problem
from kgctl.model.streams_records import TaskIds, UserEndpoint
from kgctl.model.streams_requests import StreamsGroupHeartbeat, TaskOffset
from kgctl.model.streams_results import StreamsGroupHeartbeatResult
from kgctl.model.streams_topology import (
    CopartitionGroup,
    CreatableTopic,
    DeclaredSubtopology,
    StreamsStatus,
    StreamsTopology,
    TopicInfo,
)
from kgctl.server.api import create_topics
from kgctl.server.api.fields import unsupported
from kgctl.server.cluster import INTERNAL_TOPICS
from kgctl.server.request_context import STREAMS_VERSION, ApiSpec, RequestContext
from kgctl.server.responses import HeartbeatHandler
from kgctl.server.runtime import Values

MOST_FAILURES_TOLD = 3


def question(context: RequestContext, body: Any) -> StreamsGroupHeartbeat:
    """None in a field means "unchanged"."""
    endpoint = body.user_endpoint
    return StreamsGroupHeartbeat(
        **context.core(),
        group_id=body.group_id,
        member_id=body.member_id,
        member_epoch=body.member_epoch,
        endpoint_information_epoch=body.endpoint_information_epoch,
        instance_id=body.instance_id,
        rack_id=body.rack_id,
        rebalance_timeout_ms=body.rebalance_timeout_ms,
        topology=None if body.topology is None else _topology(body.topology),
        active_tasks=_tasks(body.active_tasks),
        standby_tasks=_tasks(body.standby_tasks),
        warmup_tasks=_tasks(body.warmup_tasks),
        process_id=body.process_id,
        user_endpoint=None if endpoint is None else UserEndpoint(endpoint.host, endpoint.port),
        client_tags=_pairs(body.client_tags),
        task_offsets=_offsets(body.task_offsets),
        task_end_offsets=_offsets(body.task_end_offsets),
        shutdown_application=body.shutdown_application,
    )


def _topology(topology: Any) -> StreamsTopology:
    return StreamsTopology(topology.epoch, tuple(_subtopology(each) for each in topology.subtopologies))


def _subtopology(each: Any) -> DeclaredSubtopology:
    return DeclaredSubtopology(
        subtopology_id=each.subtopology_id,
        source_topics=tuple(each.source_topics),
        source_topic_regex=tuple(each.source_topic_regex),
        state_changelog_topics=_topic_infos(each.state_changelog_topics),
        repartition_sink_topics=tuple(each.repartition_sink_topics),
        repartition_source_topics=_topic_infos(each.repartition_source_topics),
        copartition_groups=tuple(
            CopartitionGroup(tuple(group.source_topics), tuple(group.source_topic_regex), tuple(group.repartition_source_topics))
            for group in each.copartition_groups
        ),
    )


def _topic_infos(topics: Any) -> tuple[TopicInfo, ...]:
    return tuple(
        TopicInfo(each.name, each.partitions, each.replication_factor, _pairs(each.topic_configs) or ()) for each in topics
    )


def _pairs(pairs: Any) -> tuple[tuple[str, str], ...] | None:
    return None if pairs is None else tuple((each.key, each.value) for each in pairs)


def _tasks(tasks: Any) -> tuple[TaskIds, ...] | None:
    return None if tasks is None else tuple(TaskIds(each.subtopology_id, tuple(each.partitions)) for each in tasks)


def _offsets(offsets: Any) -> tuple[TaskOffset, ...] | None:
    return None if offsets is None else tuple(TaskOffset(each.subtopology_id, each.partition, each.offset) for each in offsets)


def refusal(context: RequestContext, body: Any) -> Values | None:
    """What is wrong with the names of the topology's topics, or with the member's rights to them."""
    names = () if body.topology is None else tuple(dict.fromkeys(topic_names(body.topology.subtopologies)))
    if internal := ",".join(name for name in names if name in INTERNAL_TOPICS):
        return _invalid(f"Use of Kafka internal topics {internal} in a Kafka Streams topology is prohibited.")
    if invalid := ",".join(name for name in names if topic_name_problem(name)):
        return _invalid(f"Topic names {invalid} are not valid topic names.")
    if all(context.may(AclOperation.DESCRIBE, Resource.TOPIC, name) for name in names):
        return None
    return {"error_code": ErrorCode.TOPIC_AUTHORIZATION_FAILED}


def _invalid(message: str) -> Values:
    return {"error_code": ErrorCode.STREAMS_INVALID_TOPOLOGY, "error_message": message}


def topic_names(subtopologies: Iterable[Any]) -> Iterable[str]:
    """Every topic that subtopologies read or write."""
    for each in subtopologies:
        yield from each.source_topics
        yield from each.repartition_sink_topics
        yield from (topic.name for topic in each.repartition_source_topics)
        yield from (topic.name for topic in each.state_changelog_topics)


class StreamsHeartbeatHandler(HeartbeatHandler):
    """What lacks topics of its own has them made with each of its heartbeats, and is told each time how that went."""

    def rendering(self, context: RequestContext, body: Any) -> Callable[[Any], Values]:
        return partial(_rendered, context, body.group_id)

    def is_kept(self, result: Any) -> bool:
        return not getattr(result, "creatable_topics", ())


def _rendered(context: RequestContext, group_id: str, result: StreamsGroupHeartbeatResult) -> Values:
    if result.creatable_topics:
        told = _told_of_creation(context, group_id, result.creatable_topics)
        result = replace(result, status=tuple(_with(told, *each) for each in result.status or ()))
    return render(result)


def _with(told: str, code: StreamsStatus, detail: str) -> tuple[StreamsStatus, str]:
    return code, detail + told if code is StreamsStatus.MISSING_INTERNAL_TOPICS else detail


def _told_of_creation(context: RequestContext, group_id: str, topics: Sequence[CreatableTopic]) -> str:
    """Have the topics made; what the member is told about it."""
    names = [topic.name for topic in topics]
    if refused := _not_to_be_created(context, names):
        return f"; Unauthorized to CREATE on topics {', '.join(refused)}."
    services = context.services
    interval_ms = services.runtime.core.shard.group_config(group_id).streams_heartbeat_interval_ms
    make = partial(services.data.in_thread, create_topics.handle, context)
    services.auto_topics.begin(topics, 2 * interval_ms, make)
    failures = services.auto_topics.failures(names)
    if not failures:
        return ""
    told = ", ".join(f"{name} ({why})" for name, why in list(failures.items())[:MOST_FAILURES_TOLD])
    more = len(failures) - MOST_FAILURES_TOLD
    return f"; Creation failed: {told}{f' and {more} more' if more > 0 else ''}."


def _not_to_be_created(context: RequestContext, names: Sequence[str]) -> list[str]:
    if context.may(AclOperation.CREATE, Resource.CLUSTER):
        return []
    return [name for name in names if not context.may(AclOperation.CREATE, Resource.TOPIC, name)]


def render(result: StreamsGroupHeartbeatResult) -> Values:
    if result.error is not ErrorCode.NONE:
        return {"error_code": result.error, "error_message": result.error_message}
    endpoints = result.partitions_by_user_endpoint
    return {
        "error_code": ErrorCode.NONE,
        "error_message": None,
        "member_id": result.member_id or "",
        "member_epoch": result.member_epoch,
        "heartbeat_interval_ms": result.heartbeat_interval_ms,
        "status": None
        if result.status is None
        else [{"status_code": code, "status_detail": detail} for code, detail in result.status],
        "active_tasks": rendered_tasks(result.active_tasks),
        "standby_tasks": rendered_tasks(result.standby_tasks),
        "warmup_tasks": rendered_tasks(result.warmup_tasks),
        "endpoint_information_epoch": result.endpoint_information_epoch,
        "partitions_by_user_endpoint": None if endpoints is None else [_endpoint(each) for each in endpoints],
    }


def rendered_tasks(tasks: Iterable[TaskIds] | None) -> list[Values] | None:
    """As both answers of streams groups say which tasks a member has."""
    if tasks is None:
        return None
    return [{"subtopology_id": each.subtopology_id, "partitions": each.partitions} for each in tasks]


def _endpoint(each: Any) -> Values:
    return {
        "user_endpoint": {"host": each.user_endpoint.host, "port": each.user_endpoint.port},
        "active_partitions": _partitions(each.active_partitions),
        "standby_partitions": _partitions(each.standby_partitions),
    }


def _partitions(topics: Iterable[tuple[str, Sequence[int]]]) -> list[Values]:
    return [{"topic": topic, "partitions": partitions} for topic, partitions in topics]


SPEC = ApiSpec(
    88,
    "StreamsGroupHeartbeat",
    0,
    0,
    StreamsHeartbeatHandler(question, render, refusal),
    protocol="streams",
    feature=STREAMS_VERSION,
    when_off=unsupported,
)
