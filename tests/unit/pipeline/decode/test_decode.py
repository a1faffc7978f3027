"""The vectorised decoder against kgctl.serde, one record at a time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgctl.model.coordinator_records import GroupMetadataKey, OffsetCommitValue
from kgctl.pipeline.decode import decode as module
from kgctl.pipeline.decode import records
from kgctl.pipeline.decode.decode import decode
from kgctl.pipeline.decode.schemas import COMMITS, COVERAGE, GROUP_RECORDS, MARKERS, UNDECODED, Decoded
from kgctl.serde.coordinator_records import encode_key
from tests.support.kafka_records import G_T_1, STATIC_GROUP, WRITTEN_BY_KAFKA, A
from tests.support.pipeline.epoch_groups import RECORDS as EPOCH_GROUPS
from tests.support.pipeline.per_row import decode_per_row
from tests.support.pipeline.raw_records import Pair, commit_pairs, damaged, encode_value_as, raw_rows, raw_table

SCHEMAS = {
    "commits": COMMITS,
    "group_records": GROUP_RECORDS,
    "markers": MARKERS,
    "undecoded": UNDECODED,
    "coverage": COVERAGE,
}
EXAMPLES: dict[bytes, list[bytes]] = {}
for *_, key_hex, value_hex in WRITTEN_BY_KAFKA.values():
    EXAMPLES.setdefault(bytes.fromhex(key_hex), []).append(bytes.fromhex(value_hex or ""))
for key_hex, value_hex, *_ in EPOCH_GROUPS:
    EXAMPLES.setdefault(bytes.fromhex(key_hex), []).append(bytes.fromhex(value_hex))
COMMITS_OF_G = [OffsetCommitValue(42, 3, metadata, 1000, 2000, A) for metadata in ("m", "é" * 70)]
for version in range(5):
    EXAMPLES[encode_key(G_T_1)] += [encode_value_as(version, commit) for commit in COMMITS_OF_G]
    EXAMPLES[encode_key(GroupMetadataKey("g"))].append(encode_value_as(version, STATIC_GROUP))
GROUP_VALUES = [key for key in EXAMPLES if key[1] > 1]


def rows_of(decoded: Decoded) -> dict[str, Any]:
    for name, schema in SCHEMAS.items():
        table = getattr(decoded, name)
        table.validate(full=True)
        assert table.schema == schema
    return {name: getattr(decoded, name).to_pylist() for name in SCHEMAS}


@given(raw_rows(), st.booleans(), st.sampled_from([0, 2, records.ALONE]))
def test_any_records_decode_as_one_by_one(rows: list[dict[str, Any]], dictionary: bool, alone: int) -> None:
    raw = raw_table(rows, dictionary=dictionary)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "ALONE", alone)
        patch.setattr(records, "FEW", alone)
        assert rows_of(decode(raw)) == rows_of(decode_per_row(raw))


@pytest.mark.parametrize("alone", [0, records.FEW])
def test_every_byte_of_what_kafka_writes_changed(alone: int) -> None:
    """Each to the ends of what a byte, a length and a varint can be."""
    pairs = [(key, changed) for key, found in EXAMPLES.items() for value in found for changed in every_change(value)]
    pairs += [(changed, value) for key, found in EXAMPLES.items() for value in found for changed in every_change(key)]
    rows = [{"partition": 0, "offset": i, "timestamp_ms": i, "key": k, "value": v} for i, (k, v) in enumerate(pairs)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "ALONE", alone)
        patch.setattr(records, "FEW", alone)
        assert rows_of(decode(raw_table(rows))) == rows_of(decode_per_row(raw_table(rows)))


def every_change(raw: bytes) -> Iterator[bytes]:
    for at in range(len(raw)):
        for byte in (0x00, 0x01, 0x02, 0x7F, 0x80, 0xFF, (raw[at] + 1) & 0xFF, (raw[at] - 1) & 0xFF):
            yield raw[:at] + bytes([byte]) + raw[at + 1 :]
        for negative in (b"\xff\xff", b"\xff\xfe", b"\xff\xff\xff\xff", b"\xff\xff\xff\xfe"):
            yield raw[:at] + negative + raw[at + len(negative) :]
        yield raw[:at]


@given(st.data(), st.sampled_from(GROUP_VALUES))
def test_many_values_of_a_type_are_judged_as_one_by_one(data: st.DataObject, key: bytes) -> None:
    examples = st.tuples(st.just(key), st.sampled_from(EXAMPLES[key]))
    pairs = data.draw(st.lists(damaged(examples, which=1), min_size=3, max_size=30))
    rows = [{"partition": 0, "offset": i, "timestamp_ms": i, "key": k, "value": v} for i, (k, v) in enumerate(pairs)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "ALONE", 0)
        assert rows_of(decode(raw_table(rows))) == rows_of(decode_per_row(raw_table(rows)))


@given(raw_rows(), st.integers(1, 4), st.lists(st.integers(0, 12), max_size=3))
def test_the_cut_of_the_input_does_not_matter(rows: list[dict[str, Any]], block: int, cuts: list[int]) -> None:
    raw = raw_table(rows)
    edges = [0, *sorted(cuts), len(rows)]
    chunked = pa.concat_tables([raw.slice(a, max(b - a, 0)) for a, b in pairwise(edges)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK_ROWS", block)
        assert rows_of(decode(chunked)) == rows_of(decode_per_row(raw))


@given(st.lists(damaged(commit_pairs(version=4), which=1) | commit_pairs(version=4), max_size=20))
def test_many_commits_with_any_tagged_fields(pairs: list[Pair]) -> None:
    rows = [{"partition": 0, "offset": i, "timestamp_ms": i, "key": k, "value": v} for i, (k, v) in enumerate(pairs)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "FEW", 0)
        assert rows_of(decode(raw_table(rows))) == rows_of(decode_per_row(raw_table(rows)))


def test_nothing_decodes_to_nothing() -> None:
    assert rows_of(decode(raw_table([]))) == {name: [] for name in SCHEMAS}


def test_a_null_cell_that_holds_bytes_is_a_tombstone() -> None:
    value = bytes.fromhex("0004000000000000002a00000003026d00000000000003e80100101111111111111111222222222222222201")
    holding = pa.Array.from_buffers(pa.binary(), 1, [pa.py_buffer(b"\0"), pa.array([value]).buffers()[1], pa.py_buffer(value)])
    row = {"partition": 0, "offset": 0, "timestamp_ms": 0, "key": bytes.fromhex("000100016700017400000001"), "value": None}
    raw = raw_table([row]).set_column(4, "value", holding)
    assert rows_of(decode(raw)) == rows_of(decode_per_row(raw))
