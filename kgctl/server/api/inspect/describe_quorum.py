"""DescribeQuorum: who keeps the cluster's metadata. Here the brokers do, and the controller among them leads.

Kafka: KafkaRaftClient#handleDescribeQuorumRequest.
"""

from __future__ import annotations

from typing import Any

from kgctl.model.access import AclOperation, Resource
from kgctl.model.error_codes import KAFKAS_WORDS, ErrorCode
from kgctl.server.api.fields import NO_RIGHT, Refused, endpoint_of, refuse
from kgctl.server.request_context import ApiSpec, ClusterRight, RequestContext
from kgctl.server.runtime import Values
from kgctl.server.traffic import Work, each

METADATA_TOPIC = "__cluster_metadata"
LISTENER = "CONTROLLER"
QUORUM_EPOCH = 1


def handle(context: RequestContext, body: Any) -> Work[Values]:
    """The one partition of the metadata's log; any other is unknown, and with it all that was asked for."""
    asked = yield from each(body.topics, lambda topic: (topic.topic_name, [one.partition_index for one in topic.partitions]))
    if asked != [(METADATA_TOPIC, [0])]:
        refused = yield from each(asked, lambda topic: {"topic_name": topic[0], "partitions": list(map(_refusal, topic[1]))})
        return {"error_code": ErrorCode.NONE, "error_message": "", "topics": refused}
    topics = [{"topic_name": METADATA_TOPIC, "partitions": [_quorum(context)]}]
    return {"error_code": ErrorCode.NONE, "error_message": "", "topics": topics, "nodes": _nodes(context)}


def _refusal(partition: int) -> Values:
    return {
        "partition_index": partition,
        "error_code": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "error_message": KAFKAS_WORDS[ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
    }


def _quorum(context: RequestContext) -> Values:
    services = context.services
    leader, end = services.cluster.controller.node_id, services.catalog.image.version
    now_ms = services.runtime.clock()
    voter = {"log_end_offset": end, "last_fetch_timestamp": now_ms, "last_caught_up_timestamp": now_ms}
    return {
        "partition_index": 0,
        "error_code": ErrorCode.NONE,
        "error_message": "",
        "leader_id": leader,
        "leader_epoch": QUORUM_EPOCH,
        "high_watermark": end,
        "current_voters": [{"replica_id": leader, **voter}],
        "observers": [{"replica_id": one.node_id, **voter} for one in services.cluster.live_brokers() if one.node_id != leader],
    }


def _nodes(context: RequestContext) -> list[Values]:
    controller = context.services.cluster.controller
    listener = {"name": LISTENER, **endpoint_of(controller, context)}
    return [{"node_id": controller.node_id, "listeners": [listener]}]


def _no_right(context: RequestContext, body: Any, _: Refused) -> Values:
    return refuse(context, body, NO_RIGHT[Resource.CLUSTER])


SPEC = ApiSpec(55, "DescribeQuorum", 0, 2, handle, right=ClusterRight(AclOperation.DESCRIBE, _no_right))
