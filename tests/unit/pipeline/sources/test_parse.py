"""The parser beside kgctl's own builder and beside kafka-python."""

from __future__ import annotations

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgctl.model.coordinator_records import TransactionMarker
from kgctl.pipeline.sources.parse import parse_log
from kgctl.pipeline.store.tables import RAW
from kgctl.serde.record_batch import Record, build_batch, build_marker, iterate_batches, iterate_records
from tests.support.pipeline.segments import CODECS, commit_like, compressed, message, pack, read_by_kafka_python, rows, segment

maybe_bytes = st.none() | st.binary(max_size=200)
headers = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=9)), max_size=2).map(tuple)
contents = st.tuples(st.integers(-(2**40), 2**45), maybe_bytes, maybe_bytes, headers)
batches = st.lists(st.lists(contents, min_size=1, max_size=30), max_size=12)


def built(content: list[list[tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]]]) -> list[bytes]:
    """A batch for each list, offsets ascending with gaps, as after compaction."""
    found, offset = [], 0
    for batch in content:
        records = []
        for timestamp_ms, key, value, fields in batch:
            records.append(Record(offset, timestamp_ms, key, value, fields))
            offset += 1 + offset % 3
        found.append(build_batch(records))
    return found


@given(batches, st.lists(st.sampled_from(list(CODECS)), min_size=12, max_size=12))
def test_every_record_of_every_codec_is_read(
    content: list[list[tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]]], codecs: list[str]
) -> None:
    plain = built(content)
    expected = [tuple(record)[:4] for batch in plain for record in iterate_records(batch)]
    mixed = b"".join(compressed(batch, codec) if codec != "none" else batch for batch, codec in zip(plain, codecs, strict=False))
    parsed = parse_log(mixed, 7)
    assert (rows(parsed.table()), parsed.damaged, parsed.torn, parsed.batches) == (expected, [], 0, len(plain))
    assert parsed.table().schema == RAW
    assert set(parsed.table().column("partition").to_pylist()) <= {7}
    parsed.table().validate(full=True)


@given(batches, st.sampled_from(["none", "gzip"]))
def test_kafka_python_reads_the_same(
    content: list[list[tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]]], codec: str
) -> None:
    data = b"".join(compressed(batch, codec) for batch in built(content))
    assert rows(parse_log(data, 0).table()) == read_by_kafka_python(data)


@pytest.mark.parametrize("counts", [[1] * 500, [3, 1_000, 1, 2_000], [400] * 30, [1, 3_000], [500, *[1] * 500]])
@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_batches_of_any_sizes(counts: list[int], codec: str) -> None:
    data = segment(counts, codec=codec)
    assert rows(parse_log(data, 0).table()) == [tuple(commit_like(offset))[:4] for offset in range(sum(counts))]


def test_uneven_batches_cost_no_more_than_even_ones() -> None:
    """By the steps that numpy takes: 20,000 records in one batch beside 20,000 batches are not 20,000 steps."""
    from kgctl.pipeline.sources import parse

    calls = 0
    real = parse.varint

    def counted(*args: object) -> object:
        nonlocal calls
        calls += 1
        return real(*args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parse, "varint", counted)
        assert parse_log(segment([20_000, *[1] * 20_000]), 0).records == 40_000
    assert calls < 20


def test_transactions_and_their_markers() -> None:
    record = commit_like(10)
    transactional = build_batch([record], producer_id=77, producer_epoch=3, is_transactional=True)
    idempotent = build_batch([commit_like(11)], producer_id=5, producer_epoch=1)
    commit = build_marker(TransactionMarker(77, 3, True, 9), 12, 1_000)
    abort = build_marker(TransactionMarker(78, 4, False, 9), 13, 1_001)
    leader_change = build_batch([Record(14, 5, struct.pack(">hh", 0, 2), b"x")], is_control=True)
    parsed = parse_log(transactional + idempotent + commit + abort + leader_change, 2)
    found = [tuple(row[name] for name in RAW.names) for row in parsed.table().to_pylist()]
    assert found == [
        (2, 10, record.timestamp_ms, record.key, record.value, 77, 3, None),
        (2, 11, *tuple(commit_like(11))[1:4], None, None, None),
        (2, 12, 1_000, None, None, 77, 3, True),
        (2, 13, 1_001, None, None, 78, 4, False),
    ]
    assert (parsed.damaged, parsed.next_offset) == ([], 15)


def test_log_append_time_is_the_time_of_every_record() -> None:
    batch = build_batch([commit_like(0), commit_like(99)])
    (header,) = (header for _, header in iterate_batches(batch))
    appended = compressed(batch, "none", log_append_time=True)
    assert parse_log(appended, 0).table().column("timestamp_ms").to_pylist() == [header.max_timestamp_ms] * 2


def test_an_empty_batch_that_compaction_left_is_no_damage() -> None:
    batch = bytearray(build_batch([commit_like(0)])[:61])
    struct.pack_into(">i", batch, 8, 49)
    struct.pack_into(">i", batch, 57, 0)
    from google_crc32c import value as crc32c

    struct.pack_into(">I", batch, 17, crc32c(bytes(batch[21:])))
    parsed = parse_log(bytes(batch) + segment([2], first_offset=1), 0)
    assert (parsed.damaged, parsed.records, parsed.batches) == ([], 2, 2)


def test_messages_of_old_formats() -> None:
    v0 = message(3, b"k0", None)
    v1 = message(4, None, b"v1", timestamp_ms=17)
    inner = message(0, b"a", b"1", timestamp_ms=20) + message(1, b"b", b"2", timestamp_ms=21)
    wrapped = message(6, None, pack(inner, "gzip"), timestamp_ms=21, attributes=1)
    appended = message(8, None, pack(inner, "snappy"), timestamp_ms=99, attributes=2 | 0x08)
    data = v0 + v1 + wrapped + appended + segment([1], first_offset=9)
    assert sorted(rows(parse_log(data, 0).table())) == [
        (3, -1, b"k0", None),
        (4, 17, None, b"v1"),
        (5, 20, b"a", b"1"),
        (6, 21, b"b", b"2"),
        (7, 99, b"a", b"1"),
        (8, 99, b"b", b"2"),
        tuple(commit_like(9))[:4],
    ]


def test_kafka_python_reads_old_messages_the_same() -> None:
    inner = message(0, b"a", b"1", timestamp_ms=20) + message(1, b"b", b"2", timestamp_ms=21)
    data = message(4, None, b"v", timestamp_ms=17) + message(6, None, pack(inner, "gzip"), timestamp_ms=21, attributes=1)
    assert rows(parse_log(data, 0).table()) == read_by_kafka_python(data)


def test_what_a_compressed_old_message_cannot_hold() -> None:
    data = message(5, None, b"", attributes=3) + message(6, None, zlib.compress(b"x"), timestamp_ms=1, attributes=1)
    parsed = parse_log(data, 0)
    assert [damage.reason.split(" ")[0] for damage in parsed.damaged] == ["lz4", "gzip"]
    assert parsed.records == 0
