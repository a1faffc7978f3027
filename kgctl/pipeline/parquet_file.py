"""Parquet files for other programs: the same rows, the same bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

from kgctl.pipeline.extras import require

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS_IN_GROUP = 64 * 1024


def write_rows(
    file: BinaryIO, kinds: Mapping[str, type], rows: Sequence[Mapping[str, Any]], *, metadata: Mapping[str, str] | None = None
) -> None:
    """Write ``rows`` with the columns of ``kinds`` (str, int or float; each may be null), in this order.

    The bytes follow from the rows, the metadata and the version of pyarrow.

    Raises:
        UsageError: pyarrow is missing.
    """
    require("a Parquet file", "pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {str: pa.string(), int: pa.int64(), float: pa.float64()}
    schema = pa.schema([(name, types[kind]) for name, kind in kinds.items()], metadata=dict(metadata or {}))
    columns = [pa.array([_as(row[name], kind) for row in rows], types[kind]) for name, kind in kinds.items()]
    table = pa.Table.from_arrays(columns, schema=schema)
    pq.write_table(table, file, compression="zstd", row_group_size=_ROWS_IN_GROUP, version="2.6", store_schema=True)


def write_table(file: BinaryIO, rows: pa.Table) -> None:
    """Write an Arrow table as it is."""
    import pyarrow.parquet as pq

    pq.write_table(rows, file, compression="zstd")


def _as(value: Any, kind: type) -> Any:
    return float(value) if kind is float and value is not None else value
