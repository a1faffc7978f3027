"""The build as a whole: what is new, cut into slices, done by an engine, committed table by table, the state last.

The row of ``builds`` comes first and fixes what a build reads: whoever finds it there, because its writer has died or is at
work, builds the same. Each table takes each build once, and readers go by the versions that the commit of ``state`` names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from kgctl import __version__
from kgctl.errors import KgctlError, RefusedError
from kgctl.pipeline.builds.slices import Slice, cut, placed, slices_of
from kgctl.pipeline.builds.tables_of import SliceInput, SliceResult, SliceTask, build_slice
from kgctl.pipeline.builds.tables_version import VERSION
from kgctl.pipeline.decode.coverage import merge_runs, runs_of
from kgctl.pipeline.store.files import DataFile, write_files
from kgctl.pipeline.store.raw import RAW, conform
from kgctl.pipeline.store.tables import GOLD, from_stored, to_stored
from kgctl.pipeline.store.warehouse import version_number
from kgctl.pipeline.tables import log_end_offsets
from kgctl.pipeline.tables.registry import ClusterInputs

if TYPE_CHECKING:
    from kgctl.pipeline.spread import Done, Engine
    from kgctl.pipeline.store.warehouse import Warehouse

COMMITTED = (*GOLD, "coverage")


@dataclass(frozen=True, slots=True)
class TableSummary:
    """One table of one cluster after the build. ``written``: rows that this build wrote."""

    cluster: str
    table: str
    rows: int
    written: int
    changed: bool


@dataclass
class BuildResult:
    """What came of it. ``decoded``: records that were decoded now; ``engines``, by cluster: who did the work.

    ``counts``, by cluster, are of what was built now; ``rebuilt`` names clusters whose tables an older kgctl had built.
    """

    tables: list[TableSummary] = field(default_factory=list)
    built: int = 0
    unchanged: int = 0
    decoded: int = 0
    failed: list[KgctlError] = field(default_factory=list)
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    rebuilt: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far it is: records of the slices that are done, and of all."""

    records: int
    of_records: int


@dataclass(frozen=True, slots=True)
class Range:
    """What a build reads, as its row of ``builds`` says: from the versions that were built before up to others."""

    number: int
    bronze_from: int
    bronze_to: int
    samples_from: int
    samples_to: int
    is_rebuild: bool


def build(
    warehouse: Warehouse,
    clusters: Sequence[str],
    engine: Callable[[int], Engine],
    *,
    now_ms: int = 0,
    is_rebuild: bool = False,
    on_progress: Callable[[Progress], object] = lambda _: None,
) -> BuildResult:
    """Bring the tables of these clusters up to date. ``engine`` is asked for, with the number of records, when there is something
    to do.

    A cluster that fails keeps the tables it had, and is no reason for the others to. Raises `RefusedError` (tables are of a
    newer kgctl), `StorageError`.
    """
    if not is_rebuild:
        _refuse_newer(warehouse, clusters)
    result = BuildResult()
    for cluster in clusters:
        try:
            _build_cluster(warehouse, cluster, engine, result, now_ms, is_rebuild=is_rebuild, on_progress=on_progress)
        except KgctlError as error:
            result.failed.append(KgctlError(f"cluster '{cluster}' was not built: {error.message}", code=error.code))
    return result


def _build_cluster(
    warehouse: Warehouse,
    cluster: str,
    engine: Callable[[int], Engine],
    result: BuildResult,
    now_ms: int,
    *,
    is_rebuild: bool,
    on_progress: Callable[[Progress], object],
) -> None:
    state = warehouse.table("state")
    is_older = state.number(_number("tables", cluster)) not in (None, VERSION)
    if is_older:
        result.rebuilt.append(cluster)
    plan = _plan(warehouse, cluster, now_ms, is_rebuild=is_rebuild or is_older)
    if plan is None:
        result.unchanged += 1
        _sum_up(warehouse, cluster, {}, result)
        return
    files_of_records = _files(warehouse, "records", cluster, plan.bronze_to)
    records = sum(file.rows for file in files_of_records)
    worker = engine(records)
    coverage, counts = _covered(warehouse, files_of_records)
    work = _Work(warehouse, cluster, files_of_records, slices_of(records, warehouse.buckets), coverage, plan)
    done = _by_spark(worker, work) if worker.name == "spark" else _here(worker, work, on_progress)
    files = _together(done, counts)
    files["coverage"] = _write_coverage(warehouse, cluster, coverage)
    versions = {name: _commit(warehouse, cluster, name, files[name], plan) for name in COMMITTED}
    _commit_state(warehouse, cluster, plan, versions)
    result.built += 1
    result.decoded += records
    result.counts[cluster] = counts
    _sum_up(warehouse, cluster, files, result)


