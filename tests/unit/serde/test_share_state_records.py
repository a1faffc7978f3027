"""Records of ``__share_group_state``: bytes that Apache Kafka 4.3.1 wrote, both ways, and what bytes can do wrong."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgctl.model.share import SharePartitionKey, ShareSnapshot, ShareStateRecord, ShareUpdate, StateBatch
from kgctl.serde.record_schema import RecordDecodeError, RecordEncodeError
from kgctl.serde.share_state_records import decode_record, encode_record

KEY = SharePartitionKey("g", UUID("b74d3403-8b37-553c-2223-90936c4a7a3c"), 1)
KEY_HEX = "000167b74d34038b37553c222390936c4a7a3c00000001"
TWO_BATCHES = (StateBatch(5, 9, 0, 1), StateBatch(10, 10, 2, 3))
TWO_BATCHES_HEX = "03000000000000000500000000000000090000010000000000000000 0a000000000000000a02000300"
WRITTEN_BY_KAFKA = [
    (
        ShareStateRecord(KEY, ShareSnapshot(0, 2, 0, -1, -1, (), 1_000, 1_000)),
        f"0000{KEY_HEX}",
        "0000000000000000000200000000ffffffffffffffff00000000000003e800000000000003e80100",
    ),
    (
        ShareStateRecord(KEY, ShareSnapshot(1, 2, 0, 5, 0, (), 1_000, 1_000)),
        f"0000{KEY_HEX}",
        "0000000000010000000200000000000000000000000500000000000003e800000000000003e80101000400000000",
    ),
    (
        ShareStateRecord(KEY, ShareUpdate(2, 3, -1, 3)),
        f"0001{KEY_HEX}",
        "00000000000200000003ffffffffffffffff0101000400000003",
    ),
    (
        ShareStateRecord(KEY, ShareUpdate(1, 3, 5, 2, TWO_BATCHES)),
        f"0001{KEY_HEX}",
        f"000000000001000000030000000000000005{TWO_BATCHES_HEX}01000400000002",
    ),
    (ShareStateRecord(KEY), f"0000{KEY_HEX}", None),
]


@pytest.mark.parametrize(("record", "key", "value"), WRITTEN_BY_KAFKA)
def test_records_are_written_and_read_as_by_kafka(record: ShareStateRecord, key: str, value: str | None) -> None:
    raw = bytes.fromhex(key), None if value is None else bytes.fromhex(value)

    assert encode_record(record) == raw
    assert decode_record(*raw) == record


@pytest.mark.parametrize("value", [None, b"\0\0"])
def test_records_of_newer_brokers_are_left_out(value: bytes | None) -> None:
    assert decode_record(b"\0\2" + bytes.fromhex(KEY_HEX), value) is None


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("", None, "2 bytes announced"),
        (f"0000{KEY_HEX}"[:-2], None, "4 bytes announced"),
        (f"0000{KEY_HEX}", "", "2 bytes announced"),
        (f"0000{KEY_HEX}", "0001", "version 1 of a record of type 0"),
        (f"0001{KEY_HEX}", None, "a ShareUpdate without value"),
    ],
)
def test_what_is_no_record_is_refused(key: str, value: str | None, reason: str) -> None:
    with pytest.raises(RecordDecodeError, match=reason):
        decode_record(bytes.fromhex(key), None if value is None else bytes.fromhex(value))


@given(st.binary(max_size=60), st.none() | st.binary(max_size=90))
def test_any_bytes_are_a_record_or_refused(key: bytes, value: bytes | None) -> None:
    for head in (b"", b"\0\0", b"\0\1"):
        try:
            decode_record(head + key, value)
        except RecordDecodeError:
            continue


def test_a_group_id_too_long_for_a_key_is_refused() -> None:
    with pytest.raises(RecordEncodeError, match="a string of 32768 bytes"):
        encode_record(ShareStateRecord(SharePartitionKey("g" * 32_768, KEY.topic_id, 0)))
