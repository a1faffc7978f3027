"""Values of ``__consumer_offsets`` as older Kafkas wrote them, for readers that know no newer version."""

from __future__ import annotations

import struct

from kgctl.model.records import OffsetCommitKey, OffsetCommitValue
from kgctl.serde.coordinator_records import decode_value

OFFSET_COMMIT_KEYS = (b"\x00\x00", b"\x00\x01")
NEWEST, OLDER = struct.pack(">h", 4), 3
_ANY_KEY = OffsetCommitKey("", "", 0)


def older_value(key: bytes | None, value: bytes | None) -> bytes | None:
    """An OffsetCommitValue of version 4 (Kafka 4.1 and later) as version 3, without its topic id; anything else as it is."""
    if key is None or value is None or key[:2] not in OFFSET_COMMIT_KEYS or value[:2] != NEWEST:
        return value
    commit = decode_value(_ANY_KEY, value)
    assert isinstance(commit, OffsetCommitValue)
    metadata = commit.metadata.encode()
    head = struct.pack(">hqih", OLDER, commit.offset, commit.leader_epoch, len(metadata))
    return head + metadata + struct.pack(">q", commit.commit_timestamp_ms)
