"""The values of OffsetCommit records, versions 0 to 4, all rows of a version at once.

The layouts are those of ``kgctl.serde.coordinator_records.OFFSET_COMMIT_FIELDS``; the tests hold the two against each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from kgctl.model.records import OffsetCommitKey, OffsetCommitValue
from kgctl.pipeline.decode.cells import Bools, Cells, Int32s, Int64s
from kgctl.serde.coordinator_records import RecordDecodeError, decode_value

NEWEST_VERSION = 4
_FLEXIBLE_VERSION = 4
_VERSION_WITH_EXPIRY = 1
_TOPIC_ID_BYTES = 16
_FULL_SHAPE = b"\x01\x00\x10"
"""One tagged field, number 0, of 16 bytes: the topic id."""
FEW = 8
"""Rows that are left to kgctl.serde: not worth a step for each."""
_ANY_KEY = OffsetCommitKey("", "", 0)


@dataclass
class Values:
    """One entry a row. Where ``version`` is none of 0 to 4 or ``damaged`` is set, the rest means nothing.

    ``version`` is -1 where the value is too short to have one. ``topic_ids`` has two halves a row, zeros for none. ``metadata``
    holds the texts of ``with_metadata``, rows in ascending order; all others have an empty one.
    """

    version: Int64s
    damaged: Bools
    committed: Int64s
    leader_epoch: Int32s
    commit_ms: Int64s
    expire_ms: Int64s
    topic_ids: Int64s
    with_metadata: Int64s
    metadata: pa.Array


class _Reading:
    """The values of a column as far as they are read."""

    def __init__(self, cells: Cells, rows: Int64s) -> None:
        count = len(rows)
        self.cells = cells
        self.starts, self.ends = cells.starts[rows], cells.ends[rows]
        self.damaged = np.zeros(count, np.bool_)
        self.committed = np.zeros(count, np.int64)
        self.leader_epoch = np.full(count, -1, np.int32)
        self.text_at = np.zeros(count, np.int64)
        self.text_size = np.zeros(count, np.int64)
        self.commit_ms = np.zeros(count, np.int64)
        self.expire_ms = np.full(count, -1, np.int64)
        self.topic_ids = np.zeros((2, count), np.int64)

    def versions(self) -> Int64s:
        found = np.full(len(self.starts), -1, np.int64)
        long_enough = np.flatnonzero(self.ends - self.starts >= 2)
        found[long_enough] = self.cells.int16s(self.starts[long_enough])
        self.damaged[self.ends - self.starts < 2] = True
        return found

    def keep(self, rows: Int64s, fine: Bools) -> Int64s:
        """``rows`` without those that are damaged."""
        self.damaged[rows[~fine]] = True
        return rows if fine.all() else rows[fine]


def decode_values(column: pa.Array, rows: Int64s) -> Values:
    """Decode the values, none null, at ``rows`` of a binary column."""
    reading = _Reading(Cells(column), rows)
    versions = reading.versions()
    for version in range(NEWEST_VERSION + 1):
        of_version = np.flatnonzero((versions == version) & ~reading.damaged)
        if len(of_version):
            _read_version(reading, of_version, version)
    with_metadata = np.flatnonzero((reading.text_size > 0) & ~reading.damaged)
    texts, valid = reading.cells.texts(reading.text_at[with_metadata], reading.text_size[with_metadata])
    reading.damaged[with_metadata[~valid]] = True
    return Values(
        versions,
        reading.damaged,
        reading.committed,
        reading.leader_epoch,
        reading.commit_ms,
        reading.expire_ms,
        reading.topic_ids,
        with_metadata,
        texts,
    )


def _read_version(reading: _Reading, rows: Int64s, version: int) -> None:
    cells, has_epoch = reading.cells, version >= 3
    head = 14 if has_epoch else 10
    rows = reading.keep(rows, reading.starts[rows] + head < reading.ends[rows])
    at = reading.starts[rows]
    reading.committed[rows] = cells.int64s(at + 2)
    if has_epoch:
        reading.leader_epoch[rows] = cells.int32s(at + 10)
    rows = _compact_text(reading, rows, at + head) if version == _FLEXIBLE_VERSION else _plain_text(reading, rows, at + head)
    at = reading.text_at[rows] + reading.text_size[rows]
    tail = {_VERSION_WITH_EXPIRY: 16, _FLEXIBLE_VERSION: 9}.get(version, 8)
    fine = at + tail <= reading.ends[rows]
    rows, at = reading.keep(rows, fine), at[fine]
    reading.commit_ms[rows] = cells.int64s(at)
    if version == _VERSION_WITH_EXPIRY:
        reading.expire_ms[rows] = cells.int64s(at + 8)
    if version == _FLEXIBLE_VERSION:
        _read_tags(reading, rows, at + 8)


def _plain_text(reading: _Reading, rows: Int64s, at: Int64s) -> Int64s:
    fine = at + 2 <= reading.ends[rows]
    rows, at = reading.keep(rows, fine), at[fine]
    sizes = reading.cells.int16s(at).astype(np.int64)
    reading.text_at[rows], reading.text_size[rows] = at + 2, sizes
    return reading.keep(rows, sizes >= 0)


def _compact_text(reading: _Reading, rows: Int64s, at: Int64s) -> Int64s:
    sizes, after = reading.cells.int8s(at).astype(np.int64), at + 1
    longer = np.flatnonzero(sizes > 0x7F)
    if len(longer):
        sizes[longer], after[longer] = reading.cells.varints(at[longer], reading.ends[rows[longer]])
    reading.text_at[rows], reading.text_size[rows] = after, sizes - 1
    return reading.keep(rows, sizes >= 1)


def _read_tags(reading: _Reading, rows: Int64s, at: Int64s) -> None:
    data, ends = reading.cells.data, reading.ends[rows]
    count = data[at]
    usual = np.flatnonzero((count == 1) & (at + len(_FULL_SHAPE) + _TOPIC_ID_BYTES <= ends))
    here = at[usual]
    has_id = (data[here + 1] == _FULL_SHAPE[1]) & (data[here + 2] == _FULL_SHAPE[2])
    usual, here = usual[has_id], here[has_id] + len(_FULL_SHAPE)
    _keep_ids(reading, rows[usual], here)
    unusual = count != 0
    unusual[usual] = False
    _walk_tags(reading, rows[unusual], at[unusual])


def _walk_tags(reading: _Reading, rows: Int64s, at: Int64s) -> None:
    """Tagged fields that nobody writes yet beside the topic id, or in its place: the n-th one of all rows at once."""
    cells, at_of, left = reading.cells, np.zeros(len(reading.starts), np.int64), np.zeros(len(reading.starts), np.int64)
    left[rows], at_of[rows] = cells.varints(at, reading.ends[rows])
    rows = reading.keep(rows, left[rows] >= 0)
    going = rows[left[rows] > 0]
    while len(going) > FEW:
        ends = reading.ends[going]
        tags, after = cells.varints(at_of[going], ends)
        sizes, begins = cells.varints(after, ends)
        is_id = tags == 0
        fine = (tags >= 0) & (sizes >= 0) & (begins + sizes <= ends) & ~(is_id & (sizes < _TOPIC_ID_BYTES))
        at_of[going] = begins + sizes
        _keep_ids(reading, going[fine & is_id], begins[fine & is_id])
        going = reading.keep(going, fine)
        left[going] -= 1
        going = going[left[going] > 0]
    for row in going:
        _read_alone(reading, int(row))


def _keep_ids(reading: _Reading, rows: Int64s, at: Int64s) -> None:
    reading.topic_ids[0, rows] = reading.cells.int64s(at)
    reading.topic_ids[1, rows] = reading.cells.int64s(at + 8)


def _read_alone(reading: _Reading, row: int) -> None:
    """One of the last rows of a long walk: kgctl.serde reads it from its begin."""
    raw = reading.cells.data[reading.starts[row] : reading.ends[row]].tobytes()
    try:
        value = decode_value(_ANY_KEY, raw)
    except RecordDecodeError:
        reading.damaged[row] = True
        return
    assert isinstance(value, OffsetCommitValue)
    reading.topic_ids[:, row] = np.frombuffer(value.topic_id.bytes, ">i8")
