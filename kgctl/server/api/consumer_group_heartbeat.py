"""ConsumerGroupHeartbeat (KIP-848)."""

from __future__ import annotations

from typing import Any

from kgctl.model.access import AclOperation, Resource
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import ZERO_UUID
from kgctl.model.requests import ConsumerGroupHeartbeat, ConsumerGroupHeartbeatResult
from kgctl.model.share_results import ShareGroupHeartbeatResult
from kgctl.server.api.fields import unsupported
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.responses import HeartbeatHandler
from kgctl.server.runtime import Values


def question(context: RequestContext, body: Any) -> ConsumerGroupHeartbeat:
    """None in a field means "unchanged"."""
    return ConsumerGroupHeartbeat(
        **context.core(),
        group_id=body.group_id,
        member_id=body.member_id,
        member_epoch=body.member_epoch,
        instance_id=body.instance_id,
        rack_id=body.rack_id,
        rebalance_timeout_ms=body.rebalance_timeout_ms,
        subscribed_topic_names=_tuple(body.subscribed_topic_names),
        subscribed_topic_regex=getattr(body, "subscribed_topic_regex", None),
        server_assignor=body.server_assignor,
        topic_partitions=_owned(body.topic_partitions),
    )


def _tuple(names: Any) -> tuple[str, ...] | None:
    return None if names is None else tuple(names)


def _owned(topic_partitions: Any) -> Any:
    if topic_partitions is None:
        return None
    return tuple((entry.topic_id or ZERO_UUID, tuple(entry.partitions)) for entry in topic_partitions)


def render(result: ConsumerGroupHeartbeatResult | ShareGroupHeartbeatResult) -> Values:
    """The answer, which is the same in the share groups' protocol."""
    assignment = None
    if result.assignment is not None:
        assignment = {
            "topic_partitions": [{"topic_id": topic_id, "partitions": partitions} for topic_id, partitions in result.assignment]
        }
    return {
        "error_code": result.error,
        "error_message": result.error_message,
        "member_id": result.member_id,
        "member_epoch": result.member_epoch,
        "heartbeat_interval_ms": result.heartbeat_interval_ms,
        "assignment": assignment,
    }


def topics_refusal(context: RequestContext, body: Any) -> Values | None:
    """Whoever subscribes to topics by name has to be allowed to see each of them."""
    may_see = all(context.may(AclOperation.DESCRIBE, Resource.TOPIC, name) for name in body.subscribed_topic_names or ())
    return None if may_see else {"error_code": ErrorCode.TOPIC_AUTHORIZATION_FAILED}


_HANDLER = HeartbeatHandler(question, render, topics_refusal)

SPEC = ApiSpec(68, "ConsumerGroupHeartbeat", 0, 1, _HANDLER, protocol="consumer", when_off=unsupported)