def _number(what: str, cluster: str) -> str:
    return f"{what}/{cluster}"


def _plan(warehouse: Warehouse, cluster: str, now_ms: int, *, is_rebuild: bool) -> Range | None:
    """What the next build of a cluster reads; None where nothing is new. Its row of ``builds`` is there when this returns."""
    state = warehouse.table("state")
    number = _next(state.number(_number("build", cluster)))
    before = {name: state.number(_number(name, cluster)) for name in ("records", "samples")}
    since = {name: -1 if found is None else found for name, found in before.items()}
    known = _known(warehouse, cluster, number)
    if known is not None:
        return known
    if not is_rebuild and not any(_is_new(warehouse, cluster, name, since[name]) for name in since):
        return None
    rows = pa.Table.from_pylist(
        [
            {
                "id": number,
                "bronze_from": since["records"],
                "bronze_to": warehouse.table("records").version,
                "samples_from": since["samples"],
                "samples_to": warehouse.table("samples").version,
                "is_rebuild": is_rebuild,
                "started": now_ms,
                "kgctl_version": __version__,
                "engine": "",
            }
        ]
    )
    files = write_files(warehouse.location, "builds", to_stored("builds", rows, cluster), "")
    warehouse.table("builds").commit(files, once=(_number("build", cluster), number))
    return _known(warehouse, cluster, number)


def _next(number: int | None) -> int:
    return 0 if number is None else number + 1


def _known(warehouse: Warehouse, cluster: str, number: int) -> Range | None:
    """The range of build ``number``, whoever has begun it."""
    builds = warehouse.table("builds")
    found = builds.number(_number("build", cluster))
    if found is None or found < number:
        return None
    files = [file for file in builds.files() if file.may_hold("cluster", cluster, cluster)]
    row = next(row for row in builds.rows(reversed(files)).to_pylist() if row["id"] == number and row["cluster"] == cluster)
    return Range(number, *(row[name] for name in ("bronze_from", "bronze_to", "samples_from", "samples_to", "is_rebuild")))


def _is_new(warehouse: Warehouse, cluster: str, name: str, since: int) -> bool:
    return any(file.may_hold("cluster", cluster, cluster) for file in warehouse.new_files(name, since))


@dataclass(frozen=True)
class _Work:
    """What is to be made of which files."""

    warehouse: Warehouse
    cluster: str
    files: Sequence[DataFile]
    slices: list[Slice]
    coverage: pa.Table
    plan: Range


def _files(warehouse: Warehouse, name: str, cluster: str, version: int) -> list[DataFile]:
    """The files of a cluster up to a version."""
    return [file for file in warehouse.table(name, version).files() if file.may_hold("cluster", cluster, cluster)]


def _here(engine: Engine, work: _Work, on_progress: Callable[[Progress], object]) -> list[SliceResult]:
    """Read and cut the records in this process, and have the slices made."""
    records = work.warehouse.table("records")
    columns = [name for name in records.stored.schema.names if name not in ("source", "cluster")]
    raw, _ = placed(conform(from_stored("records", records.rows(work.files, columns)), RAW))
    samples = _samples(work)
    buckets = work.warehouse.buckets
    tasks = [
        SliceTask(work.warehouse.location, work.cluster, each, SliceInput(part, samples, work.coverage, each.first == 0))
        for each, part in zip(work.slices, cut(raw, work.slices, buckets), strict=True)
    ]
    return _spread(engine, tasks, on_progress)


def _by_spark(engine: Engine, work: _Work) -> list[SliceResult]:
    from pyspark.sql import SparkSession

    from kgctl.pipeline.builds.on_spark import SparkWork, build_slices

    context = engine.context  # type: ignore[attr-defined]
    session = SparkSession.getActiveSession() or SparkSession(context)
    warehouse = work.warehouse
    common = SparkWork(warehouse.location, work.cluster, work.slices, warehouse.buckets, _samples(work), work.coverage)
    with spark_errors():
        return build_slices(session, common, work.files)


