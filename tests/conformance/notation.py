"""The cases' notation for partitions, topic ids, times and the consumer protocol's bytes."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from kgctl.model.groups import ConsumerAssignment, ConsumerSubscription, MetadataImage, TopicMetadata, TopicPartition
from kgctl.serde.consumer_protocol import (
    MalformedConsumerProtocol,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)

START_MS = 1_700_000_000_000
"""Virtual time 0: Kafka takes a timestamp of 0 for "unknown"."""

TopicPartitionIds = tuple[tuple[UUID, tuple[int, ...]], ...]

_ALWAYS = {"t": (4, "t000A4s3VTwiI5CTbEp6PO"), "u": (10, "u000B4s3VTwiI5YHbPp6YQ")}
_DEFAULT_ID = "000000000000000000000A"


def partition(text: str) -> TopicPartition:
    """``topic-number``."""
    topic, _, number = text.rpartition("-")
    return TopicPartition(topic, int(number))


def partitions(texts: Iterable[str]) -> tuple[TopicPartition, ...]:
    """Several, in their order."""
    return tuple(map(partition, texts))


def topic_id(text: str) -> UUID:
    """A topic's id from URL-safe base64 without padding."""
    return UUID(bytes=urlsafe_b64decode(text + "=="))


def image(topics: Mapping[str, Any], version: int) -> MetadataImage:
    """The cluster: these topics and the two that every case has."""
    known = {name: (count, text) for name, (count, text) in _ALWAYS.items() if name not in topics}
    for name, topic in topics.items():
        known[name] = (topic["partitions"], topic.get("id", (name + _DEFAULT_ID)[:22]))
    entries = {name: TopicMetadata(name, topic_id(text), count) for name, (count, text) in known.items()}
    return MetadataImage(entries, version)


def by_topic_id(texts: Iterable[str], known: MetadataImage) -> TopicPartitionIds:
    """Partitions as the consumer protocol sends them: grouped by topic id."""
    grouped: dict[UUID, list[int]] = {}
    for topic, number in partitions(texts):
        grouped.setdefault(known.topics[topic].topic_id, []).append(number)
    return tuple((uuid, tuple(numbers)) for uuid, numbers in grouped.items())


def from_topic_ids(assignment: TopicPartitionIds, names: Mapping[UUID, str]) -> list[str]:
    """The same, back in the cases' notation, sorted."""
    return sorted(f"{names[uuid]}-{number}" for uuid, numbers in assignment for number in numbers)


def subscription_bytes(topics: Iterable[str], owned: Iterable[str] = ()) -> bytes:
    """The metadata of every protocol in a join."""
    return encode_subscription(ConsumerSubscription(tuple(topics), owned_partitions=partitions(owned)))


def assignment_bytes(texts: Iterable[str] | None) -> bytes:
    """A member's assignment; None is no bytes at all."""
    return b"" if texts is None else encode_assignment(ConsumerAssignment(partitions(texts)))


def subscribed(metadata: bytes) -> list[str]:
    """The topics in a subscription, sorted; none where it cannot be read."""
    try:
        return sorted(decode_subscription(metadata).topics) if metadata else []
    except MalformedConsumerProtocol:
        return []


def assigned(assignment: bytes) -> list[str]:
    """The partitions in an assignment, each once, sorted; no bytes are no partitions."""
    try:
        return sorted(set(map(str, decode_assignment(assignment).partitions))) if assignment else []
    except MalformedConsumerProtocol:
        return ["malformed"]


def text(notation: str) -> str:
    """``x*4097`` means 4097 times x."""
    repeated = re.fullmatch(r"(.)\*(\d+)", notation)
    return repeated[1] * int(repeated[2]) if repeated else notation


def short(value: str) -> str:
    """The other way: long texts stand shortened in records."""
    return f"{value[0]}*{len(value)}" if len(value) > 64 else value
