"""What a program in Java prints without meaning to: the order of its hash maps, and the names of its exceptions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TypeVar

from kgctl.model.error_codes import KAFKAS_WORDS, ErrorCode
from kgctl.model.groups import TopicPartition
from kgctl.model.values import hash_map_order, string_hash, timeline_hash_map_order

K = TypeVar("K")


def in_java_order(keys: Iterable[K], hash_of: Callable[[K], int]) -> list[K]:
    """Return the keys as a HashMap that grew by them iterates: by bucket, and in one bucket as they came."""
    return hash_map_order(dict.fromkeys(keys), hash_of=hash_of)


def as_committed(partitions: Collection[TopicPartition]) -> list[TopicPartition]:
    """Partitions of a group as its coordinator lists their commits, by topics in the order of OffsetMetadataManager's map.

    Topics of one slot of that map come as they are given here, the last one first; there the one that was committed to last.
    """
    topics = timeline_hash_map_order(dict.fromkeys(topic for topic, _ in partitions))
    places = {topic: place for place, topic in enumerate(topics)}
    return sorted(partitions, key=lambda each: (places[each.topic], each.partition))


def hash_of_partition(partition: TopicPartition) -> int:
    """TopicPartition#hashCode."""
    return (31 * (31 + partition.partition) + string_hash(partition.topic)) & 0xFFFFFFFF


_NAMES = {
    ErrorCode.NON_EMPTY_GROUP: "GroupNotEmpty",
    ErrorCode.REQUEST_TIMED_OUT: "Timeout",
    ErrorCode.NETWORK_EXCEPTION: "Disconnect",
    ErrorCode.UNKNOWN_SERVER_ERROR: "UnknownServer",
    ErrorCode.OFFSET_METADATA_TOO_LARGE: "OffsetMetadataTooLarge",
}
"""Where the exception is not called as the error is. Source: org.apache.kafka.common.protocol.Errors."""

_HAS_ITS_WORDS = (
    ErrorCode.NON_EMPTY_GROUP,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.INVALID_GROUP_ID,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_MEMBER_ID,
)
"""Errors that administrators meet in Kafka's words; of others what the broker said is told."""


def message_of(code: ErrorCode, otherwise: str = "") -> str:
    return KAFKAS_WORDS[code] if code in _HAS_ITS_WORDS else otherwise


def exception_of(code: ErrorCode, message: str) -> str:
    """Return what Throwable#toString says of Kafka's exception for an error."""
    words = "".join(word.capitalize() for word in code.name.removesuffix("_EXCEPTION").split("_")).removesuffix("Failed")
    return f"org.apache.kafka.common.errors.{_NAMES.get(code, words)}Exception: {message}"
