"""The build as a whole: what has to be done, by whom, and what came of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kgctl.errors import KgctlError, RefusedError
from kgctl.pipeline.build.cluster import build_cluster
from kgctl.pipeline.build.outputs import rows_in
from kgctl.pipeline.build.partition import PartitionResult, Task, build_partition
from kgctl.pipeline.build.versions import differing, fingerprint
from kgctl.pipeline.tables.registry import CLUSTER_TABLES, DEFAULT_WINDOW_MS, PARTITION_TABLES
from kgctl.pipeline.warehouse.files import storage_errors

if TYPE_CHECKING:
    from kgctl.pipeline.spread import Done, Engine, Failure
    from kgctl.pipeline.warehouse.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class TableSummary:
    """One table of one cluster after the build. ``written``: rows of the partitions that were built now."""

    cluster: str
    table: str
    rows: int
    written: int
    changed: bool


@dataclass
class BuildResult:
    """What came of it. ``built`` and ``unchanged`` count partitions; ``failed`` has an error for each that was not built.

    ``left_overs``: files that were removed: of builds that were killed, and of the state before the last one.
    ``counts``, by cluster, are of all that is in the warehouse now; ``rebuilt``, by cluster, names tables that were there in the
    form of an older kgctl.
    """

    tables: list[TableSummary] = field(default_factory=list)
    built: int = 0
    unchanged: int = 0
    decoded: int = 0
    failed: list[KgctlError] = field(default_factory=list)
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    rebuilt: dict[str, list[str]] = field(default_factory=dict)
    left_overs: int = 0


@dataclass(frozen=True, slots=True)
class Progress:
    """How far it is: raw records of the partitions that are done, and of all."""

    records: int
    of_records: int


def build(
    warehouse: Warehouse,
    clusters: Sequence[str],
    engine: Callable[[], Engine],
    *,
    is_rebuild: bool = False,
    on_progress: Callable[[Progress], object] = lambda _: None,
) -> BuildResult:
    """Bring the tables of these clusters up to date. ``engine`` is only asked for when there is something to do.

    A partition that fails keeps the tables it had, and is no reason for the others to. Raises `RefusedError` (another build is
    under way; tables are of a newer kgctl), `StorageError`.
    """
    with warehouse.locked("built"):
        if not is_rebuild:
            _refuse_newer(warehouse, clusters)
        for cluster in clusters if is_rebuild else ():
            warehouse.forget_damaged(cluster)
        left = set(warehouse.left_overs("built"))
        result = BuildResult(rebuilt={cluster: _older(warehouse, cluster) for cluster in clusters})
        done: list[PartitionResult] = []
        tasks: list[Task] = []
        for cluster in clusters:
            whole = build_cluster(warehouse, cluster, is_rebuild=is_rebuild)
            done += [] if whole is None else [whole]
            tasks += tasks_of(warehouse, cluster, is_rebuild=is_rebuild)
        todo = [task for task in tasks if is_rebuild or not _is_built(warehouse, task)]
        result.unchanged = len(tasks) - len(todo)
        if todo:
            done += _spread(warehouse, engine(), todo, result, on_progress)
        _sum_up(warehouse, clusters, done, result)
        if done:
            result.left_overs = _remove(left & set(warehouse.left_overs("built")))
        return result


def _remove(left: set[Path]) -> int:
    """What nothing has named since before this build. What it put out of use itself is left to the next: somebody may read it."""
    for path in left:
        with storage_errors(path):
            path.unlink(missing_ok=True)
    return len(left)


def tasks_of(warehouse: Warehouse, cluster: str, *, is_rebuild: bool) -> Iterator[Task]:
    """The task of every partition that was collected, built or not."""
    samples = next(iter(warehouse.built(cluster, None).files("gold", "log_end_offsets")), None)
    for partition in warehouse.partitions(cluster):
        bronze = warehouse.bronze_files(cluster, partition)
        settings = {"samples": samples, "window_ms": DEFAULT_WINDOW_MS}
        yield Task(
            warehouse.path,
            cluster,
            partition,
            bronze,
            samples,
            fingerprint([file.path for file in bronze], settings),
            is_rebuild,
        )


def _is_built(warehouse: Warehouse, task: Task) -> bool:
    return warehouse.built(task.cluster, task.partition).summary.get("fingerprint") == task.fingerprint


def _spread(
    warehouse: Warehouse, engine: Engine, todo: list[Task], result: BuildResult, on_progress: Callable[[Progress], object]
) -> list[PartitionResult]:
    """Do the tasks; what failed because a collection meanwhile made one file of many small ones is done with that one."""
    found, failed = _attempted(engine, todo, on_progress)
    again = [fresh for task, _ in failed if (fresh := _refreshed(warehouse, task)).bronze != task.bronze]
    if again:
        places = {(task.cluster, task.partition) for task in again}
        failed = [(task, failure) for task, failure in failed if (task.cluster, task.partition) not in places]
        more, still_failed = _attempted(engine, again, lambda _: None)
        found, failed = found + more, failed + still_failed
    for task, failure in failed:
        message = f"partition {task.partition} of cluster '{task.cluster}' was not built: {failure.message}"
        result.failed.append(KgctlError(message, code=failure.code, partition=task.partition))
    return found


def _attempted(
    engine: Engine, todo: list[Task], on_progress: Callable[[Progress], object]
) -> tuple[list[PartitionResult], list[tuple[Task, Failure]]]:
    """The biggest first: a busy group is a busy partition, and the last to begin is the last to end."""
    todo = sorted(todo, key=lambda task: (-task.records, task.cluster, task.partition))
    finished, of_records = 0, sum(task.records for task in todo)

    def on_done(done: Done[PartitionResult]) -> None:
        nonlocal finished
        finished += todo[done.index].records
        on_progress(Progress(finished, of_records))

    done = engine.map(build_partition, todo, on_done=on_done)
    failed = [(task, one.failure) for task, one in zip(todo, done, strict=True) if one.failure is not None]
    return [one.value for one in done if one.value is not None], failed


def _refreshed(warehouse: Warehouse, task: Task) -> Task:
    """The task for what is collected now."""
    return next(
        each for each in tasks_of(warehouse, task.cluster, is_rebuild=task.is_rebuild) if each.partition == task.partition
    )


def _sum_up(warehouse: Warehouse, clusters: Sequence[str], done: Sequence[PartitionResult], result: BuildResult) -> None:
    result.built = sum(1 for one in done if one.partition is not None)
    result.decoded = sum(one.decoded for one in done)
    for cluster in clusters:
        of_cluster = [one for one in done if one.cluster == cluster]
        rows: Counter[str] = Counter()
        counts: Counter[str] = Counter()
        for partition in (*warehouse.built_partitions(cluster), None):
            summary = warehouse.built(cluster, partition).summary
            rows.update(summary.get("rows", {}))
            counts.update(summary.get("counts", {}))
        counts["damaged"] = sum(rows_in(warehouse.path / file) for file in warehouse.damaged_files(cluster))
        result.counts[cluster] = counts
        for name in (*PARTITION_TABLES, *CLUSTER_TABLES):
            now = [one.tables[name] for one in of_cluster if name in one.tables]
            written = sum(table.rows for table in now)
            result.tables.append(TableSummary(cluster, name, rows[name], written, any(table.changed for table in now)))


def _refuse_newer(warehouse: Warehouse, clusters: Sequence[str]) -> None:
    for cluster in clusters:
        for partition in (None, *warehouse.built_partitions(cluster)):
            newer = differing(warehouse.built(cluster, partition), newer=True)
            if newer:
                raise RefusedError(
                    f"{warehouse.path}: a newer kgctl built {', '.join(newer)} of cluster '{cluster}'. "
                    "Use that one, or --rebuild to build everything as this one does"
                )


def _older(warehouse: Warehouse, cluster: str) -> list[str]:
    parts = (None, *warehouse.built_partitions(cluster))
    return sorted({name for partition in parts for name in differing(warehouse.built(cluster, partition), newer=False)})
