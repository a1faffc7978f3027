"""Files named by what is in them: the same table is the same file, and writing it again changes nothing."""

from __future__ import annotations

import hashlib
import os
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kgctl.pipeline.warehouse.files import encode_table, flush_folder, parquet_errors, storage_errors
from kgctl.pipeline.warehouse.layout import Layer

if TYPE_CHECKING:
    import pyarrow as pa

    from kgctl.pipeline.warehouse.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class Outputs:
    """Where a task writes. ``partition`` None: tables of the whole cluster.

    Two attempts of one task may run at a time, on two machines: each writes under a name of its own and renames that to the
    name by content, which is the same for both. Nothing is on the device for sure before `settle`, which has to come before the
    files are published: all of them flushed together cost a fraction of each flushed by itself.
    """

    warehouse: Warehouse
    cluster: str
    partition: int | None
    _unsettled: list[Path] = field(default_factory=list)

    def write(self, layer: Layer, name: str, table: pa.Table) -> list[Path]:
        """The table as a file of the warehouse; no file where there are no rows. Raises `StorageError`."""
        import pyarrow as pa

        if not table.num_rows:
            return []
        sink = pa.BufferOutputStream()
        encode_table(table, sink)
        data = sink.getvalue()
        final = self._path(layer, name, hashlib.sha256(data).hexdigest()[:32])
        with storage_errors(final):
            if not _holds(final, data):
                attempt = self._path(layer, name, f"attempt-{socket.gethostname()}-{os.getpid()}")
                attempt.parent.mkdir(parents=True, exist_ok=True)
                attempt.write_bytes(data)
                attempt.replace(final)
        self._unsettled.append(final)
        return [final]

    def settle(self) -> None:
        """What was written is on the device. Raises `StorageError`."""
        for path in self._unsettled:
            with storage_errors(path), path.open("rb") as file:
                os.fsync(file.fileno())
        for folder in {path.parent for path in self._unsettled}:
            with storage_errors(folder):
                flush_folder(folder)
        self._unsettled.clear()

    def _path(self, layer: Layer, name: str, stem: str) -> Path:
        return self.warehouse.table_file(layer, name, self.cluster, self.partition, stem)


def _holds(path: Path, data: pa.Buffer) -> bool:
    """Whether this is in the file already. The name alone does not say so: a crash or a bad disk may have spoilt it."""
    return path.exists() and path.stat().st_size == data.size and path.read_bytes() == data.to_pybytes()


def rows_in(path: Path) -> int:
    """How many rows a Parquet file has, by its footer. Raises `StorageError`."""
    import pyarrow.parquet as pq

    with parquet_errors(path):
        return int(pq.read_metadata(path).num_rows)
