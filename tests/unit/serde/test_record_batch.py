"""Record batches: compared with batches of aiokafka, which nobody here wrote, and with damaged ones."""

from __future__ import annotations

import gzip

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from hypothesis import given
from hypothesis import strategies as st

from kgctl.model.coordinator_records import TransactionMarker
from kgctl.serde import record_batch
from kgctl.serde.record_batch import (
    HEADER_BYTES,
    CorruptBatchError,
    Record,
    UnsupportedCompressionError,
    build_batch,
    build_marker,
    check_batch,
    iterate_batches,
    iterate_records,
    parse_header,
    parse_marker,
    place,
)

RECORDS = [
    Record(100, 1_000, b"k", b"v" * 200, (("h", b"1"), ("n", None))),
    Record(101, 900, None, b""),
    Record(105, 5_000_000_000, b"", None),
]


def aiokafka_batch(compression: int = 0, *, transactional: bool = False) -> bytes:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=compression,
        is_transactional=transactional,
        producer_id=7,
        producer_epoch=2,
        base_sequence=5,
        batch_size=1 << 20,
    )
    for delta, record in enumerate(RECORDS):
        assert builder.append(delta, record.timestamp_ms, record.key, record.value, list(record.headers)) is not None
    return bytes(builder.build())


EXPECTED_OF_AIOKAFKA = [record._replace(offset=delta) for delta, record in enumerate(RECORDS)]


def test_a_batch_built_here_is_read_by_aiokafka() -> None:
    batch = MemoryRecords(build_batch(RECORDS, leader_epoch=3)).next_batch()

    assert batch.validate_crc()
    assert [(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in batch] == [tuple(r) for r in RECORDS]


@pytest.mark.parametrize("compression", [0, 1], ids=["uncompressed", "gzip"])
def test_a_batch_of_aiokafka_is_read_here(compression: int) -> None:
    data = aiokafka_batch(compression, transactional=True)
    header = check_batch(data)

    assert list(iterate_records(data)) == EXPECTED_OF_AIOKAFKA
    assert (header.compression, header.record_count, header.last_offset_delta) == (("none", "gzip")[compression], 3, 2)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 2, 5)
    assert (header.base_timestamp_ms, header.max_timestamp_ms) == (1_000, 5_000_000_000)
    assert (header.is_transactional, header.is_control, header.is_log_append_time) == (True, False, False)


def test_a_batch_built_here_has_the_bytes_of_aiokafkas() -> None:
    records = [record._replace(offset=delta) for delta, record in enumerate(RECORDS)]
    ours = build_batch(records, leader_epoch=0, producer_id=7, producer_epoch=2)
    theirs = aiokafka_batch()
    sequence = slice(53, 57)

    assert (ours[21:53], ours[57:]) == (theirs[21:53], theirs[57:])
    assert ours[sequence] == b"\xff" * 4


def test_placing_a_batch_keeps_its_checksum() -> None:
    placed = place(aiokafka_batch(), 4_000_000_000_000, 9)
    header = check_batch(placed)

    assert (header.base_offset, header.last_offset, header.leader_epoch) == (4_000_000_000_000, 4_000_000_000_002, 9)
    assert [record.offset for record in iterate_records(placed)] == [4_000_000_000_000, 4_000_000_000_001, 4_000_000_000_002]


def test_log_append_time_gives_each_record_the_batchs_time() -> None:
    data = bytearray(build_batch(RECORDS))
    data[22] |= 0x08

    assert {record.timestamp_ms for record in iterate_records(bytes(data))} == {5_000_000_000}


@pytest.mark.parametrize("committed", [True, False], ids=["commit", "abort"])
def test_a_marker_comes_back(committed: bool) -> None:
    marker = TransactionMarker(77, 3, committed, 12)
    data = build_marker(marker, 42, 1_000, leader_epoch=5)
    header = check_batch(data)

    assert parse_marker(data) == marker
    assert (header.base_offset, header.is_control, header.is_transactional) == (42, True, True)
    assert list(iterate_records(data)) == [
        Record(42, 1_000, b"\x00\x00\x00\x01" if committed else b"\x00\x00\x00\x00", b"\x00\x00\x00\x00\x00\x0c")
    ]


def test_a_control_batch_of_another_kind_is_no_marker() -> None:
    leader_change = build_batch([Record(0, 0, b"\x00\x00\x00\x02", b"")], is_control=True)

    assert parse_marker(leader_change) is None


@pytest.mark.parametrize("key", [None, b"\x00"], ids=["none", "too short"])
def test_a_control_batch_without_a_key_is_corrupt(key: bytes | None) -> None:
    with pytest.raises(CorruptBatchError, match="without a marker"):
        parse_marker(build_batch([Record(0, 0, key, b"")], is_control=True))


