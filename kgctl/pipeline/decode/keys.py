"""The keys of a block of records: each distinct one is decoded once."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kgctl.model.records import OpaqueKey, RecordKey
from kgctl.pipeline.decode.cells import Bools, Cells, Int32s, Int64s
from kgctl.pipeline.decode.result import Reason
from kgctl.serde.coordinator_records import OPAQUE_TYPES_WITH_GROUP, RecordDecodeError, decode_key

NO_TYPE = -32_768
"""Stands for the type of a key that is too short to have one."""


@dataclass
class Keys:
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


def decode_keys(column: pa.Array) -> Keys:
    """Decode a binary column of keys, or one that is dictionary-encoded already."""
    encoded = column if isinstance(column, pa.DictionaryArray) else column.dictionary_encode()
    distinct = encoded.dictionary
    codes = encoded.indices.fill_null(len(distinct)).to_numpy().astype(np.int64)
    keys = _commit_keys(Cells(distinct), codes)
    for index in np.flatnonzero(~keys.commits[:-1]):
        _other_key(keys, int(index), distinct[int(index)].as_py())
    keys.reasons[len(distinct)] = Reason.NO_KEY
    return keys


def _commit_keys(cells: Cells, codes: Int64s) -> Keys:
    count = len(cells.starts)
    types = np.full(count + 1, NO_TYPE, np.int16)
    typed = np.flatnonzero(cells.ends - cells.starts >= 2)
    types[typed] = cells.int16s(cells.starts[typed])
    rows = typed[(types[typed] == 0) | (types[typed] == 1)]
    rows, group_at, group_size = _sized(cells, rows, cells.starts[rows] + 2)
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
    return Keys(
        codes,
        types,
        commits,
        _spread(count, rows, groups.indices.to_numpy()),
        _spread(count, rows, topics.indices.to_numpy()),
        _spread(count, rows, cells.int32s(partition_at)),
        groups.dictionary,
        topics.dictionary,
    )


def _sized(cells: Cells, rows: Int64s, at: Int64s) -> tuple[Int64s, Int64s, Int64s]:
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


def _other_key(keys: Keys, index: int, raw: bytes) -> None:
    try:
        key = decode_key(raw)
    except RecordDecodeError:
        keys.reasons[index] = Reason.DAMAGED_KEY
        return
    if isinstance(key, OpaqueKey):
        known = key.record_type in OPAQUE_TYPES_WITH_GROUP
        keys.reasons[index] = Reason.OPAQUE if known else Reason.UNKNOWN_TYPE
    else:
        keys.others[index] = key
