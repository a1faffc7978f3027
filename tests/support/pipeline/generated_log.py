"""Synthetic partitions of ``__consumer_offsets`` of any size: the same bytes for the same seed.

Some 2 % of the records are of groups and members (classic and consumer protocol), 1 % tombstones, 0.4 % markers. 70 % of commits
are version 4, nearly all of those with a topic id; the rest is 3, 2, 1 and 0; 7 % have metadata, 3 % are transactional.
Keys are chosen with a long tail; offsets and times ascend, with a reset now and then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kgctl.model.coordinator_records import (
    AssignedTopicPartitions,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    CoordinatorRecord,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
)
from kgctl.pipeline.store.tables import RAW
from kgctl.serde.coordinator_records import encode_key, encode_record

START_MS = 1_780_000_000_000
ENDS_PER_MS = 50
"""By so much a millisecond the ends of topics grow."""
Array = npt.NDArray[Any]

_V4 = [("version", ">i2"), ("offset", ">i8"), ("epoch", ">i4"), ("size", "u1")]
_TIME = [("time_ms", ">i8")]
_ID = [("tags", "S3"), ("id", "V16")]
_V3 = [("version", ">i2"), ("offset", ">i8"), ("epoch", ">i4"), ("size", ">i2")]
_OLD = [("version", ">i2"), ("offset", ">i8"), ("size", ">i2")]
_TEXT = b'{"pod":"checkout-7d9c"}'
_TEXT_FIELD = [("text", f"S{len(_TEXT)}")]
_NO_TAGS = [("no_tags", "u1")]


@dataclass(frozen=True)
class Shape:
    """One form of a commit's value."""

    share: float
    version: int
    layout: list[tuple[str, str]]


SHAPES = (
    Shape(0.62, 4, _V4 + _TIME + _ID),
    Shape(0.05, 4, _V4 + _TEXT_FIELD + _TIME + _ID),
    Shape(0.03, 4, _V4 + _TIME + _NO_TAGS),
    Shape(0.25, 3, _V3 + _TIME),
    Shape(0.02, 3, _V3 + _TEXT_FIELD + _TIME),
    Shape(0.01, 1, [*_OLD, *_TIME, ("expire_ms", ">i8")]),
    Shape(0.01, 2, _OLD + _TIME),
    Shape(0.01, 0, _OLD + _TIME),
)
_TOMBSTONE, _GROUP, _MARKER = len(SHAPES), len(SHAPES) + 1, len(SHAPES) + 2


@dataclass(frozen=True)
class Size:
    """How much of what. A group reads ``topics`` topics of ``partitions`` partitions each.

    ``later_ms``: how long after `START_MS` it begins; ``keeps_up``: commits stay `ENDS_PER_MS` records a millisecond, less a few
    milliseconds, where without it they fall ever further behind.
    """

    records: int
    groups: int = 60
    topics: int = 4
    partitions: int = 16
    interval_ms: int = 2
    later_ms: int = 0
    keeps_up: bool = False


def generated_log(log_partition: int, size: Size, seed: int = 1) -> pa.Table:
    """One log partition, from offset 0 on, as raw records."""
    random = np.random.default_rng([seed, log_partition])
    count = size.records
    shares = np.array([shape.share for shape in SHAPES])
    kinds = random.choice(_MARKER + 1, count, p=[*(shares / shares.sum() * 0.966), 0.01, 0.02, 0.004])
    times = START_MS + size.later_ms + np.cumsum(random.integers(0, 2 * size.interval_ms + 1, count))
    keys = _keys(log_partition, size)
    numbers = np.minimum((random.pareto(0.7, count) * len(keys) / 50).astype(np.int64), len(keys) - 1)
    committed = (times - START_MS - numbers % 97) * ENDS_PER_MS if size.keeps_up else _committed(random, numbers)
    groups = _group_records(log_partition, size, numbers[kinds == _GROUP], times[kinds == _GROUP])
    transactional = (kinds < _TOMBSTONE) & (random.random(count) < 0.03)
    producers = random.integers(1000, 1004, count)
    is_marker = kinds == _MARKER
    key_indices = numbers.copy()
    key_indices[kinds == _GROUP] = len(keys) + np.arange(len(groups))
    all_keys = pa.array([*keys, *(key for key, _ in groups)], pa.binary())
    has_producer = transactional | is_marker
    return pa.Table.from_arrays(
        [
            pa.array(np.full(count, log_partition, np.int32)),
            pa.array(np.arange(count)),
            pa.array(times),
            all_keys.take(pa.array(key_indices, mask=is_marker)),
            _values(kinds, committed, times, numbers % 97, [value for _, value in groups]),
            pa.array(producers, mask=~has_producer),
            pa.array(np.zeros(count, np.int16), mask=~has_producer),
            pa.array(random.random(count) < 0.9, mask=~is_marker),
        ],
        schema=RAW,
    )


