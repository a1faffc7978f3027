"""ShareGroupHeartbeat (KIP-932)."""

from __future__ import annotations

from typing import Any

from kgctl.model.error_codes import ErrorCode
from kgctl.model.share_requests import ShareGroupHeartbeat
from kgctl.model.share_results import ShareGroupHeartbeatResult
from kgctl.server.acls import AclOperation, Resource
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.responses import HeartbeatHandler
from kgctl.server.runtime import Values

MOST_OF_A_MEMBER_ID = 36


def is_member_id(member_id: str | None) -> bool:
    """Whether a member may be called so. Kafka: KafkaApis#isMemberIdValid."""
    return bool(member_id) and len((member_id or "").encode("utf-16-le")) <= 2 * MOST_OF_A_MEMBER_ID


def question(context: RequestContext, body: Any) -> ShareGroupHeartbeat:
    """None in a field means "unchanged"."""
    names = body.subscribed_topic_names
    return ShareGroupHeartbeat(
        **context.core(),
        group_id=body.group_id,
        member_id=body.member_id,
        member_epoch=body.member_epoch,
        rack_id=body.rack_id,
        subscribed_topic_names=None if names is None else tuple(names),
    )


def render(result: ShareGroupHeartbeatResult) -> Values:
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


def refusal(context: RequestContext, body: Any) -> ErrorCode | None:
    """What is wrong with the member's id or with its rights to topics."""
    if not is_member_id(body.member_id):
        return ErrorCode.INVALID_REQUEST
    may_see = all(context.may(AclOperation.DESCRIBE, Resource.TOPIC, name) for name in body.subscribed_topic_names or ())
    return None if may_see else ErrorCode.TOPIC_AUTHORIZATION_FAILED


def when_off(_: RequestContext, __: Any) -> Values:
    """The broker has share groups, which are not on."""
    return {"error_code": ErrorCode.UNSUPPORTED_VERSION}


SPEC = ApiSpec(
    76, "ShareGroupHeartbeat", 1, 1, HeartbeatHandler(question, render, refusal), feature="share.version", when_off=when_off
)
