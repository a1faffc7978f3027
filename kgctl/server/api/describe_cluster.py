"""DescribeCluster."""

from __future__ import annotations

from typing import Any

from kgctl.model.error_codes import ErrorCode
from kgctl.server.api.fields import cluster_operations, endpoint_of
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Values

BROKERS, CONTROLLERS = 1, 2
MISMATCH = "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"


def handle(context: RequestContext, body: Any) -> Values:
    """Only brokers can be asked for: there are no controllers of their own."""
    endpoint_type = getattr(body, "endpoint_type", BROKERS)
    if endpoint_type != BROKERS:
        is_known = endpoint_type == CONTROLLERS
        return {
            "error_code": ErrorCode.MISMATCHED_ENDPOINT_TYPE if is_known else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            "error_message": MISMATCH if is_known else f"Unsupported endpoint type {endpoint_type}",
        }
    cluster = context.services.cluster
    return {
        "error_code": ErrorCode.NONE,
        "endpoint_type": BROKERS,
        "cluster_id": cluster.cluster_id,
        "controller_id": cluster.controller.node_id,
        "brokers": [{"broker_id": broker.node_id, **endpoint_of(broker, context)} for broker in cluster.live_brokers()],
        "cluster_authorized_operations": cluster_operations(context, is_asked=body.include_cluster_authorized_operations),
    }


SPEC = ApiSpec(60, "DescribeCluster", 0, 2, handle)
