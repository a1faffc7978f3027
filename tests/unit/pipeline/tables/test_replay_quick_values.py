"""The quick way of reading values says what the tables of the record schema say, or nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kgctl.model.coordinator_records import CoordinatorRecord, GroupMetadataKey, GroupMetadataValue, MemberMetadata
from kgctl.pipeline.tables.replay import quick_value
from kgctl.serde.coordinator_records import decode_key, decode_value, encode_record
from kgctl.serde.record_schema import RecordDecodeError
from tests.support.kafka_records import WRITTEN_BY_KAFKA, records


@given(records)
def test_whole_records(record: CoordinatorRecord) -> None:
    key, value = encode_record(record)
    if value is not None:
        assert quick_value(int.from_bytes(key[:2]), value) in (None, decode_value(decode_key(key), value))


@given(records, st.data())
def test_damaged_records(record: CoordinatorRecord, data: st.DataObject) -> None:
    key, value = encode_record(record)
    if value is None:
        return
    at = data.draw(st.integers(0, len(value)))
    put = data.draw(st.binary(max_size=3))
    damaged = data.draw(st.sampled_from([value[:at], value[:at] + put + value[at + len(put) :], value + put]))
    try:
        expected = decode_value(decode_key(key), damaged)
    except RecordDecodeError:
        expected = None
    assert quick_value(int.from_bytes(key[:2]), damaged) in (None, expected)


def test_what_kafka_wrote_is_of_the_usual_shape() -> None:
    read = {
        name: quick_value(int.from_bytes(bytes.fromhex(key)[:2]), bytes.fromhex(value))
        for name, (_, expected, key, value) in WRITTEN_BY_KAFKA.items()
        if value is not None and not isinstance(expected, bytes)
    }
    unusual = {name for name, value in read.items() if value is None}
    assert {name for name in read if name.startswith(("2", "3", "6", "8"))} & unusual == set()


def test_group_metadata() -> None:
    member = MemberMetadata("m-1", "i", "c", "/127.0.0.1", 60_000, 10_000, b"s", b"a")
    value = GroupMetadataValue("consumer", 7, "range", "m-1", 1000, (member,))
    encoded = encode_record(CoordinatorRecord(GroupMetadataKey("g"), value))[1]
    assert encoded is not None
    assert quick_value(2, encoded) == value
    assert quick_value(2, b"\x00\x02" + encoded[2:]) is None, "an older version is left to the tables"
