"""What a classic member says when it joins: its assignors, each with the subscription in the consumer protocol's bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from kgctl.assignors.client.user_data import encode_cooperative, encode_sticky
from kgctl.coordinator.requests import JoinProtocol
from kgctl.model.frozen import frozen_in_order
from kgctl.model.partitions import TopicPartition
from kgctl.model.subscription import NO_GENERATION, ConsumerSubscription
from kgctl.serde.consumer_protocol import encode_subscription, group_by_topic


@frozen_in_order
class Remembered:
    """The last assignment, as the assignors' other half keeps it for the next round."""

    partitions: frozenset[TopicPartition]
    generation_id: int


def _sticky_user_data(remembered: Remembered | None) -> bytes | None:
    if remembered is None:
        return None
    owned: Mapping[str, Sequence[int]] = dict(group_by_topic(sorted(remembered.partitions)))
    return encode_sticky(owned, remembered.generation_id)


def _cooperative_user_data(remembered: Remembered | None) -> bytes:
    return encode_cooperative(NO_GENERATION if remembered is None else remembered.generation_id)


USER_DATA: Mapping[str, Callable[[Remembered | None], bytes | None]] = {
    "sticky": _sticky_user_data,
    "cooperative-sticky": _cooperative_user_data,
}
"""Assignors that send something of their own along."""


def join_protocols(
    strategy: Sequence[str], subscription: ConsumerSubscription, remembered: Remembered | None
) -> tuple[JoinProtocol, ...]:
    """The protocols of a JoinGroup, in the order of preference. Kafka: ``ConsumerCoordinator#metadata``."""
    encoded: dict[bytes | None, bytes] = {}
    found = []
    for name in strategy:
        user_data = USER_DATA[name](remembered) if name in USER_DATA else subscription.user_data
        metadata = encoded.get(user_data)
        if metadata is None:
            says = subscription if user_data == subscription.user_data else replace(subscription, user_data=user_data)
            metadata = encoded[user_data] = encode_subscription(says)
        found.append(JoinProtocol(name=name, metadata=metadata))
    return tuple(found)
