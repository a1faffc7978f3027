"""The task of one partition: decode what is new, compute its tables, publish them in one step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from kgctl.errors import RefusedError
from kgctl.pipeline.build import silver as silver_files
from kgctl.pipeline.build.outputs import Outputs
from kgctl.pipeline.build.records import from_records
from kgctl.pipeline.build.versions import versions_now
from kgctl.pipeline.tables.registry import DEFAULT_WINDOW_MS, PARTITION_TABLES, PartitionInputs
from kgctl.pipeline.warehouse.files import read_table
from kgctl.pipeline.warehouse.manifests import BronzeFile, Built
from kgctl.pipeline.warehouse.warehouse import Warehouse

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Task:
    """One partition to be built. ``log_end_offsets``: the cluster's table, relative to the warehouse; None where it has none."""

    warehouse: Path
    cluster: str
    partition: int
    bronze: tuple[BronzeFile, ...]
    log_end_offsets: str | None
    fingerprint: str
    is_rebuild: bool = False
    window_ms: int = DEFAULT_WINDOW_MS

    @property
    def records(self) -> int:
        """How much work it is."""
        return sum(file.rows for file in self.bronze)


@dataclass(frozen=True, slots=True)
class TableResult:
    """A table of a partition: its rows, and whether they are others than before."""

    rows: int
    changed: bool


@dataclass(frozen=True, slots=True)
class PartitionResult:
    """What a task did. ``decoded``: raw records that were decoded now."""

    cluster: str
    partition: int | None
    tables: dict[str, TableResult] = field(default_factory=dict)
    decoded: int = 0


def build_partition(task: Task) -> PartitionResult:
    """Do it. May be done twice, also at the same time: both do the same. Raises `KgctlError`."""
    warehouse = Warehouse(task.warehouse)
    outputs = Outputs(warehouse, task.cluster, task.partition)
    before = warehouse.built(task.cluster, task.partition)
    known = Built() if task.is_rebuild else before
    found = from_records(outputs, task.bronze, known, partial(_log_offsets, task), task.window_ms)
    inputs, counts = found.inputs, found.counts
    gold: dict[str, Sequence[Path]] = {}
    rows: dict[str, int] = {}
    for name in PARTITION_TABLES:
        table = inputs.table(name)
        gold[f"gold/{name}"] = found.gold[name] if name in found.gold else outputs.write("gold", name, table)
        rows[name] = table.num_rows
    counts.update(inputs.counts)
    counts["partitions_without_samples"] = _without_samples(inputs)
    summary = {
        "fingerprint": task.fingerprint,
        "versions": versions_now(),
        "rows": rows,
        "counts": dict(sorted(counts.items())),
        "silver_version": silver_files.VERSION,
        "silver": found.entries,
    }
    _require_unchanged(warehouse, task, before)
    outputs.settle()
    built = warehouse.publish(
        task.cluster,
        task.partition,
        {**found.silver, **gold},
        sorted(file.path for file in task.bronze),
        summary,
    )
    tables = {name: TableResult(rows[name], built.files("gold", name) != before.files("gold", name)) for name in rows}
    return PartitionResult(task.cluster, task.partition, tables, found.decoded)


def _require_unchanged(warehouse: Warehouse, task: Task, before: Built) -> None:
    """A task that outlived its build, because that was killed, does not publish over what a later build has published."""
    found = warehouse.built(task.cluster, task.partition).summary.get("fingerprint")
    if found not in (before.summary.get("fingerprint"), task.fingerprint):
        raise RefusedError("another build has published it meanwhile")


def _log_offsets(task: Task, offset_commits: pa.Table) -> pa.Table:
    """The samples of the topics that the partition's groups commit to."""
    import pyarrow.compute as pc

    from kgctl.pipeline.tables.registry import module

    schema = module("log_end_offsets").SCHEMA
    if task.log_end_offsets is None:
        return schema.empty_table()
    topics = pc.unique(offset_commits.column("topic")).cast("string")
    samples = read_table(task.warehouse / task.log_end_offsets).cast(schema)
    return samples.filter(pc.is_in(samples.column("topic").cast("string"), topics))


def _without_samples(inputs: PartitionInputs) -> int:
    """How many partitions of topics are committed to and were never sampled."""
    from kgctl.pipeline.tables.series.commits import series
    from kgctl.pipeline.tables.series.samples import samples
    from kgctl.pipeline.tables.series.scan import begins

    commits = series(inputs)
    first = begins(commits.key)
    missing = samples(inputs).log_of_key < 0
    return len(set(zip(commits.topic[first][missing].tolist(), commits.partition[first][missing].tolist(), strict=True)))
