"""The user data of the sticky assignors: what a member remembers of its last assignment, as bytes in its subscription."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from kgctl.assignors.spec import StickyClaim
from kgctl.assignors.wire_form import read_partitions
from kgctl.model.subscription import NO_GENERATION

_INT32 = struct.Struct(">i")


def decode_sticky(data: bytes | None) -> StickyClaim:
    """What the sticky assignor reads: partitions and generation, or partitions alone (v0); unreadable: nothing, generation -1.

    Kafka: ``StickyAssignor#memberData``.
    """
    if not data:
        return StickyClaim()
    try:
        owned, end = read_partitions(data, 0)
    except (struct.error, ValueError):
        return StickyClaim(generation=NO_GENERATION)
    if end + 4 > len(data):
        return StickyClaim(owned)
    return StickyClaim(owned, _INT32.unpack_from(data, end)[0])


def encode_sticky(owned: Mapping[str, Sequence[int]], generation: int | None) -> bytes:
    """The user data of a member of the sticky assignor; without ``generation`` the old form (v0)."""
    parts = [_INT32.pack(len(owned))]
    for topic, partitions in owned.items():
        name = topic.encode()
        parts.append(struct.pack(f">h{len(name)}si{len(partitions)}i", len(name), name, len(partitions), *partitions))
    if generation is not None:
        parts.append(_INT32.pack(generation))
    return b"".join(parts)


def decode_cooperative(data: bytes | StickyClaim | None) -> int | None:
    """The generation in a cooperative-sticky member's user data: None without any, -1 if it cannot be read."""
    if data is None:
        return None
    if isinstance(data, StickyClaim):
        return data.generation
    return int(_INT32.unpack_from(data)[0]) if len(data) >= 4 else NO_GENERATION


def encode_cooperative(generation: int) -> bytes:
    """The user data of a cooperative-sticky member."""
    return _INT32.pack(generation)
