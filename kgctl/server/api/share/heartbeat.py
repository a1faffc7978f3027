"""ShareGroupHeartbeat (KIP-932)."""

from __future__ import annotations

from typing import Any

from kgctl.model.error_codes import ErrorCode
from kgctl.model.share_requests import ShareGroupHeartbeat
from kgctl.server.api.consumer_group_heartbeat import render, topics_refusal
from kgctl.server.api.fields import unsupported
from kgctl.server.request_context import SHARE_VERSION, ApiSpec, RequestContext
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


def refusal(context: RequestContext, body: Any) -> Values | None:
    """What is wrong with the member's id or with its rights to topics."""
    if not is_member_id(body.member_id):
        return {"error_code": ErrorCode.INVALID_REQUEST}
    return topics_refusal(context, body)


SPEC = ApiSpec(
    76, "ShareGroupHeartbeat", 1, 1, HeartbeatHandler(question, render, refusal), feature=SHARE_VERSION, when_off=unsupported
)
