"""Which topics the members of a classic group are subscribed to, as far as their metadata tells."""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct, error

_HEADER = Struct(">hi")  # version, number of topics
_LENGTH = Struct(">h")
_USER_DATA = Struct(">i")


class _UnreadableError(Exception):
    pass


def subscribed_topics(metadata: Iterable[bytes]) -> frozenset[str] | None:
    """The union of the members' topics; None when one member's metadata cannot be read.

    Whatever version it says, metadata is read as version 0. Kafka: ClassicGroup#computeSubscribedTopics.
    """
    topics: set[str] = set()
    for subscription in set(metadata):
        try:
            topics.update(_topics(subscription))
        except (_UnreadableError, error, UnicodeDecodeError):
            return None
    return frozenset(topics)


def _topics(subscription: bytes) -> list[str]:
    _, count = _HEADER.unpack_from(subscription)
    if count < 0:
        raise _UnreadableError
    topics, position = [], _HEADER.size
    for _ in range(count):
        (length,) = _LENGTH.unpack_from(subscription, position)
        position += _LENGTH.size + length
        if length < 0 or position > len(subscription):
            raise _UnreadableError
        topics.append(subscription[position - length : position].decode())
    (user_data,) = _USER_DATA.unpack_from(subscription, position)
    if user_data > len(subscription) - position - _USER_DATA.size:
        raise _UnreadableError
    return topics