@contextmanager
def spark_errors() -> Iterator[None]:
    """What fails on Spark as a `KgctlError`: the error that a task of kgctl's has raised, in one line."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException) as error:
        said = str(error)
        told = re.findall(r"^(?:\w+\.)*(\w*Error): (.+)$", said, re.MULTILINE)
        kind, message = told[-1] if told else ("SPARK", said.strip().split("\n", 1)[0])
        raise KgctlError(message, code="STORAGE_ERROR" if kind == "StorageError" else "SPARK") from error


def _samples(work: _Work) -> pa.Table:
    """All samples up to the plan's version, cleaned."""
    columns = ["topic", "partition", "time", "log_start_offset", "log_end_offset"]
    files = _files(work.warehouse, "samples", work.cluster, work.plan.samples_to)
    return log_end_offsets.build(ClusterInputs(from_stored("samples", work.warehouse.table("samples").rows(files, columns))))


def _covered(warehouse: Warehouse, files: Sequence[DataFile]) -> tuple[pa.Table, Counter[str]]:
    """(the runs of these files' records, what there is to say of them)."""
    found = from_stored("records", warehouse.table("records").rows(files, ["log_partition", "log_offset", "time"]))
    partitions, offsets, times = (found.column(name).to_numpy() for name in ("partition", "offset", "timestamp_ms"))
    order = np.lexsort((offsets, partitions))
    partitions, offsets, times = partitions[order], offsets[order], times[order]
    edges = [0, *(np.flatnonzero(np.diff(partitions)) + 1).tolist(), len(partitions)]
    places = [(low, high) for low, high in pairwise(edges) if low < high]
    parts = [runs_of(int(partitions[low]), offsets[low:high], times[low:high]) for low, high in places]
    counts = Counter(clock_went_back=sum(int(np.count_nonzero(np.diff(times[low:high]) < 0)) for low, high in places))
    return merge_runs(parts), counts


def _write_coverage(warehouse: Warehouse, cluster: str, coverage: pa.Table) -> list[DataFile]:
    timed = coverage.append_column("time", coverage.column("first_ms"))
    return write_files(warehouse.location, "coverage", to_stored("coverage", timed, cluster), "")


def _spread(engine: Engine, tasks: Sequence[SliceTask], on_progress: Callable[[Progress], object]) -> list[SliceResult]:
    finished, of_records = 0, sum(task.records for task in tasks)

    def on_done(done: Done[SliceResult]) -> None:
        nonlocal finished
        finished += tasks[done.index].records
        on_progress(Progress(finished, of_records))

    return [done.get() for done in engine.map(build_slice, tasks, on_done=on_done)]


def _together(done: Sequence[SliceResult], counts: Counter[str]) -> dict[str, list[DataFile]]:
    files: dict[str, list[DataFile]] = {name: [] for name in GOLD}
    for each in done:
        counts.update(each.counts)
        for name, found in each.files.items():
            files[name] += found
    return files


def _commit(warehouse: Warehouse, cluster: str, name: str, files: Sequence[DataFile], plan: Range) -> int:
    """Put these files in the place of those before, once; the table's version."""
    table = warehouse.table(name)
    before = [file for file in table.files() if file.may_hold("cluster", cluster, cluster)]
    if files or before:
        table.commit(files, before, once=(_number("build", cluster), plan.number))
    return table.version


def _commit_state(warehouse: Warehouse, cluster: str, plan: Range, versions: dict[str, int]) -> None:
    numbers = {
        _number("records", cluster): plan.bronze_to,
        _number("samples", cluster): plan.samples_to,
        _number("tables", cluster): VERSION,
    }
    numbers.update({version_number(name): version for name, version in versions.items()})
    numbers = {name: number for name, number in numbers.items() if number >= 0}
    warehouse.table("state").commit([], once=(_number("build", cluster), plan.number), numbers=numbers)


def _sum_up(warehouse: Warehouse, cluster: str, files: dict[str, list[DataFile]], result: BuildResult) -> None:
    for name in COMMITTED:
        there = [file for file in warehouse.table(name).files() if file.may_hold("cluster", cluster, cluster)]
        written = sum(file.rows for file in files.get(name, ()))
        result.tables.append(TableSummary(cluster, name, sum(file.rows for file in there), written, written > 0))
    damaged = [file for file in warehouse.table("damaged").files() if file.may_hold("cluster", cluster, cluster)]
    result.counts.setdefault(cluster, Counter())["damaged"] = sum(file.rows for file in damaged)


def _refuse_newer(warehouse: Warehouse, clusters: Sequence[str]) -> None:
    for cluster in clusters:
        if (warehouse.built_version(cluster) or 0) > VERSION:
            raise RefusedError(
                f"{warehouse.location}: a newer kgctl built the tables of cluster '{cluster}'. "
                "Use that one, or --rebuild to build everything as this one does"
            )
