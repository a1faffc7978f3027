"""Whether records are a group coordinator's: those of a normal topic under the name of ``__consumer_offsets`` are not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from kgctl.errors import RefusedError
from kgctl.pipeline.decode.keys import decode_keys
from kgctl.pipeline.decode.result import Reason

_MOST_TYPES = 256
"""Kafka numbers its record types from 0; what claims a higher one is text, a hash or JSON."""


def require_coordinator_records(source: str, tables: Iterable[Any]) -> None:
    """Look at the keys of records (columns of ``RAW``), markers of transactions left out.

    A few damaged keys are data. Raises `RefusedError`, naming ``source``, where most of the keys are none of a coordinator's.
    """
    fine = total = 0
    for table in tables:
        keys = table.column("key").filter(table.column("commits").is_null())
        found = decode_keys(pa.concat_arrays(keys.chunks) if keys.num_chunks else pa.array([], pa.binary()))
        is_foreign = np.zeros(len(found.types), np.bool_)
        for code, reason in found.reasons.items():
            is_foreign[code] = reason in (Reason.NO_KEY, Reason.DAMAGED_KEY) or _is_no_type(reason, int(found.types[code]))
        total += len(found.codes)
        fine += len(found.codes) - int(is_foreign[found.codes].sum())
    if fine * 2 < total:
        raise RefusedError(
            f"{source}: {total - fine} of {total} records have keys that no group coordinator writes: "
            "these are records of another topic than __consumer_offsets"
        )


def _is_no_type(reason: Reason, record_type: int) -> bool:
    return reason is Reason.UNKNOWN_TYPE and not 0 <= record_type < _MOST_TYPES
