"""The value of a ConsumerGroupPartitionMetadata record: the topics of a group as brokers before 4.1 kept them.

Later ones keep a hash of them (KIP-1101) and only delete such records. Kafka: ConsumerGroupPartitionMetadataValue.json.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

from kgctl.serde.record_schema import INT32, Field, Layout, Reader, Structure, array, string, uuid

_VERSION = b"\0\0"


class SubscribedTopic(NamedTuple):
    """A topic as it was when the group epoch was last looked at. ``racks`` are those that brokers before 4.0 wrote."""

    topic_id: UUID
    name: str
    partition_count: int
    racks: tuple[object, ...] = ()


def _racks(layout: Layout) -> Structure:
    return Structure(dict, (Field("partition", INT32), Field("racks", array(string))), layout)


def _topic(layout: Layout) -> Structure:
    rows = (Field("topic_id", uuid), Field("name", string), Field("partition_count", INT32), Field("racks", array(_racks)))
    return Structure(SubscribedTopic, rows, layout)


_VALUE = Structure(
    lambda topics: topics, (Field("topics", array(_topic)),), Layout(0, flexible=True), values=lambda topics: (topics,)
)


def encode_partition_metadata(topics: Iterable[SubscribedTopic]) -> bytes:
    """The value with these topics, in their order."""
    out = bytearray(_VERSION)
    _VALUE.write(out, tuple(topics))
    return bytes(out)


def decode_partition_metadata(value: bytes) -> tuple[SubscribedTopic, ...]:
    """The topics of a value. Raises `RecordDecodeError`."""
    topics: tuple[SubscribedTopic, ...] = _VALUE.read(Reader(value, len(_VERSION)))
    return topics
