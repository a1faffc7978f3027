"""Values of the offsets topic for readers that know no newer version."""

from __future__ import annotations

from uuid import UUID

from kgctl.model.coordinator_records import CoordinatorRecord, GroupMetadataKey, OffsetCommitKey, OffsetCommitValue
from kgctl.serde.coordinator_records import decode_record, encode_record, older_value

KEY = OffsetCommitKey("payments", "orders", 1)


def test_a_commit_loses_its_topic_id_and_nothing_else() -> None:
    commit = OffsetCommitValue(42, 3, "notiz ü", 1_700_000_000_000, topic_id=UUID(int=7))
    key, value = encode_record(CoordinatorRecord(KEY, commit))
    older = older_value(key, value)

    assert older == bytes.fromhex("0003 000000000000002a 00000003 0008 6e6f74697a20c3bc 0000018bcfe56800")
    assert decode_record(key, older).value == OffsetCommitValue(42, 3, "notiz ü", 1_700_000_000_000)


def test_tombstones_older_commits_and_other_records_stay() -> None:
    key, expiring = encode_record(CoordinatorRecord(KEY, OffsetCommitValue(1, expire_timestamp_ms=5)))
    other, _ = encode_record(CoordinatorRecord(GroupMetadataKey("payments"), None))

    assert older_value(key, None) is None
    assert older_value(key, expiring) == expiring
    assert older_value(other, b"\x00\x04anything") == b"\x00\x04anything"
    assert older_value(None, b"\x00\x04anything") == b"\x00\x04anything"
