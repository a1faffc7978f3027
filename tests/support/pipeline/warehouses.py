"""Warehouses for tests: records and samples put in by hand, and what is in their tables."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from shutil import copytree
from typing import Any

import pyarrow as pa

from kgctl.pipeline.builds.run import BuildResult, build
from kgctl.pipeline.engines import LocalEngine
from kgctl.pipeline.store.tables import BUILT, LOG_OFFSETS, from_stored
from kgctl.pipeline.store.warehouse import Known, Warehouse, commit_records, stage_records
from tests.support.pipeline.logs import raw_log

Row = Mapping[str, Any]
LOG = raw_log()
SAMPLES = pa.Table.from_pylist(
    [
        {"topic": "t", "partition": part, "timestamp_ms": at_ms, "log_start_offset": 0, "log_end_offset": at_ms // 100}
        for part in range(4)
        for at_ms in range(0, 200_000, 10_000)
    ],
    schema=LOG_OFFSETS,
)


def add(warehouse: Warehouse, cluster: str, table: pa.Table, source: str = "by hand") -> int:
    """Collect records of one partition; how many were new."""
    known = Known.of(warehouse, cluster)
    staged = stage_records(known, table, source)
    warehouse.tell(cluster, 0)
    found = commit_records(warehouse, known, [] if staged is None else [staged])
    return sum(each.rows for fresh in found.values() for each in fresh)


def collected(folder: Path, parts: Sequence[pa.Table] = tuple(LOG), samples: pa.Table = SAMPLES) -> Warehouse:
    """A warehouse with these tables in it, each added by itself."""
    warehouse = Warehouse.create(folder)
    for number, part in enumerate(parts):
        if part.num_rows:
            add(warehouse, "c1", part, f"part {number}")
    warehouse.add_samples("c1", samples)
    return warehouse


def built(warehouse: Warehouse, *, jobs: int = 1, **options: Any) -> BuildResult:
    """Build cluster ``c1`` here."""
    return build(warehouse, ["c1"], lambda _: LocalEngine(jobs), **options)


def built_whole(folder: Path) -> Warehouse:
    """Everything in one build: a copy of one that is made once a process."""
    return Warehouse.open(copytree(_Whole.made().folder, folder))


def tables_of_whole() -> Mapping[str, list[dict[str, Any]]]:
    """The rows of everything that one build of everything makes; not to be changed."""
    return _Whole.made().tables


class _Whole:
    """A warehouse of everything in one build, until the process ends."""

    def __init__(self) -> None:
        self._kept = tempfile.TemporaryDirectory(prefix="kgctl-tests-")
        self.folder = Path(self._kept.name) / "w"
        warehouse = collected(self.folder)
        assert built(warehouse).failed == []
        self.tables = tables_of(warehouse)

    @classmethod
    @functools.cache
    def made(cls) -> _Whole:
        """The one of this process."""
        return cls()


def rows_of(warehouse: Warehouse, name: str, cluster: str = "c1") -> list[dict[str, Any]]:
    """The rows of a table, times in milliseconds, in an order of their own."""
    found = from_stored(name, warehouse.table(name).rows()).to_pylist()
    return sorted((row for row in found if row["cluster"] == cluster), key=repr)


def tables_of(warehouse: Warehouse, cluster: str = "c1") -> dict[str, list[dict[str, Any]]]:
    """The rows of everything that builds make."""
    return {name: rows_of(warehouse, name, cluster) for name in BUILT}


def offsets_in(warehouse: Warehouse, partition: int, cluster: str = "c1") -> list[int]:
    """The offsets of a partition that were collected."""
    return sorted(row["offset"] for row in rows_of(warehouse, "records", cluster) if row["partition"] == partition)


def data_files(warehouse: Warehouse, name: str) -> list[Path]:
    """The files of a table that count."""
    return [Path(warehouse.location.uri) / name / file.path for file in warehouse.table(name).files()]
