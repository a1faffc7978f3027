"""Making a warehouse smaller: what is old is thinned as Kafka's cleaner would, a cluster or a source is forgotten."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from kgctl.pipeline.builds.run import begun_range
from kgctl.pipeline.builds.thin import Replacement, day_of, next_pruned, thinned_records
from kgctl.pipeline.store.delta import Table, vacuum
from kgctl.pipeline.store.files import DataFile, is_provisional, partitions_of, prefix_of, write_files
from kgctl.pipeline.store.tables import BUILT, OF_GROUPS, TABLES
from kgctl.pipeline.store.warehouse import COMPACTED, FORGOTTEN, PRUNED, PRUNED_TABLES, Warehouse, high_number, next_number

KEPT_HOURS = 168
"""Files that a commit has taken away stay so long: somebody may be reading an older version."""
_NEVER = -1
MANY_FILES = 8
"""So many small files of a day are worth a new one."""
SMALL_BYTES = 16_000_000
_ORDER = ("cluster", "group", "topic", "partition", "log_partition", "log_offset", "time", "window_start")


@dataclass
class Pruned:
    """What was taken away: rows by table, ``files`` of the store; ``merged``: small files whose rows are in larger ones now."""

    rows: dict[str, int] = field(default_factory=dict)
    files: int = 0
    merged: int = 0


def prune(warehouse: Warehouse, before_ms: int, *, hours: int = KEPT_HOURS) -> Pruned:
    """Thin what is older than the day of ``before_ms``, which itself stays whole, of what was built; the next build thins the
    tables, at the cost of the old days alone.

    Of old records those stay that the log would have kept: of each key the last one, and all of transactions. Old samples and
    damage go. What was committed at a time before that day is no longer certain; from that day on nothing changes.
    """
    found = Pruned()
    for cluster in warehouse.clusters():
        for name in ("records", "samples", "damaged"):
            taken = _thin(warehouse, name, cluster, before_ms)
            if taken:
                found.rows[name] = found.rows.get(name, 0) + taken
    tidied = tidy(warehouse, hours=hours)
    found.merged, found.files = tidied.merged, tidied.files
    return found


def tidy(warehouse: Warehouse, *, hours: int = KEPT_HOURS) -> Pruned:
    """Put small files together and remove those that nothing has named for some time; rows stay as they are."""
    return Pruned(merged=compact(warehouse), files=_clean(warehouse, hours))


def _thin(warehouse: Warehouse, name: str, cluster: str, before_ms: int) -> int:
    """Thin the old days of a cluster in one table that was collected; how many rows went."""
    table, day = warehouse.table(name), day_of(before_ms)
    built = warehouse.table("state").number(f"{name}/{cluster}")
    known = None if built in (None, _NEVER) else {file.path for file in warehouse.table(name, built).files(cluster)}
    old = [file for file in table.files(cluster) if file.date < day and (known is None or file.path in known)]
    found = thinned_records(table, old) if name == "records" else Replacement(old)
    if found.gone:
        number = f"{PRUNED}/{cluster}"
        numbers = {number: next_pruned(table.number(number), before_ms)} if name == "records" else {}
        table.commit(found.kept, found.gone, numbers=numbers)
    return found.rows


def _clean(warehouse: Warehouse, hours: int) -> int:
    """Remove files and logs that nothing needs: answers read the versions of the last build, a build that was begun those of its
    range, and the next one asks what came since the versions that were built, however long ago that was."""
    state = warehouse.table("state")
    read: dict[str, list[int]] = {name: [version] for name, version in warehouse.versions().items()}
    listed: dict[str, list[int]] = {}
    for cluster in warehouse.clusters():
        for name in ("records", "samples"):
            built = state.number(f"{name}/{cluster}")
            listed.setdefault(name, []).extend([built] if built is not None and built >= 0 else [])
        begun = begun_range(warehouse, cluster)
        for name, version in () if begun is None else (("records", begun.bronze_to), ("samples", begun.samples_to)):
            read.setdefault(name, []).extend([version] if version >= 0 else [])
    return sum(
        vacuum(warehouse.table(name), hours=hours, read=read.get(name, ()), listed=listed.get(name, ())) for name in TABLES
    )


def compact(warehouse: Warehouse) -> int:
    """Put the rows of a day's many small files into one; how many files went. Rows, and what builds go on from, stay as they are.

    A cluster whose build is under way, or was killed, is left alone.
    """
    state, builds = warehouse.table("state"), warehouse.table("builds")
    found = 0
    for cluster in warehouse.clusters():
        name = f"build/{cluster}"
        if builds.number(name) == state.number(name):
            built = {name: state.number(f"{name}/{cluster}") for name in ("records", "samples")}
            found += sum(
                _merge_small(warehouse, name, cluster, version) for name, version in built.items() if version is not None
            )
            found += sum(_merge_small(warehouse, name, cluster, None) for name in BUILT)
    return found


def _merge_small(warehouse: Warehouse, name: str, cluster: str, built: int | None) -> int:
    """Of one table; ``built``: only files that this version has, since what is merged counts as built."""
    table = warehouse.table(name)
    known = None if built is None else {file.path for file in warehouse.table(name, built).files()}
    together: dict[tuple[str, tuple[int, int]], list[DataFile]] = {}
    for file in table.files():
        is_whole = file.low.get("cluster") == file.high.get("cluster") == cluster and not is_provisional(file)
        if is_whole and file.size < SMALL_BYTES and (known is None or file.path in known):
            together.setdefault((file.date, partitions_of(file)), []).append(file)
    merged = 0
    for (_, (first, last)), found in together.items():
        files = _of_a_size(found)
        if len(files) < MANY_FILES:
            continue
        prefix = f"{COMPACTED}-" if built is not None else prefix_of(first, last, is_provisional=False)
        rows = table.rows(files).sort_by([(key, "ascending") for key in _ORDER if key in table.stored.schema.names])
        try:
            table.commit(write_files(warehouse.location, name, rows, prefix), files, check=partial(_require_all, table, files))
        except _MovedOnError:
            continue
        merged += len(files) - 1
    return merged


class _MovedOnError(Exception):
    """Somebody has built meanwhile: what was put together is not what counts any more."""


def _require_all(table: Table, files: list[DataFile]) -> None:
    if not {file.path for file in files} <= {file.path for file in table.files()}:
        raise _MovedOnError


def _of_a_size(files: list[DataFile]) -> list[DataFile]:
    """The files less those that are larger than all smaller ones together: they are not written anew for each few more."""
    found = sorted(files, key=lambda file: file.size)
    while len(found) > 1 and found[-1].size > sum(file.size for file in found[:-1]):
        found.pop()
    return found


def _note_forgotten(warehouse: Warehouse, cluster: str) -> None:
    """Let the next build of a cluster make everything anew."""
    records, name = warehouse.table("records"), f"{FORGOTTEN}/{cluster}"
    records.commit([], numbers={name: (records.number(name) or 0) + 1})


def _by_cluster(warehouse: Warehouse, name: str, rows: pa.Table) -> list[DataFile]:
    """Write the rows to files of one cluster each."""
    clusters = sorted(pc.unique(rows.column("cluster")).to_pylist())
    parts = [rows.filter(pc.equal(rows.column("cluster"), cluster)) for cluster in clusters]
    return [file for part in parts for file in write_files(warehouse.location, name, part, "")]


def sources_of(warehouse: Warehouse, cluster: str) -> list[str]:
    """Where the records of a cluster that are there were collected from."""
    table = warehouse.table("records")
    rows = table.rows(table.files(cluster), ["cluster", "source"])
    return sorted(pc.unique(rows.filter(pc.equal(rows.column("cluster"), cluster)).column("source")).to_pylist())


def forget(warehouse: Warehouse, cluster: str, source: str | None = None) -> Pruned:
    """Take away everything of a cluster, or its records of one source, whose tables the next build then makes anew."""
    found = Pruned()
    names = ["records"] if source is not None else OF_GROUPS
    for name in names:
        table = warehouse.table(name)
        files = table.files(cluster)
        kept = _without(table, files, lambda rows: _is_of(rows, cluster, source))
        taken = sum(file.rows for file in files) - kept.num_rows
        if taken:
            numbers = _positions(table, cluster, files) if name == "records" else {}
            if name == "records" and source is None:
                numbers[f"{PRUNED}/{cluster}"] = _NEVER
            table.commit(_by_cluster(warehouse, name, kept), files, numbers=numbers)
            found.rows[name] = taken
    if source is None:
        state = warehouse.table("state")
        numbers = {f"{what}/{cluster}": _NEVER for what in ("records", "samples", PRUNED, PRUNED_TABLES)}
        state.commit([], state.files(cluster), numbers=numbers)
    elif found.rows:
        _note_forgotten(warehouse, cluster)
    return found


def _is_of(rows: pa.Table, cluster: str, source: str | None) -> pa.Array:
    is_here = pc.equal(rows.column("cluster"), cluster)
    return is_here if source is None else pc.and_(is_here, pc.equal(rows.column("source"), source))


def _without(table: Table, files: list[DataFile], which: Callable[[pa.Table], pa.Array]) -> pa.Table:
    rows = table.rows(files)
    return rows.filter(pc.invert(which(rows)))


def _positions(table: Table, cluster: str, files: list[DataFile]) -> dict[str, int]:
    """A live collection begins again where the log does, and nothing is known any more."""
    partitions = {number for file in files for number in range(file.low["log_partition"], file.high["log_partition"] + 1)}
    names = [make(cluster, number) for number in partitions for make in (next_number, high_number)]
    return {each: _NEVER for each in names if table.number(each) is not None}
