"""Metadata: brokers, topics, who leads what."""

from __future__ import annotations

import gc
from functools import cache, partial
from typing import Any
from uuid import UUID

from kgctl.errors import StorageError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import TopicMetadata, topic_name_problem
from kgctl.server.api.fields import CLUSTER_OPERATIONS, NOT_ASKED, TOPIC_OPERATIONS
from kgctl.server.cluster import MAX_RECORDS_OF_A_CHANGE, OFFSETS_TOPIC
from kgctl.server.partition_data import LEADER_EPOCH
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Values
from kgctl.server.traffic import Work, all_of, each


def handle(context: RequestContext, body: Any) -> Work[Values]:
    """No topics asked: all of them (version 0: an empty list says so, later ones say null). Who asks twice is answered once."""
    asked = body.topics
    if asked is None or (context.version == 0 and not asked):
        topics = yield from all_of(_topic(context, body, topic) for topic in context.services.catalog.topics.values())
    else:
        names = yield from each(asked, lambda topic: (topic.name, getattr(topic, "topic_id", None)))
        topics = yield from all_of(_asked(context, body, name, topic_id) for name, topic_id in dict.fromkeys(names))
    cluster = context.services.cluster
    with_operations = getattr(body, "include_cluster_authorized_operations", False)
    return {
        "brokers": [{"node_id": broker.node_id, "host": broker.host, "port": broker.port} for broker in cluster.live_brokers()],
        "cluster_id": cluster.cluster_id,
        "controller_id": cluster.controller.node_id,
        "topics": topics,
        "cluster_authorized_operations": CLUSTER_OPERATIONS if with_operations else NOT_ASKED,
    }


def _asked(context: RequestContext, body: Any, asked_name: str | None, topic_id: UUID | None) -> Work[dict[str, Any]]:
    yield None
    if topic_id is not None and asked_name is None:
        topic = context.services.catalog.by_id(topic_id)
        if topic is None:
            return {"error_code": ErrorCode.UNKNOWN_TOPIC_ID, "name": None, "topic_id": topic_id, "partitions": []}
        return (yield from _topic(context, body, topic))
    name = asked_name or ""
    topic = context.services.catalog.get(name)
    if topic is not None:
        return (yield from _topic(context, body, topic))
    if _may_create(context, body) and not topic_name_problem(name):
        yield context.services.data.in_thread(_create, context, name)
    error = ErrorCode.INVALID_TOPIC_EXCEPTION if topic_name_problem(name) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return {"error_code": error, "name": name, "partitions": []}


def _create(context: RequestContext, name: str) -> None:
    """Make the topic, which this answer still calls unknown: clients ask again. Kafka: DefaultAutoTopicCreationManager.

    Its controller's refusal (`num.partitions` beyond what a request may make) leaves it unknown for good.
    """
    catalog, count = context.services.catalog, context.services.config.num_partitions
    if count < MAX_RECORDS_OF_A_CHANGE and catalog.creation_error(name, count) is ErrorCode.NONE:
        try:
            catalog.create({name: count})
        except StorageError as error:
            context.services.data.storage_failed(error)


def _may_create(context: RequestContext, body: Any) -> bool:
    return context.services.config.auto_create_topics_enable and getattr(body, "allow_auto_topic_creation", True)


def _topic(context: RequestContext, body: Any, topic: TopicMetadata) -> Work[dict[str, Any]]:
    with_operations = getattr(body, "include_topic_authorized_operations", False)
    return {
        "error_code": ErrorCode.NONE,
        "name": topic.name,
        "topic_id": topic.topic_id,
        "is_internal": topic.name == OFFSETS_TOPIC,
        "partitions": (yield from each(range(topic.partition_count), partial(_partition, context, topic.name))),
        "topic_authorized_operations": TOPIC_OPERATIONS if with_operations else NOT_ASKED,
    }


def _partition(context: RequestContext, topic: str, partition: int) -> dict[str, Any]:
    """Numbers and known tuples only, which Python's collector of cycles does not follow: answers have 100,000 of these."""
    leader = context.services.cluster.leader(topic, partition)
    replicas = _replicas(leader.node_id)
    return {
        "error_code": _NO_ERROR if leader.is_up else int(ErrorCode.LEADER_NOT_AVAILABLE),
        "partition_index": partition,
        "leader_id": leader.node_id if leader.is_up else -1,
        "leader_epoch": LEADER_EPOCH,
        "replica_nodes": replicas,
        "isr_nodes": replicas if leader.is_up else (),
        "offline_replicas": () if leader.is_up else replicas,
    }


_NO_ERROR = int(ErrorCode.NONE)


@cache
def _replicas(node_id: int) -> tuple[int]:
    """Without a place among what the collector follows, which a tuple leaves in the first pass that meets it."""
    made = (node_id,)
    gc.collect(0)
    return made


SPEC = ApiSpec(3, "Metadata", 0, 13, handle)