def test_a_marker_without_its_value_is_corrupt() -> None:
    with pytest.raises(CorruptBatchError, match="without its epoch"):
        parse_marker(build_batch([Record(0, 0, b"\x00\x00\x00\x01", None)], is_control=True))


def test_batches_one_after_the_other_are_walked() -> None:
    first, second = build_batch(RECORDS[:1]), build_batch(RECORDS[1:])

    assert [(position, header.record_count) for position, header in iterate_batches(first + second)] == [(0, 1), (len(first), 2)]


@pytest.mark.parametrize("codec", [2, 3, 4, 7], ids=["snappy", "lz4", "zstd", "codec 7"])
def test_a_codec_that_is_not_there_is_named(codec: int, request: pytest.FixtureRequest) -> None:
    data = bytearray(build_batch(RECORDS))
    data[22] |= codec

    with pytest.raises(UnsupportedCompressionError, match=request.node.callspec.id):
        list(iterate_records(bytes(data)))


def test_damaged_gzip_data_is_corrupt() -> None:
    data = bytearray(build_batch(RECORDS))
    data[22] |= 1

    with pytest.raises(CorruptBatchError, match="gzip"):
        list(iterate_records(bytes(data)))


def test_gzip_data_of_pythons_own_module_is_read() -> None:
    plain = build_batch(RECORDS)
    packed = gzip.compress(plain[HEADER_BYTES:])
    data = bytearray(plain[:HEADER_BYTES] + packed)
    data[8:12] = (len(data) - 12).to_bytes(4, "big")
    data[22] |= 1

    assert list(iterate_records(bytes(data))) == RECORDS


def test_gzip_data_that_grows_beyond_all_measure_is_corrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_batch, "_MAX_PAYLOAD_BYTES", 100_000)
    packed = gzip.compress(bytes(100_001), 1)
    data = bytearray(build_batch(RECORDS)[:HEADER_BYTES] + packed)
    data[8:12] = (len(data) - 12).to_bytes(4, "big")
    data[22] |= 1

    with pytest.raises(CorruptBatchError, match="more than"):
        list(iterate_records(bytes(data)))


def corrupt(what: str) -> bytes:
    data = bytearray(build_batch(RECORDS))
    match what:
        case "empty":
            return b""
        case "header cut off":
            return bytes(data[:60])
        case "records cut off":
            return bytes(data[:-1])
        case "old format":
            data[16] = 1
        case "negative length":
            data[8:12] = b"\xff\xff\xff\xff"
        case "length too small":
            data[8:12] = (20).to_bytes(4, "big")
        case "checksum":
            data[-1] ^= 1
        case "trailing":
            data += b"\x00"
        case _:
            raise AssertionError(what)
    return bytes(data)


@pytest.mark.parametrize(
    "what",
    ["empty", "header cut off", "records cut off", "old format", "negative length", "length too small", "checksum", "trailing"],
)
def test_a_batch_that_is_not_one_is_corrupt(what: str) -> None:
    with pytest.raises(CorruptBatchError):
        check_batch(corrupt(what))


@pytest.mark.parametrize("field", [23, 57], ids=["last offset delta", "count"])
def test_a_negative_count_with_a_right_checksum_is_corrupt(field: int) -> None:
    from google_crc32c import value as crc32c

    data = bytearray(build_batch(RECORDS))
    data[field] = 0xFF
    data[17:21] = crc32c(bytes(data[21:])).to_bytes(4, "big")

    with pytest.raises(CorruptBatchError, match="negative"):
        check_batch(bytes(data))


@given(st.integers(HEADER_BYTES, len(build_batch(RECORDS)) - 1), st.integers(0, 255))
def test_damaged_records_are_corrupt_or_other_records(position: int, byte: int) -> None:
    data = bytearray(build_batch(RECORDS))
    data[position] = byte
    try:
        assert len(list(iterate_records(bytes(data)))) == len(RECORDS)
    except CorruptBatchError:
        return


texts = st.text(st.characters(codec="utf-8"), max_size=10)
blobs = st.none() | st.binary(max_size=200)
records = st.builds(
    Record,
    st.integers(0, 2**20),
    st.integers(0, 2**42),
    blobs,
    blobs,
    st.lists(st.tuples(texts, blobs), max_size=3).map(tuple),
)


@given(st.lists(records, min_size=1, max_size=10, unique_by=lambda record: record.offset))
def test_every_batch_comes_back(batch: list[Record]) -> None:
    batch.sort(key=lambda record: record.offset)
    data = build_batch(batch)
    check_batch(data)

    assert list(iterate_records(data)) == batch
    assert parse_header(b"....." + data, 5).record_count == len(batch)
