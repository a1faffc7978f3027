"""What builds go on from, as the table ``state`` keeps it: files of slices, and one of the cluster."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from kgctl.pipeline.store.delta import Table
from kgctl.pipeline.store.files import DataFile, StoreLocation, read_file, write_files
from kgctl.pipeline.store.tables import to_stored

CLUSTER, PROGRESS, SLICE = "cluster-", "progress-", "b"
"""How names of files begin: that have what is of no slice, of a build that has not ended what it has made, and of a slice."""


def named(files: Sequence[DataFile], prefix: str) -> list[DataFile]:
    """The files whose names begin so."""
    return [file for file in files if file.path.rsplit("/", 1)[-1].startswith(prefix)]


def write_state(location: StoreLocation, cluster: str, prefix: str, data: bytes, bucket: int = -1) -> DataFile:
    """Write a file of table ``state``. Raises `StorageError`."""
    rows = pa.table({"bucket": [bucket], "state": [data], "time": pa.array([0], pa.int64())})
    (file,) = write_files(location, "state", to_stored("state", rows, cluster), prefix)
    return file


def read_state(location: StoreLocation, path: str) -> bytes:
    """Return what such a file has. Raises `StorageError`."""
    data: bytes = read_file(location, "state", path, ["state"]).column("state")[0].as_py()
    return data


def homes_of(state: Table, cluster: str) -> dict[str, int]:
    """The partition of the log that each group lives on; nothing where no build has told it."""
    table = _of_cluster(state, cluster).get("homes")
    return {} if table is None else dict(zip(*(column.to_pylist() for column in table.columns), strict=True))


def rounds_of(state: Table, cluster: str) -> Sequence[int]:
    """The windows, ascending, in which anything of the cluster was sampled (`kgctl.pipeline.tables.rounds`)."""
    table = _of_cluster(state, cluster).get("rounds")
    return [] if table is None else table.column(0).to_pylist()


def _of_cluster(state: Table, cluster: str) -> Mapping[str, pa.Table]:
    own = named(state.files(cluster), CLUSTER)
    return unpacked(read_state(state.location, own[0].path))[1] if len(own) == 1 else {}


def packed(head: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> bytes:
    """A line of JSON, then each table as Arrow's IPC, with zstd."""
    parts = {}
    for name, table in tables.items():
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
            writer.write_table(table.unify_dictionaries().combine_chunks())
        parts[name] = sink.getvalue().to_pybytes()
    sizes = {name: len(part) for name, part in parts.items()}
    return b"".join([json.dumps({"head": dict(head), "sizes": sizes}).encode(), b"\n", *parts.values()])


def unpacked(data: bytes) -> tuple[dict[str, Any], dict[str, pa.Table]]:
    """Return what `packed` was given."""
    line, _, rest = data.partition(b"\n")
    said = json.loads(line)
    tables, at = {}, 0
    for name, size in said["sizes"].items():
        with pa.ipc.open_stream(pa.py_buffer(rest[at : at + size])) as reader:
            tables[name] = reader.read_all()
        at += size
    return said["head"], tables
