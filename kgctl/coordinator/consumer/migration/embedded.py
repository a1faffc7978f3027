"""The embedded consumer protocol as the coordinator of a mixed group reads and writes it: subscriptions in, assignments out."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from kgctl.coordinator.consumer.assignment.current_assignment import OwnedPartitions
from kgctl.coordinator.consumer.member import Partitions, Target
from kgctl.coordinator.requests import JoinProtocol
from kgctl.model.partitions import MetadataImage, TopicPartition
from kgctl.model.subscription import ConsumerSubscription
from kgctl.serde.consumer_protocol import (
    LATEST_VERSION,
    decode_assignment,
    decode_subscription,
    encode_assignment_by_topic,
    group_by_topic,
)


class CustomAssignor(Exception):  # noqa: N818 - says what was found
    """The assignment has user data: an assignor is in use whose state would be lost."""


def subscription_of(protocols: Sequence[JoinProtocol]) -> ConsumerSubscription:
    """The subscription in the first protocol, which is the one that counts. Raises MalformedConsumerProtocol, a ValueError."""
    return decode_subscription(protocols[0].metadata)


def owned_partitions(owned: Sequence[TopicPartition], image: MetadataImage) -> OwnedPartitions:
    """Partitions by name as partitions by id; topics that do not exist are left out."""
    return [(image.topics[topic].topic_id, numbers) for topic, numbers in group_by_topic(owned) if topic in image.topics]


def target_of_bytes(assignment: bytes, image: MetadataImage) -> dict[UUID, tuple[int, ...]]:
    """What an assignment gives, topics that do not exist left out. Empty bytes give nothing.

    Raises MalformedConsumerProtocol, a ValueError, or `CustomAssignor`.
    """
    if not assignment:
        return {}
    decoded = decode_assignment(assignment)
    if decoded.user_data:
        raise CustomAssignor
    topics = group_by_topic(decoded.partitions)
    return {image.topics[topic].topic_id: tuple(dict.fromkeys(numbers)) for topic, numbers in topics if topic in image.topics}


def assignment_bytes(partitions: Target | Partitions, image: MetadataImage, metadata: bytes) -> bytes:
    """An assignment as a classic member reads it, in the version in which it wrote its subscription."""
    names = {topic.topic_id: name for name, topic in image.topics.items()}
    topics = [(names[topic_id], list(numbers)) for topic_id, numbers in partitions.items() if topic_id in names]
    version = int.from_bytes(metadata[:2], "big", signed=True)
    return encode_assignment_by_topic(topics, None, min(max(version, 0), LATEST_VERSION))
