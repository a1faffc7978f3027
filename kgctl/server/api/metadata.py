"""Metadata: brokers, topics, who leads what."""

from __future__ import annotations

import gc
from collections.abc import Iterable
from functools import cache, partial
from typing import Any
from uuid import UUID

from kgctl.errors import StorageError
from kgctl.model.access import NOT_TOLD, AclOperation, Resource
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import ZERO_UUID, TopicMetadata, topic_name_problem
from kgctl.server.api.fields import cluster_operations, endpoint_of
from kgctl.server.cluster import INTERNAL_TOPICS, MAX_RECORDS_OF_A_CHANGE
from kgctl.server.partition_data import LEADER_EPOCH
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Values
from kgctl.server.traffic import Work, all_of, each


def handle(context: RequestContext, body: Any) -> Work[Values]:
    """No topics asked: all of them (version 0: an empty list says so, later ones say null). Who asks twice is answered once."""
    asked = body.topics
    if asked is None or (context.version == 0 and not asked):
        every = context.services.catalog.topics.values()
        seen = (topic for topic in every if context.may(AclOperation.DESCRIBE, Resource.TOPIC, topic.name))
        topics = yield from all_of(_topic(context, body, topic) for topic in seen)
    else:
        topics = yield from all_of(_asked(context, body, name, topic_id) for name, topic_id in (yield from _once_each(asked)))
    cluster = context.services.cluster
    with_operations = getattr(body, "include_cluster_authorized_operations", False)
    return {
        "brokers": [{"node_id": broker.node_id, **endpoint_of(broker, context)} for broker in cluster.live_brokers()],
        "cluster_id": cluster.cluster_id,
        "controller_id": cluster.controller.node_id,
        "topics": topics,
        "cluster_authorized_operations": cluster_operations(context, is_asked=with_operations),
    }


def _once_each(asked: Iterable[Any]) -> Work[Iterable[tuple[str | None, UUID | None]]]:
    """Who gives an id means ids: Java's client leaves the name empty. Kafka: KafkaApis#handleTopicMetadataRequest."""
    named: dict[tuple[str | None, UUID | None], None] = {}
    by_id: dict[tuple[None, UUID], None] = {}
    for topic in asked:
        topic_id = getattr(topic, "topic_id", None)
        named[topic.name, topic_id] = None
        if topic_id is not None and topic_id != ZERO_UUID:
            by_id[None, topic_id] = None
        yield None
    return by_id or named


_UNSEEN: Values = {"error_code": ErrorCode.TOPIC_AUTHORIZATION_FAILED, "partitions": []}
"""Whether there is such a topic is not told to whoever may not see it."""


def _asked(context: RequestContext, body: Any, asked_name: str | None, topic_id: UUID | None) -> Work[dict[str, Any]]:
    yield None
    if topic_id is not None and asked_name is None:
        return (yield from _asked_by_id(context, body, topic_id))
    name = asked_name or ""
    if not context.may(AclOperation.DESCRIBE, Resource.TOPIC, name):
        return {**_UNSEEN, "name": name}
    topic = context.services.catalog.get(name)
    if topic is not None:
        return (yield from _topic(context, body, topic))
    if _is_made_when_asked_for(context, body):
        if not (context.may(AclOperation.CREATE, Resource.CLUSTER) or context.may(AclOperation.CREATE, Resource.TOPIC, name)):
            return {**_UNSEEN, "name": name}
        if not topic_name_problem(name):
            yield context.services.data.in_thread(_create, context, name)
    error = ErrorCode.INVALID_TOPIC_EXCEPTION if topic_name_problem(name) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    with_operations = getattr(body, "include_topic_authorized_operations", False)
    operations = context.operations(Resource.TOPIC, name) if with_operations else NOT_TOLD
    return {"error_code": error, "name": name, "partitions": [], "topic_authorized_operations": operations}


def _asked_by_id(context: RequestContext, body: Any, topic_id: UUID) -> Work[dict[str, Any]]:
    topic = context.services.catalog.by_id(topic_id)
    if topic is None:
        return {"error_code": ErrorCode.UNKNOWN_TOPIC_ID, "name": None, "topic_id": topic_id, "partitions": []}
    if not context.may(AclOperation.DESCRIBE, Resource.TOPIC, topic.name):
        return {**_UNSEEN, "name": None, "topic_id": topic_id}
    return (yield from _topic(context, body, topic))


def _create(context: RequestContext, name: str) -> None:
    """Make the topic, which this answer still calls unknown: clients ask again. Kafka: DefaultAutoTopicCreationManager.

    Its controller's refusal (`num.partitions` beyond what a request may make, too few brokers for `default.replication.factor`)
    leaves it unknown for good.
    """
    catalog, config = context.services.catalog, context.services.config
    count, has_brokers = config.num_partitions, len(context.services.cluster.brokers) >= config.default_replication_factor
    if has_brokers and count < MAX_RECORDS_OF_A_CHANGE and catalog.creation_error(name, count) is ErrorCode.NONE:
        try:
            catalog.create({name: count})
        except StorageError as error:
            context.services.data.storage_failed(error)


def _is_made_when_asked_for(context: RequestContext, body: Any) -> bool:
    return context.services.config.auto_create_topics_enable and getattr(body, "allow_auto_topic_creation", True)


def _topic(context: RequestContext, body: Any, topic: TopicMetadata) -> Work[dict[str, Any]]:
    with_operations = getattr(body, "include_topic_authorized_operations", False)
    return {
        "error_code": ErrorCode.NONE,
        "name": topic.name,
        "topic_id": topic.topic_id,
        "is_internal": topic.name in INTERNAL_TOPICS,
        "partitions": (yield from each(range(topic.partition_count), partial(partition_of, context, topic.name))),
        "topic_authorized_operations": context.operations(Resource.TOPIC, topic.name) if with_operations else NOT_TOLD,
    }


def partition_of(context: RequestContext, topic: str, partition: int) -> dict[str, Any]:
    """Numbers and known tuples only, which Python's collector of cycles does not follow: answers have 100,000 of these."""
    cluster = context.services.cluster
    leader = cluster.leader(topic, partition)
    replicas = cluster.replicas(topic, partition) if cluster.has_moved else _replicas(leader.node_id)
    offline = () if leader.is_up and len(replicas) == 1 else tuple(each for each in replicas if not cluster.is_up(each))
    return {
        "error_code": _NO_ERROR if leader.is_up else int(ErrorCode.LEADER_NOT_AVAILABLE),
        "partition_index": partition,
        "leader_id": leader.node_id if leader.is_up else -1,
        "leader_epoch": LEADER_EPOCH,
        "replica_nodes": replicas,
        "isr_nodes": tuple(each for each in replicas if each not in offline) if offline else replicas,
        "offline_replicas": offline,
        "eligible_leader_replicas": (),
        "last_known_elr": (),
    }


_NO_ERROR = int(ErrorCode.NONE)


@cache
def _replicas(node_id: int) -> tuple[int]:
    """Without a place among what the collector follows, which a tuple leaves in the first pass that meets it."""
    made = (node_id,)
    gc.collect(0)
    return made


SPEC = ApiSpec(3, "Metadata", 0, 13, handle)
