"""Strategies for raw records: whole ones of every type and version, tombstones, and all ways to be damaged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from kgctl.model.coordinator_records import CoordinatorRecord, GroupMetadataValue, OffsetCommitKey, OffsetCommitValue, RecordType
from kgctl.pipeline.store.tables import RAW
from kgctl.serde.coordinator_records import encode_key, encode_record, value_structure
from kgctl.serde.record_schema import write_varint
from tests.support.kafka_records import WRITTEN_BY_KAFKA, commits, int32s, int64s, records, texts

Pair = tuple[bytes | None, bytes | None]

names = st.sampled_from(["g", "t", "", "grü"]) | texts
keys = st.builds(OffsetCommitKey, names, names, st.integers(0, 3) | int32s)
metadata = texts | st.integers(120, 140).map("m".__mul__) | st.just("ä" * 9_000)


def encode_value_as(version: int, value: OffsetCommitValue | GroupMetadataValue) -> bytes:
    """The value in any version."""
    is_commit = isinstance(value, OffsetCommitValue)
    structure = value_structure(RecordType.OFFSET_COMMIT if is_commit else RecordType.GROUP_METADATA, version)
    assert structure is not None
    out = bytearray(version.to_bytes(2, "big"))
    structure.write(out, value)
    return bytes(out)


@st.composite
def commit_pairs(draw: st.DrawFn, version: int | None = None) -> Pair:
    """An offset commit of any version, or this one, now and then with tagged fields that nobody knows."""
    key = encode_key(draw(keys))
    key = draw(st.sampled_from([key, key, b"\x00\x00" + key[2:]]))
    value = replace(draw(commits), metadata=draw(metadata), expire_timestamp_ms=draw(st.just(-1) | int64s))
    version = draw(st.sampled_from([4, 4, 4, 3, 2, 1, 0])) if version is None else version
    encoded = encode_value_as(version, value)
    if version == 4 and draw(st.booleans()):
        tags = encode_value_as(4, replace(value, topic_id=draw(st.uuids())))[-19:]
        encoded = encode_value_as(4, value)[: -len(tags) if encoded.endswith(value.topic_id.bytes) else -1] + draw(
            tag_lists(tags)
        )
    return key, draw(st.sampled_from([encoded, encoded, encoded, None]))


@st.composite
def tag_lists(draw: st.DrawFn, topic_id: bytes) -> bytes:
    """Tagged fields, some unknown, some too short."""
    fields = draw(st.lists(st.tuples(st.integers(0, 300), st.binary(max_size=20)), max_size=3))
    out = bytearray()
    write_varint(out, len(fields) + 1)
    for tag, data in fields:
        write_varint(out, tag)
        write_varint(out, len(data))
        out += data
    return bytes(out + topic_id[1:])


@st.composite
def damaged(draw: st.DrawFn, pairs: st.SearchStrategy[Pair], which: int | None = None) -> Pair:
    """A record that was cut off, changed or lengthened: in its key (``which`` is 0) or in its value."""
    pair = list(draw(pairs))
    which = draw(st.integers(0, 1)) if which is None else which
    raw = pair[which] or b""
    at = draw(st.integers(0, len(raw)))
    with_bytes = draw(st.binary(max_size=3))
    pair[which] = draw(st.sampled_from([raw[:at], raw[:at] + with_bytes + raw[at + len(with_bytes) :], raw + with_bytes]))
    return pair[0], pair[1]


def _encoded(record: CoordinatorRecord) -> Pair:
    return encode_record(record)


_examples = [
    (bytes.fromhex(key), None if value is None else bytes.fromhex(value)) for *_, key, value in WRITTEN_BY_KAFKA.values()
]
whole_pairs = commit_pairs() | records.map(_encoded) | st.sampled_from(_examples)
any_pairs = whole_pairs | damaged(whole_pairs) | st.tuples(st.none() | st.binary(max_size=40), st.none() | st.binary(max_size=40))


@st.composite
def raw_rows(draw: st.DrawFn, pairs: st.SearchStrategy[Pair] = any_pairs) -> list[dict[str, Any]]:
    """Rows of ``RAW``: records, and now and then the end of a transaction."""
    found, offset = [], draw(st.integers(0, 5))
    for key, value in draw(st.lists(pairs, max_size=12)):
        offset += draw(st.sampled_from([1, 1, 1, 0, 4]))
        producer = draw(st.sampled_from([None, None, 7, 8]))
        commits = draw(st.sampled_from([None, None, None, None, True, False]))
        found.append(
            {
                "partition": draw(st.sampled_from([3, 3, 3, 4])),
                "offset": offset,
                "timestamp_ms": draw(st.integers(-1, 5)),
                "key": key,
                "value": value,
                "producer_id": producer,
                "producer_epoch": None if producer is None else 1,
                "commits": commits,
            }
        )
    return found


def raw_table(rows: list[dict[str, Any]], *, dictionary: bool = False) -> pa.Table:
    """The rows as a table; its keys dictionary-encoded if wanted."""
    table = pa.Table.from_pylist(rows, schema=RAW)
    return table.set_column(3, "key", table.column("key").dictionary_encode()) if dictionary else table
