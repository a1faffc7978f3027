"""Parquet of earlier collections: another warehouse, or files with the columns of `kgctl.pipeline.store.raw.RAW`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kgctl.errors import NotFoundError, UsageError
from kgctl.pipeline.sources.log.parse import ParsedLog
from kgctl.pipeline.sources.pieces import Source
from kgctl.pipeline.store.files import one_line, parquet_errors, storage_errors
from kgctl.pipeline.store.raw import LOG_OFFSETS, RAW, conform
from kgctl.pipeline.store.tables import from_stored
from kgctl.pipeline.store.warehouse import OLD_MARKER, Warehouse

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
        is_old, is_warehouse = (path / OLD_MARKER).exists(), (path / "clusters" / "_delta_log").exists()
    if is_warehouse:
        warehouse = Warehouse.open(path)
        records = [path / "records" / file.path for file in warehouse.table("records").files()]
        return Source(_pieces(records), warehouse.require_cluster(None))
    folder, cluster = (_old_folder(path, "records"), _old_cluster(path)) if is_old else (path, None)
    files = sorted(folder.rglob("*.parquet")) if folder.is_dir() else [folder]
    if not files:
        raise NotFoundError(f"{path}: no Parquet file in it")
    return Source(_pieces(files), cluster)


def parquet_samples(path: Path) -> Any:
    """The samples of another warehouse (`LOG_OFFSETS`); none in other folders."""
    if (path / "clusters" / "_delta_log").exists():
        return conform(from_stored("samples", Warehouse.open(path).table("samples").rows()), LOG_OFFSETS)
    files = sorted(_old_folder(path, "log_offsets").rglob("*.parquet")) if (path / OLD_MARKER).exists() else []
    return pa.concat_tables([LOG_OFFSETS.empty_table(), *(_read(file) for file in files)])


def _old_cluster(path: Path) -> str:
    """The one cluster of a warehouse of the format before Delta tables."""
    found = sorted(each.name.partition("=")[2] for each in (path / "bronze" / "records").glob("cluster=*"))
    if len(found) != 1:
        raise UsageError(
            f"{path} holds {len(found)} clusters: give one of the folders {path}/bronze/records/cluster=NAME, and --cluster"
        )
    return unquote(found[0])


def _old_folder(path: Path, kind: str) -> Path:
    return path / "bronze" / kind


def _read(file: Path) -> Any:
    with parquet_errors(file):
        return pq.ParquetFile(file).read().cast(LOG_OFFSETS)


def _pieces(files: Sequence[Path]) -> list[ParquetPiece]:
    return [ParquetPiece(file, file.stat().st_size) for file in files]


def _conformed(path: Path, table: Any) -> Any:
    try:
        return conform(from_stored("records", table) if "log_offset" in table.column_names else table, RAW)
    except KeyError as error:
        raise UsageError(f"{path}: has no column {error.args[0]}; wanted are the columns of collected records") from None
    except pa.ArrowInvalid as error:
        raise UsageError(f"{path}: {one_line(error)}") from None


def _by_partition(table: Any) -> list[Any]:
    partitions = pc.unique(table.column("partition")).to_pylist()
    if len(partitions) == 1:
        return [table]
    return [table.filter(pc.equal(table.column("partition"), partition)) for partition in sorted(partitions)]
