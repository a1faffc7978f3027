"""Records of groups and their members: which of them are whole."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kgctl.model.records import ConsumerGroupPartitionMetadataKey
from kgctl.pipeline.decode.cells import Bools, Cells, Int64s
from kgctl.pipeline.decode.keys import Keys
from kgctl.pipeline.decode.result import Reason
from kgctl.pipeline.decode.structures import walk
from kgctl.serde.coordinator_records import TYPE_OF_KEY, RecordDecodeError, decode_value, value_structure

_NEVER_INTERPRETED = TYPE_OF_KEY[ConsumerGroupPartitionMetadataKey]
_VERSION_BYTES = 2


@dataclass
class GroupRows:
    """``rows`` are whole records of groups; ``refused`` the others, by reason; ``columns`` those that come from the keys."""

    rows: Int64s
    refused: dict[Reason, Int64s]
    columns: dict[str, pa.Array]


def group_rows(keys: Keys, values: pa.Array, rows: Int64s) -> GroupRows:
    """Look at the records at ``rows``, none of them an offset commit."""
    codes = keys.codes[rows]
    refused = {reason: rows[np.isin(codes, found)] for reason, found in _by_reason(keys).items()}
    of_groups = np.isin(codes, np.fromiter(keys.others, np.int64, len(keys.others)))
    rows, codes = rows[of_groups], codes[of_groups]
    is_newer, is_damaged = _judge(keys, values, rows, codes)
    refused[Reason.UNKNOWN_VERSION], refused[Reason.DAMAGED_VALUE] = rows[is_newer], rows[is_damaged]
    fine = ~(is_newer | is_damaged)
    return GroupRows(rows[fine], refused, _columns(keys, codes[fine]))


def _by_reason(keys: Keys) -> dict[Reason, Int64s]:
    found: dict[Reason, list[int]] = {}
    for code, reason in keys.reasons.items():
        found.setdefault(reason, []).append(code)
    return {reason: np.array(codes) for reason, codes in found.items()}


def _judge(keys: Keys, values: pa.Array, rows: Int64s, codes: Int64s) -> tuple[Bools, Bools]:
    """(of a version that nobody knows, damaged) of each row."""
    is_newer, is_damaged = np.zeros(len(rows), np.bool_), np.zeros(len(rows), np.bool_)
    cells, types = Cells(values), keys.types[codes]
    starts, ends = cells.starts[rows], cells.ends[rows]
    looked_at = (types != _NEVER_INTERPRETED) & values.take(pa.array(rows)).is_valid().to_numpy(zero_copy_only=False)
    is_damaged[looked_at & (ends - starts < _VERSION_BYTES)] = True
    at = np.flatnonzero(looked_at & ~is_damaged)
    versions = cells.int16s(starts[at])
    for record_type, version in sorted(set(zip(types[at].tolist(), versions.tolist(), strict=True))):
        here = at[(types[at] == record_type) & (versions == version)]
        structure = value_structure(record_type, version)
        if structure is None:
            is_newer[here] = True
            continue
        damaged, alone = walk(cells, starts[here] + _VERSION_BYTES, ends[here], structure)
        for index in np.flatnonzero(alone):
            damaged[index] = not _is_whole(keys, int(codes[here[index]]), values[int(rows[here[index]])].as_py())
        is_damaged[here] = damaged
    return is_newer, is_damaged


def _is_whole(keys: Keys, code: int, value: bytes) -> bool:
    try:
        decode_value(keys.others[code], value)
    except RecordDecodeError:
        return False
    return True


def _columns(keys: Keys, codes: Int64s) -> dict[str, pa.Array]:
    places: npt.NDArray[np.int64] = np.zeros(len(keys.types), np.int64)
    places[list(keys.others)] = np.arange(len(keys.others))
    at = pa.array(places[codes])
    groups = pa.array([key.group for key in keys.others.values()], pa.string())
    members = pa.array([getattr(key, "member_id", None) for key in keys.others.values()], pa.string())
    return {"group": groups.take(at), "record_type": pa.array(keys.types[codes]), "member_id": members.take(at)}
