"""What a live member sends is read by the server's codec as it was meant, in each version that may be spoken."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from kgctl.group.requests import CODECS, SEVERAL_GROUPS_SINCE, subscribed_topics
from kgctl.model.groups import ConsumerSubscription, TopicPartition
from kgctl.model.requests import (
    ConsumerGroupHeartbeat,
    Heartbeat,
    JoinGroup,
    JoinGroupMember,
    JoinProtocol,
    LeaveGroup,
    MemberIdentity,
    OffsetCommit,
    OffsetCommitPartition,
    OffsetFetch,
    Request,
    SyncGroup,
)
from kgctl.serde.consumer_protocol import encode_subscription
from kgctl.serde.messages import decode_request, encode_request

GROUP: Any = {"request_id": 1, "group_id": "group"}
REQUESTS: list[Request] = [
    JoinGroup(**GROUP, member_id="m", protocols=(JoinProtocol(name="range", metadata=b"\x00\x01"),), reason="why"),
    SyncGroup(**GROUP, generation_id=3, member_id="m", protocol_name="range", assignments=(("m", b"\x02"),)),
    Heartbeat(**GROUP, generation_id=3, member_id="m"),
    LeaveGroup(**GROUP, members=(MemberIdentity(member_id="m", reason="why"),)),
    OffsetCommit(**GROUP, generation_id=3, member_id="m", partitions=(OffsetCommitPartition(topic="t", partition=2, offset=9),)),
    OffsetFetch(**GROUP, partitions=(TopicPartition("t", 1), TopicPartition("t", 2)), require_stable=True),
    ConsumerGroupHeartbeat(**GROUP, member_id="m", member_epoch=2, topic_partitions=((UUID(int=5), (0, 1)),)),
]


def versions() -> list[Any]:
    return [
        pytest.param(request, version, id=f"{CODECS[type(request)].api.name}-{version}")
        for request in REQUESTS
        for version in range(CODECS[type(request)].api.lowest, CODECS[type(request)].api.highest + 1)
    ]


@pytest.mark.parametrize(("request_", "version"), versions())
def test_request_is_read_as_it_was_meant(request_: Request, version: int) -> None:
    codec = CODECS[type(request_)]
    values = codec.encode(request_, version)
    body = decode_request(encode_request(codec.api.key, version, 1, "c", values)).body
    for name, value in values.items():
        assert same(getattr(body, name, value), value), name


def same(read: Any, meant: Any) -> bool:
    """Whether the entity says what the values say, as far as its version has the fields."""
    if isinstance(meant, dict):
        return all(same(getattr(read, name, value), value) for name, value in meant.items())
    if isinstance(meant, list | tuple):
        return len(read) == len(meant) and all(same(one, other) for one, other in zip(read, meant, strict=True))
    return bool(read == meant)


def test_a_group_is_asked_for_by_itself_before_kip_709() -> None:
    request = OffsetFetch(**GROUP, partitions=(TopicPartition("t", 1),))
    codec = CODECS[OffsetFetch]
    assert set(codec.encode(request, SEVERAL_GROUPS_SINCE - 1)) == {"group_id", "topics", "require_stable"}
    assert set(codec.encode(request, SEVERAL_GROUPS_SINCE)) == {"groups", "require_stable"}


def test_what_the_members_of_a_group_subscribe_to() -> None:
    said = [encode_subscription(ConsumerSubscription(topics)) for topics in (("a", "b"), ("b", "c"))]
    members = [JoinGroupMember(member_id=str(number), metadata=data) for number, data in enumerate((*said, b"", b"junk"))]
    assert subscribed_topics(members) == {"a", "b", "c"}
