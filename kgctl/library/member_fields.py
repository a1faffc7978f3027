"""What the calls of members become: fields of requests, and the consumer protocol's bytes in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kgctl.arguments import checked
from kgctl.errors import UsageError
from kgctl.model.groups import ConsumerSubscription
from kgctl.model.requests import JoinGroupResult, JoinProtocol
from kgctl.serde.consumer_protocol import (
    MalformedConsumerProtocol,
    decode_assignment_by_topic,
    encode_assignment_by_topic,
    encode_subscription,
)

Assignment = Mapping[str, Mapping[str, Sequence[int]]]
_TIMES = ("session_timeout_ms", "rebalance_timeout_ms")


@checked()
def decode_assignment(data: bytes) -> dict[str, tuple[int, ...]]:
    """Return what an assignment of the consumer protocol's bytes says: topic -> partitions, ascending.

    Raises:
        UsageError: the bytes are none.
    """
    try:
        found = decode_assignment_by_topic(data)
    except MalformedConsumerProtocol as error:
        raise UsageError(f"{len(data)} bytes are no assignment: {error}") from None
    return {topic: tuple(sorted(partitions)) for topic, partitions in found.items()}


def join_fields(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a JoinGroup, but the member id, from the arguments of `Coordinator.join`."""
    protocols = arguments["protocols"]
    metadata = protocols if isinstance(protocols, Mapping) else dict.fromkeys(protocols, _subscription(arguments["topics"]))
    names = ("group_id", "group_instance_id", "client_id", "client_host", "protocol_type", *_TIMES)
    given = {name: arguments[name] for name in names}
    return {**given, "protocols": tuple(JoinProtocol(name=name, metadata=data) for name, data in metadata.items())}


def sync_fields(
    group_id: str, joined: JoinGroupResult, assignment: Assignment | Mapping[str, bytes], group_instance_id: str | None
) -> dict[str, Any]:
    return {
        "group_id": group_id,
        "generation_id": joined.generation_id,
        "member_id": joined.member_id,
        "group_instance_id": group_instance_id,
        "protocol_type": joined.protocol_type,
        "protocol_name": joined.protocol_name,
        "assignments": tuple((member, _encoded(part)) for member, part in assignment.items()),
    }


def _subscription(topics: Sequence[str]) -> bytes:
    return encode_subscription(ConsumerSubscription(topics=tuple(sorted(topics))))


def _encoded(part: Mapping[str, Sequence[int]] | bytes) -> bytes:
    return part if isinstance(part, bytes) else encode_assignment_by_topic([(topic, list(each)) for topic, each in part.items()])
