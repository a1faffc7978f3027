"""Keys and values of records: what keys say, and whether many values are whole, found out in lock step by the tables that
kgctl.serde reads one value with.

A step (a field, an element of an array, a tagged field) is taken by all rows at once, and rows that fail fall out. Few rows left
in a long loop are given to kgctl.serde instead, so that one long record does not cost a step for each of its elements.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kgctl.model.coordinator_records import OffsetCommitKey, OffsetCommitValue, RecordKey
from kgctl.pipeline.decode.arrow import Bools, Cells, Int32s, Int64s
from kgctl.pipeline.decode.schemas import Reason
from kgctl.serde.coordinator_records import RecordDecodeError, decode_value
from kgctl.serde.epoch_groups import interpreted_key
from kgctl.serde.record_schema import (
    INT8_MAX,
    Array,
    Blob,
    Codec,
    Fixed,
    Length,
    Nullable,
    NullableInPlace,
    Structure,
    Text,
    UuidBytes,
)

ALONE = 8
"""Up to this many rows are not worth a step."""


class Walk:
    """Where each row stands. ``undecided`` rows are neither whole nor damaged yet: kgctl.serde is to read them."""

    def __init__(self, cells: Cells, starts: Int64s, ends: Int64s) -> None:
        self.cells = cells
        self.at, self.ends = starts.copy(), ends.copy()
        self.damaged: Bools = np.zeros(len(starts), np.bool_)
        self.undecided: Bools = np.zeros(len(starts), np.bool_)

    def keep(self, rows: Int64s, fine: Bools) -> Int64s:
        """Return ``rows`` without those that are damaged."""
        if fine.all():
            return rows
        self.damaged[rows[~fine]] = True
        return rows[fine]

    def step(self, rows: Int64s, sizes: Int64s | int) -> Int64s:
        """Advance each row by a number of bytes, 0 or more."""
        self.at[rows] += sizes
        return self.keep(rows, self.at[rows] <= self.ends[rows])

    def varint(self, rows: Int64s) -> tuple[Int64s, Int64s]:
        """Return (rows, values) of a varint at each row's place."""
        values, self.at[rows] = self.cells.varints(self.at[rows], self.ends[rows])
        return self.keep(rows, values >= 0), values[values >= 0]

    def few(self, rows: Int64s) -> bool:
        """Whether so few rows are left that they are given up here."""
        if len(rows) > ALONE:
            return False
        self.undecided[rows] = True
        return True


def walk(cells: Cells, starts: Int64s, ends: Int64s, structure: Structure) -> tuple[Bools, Bools]:
    """(damaged, undecided) of the structures that begin at ``starts``. Bytes behind one do not matter."""
    found, rows = Walk(cells, starts, ends), np.arange(len(starts))
    if not found.few(rows):
        _skip(found, rows, structure)
    return found.damaged, found.undecided


def _skip(found: Walk, rows: Int64s, codec: Codec) -> Int64s:
    """Go over one value in each row; the rows that are still fine and decided."""
    return _SKIP[type(codec)](found, rows, codec) if len(rows) else rows


def _fixed(found: Walk, rows: Int64s, codec: Fixed | UuidBytes) -> Int64s:
    return found.step(rows, codec.size)


def _length(found: Walk, rows: Int64s, codec: Length) -> tuple[Int64s, Int64s]:
    if codec.flexible:
        rows, values = found.varint(rows)
        return rows, values - 1
    rows = found.step(rows, codec.plain.size)
    at = found.at[rows] - codec.plain.size
    return rows, (found.cells.int16s(at) if codec.plain.size == 2 else found.cells.int32s(at)).astype(np.int64)


def _text(found: Walk, rows: Int64s, codec: Text) -> Int64s:
    rows, sizes = _length(found, rows, codec.length)
    rows, sizes = _sized(found, rows, sizes, lowest=-1 if codec.nullable else 0)
    begins = found.at[rows] - sizes
    return found.keep(rows, found.cells.texts(begins, sizes)[1])


def _blob(found: Walk, rows: Int64s, codec: Blob) -> Int64s:
    return _sized(found, *_length(found, rows, codec.length), lowest=0)[0]