def _keys(log_partition: int, size: Size) -> list[bytes]:
    return [
        encode_key(OffsetCommitKey(f"group-{log_partition}-{group}", f"topic-{(group + topic) % 50}", partition))
        for group in range(size.groups)
        for topic in range(size.topics)
        for partition in range(size.partitions)
    ]


def _committed(random: np.random.Generator, numbers: Array) -> Array:
    """Ascending offsets of each key, in the order of its rows; one step in 10,000 goes back."""
    steps = random.integers(0, 200, len(numbers))
    steps[random.random(len(numbers)) < 1e-4] -= 1000
    order = np.argsort(numbers, kind="stable")
    sums = np.cumsum(steps[order])
    begins = np.searchsorted(numbers[order], np.arange(numbers.max() + 1 if len(numbers) else 0))
    base = np.append(0, sums)[begins]
    committed = np.empty(len(numbers), np.int64)
    committed[order] = np.maximum(sums - base[numbers[order]], 0)
    return committed


def _group_records(log_partition: int, size: Size, numbers: Array, times: Array) -> list[tuple[bytes, bytes | None]]:
    per_group = size.topics * size.partitions
    return [
        encode_record(_group_record(f"group-{log_partition}-{number // per_group}", index, int(time_ms)))
        for index, (number, time_ms) in enumerate(zip(numbers.tolist(), times, strict=True))
    ]


def _group_record(group: str, index: int, time_ms: int) -> CoordinatorRecord:
    member = f"consumer-{index % 5}-8f0e7c1a-6c1d-4a39-9e55-2d4fa1b0{index % 5:04d}"
    if index % 4 == 0:
        members = tuple(
            MemberMetadata(f"{member}-{i}", None, "c", "/10.0.0.1", 300_000, 45_000, b"s" * 30, b"a" * 60) for i in range(3)
        )
        return CoordinatorRecord(
            GroupMetadataKey(group), GroupMetadataValue("consumer", index, "range", member, time_ms, members)
        )
    if index % 4 == 1:
        return CoordinatorRecord(ConsumerGroupMetadataKey(f"{group}-new"), ConsumerGroupMetadataValue(index, time_ms))
    assigned = (AssignedTopicPartitions(UUID(int=7), (0, 1, 2, 3), (index,) * 4),)
    value = ConsumerGroupCurrentMemberAssignmentValue(index, index - 1, 0, assigned)
    return CoordinatorRecord(ConsumerGroupCurrentMemberAssignmentKey(f"{group}-new", member), value)


def _values(kinds: Array, committed: Array, times: Array, topics: Array, groups: list[bytes | None]) -> pa.Array:
    shaped = [np.flatnonzero(kinds == kind) for kind in range(len(SHAPES))]
    encoded = [_encoded(shape, committed[rows], times[rows], topics[rows]) for shape, rows in zip(SHAPES, shaped, strict=True)]
    lengths = np.zeros(len(kinds), np.int64)
    for rows, cells in zip(shaped, encoded, strict=True):
        lengths[rows] = cells.shape[1]
    group_rows = np.flatnonzero(kinds == _GROUP)
    lengths[group_rows] = [len(value or b"") for value in groups]
    edges = np.append(0, np.cumsum(lengths))
    out = np.zeros(edges[-1], np.uint8)
    for rows, cells in zip(shaped, encoded, strict=True):
        out[edges[rows][:, None] + np.arange(cells.shape[1])] = cells
    for row, value in zip(group_rows, groups, strict=True):
        out[edges[row] : edges[row + 1]] = np.frombuffer(value or b"", np.uint8)
    valid = np.packbits((kinds != _TOMBSTONE) & (kinds != _MARKER), bitorder="little")
    buffers = [pa.py_buffer(valid.tobytes()), pa.py_buffer(edges.astype(np.int32).tobytes()), pa.py_buffer(out.tobytes())]
    return pa.Array.from_buffers(pa.binary(), len(kinds), buffers)


def _encoded(shape: Shape, committed: Array, times: Array, topics: Array) -> npt.NDArray[np.uint8]:
    """The values of one shape, a row each."""
    cells = np.zeros(len(committed), np.dtype(shape.layout))
    names = cells.dtype.names or ()
    text = len(_TEXT) if "text" in names else 0
    fields = {
        "version": shape.version,
        "offset": committed,
        "epoch": 4,
        "size": text + 1 if shape.version == 4 else text,
        "text": _TEXT,
        "time_ms": times - 3,
        "expire_ms": times + 604_800_000,
        "tags": b"\x01\x00\x10",
    }
    for name in names:
        if name in fields:
            cells[name] = fields[name]
    if "id" in names:
        ids = np.zeros((len(committed), 2), ">i8")
        ids[:, 0], ids[:, 1] = 0x3F1C, topics + 1
        cells["id"] = ids.view("V16")[:, 0]
    return cells.view(np.uint8).reshape(len(cells), cells.dtype.itemsize)
