"""Decoded OffsetCommit keys and values as the columns of ``COMMITS``."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kgctl.pipeline.decode.cells import Bools, Int64s
from kgctl.pipeline.decode.keys import Keys
from kgctl.pipeline.decode.values import Values
from kgctl.serde.record_schema import uuid_text

_NO_EXPIRY = -1


def commit_rows(keys: Keys, codes: Int64s, values: Values, is_tombstone: Bools, fine: Bools) -> dict[str, pa.Array]:
    """The columns that come from key and value, of the rows that are ``fine``. ``codes``: each row's key."""
    kept: slice | Bools = slice(None) if fine.all() else fine
    empty = is_tombstone[kept] if is_tombstone.any() else None
    key = codes[kept]
    leader_epoch = values.leader_epoch[kept]
    expire_ms = values.expire_ms[kept]
    no_expiry = expire_ms == _NO_EXPIRY
    return {
        "group": dictionary(keys.group[key], keys.groups),
        "topic": dictionary(keys.topic[key], keys.topics),
        "partition": pa.array(keys.partition[key]),
        "committed_offset": pa.array(values.committed[kept], mask=empty),
        "leader_epoch": pa.array(leader_epoch if empty is None else np.where(empty, np.int32(-1), leader_epoch)),
        "metadata": _metadata(values, is_tombstone, fine),
        "commit_timestamp_ms": pa.array(values.commit_ms[kept], mask=empty),
        "expire_timestamp_ms": pa.nulls(len(key), pa.int64()) if no_expiry.all() else pa.array(expire_ms, mask=no_expiry),
        "topic_id": _topic_ids(values.topic_ids[0][kept], values.topic_ids[1][kept], key, len(keys.commits)),
    }


def dictionary(indices: npt.NDArray[np.int32], texts: pa.Array) -> pa.Array:
    """Texts by their numbers; a negative one is null."""
    missing = indices < 0
    return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32(), mask=missing if missing.any() else None), texts)


def _metadata(values: Values, is_tombstone: Bools, fine: Bools) -> pa.Array:
    texts = values.metadata.dictionary_encode()
    indices = np.where(is_tombstone, np.int32(-1), np.int32(0))
    indices[values.with_metadata] = texts.indices.to_numpy() + 1
    return dictionary(indices[fine], pa.concat_arrays([pa.array([""]), texts.dictionary]))


def _topic_ids(high: Int64s, low: Int64s, key: Int64s, key_count: int) -> pa.Array:
    """The rows of a key nearly always have the same id, so it is turned into text once a key; if not, once a row."""
    key_high, key_low = np.zeros(key_count, np.int64), np.zeros(key_count, np.int64)
    key_high[key], key_low[key] = high, low
    if (key_high[key] == high).all() and (key_low[key] == low).all():
        numbers, texts = _distinct(key_high, key_low)
        return dictionary(numbers[key], texts)
    return dictionary(*_distinct(high, low))


def _distinct(high: Int64s, low: Int64s) -> tuple[npt.NDArray[np.int32], pa.Array]:
    """(each row's number, -1 for an id of zeros; the distinct ids' texts)."""
    raw = np.stack([high, low], axis=1).astype(">i8")
    encoded = pa.Array.from_buffers(pa.binary(16), len(raw), [None, pa.py_buffer(raw.tobytes())]).dictionary_encode()
    ids = encoded.dictionary.to_pylist()
    texts = pa.array([uuid_text(one) for one in ids], pa.string())
    numbers = encoded.indices.to_numpy().astype(np.int32)
    return np.where((high == 0) & (low == 0), np.int32(-1), numbers), texts
