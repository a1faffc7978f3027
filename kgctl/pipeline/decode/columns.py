"""Columns of Arrow tables as numpy has them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kgctl.pipeline.decode.cells import Bools, Int64s


def int64s(table: pa.Table, name: str, null: int = 0) -> Int64s:
    """A column of whole numbers or booleans, with ``null`` for null."""
    column = table.column(name).cast(pa.int64())
    found: Int64s = (column.fill_null(null) if column.null_count else column).to_numpy()
    return found


def nulls(column: pa.Array | pa.ChunkedArray) -> Bools:
    """Which rows are null."""
    if column.null_count == 0:
        return np.zeros(len(column), np.bool_)
    found: Bools = column.is_null().to_numpy(zero_copy_only=False)
    return found


def each_once(table: pa.Table, name: str) -> pa.Table:
    """The rows in the order of a column of whole numbers, the first one of each number."""
    numbers = table.column(name).to_numpy()
    if (np.diff(numbers) > 0).all():
        return table
    _, first = np.unique(numbers, return_index=True)
    return table.take(pa.array(first))
