"""Parquet of earlier collections: another warehouse, or files with the columns of `kgctl.pipeline.warehouse.schemas.RAW`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kgctl.errors import NotFoundError, UsageError
from kgctl.pipeline.sources.log.parse import ParsedLog
from kgctl.pipeline.sources.pieces import Source
from kgctl.pipeline.warehouse.files import one_line, parquet_errors, read_table, storage_errors
from kgctl.pipeline.warehouse.layout import MARKER
from kgctl.pipeline.warehouse.schemas import LOG_OFFSETS, RAW, conform
from kgctl.pipeline.warehouse.warehouse import Warehouse

_ROWS = 1 << 19


@dataclass(frozen=True, slots=True)
class ParquetPiece:
    """One file."""

    path: Path
    size: int

    @property
    def source(self) -> str:
        """Its path."""
        return str(self.path)

    def read(self) -> Iterator[ParsedLog]:
        """Some row groups at a time, each partition in a table of its own. Raises `StorageError`, `UsageError`."""
        with parquet_errors(self.path), pq.ParquetFile(self.path) as file:
            for batch in file.iter_batches(_ROWS):
                yield ParsedLog(_by_partition(_conformed(self.path, pa.table(batch))), batches=1)


def parquet_source(path: Path) -> Source:
    """See `kgctl.pipeline.sources.pieces.parquet`."""
    with storage_errors(path):
        if not path.exists():
            raise NotFoundError(f"{path}: no such file or folder")
        is_warehouse = (path / MARKER).exists()
    if is_warehouse:
        warehouse = Warehouse.open(path)
        cluster = warehouse.require_cluster(None)
        files = [
            warehouse.path / file.path
            for partition in warehouse.partitions(cluster)
            for file in warehouse.bronze_files(cluster, partition)
        ]
        return Source(_pieces(files), cluster)
    files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise NotFoundError(f"{path}: no Parquet file in it")
    return Source(_pieces(files))


def parquet_samples(path: Path) -> Any:
    """The samples of another warehouse (`LOG_OFFSETS`); none in other folders."""
    if not (path / MARKER).exists():
        return LOG_OFFSETS.empty_table()
    warehouse = Warehouse.open(path)
    files = warehouse.log_offset_files(warehouse.require_cluster(None))
    return pa.concat_tables([LOG_OFFSETS.empty_table(), *(read_table(warehouse.path / file) for file in files)])


def _pieces(files: Sequence[Path]) -> list[ParquetPiece]:
    return [ParquetPiece(file, file.stat().st_size) for file in files]


def _conformed(path: Path, table: Any) -> Any:
    try:
        return conform(table, RAW)
    except KeyError as error:
        raise UsageError(f"{path}: has no column {error.args[0]}; wanted are the columns of collected records") from None
    except pa.ArrowInvalid as error:
        raise UsageError(f"{path}: {one_line(error)}") from None


def _by_partition(table: Any) -> list[Any]:
    partitions = pc.unique(table.column("partition")).to_pylist()
    if len(partitions) == 1:
        return [table]
    return [table.filter(pc.equal(table.column("partition"), partition)) for partition in sorted(partitions)]
