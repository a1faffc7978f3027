"""Reading the rows of some groups out of a file of a table, which is sorted by group: only the row groups that can have them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgctl.errors import StorageError
from kgctl.pipeline.warehouse.files import parquet_errors
from kgctl.pipeline.warehouse.warehouse import REBUILD

if TYPE_CHECKING:
    import pyarrow as pa

_NAMES = ("group", "topic", "member_id")
"""Columns whose few values are repeated many times: read as dictionaries."""


def read_rows(path: Path, columns: Sequence[str], groups: Collection[str] | None = None) -> pa.Table:
    """These columns of the file; of these groups, or of all.

    Raises:
        StorageError: the file is damaged, or lacks a column: then another version of kgctl has built it.
    """
    import pyarrow.parquet as pq

    dictionaries = [name for name in columns if name in _NAMES]
    with parquet_errors(path, REBUILD), pq.ParquetFile(path, read_dictionary=dictionaries) as file:
        _require(path, file.schema_arrow.names, columns)
        if groups is None:
            return file.read(list(columns))
        places = _row_groups(file.metadata, sorted(groups))
        return _of_groups(file.read_row_groups(places, list(columns)), groups)


def _require(path: Path, there: Collection[str], columns: Sequence[str]) -> None:
    missing = [name for name in columns if name not in there]
    if missing:
        raise StorageError(
            f"{path}: built by another version of kgctl (no column {missing[0]!r}): kgctl history build builds it anew"
        )


def _row_groups(metadata: Any, groups: Sequence[str]) -> list[int]:
    """The row groups that may hold one of the groups, by the lowest and highest group in each."""
    column = next(i for i in range(metadata.num_columns) if metadata.schema.column(i).path == "group")
    found = []
    for place in range(metadata.num_row_groups):
        statistics = metadata.row_group(place).column(column).statistics
        if statistics is None or not statistics.has_min_max:
            found.append(place)
            continue
        at = bisect_left(groups, statistics.min)
        if at < len(groups) and groups[at] <= statistics.max:
            found.append(place)
    return found


def _of_groups(table: pa.Table, groups: Collection[str]) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    return table.filter(pc.is_in(table.column("group"), value_set=pa.array(sorted(groups), pa.string())))
