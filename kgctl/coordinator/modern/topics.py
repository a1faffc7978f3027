"""The topics that a group subscribes to, and their hash (KIP-1101). Kafka: Utils#computeTopicHash, #computeGroupHash."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import lru_cache

from xxhash import xxh3_64_intdigest

from kgctl.model.groups import MetadataImage, TopicMetadata
from kgctl.model.values import frozen_in_order

_MAGIC = b"\x00"
_INT32 = struct.Struct("<i")
_INT64 = struct.Struct("<q")


@lru_cache(maxsize=4096)
def topic_hash(topic: TopicMetadata) -> int:
    """The hash of one topic as a signed 64-bit number: id, name, number of partitions, and each partition's racks."""
    data = bytearray(_MAGIC)
    high, low = divmod(topic.topic_id.int, 1 << 64)
    data += struct.pack("<QQ", high, low)
    data += _string(topic.name) + _INT32.pack(topic.partition_count)
    for partition in range(topic.partition_count):
        data += _INT32.pack(partition)
        racks = topic.partition_racks[partition] if partition < len(topic.partition_racks) else ()
        for rack in sorted(racks, key=_utf16_order):
            data += _INT32.pack(len(_utf16(rack)) // 2) + _string(rack)
    return _signed(xxh3_64_intdigest(bytes(data)))


def group_hash(names: Iterable[str], image: MetadataImage) -> int:
    """The hash of a group that subscribes to these names: over those that exist, in order of name; 0 when there are none."""
    topics = sorted((name for name in names if name in image.topics), key=_utf16_order)
    if not topics:
        return 0
    return _signed(xxh3_64_intdigest(b"".join(_INT64.pack(topic_hash(image.topics[name])) for name in topics)))


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass")


def _utf16_order(text: str) -> bytes:
    """Sorts as Java compares strings, by UTF-16 units."""
    return text.encode("utf-16-be", "surrogatepass")


def _string(text: str) -> bytes:
    """Return a text as the hash takes it: its UTF-16 units, then their number."""
    units = _utf16(text)
    return units + _INT32.pack(len(units) // 2)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


METADATA_REFRESH_MS = 2**31 - 1
"""Topics that change say so themselves; the hash is not looked at for any other reason."""


@frozen_in_order
class Subscriptions:
    """The outcome: the group epoch, and whether all members subscribe to the same."""

    group_epoch: int
    is_homogeneous: bool
