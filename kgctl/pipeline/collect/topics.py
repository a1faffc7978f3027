"""Which topics groups have commits on, from the keys of the records that pass.

They are kept with the cluster (`Warehouse.tell`). A topic must not be forgotten because a sample failed, or because its records
were collected by a run that ended before its first sample: a group that has stalled commits nothing that would bring it back.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

import pyarrow.compute as pc

_SHORT = struct.Struct(">h")
_PARTITION_BYTES = 4
_OFFSET_COMMITS = (0, 1)


class TopicsSeen:
    """Grows with what it is shown."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self.topics = set(known)

    def see(self, keys: Any) -> None:
        """Keys of records of ``__consumer_offsets``, as an Arrow column. Those of other kinds, and damaged ones, tell nothing."""
        for key in pc.unique(pc.binary_slice(keys, 0, -_PARTITION_BYTES)).to_pylist():
            topic = _topic(key)
            if topic:
                self.topics.add(topic)


def _topic(key: bytes | None) -> str | None:
    """From version, group and topic, each with its length before it."""
    try:
        if key is None or _SHORT.unpack_from(key)[0] not in _OFFSET_COMMITS:
            return None
        at = 4 + _SHORT.unpack_from(key, 2)[0]
        size = _SHORT.unpack_from(key, at)[0]
        return key[at + 2 :].decode() if at >= 4 and len(key) == at + 2 + size else None
    except (struct.error, UnicodeDecodeError):
        return None