def _sized(found: Walk, rows: Int64s, sizes: Int64s, *, lowest: int) -> tuple[Int64s, Int64s]:
    """Go over so many bytes; -1, where allowed, is null and none."""
    fine = (sizes >= lowest) & (found.at[rows] + np.maximum(sizes, 0) <= found.ends[rows])
    sizes = np.maximum(sizes[fine], 0)
    rows = found.keep(rows, fine)
    return found.step(rows, sizes), sizes


def _array(found: Walk, rows: Int64s, codec: Array) -> Int64s:
    rows, counts = _length(found, rows, codec.length)
    fine = (counts >= -1) & (counts <= found.ends[rows] - found.at[rows])
    rows, counts = found.keep(rows, fine), counts[fine]
    if isinstance(codec.element, Fixed | UuidBytes):
        return found.step(rows, np.maximum(counts, 0) * codec.element.size)
    return _repeat(found, rows, counts, lambda going: _skip(found, going, codec.element))


def _repeat(found: Walk, rows: Int64s, counts: Int64s, one: Callable[[Int64s], Int64s]) -> Int64s:
    """Call ``one`` as often as each row's count says."""
    left = np.zeros(len(found.at), np.int64)
    left[rows] = counts
    going = rows[counts > 0]
    while len(going) and not found.few(going):
        left[going] -= 1
        one(going)
        going = going[(left[going] > 0) & ~found.damaged[going] & ~found.undecided[going]]
    return rows[~found.damaged[rows] & ~found.undecided[rows]]


def _structure(found: Walk, rows: Int64s, codec: Structure) -> Int64s:
    for _, of_field in codec.plain:
        rows = _skip(found, rows, of_field)
    if not codec.flexible or not len(rows):
        return rows
    rows, counts = found.varint(rows)
    return _repeat(found, rows, counts, lambda going: _tagged_field(found, going, codec))


def _tagged_field(found: Walk, rows: Int64s, codec: Structure) -> Int64s:
    rows, tags = found.varint(rows)
    tag_of = np.zeros(len(found.at), np.int64)
    tag_of[rows] = tags
    rows, sizes = found.varint(rows)
    behind = found.at[rows] + sizes
    fine = behind <= found.ends[rows]
    rows, behind = found.keep(rows, fine), behind[fine]
    for tag, (_, of_field) in codec.tagged.items():
        of_tag = tag_of[rows] == tag
        _inside(found, rows[of_tag], behind[of_tag], of_field)
    found.at[rows] = behind
    return rows


def _inside(found: Walk, rows: Int64s, behind: Int64s, codec: Codec) -> None:
    """A tagged field's value, which ends before ``behind``."""
    ends = found.ends[rows]
    found.ends[rows] = behind
    _skip(found, rows, codec)
    found.ends[rows] = ends


def _nullable(found: Walk, rows: Int64s, codec: Nullable) -> Int64s:
    rows, values = found.varint(rows)
    _skip(found, rows[values > 0], codec.structure)
    return rows[~found.damaged[rows] & ~found.undecided[rows]]


def _nullable_in_place(found: Walk, rows: Int64s, codec: NullableInPlace) -> Int64s:
    rows = found.step(rows, 1)
    _skip(found, rows[found.cells.int8s(found.at[rows] - 1) <= INT8_MAX], codec.structure)
    return rows[~found.damaged[rows] & ~found.undecided[rows]]


_SKIP: dict[type, Callable[[Walk, Int64s, Any], Int64s]] = {
    Fixed: _fixed,
    UuidBytes: _fixed,
    Text: _text,
    Blob: _blob,
    Array: _array,
    Structure: _structure,
    Nullable: _nullable,
    NullableInPlace: _nullable_in_place,
}


NO_TYPE = -32_768
"""Stands for the type of a key that is too short to have one."""


