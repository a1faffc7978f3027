"""Records of ``__consumer_offsets``: bytes that Apache Kafka wrote, both ways, and everything that bytes can do wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgctl.model.coordinator_records import (
    ClassicMemberMetadata,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    CoordinatorRecord,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from kgctl.serde.coordinator_records import (
    TYPE_OF_KEY,
    RecordDecodeError,
    RecordEncodeError,
    UnknownValueVersionError,
    decode_key,
    decode_record,
    decode_value,
    encode_key,
    encode_record,
    encode_value,
    key_structure,
    value_structure,
)
from kgctl.serde.record_schema import Reader
from tests.support.kafka_records import G_M, G_T_1, ID_HEX, MEMBER, WRITTEN_BY_KAFKA, A, commits, int32s, records, texts

CASES = [pytest.param(*case, id=name) for name, case in WRITTEN_BY_KAFKA.items()]


@pytest.mark.parametrize(("key", "value", "key_hex", "value_hex"), CASES)
def test_kafkas_own_bytes_decode_and_encode_to_the_same(key: Any, value: Any, key_hex: str, value_hex: str | None) -> None:
    key_bytes, value_bytes = bytes.fromhex(key_hex), None if value_hex is None else bytes.fromhex(value_hex)
    record = CoordinatorRecord(key, value)

    assert (decode_record(key_bytes, value_bytes), encode_record(record)) == (record, (key_bytes, value_bytes))


OLD_VALUES = [
    pytest.param(G_T_1, "0000000000000000002a00016d00000000000003e8", OffsetCommitValue(42, -1, "m", 1000), id="offset 0"),
    pytest.param(G_T_1, "0002000000000000002a00016d00000000000003e8", OffsetCommitValue(42, -1, "m", 1000), id="offset 2"),
    pytest.param(
        G_T_1, "0003000000000000002a0000000300016d00000000000003e8", OffsetCommitValue(42, 3, "m", 1000), id="offset 3"
    ),
    pytest.param(
        GroupMetadataKey("g"),
        "0000" "0001 63" "00000007" "ffff" "0001 6c" "00000001" "0001 6d" "0001 63" "0001 68" "00002710" "00000001aa" "00000000",
        GroupMetadataValue("c", 7, None, "l", -1, (MemberMetadata("m", None, "c", "h", -1, 10_000, b"\xaa", b""),)),
        id="group 0",
    ),
    pytest.param(
        GroupMetadataKey("g"),
        "0001" "0001 63" "00000007" "ffff" "0001 6c" "00000001" "0001 6d" "0001 63" "0001 68" "0000ea60" "00002710"
        "0000000000000000",
        GroupMetadataValue("c", 7, None, "l", -1, (MemberMetadata("m", None, "c", "h", 60_000, 10_000),)),
        id="group 1",
    ),
    pytest.param(
        GroupMetadataKey("g"),
        "0002" "0001 63" "00000007" "ffff" "0001 6c" "00000000000003e8" "00000000",
        GroupMetadataValue("c", 7, None, "l", 1000),
        id="group 2",
    ),
    pytest.param(
        GroupMetadataKey("g"),
        "0004" "02 63" "00000007" "00" "02 6c" "00000000000003e8" "02" "02 6d" "02 69" "02 63" "02 68" "0000ea60" "00002710"
        "02 aa" "01" "00" "00",
        GroupMetadataValue("c", 7, None, "l", 1000, (MemberMetadata("m", "i", "c", "h", 60_000, 10_000, b"\xaa"),)),
        id="group 4, compact",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("key", "value_hex", "expected"), OLD_VALUES)
def test_versions_that_are_no_longer_written_are_read(key: Any, value_hex: str, expected: Any) -> None:
    assert decode_value(key, bytes.fromhex(value_hex)) == expected


def test_a_key_of_type_0_reads_as_type_1() -> None:
    assert decode_key(bytes.fromhex("000000016700017400000001")) == G_T_1


def test_an_expire_time_is_written_as_version_1_which_has_no_epoch_and_no_topic_id() -> None:
    value = OffsetCommitValue(42, 3, "m", 1000, 2000, A)

    assert decode_value(G_T_1, encode_value(G_T_1, value)) == OffsetCommitValue(42, -1, "m", 1000, 2000)


def test_a_member_record_without_the_classic_tag_reads_as_an_empty_structure_and_is_written_without_it() -> None:
    data = bytes.fromhex("0000000002630b2f3132372e302e302e310302610274010000ea600000")
    value = decode_value(ConsumerGroupMemberMetadataKey(*G_M), data)

    assert value == replace(MEMBER, classic_member_metadata=ClassicMemberMetadata(0))
    assert encode_value(ConsumerGroupMemberMetadataKey(*G_M), value) == data


def test_a_tagged_field_of_a_newer_broker_is_skipped() -> None:
    data = bytes.fromhex("0004000000000000002affffffff0100000000000003e8020010" + ID_HEX + "0703aabbcc")

    assert decode_value(G_T_1, data) == OffsetCommitValue(42, -1, "", 1000, -1, A)


def test_an_unpaired_surrogate_is_written_as_java_does() -> None:
    assert encode_key(OffsetCommitKey("a\ud800b", "t", 0)) == b"\x00\x01\x00\x03a?b\x00\x01t\x00\x00\x00\x00"


@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 16_382, 16_383, 16_384, 32_767])
def test_names_and_metadata_of_any_size_come_back(size: int) -> None:
    record = CoordinatorRecord(OffsetCommitKey("g" * size, "t" * size, 0), OffsetCommitValue(1, 2, "m" * size, 3, -1, A))
    member = CoordinatorRecord(
        ConsumerGroupMemberMetadataKey("g", "m" * size),
        replace(MEMBER, client_id="c" * size, subscribed_topic_names=("t",) * size),
    )

    assert decode_record(*encode_record(record)) == record
    assert decode_record(*encode_record(member)) == member


@pytest.mark.parametrize(
    ("key", "value"),
    [
        pytest.param(OffsetCommitKey("g" * 32_768, "t", 0), None, id="group"),
        pytest.param(OffsetCommitKey("g", "ü" * 16_384, 0), None, id="topic, counted in bytes"),
        pytest.param(OffsetCommitKey("g", "t", 2**31), None, id="partition"),
        pytest.param(ConsumerGroupMemberMetadataKey("g", "m" * 32_768), None, id="member"),
        pytest.param(G_T_1, OffsetCommitValue(2**63), id="offset"),
        pytest.param(G_T_1, OffsetCommitValue(1, expire_timestamp_ms=5, metadata="m" * 32_768), id="metadata, plain"),
        pytest.param(ConsumerGroupMetadataKey("g"), ConsumerGroupMetadataValue(2**31), id="epoch"),
    ],
)
def test_what_the_format_has_no_room_for_is_refused(key: Any, value: Any) -> None:
    with pytest.raises(RecordEncodeError):
        encode_record(CoordinatorRecord(key, value))


def test_null_where_the_format_has_none_is_refused() -> None:
    value: Any = GroupMetadataValue(None, 0, None, None)  # type: ignore[arg-type]  # what a mistake elsewhere would hand over

    with pytest.raises(RecordEncodeError, match="null"):
        encode_value(GroupMetadataKey("g"), value)


@pytest.mark.parametrize("value_hex", ["0005000000000000002a", "ffff000000000000002a"], ids=["newer than any", "negative"])
def test_an_unknown_value_version_is_an_error_of_its_own(value_hex: str) -> None:
    with pytest.raises(UnknownValueVersionError, match="OffsetCommitValue"):
        decode_value(G_T_1, bytes.fromhex(value_hex))


@pytest.mark.parametrize(
    ("key_hex", "value_hex"),
    [
        pytest.param("", None, id="no key"),
        pytest.param("00", None, id="half a type"),
        pytest.param("0001ffff00017400000001", None, id="negative length of the group"),
        pytest.param("00010001670001ff00000001", None, id="not UTF-8"),
        pytest.param("000200", None, id="half a length"),
        pytest.param("0002ffff", None, id="null group"),
        pytest.param("000b0001ff", None, id="share group that is not UTF-8"),
        pytest.param("000100016700017400000001", "", id="empty value"),
        pytest.param("000100016700017400000001", "0004000000000000002a0000000302ff00000000000003e800", id="metadata not UTF-8"),
        pytest.param("000100016700017400000001", "0004000000000000002a00000003ffffffffffff7f", id="varint that never ends"),
        pytest.param("000700016700016d", "0000ffffffff0f", id="array of 4 billion"),
        pytest.param("0002000167", "0002000163000000070000" "0000" "0000000000000000" "7fffffff", id="plain array of 2 billion"),
        pytest.param("0002000167", "0002000163000000070000" "0000" "0000000000000000" "fffffffe", id="array of minus two"),
    ],
)  # fmt: skip
def test_damaged_bytes_are_a_decode_error(key_hex: str, value_hex: str | None) -> None:
    with pytest.raises(RecordDecodeError):
        decode_record(bytes.fromhex(key_hex), None if value_hex is None else bytes.fromhex(value_hex))


@pytest.mark.parametrize(
    ("key", "value_hex"),
    [pytest.param(k, v, id=name) for name, (k, value, _, v) in WRITTEN_BY_KAFKA.items() if v and not isinstance(value, bytes)],
)
def test_every_truncation_is_a_decode_error(key: Any, value_hex: str) -> None:
    data = bytes.fromhex(value_hex)
    for size in range(len(data)):
        with pytest.raises(RecordDecodeError):
            decode_value(key, data[:size])


@given(records)
def test_every_record_comes_back(record: CoordinatorRecord) -> None:
    assert decode_record(*encode_record(record)) == record


@given(st.builds(OffsetCommitKey, texts, texts, int32s), commits)
def test_the_fast_path_of_offset_commits_says_what_the_table_says(key: OffsetCommitKey, value: OffsetCommitValue) -> None:
    key_out, value_out = bytearray(b"\x00\x01"), bytearray(b"\x00\x04")
    key_table, value_table = key_structure(1), value_structure(1, 4)
    assert key_table is not None
    assert value_table is not None
    key_table.write(key_out, key)
    value_table.write(value_out, value)

    assert encode_record(CoordinatorRecord(key, value)) == (bytes(key_out), bytes(value_out))
    assert value_table.read(Reader(bytes(value_out), 2)) == decode_value(key, bytes(value_out)) == value


@given(st.binary(max_size=60), st.none() | st.binary(max_size=80))
def test_arbitrary_bytes_decode_or_raise_the_one_error(key: bytes, value: bytes | None) -> None:
    for record_type in (*range(24), 0x7FFF):
        for version in range(5):
            data = None if value is None else version.to_bytes(2, "big") + value
            try:
                decode_record(record_type.to_bytes(2, "big") + key, data)
            except RecordDecodeError:
                continue


@given(records, st.data())
def test_a_flipped_byte_decodes_or_raises_the_one_error(record: CoordinatorRecord, data: st.DataObject) -> None:
    key, value = encode_record(record)
    joined = bytearray(key + (value or b""))
    joined[data.draw(st.integers(0, len(joined) - 1))] = data.draw(st.integers(0, 255))
    try:
        decode_record(bytes(joined[: len(key)]), bytes(joined[len(key) :]))
    except RecordDecodeError:
        return


def test_every_key_class_of_the_model_has_its_type() -> None:
    assert sorted(TYPE_OF_KEY.values()) == [*range(1, 9), *range(10, 18), *range(19, 24)]