@dataclass
class KeyDictionary:
    """Distinct keys, by number; ``codes`` has the number of each row's key, and that of ``no key`` (the last) for null.

    ``commits`` says which are whole OffsetCommit keys; their ``group`` and ``topic`` are numbers in ``groups`` and ``topics``.
    ``others`` has the keys that kgctl.serde reads; ``reasons`` why any other was not decoded.
    """

    codes: Int64s
    types: npt.NDArray[np.int16]
    commits: Bools
    group: Int32s
    topic: Int32s
    partition: Int32s
    groups: pa.Array
    topics: pa.Array
    others: dict[int, RecordKey] = field(default_factory=dict)
    reasons: dict[int, Reason] = field(default_factory=dict)


def decode_keys(column: pa.Array) -> KeyDictionary:
    """Decode a binary column of keys, or one that is dictionary-encoded already."""
    encoded = column if isinstance(column, pa.DictionaryArray) else column.dictionary_encode()
    distinct = encoded.dictionary
    codes = encoded.indices.fill_null(len(distinct)).to_numpy().astype(np.int64)
    keys = _commit_keys(Cells(distinct), codes)
    for index in np.flatnonzero(~keys.commits[:-1]):
        _other_key(keys, int(index), distinct[int(index)].as_py())
    keys.reasons[len(distinct)] = Reason.NO_KEY
    return keys


def topics_of(keys: pa.ChunkedArray) -> pa.Array:
    """The topics that keys of commits name, each once."""
    distinct = pc.unique(keys)
    distinct = distinct.dictionary_decode() if isinstance(distinct, pa.DictionaryArray) else distinct
    return _commit_keys(Cells(distinct), np.zeros(0, np.int64)).topics


def _commit_keys(cells: Cells, codes: Int64s) -> KeyDictionary:
    count = len(cells.starts)
    types = np.full(count + 1, NO_TYPE, np.int16)
    typed = np.flatnonzero(cells.ends - cells.starts >= 2)
    types[typed] = cells.int16s(cells.starts[typed])
    rows = typed[(types[typed] == 0) | (types[typed] == 1)]
    rows, group_at, group_size = _sized_text(cells, rows, cells.starts[rows] + 2)
    rows, topic_at, topic_size, kept = _sized_after(cells, rows, group_at + group_size)
    group_at, group_size = group_at[kept], group_size[kept]
    whole = topic_at + topic_size + 4 <= cells.ends[rows]
    groups, group_fine = cells.texts(group_at[whole], group_size[whole])
    topics, topic_fine = cells.texts(topic_at[whole], topic_size[whole])
    fine = group_fine & topic_fine
    rows, partition_at = rows[whole], (topic_at + topic_size)[whole]
    groups, topics = groups.dictionary_encode(), topics.dictionary_encode()
    commits = np.zeros(count + 1, np.bool_)
    commits[rows[fine]] = True
    return KeyDictionary(
        codes,
        types,
        commits,
        _spread(count, rows, groups.indices.to_numpy()),
        _spread(count, rows, topics.indices.to_numpy()),
        _spread(count, rows, cells.int32s(partition_at)),
        groups.dictionary,
        topics.dictionary,
    )


def _sized_text(cells: Cells, rows: Int64s, at: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Of ``rows``, those with a length of 0 or more at ``at``; where the text begins, and how long it is."""
    rows, begins, sizes, _ = _sized_after(cells, rows, at)
    return rows, begins, sizes


def _sized_after(cells: Cells, rows: Int64s, at: Int64s) -> tuple[Int64s, Int64s, Int64s, Int64s]:
    kept = np.flatnonzero(at + 2 <= cells.ends[rows])
    sizes = cells.int16s(at[kept]).astype(np.int64)
    kept, sizes = kept[sizes >= 0], sizes[sizes >= 0]
    return rows[kept], at[kept] + 2, sizes, kept


def _spread(count: int, rows: Int64s, values: npt.NDArray[np.int32]) -> Int32s:
    spread = np.zeros(count + 1, np.int32)
    spread[rows] = values
    return spread


def _other_key(keys: KeyDictionary, index: int, raw: bytes) -> None:
    try:
        keys.others[index] = interpreted_key(raw)
    except RecordDecodeError:
        keys.reasons[index] = Reason.DAMAGED_KEY
    except LookupError:
        keys.reasons[index] = Reason.UNKNOWN_TYPE


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
        """Return ``rows`` without those that are damaged."""
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
