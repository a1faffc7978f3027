"""Making a warehouse smaller: what is old is thinned as Kafka's cleaner would, a cluster or a source is forgotten."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kgctl.pipeline.builds.run import begun_range
from kgctl.pipeline.store.delta import Table, vacuum
from kgctl.pipeline.store.files import DataFile, buckets_of, is_provisional, prefix_of, write_files
from kgctl.pipeline.store.tables import GOLD, TABLES
from kgctl.pipeline.store.warehouse import COMPACTED, THINNED, Warehouse, high_number, next_number

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
    """Thin what is older than the day of ``before_ms``, which itself stays whole. The next build makes the tables from the rest.

    Of old records those stay that the log would have kept: of each key the last one, and all of transactions. Old samples and
    damage go. What was committed at a time before that day is no longer certain; from that day on nothing changes.
    """
    day = datetime.fromtimestamp(before_ms / 1000, UTC).date().isoformat()
    found = Pruned()
    thinned = [each for name in ("records", "samples", "damaged") if (each := _thinned(warehouse.table(name), day)) is not None]
    built_of = [file for each in thinned if each.table.name != "damaged" for file in each.old]
    clusters = {bound["cluster"] for file in built_of for bound in (file.low, file.high)}
    _note_thinned(warehouse, clusters)
    for each in thinned:
        each.table.commit(_by_cluster(warehouse, each.table.name, each.kept), each.old)
        found.rows[each.table.name] = each.taken
    _note_thinned(warehouse, clusters)
    found.merged = compact(warehouse)
    found.files = _clean(warehouse, hours)
    return found


@dataclass(frozen=True)
class _Thinned:
    """The files of a table's old days, and the rows of theirs that stay."""

    table: Table
    old: list[DataFile]
    kept: pa.Table

    @property
    def taken(self) -> int:
        """Return how many rows go."""
        return sum(file.rows for file in self.old) - int(self.kept.num_rows)


def _thinned(table: Table, day: str) -> _Thinned | None:
    """What thinning makes of a table's days before ``day``; None where it takes nothing away."""
    old = [file for file in table.files() if file.date < day]
    if not old:
        return None
    kept = _last_of_each(table.rows(old)) if table.name == "records" else table.stored.schema.empty_table()
    found = _Thinned(table, old, kept)
    return found if found.taken else None


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
            found += sum(_merge_small(warehouse, name, cluster, None) for name in (*GOLD, "coverage"))
    return found


def _merge_small(warehouse: Warehouse, name: str, cluster: str, built: int | None) -> int:
    """Of one table; ``built``: only files that this version has, since what is merged counts as built."""
    table = warehouse.table(name)
    known = None if built is None else {file.path for file in warehouse.table(name, built).files()}
    together: dict[tuple[str, tuple[int, int]], list[DataFile]] = {}
    for file in table.files():
        is_whole = file.low.get("cluster") == file.high.get("cluster") == cluster and not is_provisional(file)
        if is_whole and file.size < SMALL_BYTES and (known is None or file.path in known):
            together.setdefault((file.date, buckets_of(file)), []).append(file)
    merged = 0
    for (_, (first, last)), files in together.items():
        if len(files) < MANY_FILES:
            continue
        prefix = f"{COMPACTED}-" if built is not None else prefix_of(first, last, is_provisional=False)
        rows = table.rows(files).sort_by([(key, "ascending") for key in _ORDER if key in table.stored.schema.names])
        table.commit(write_files(warehouse.location, name, rows, prefix), files)
        merged += len(files) - 1
    return merged


def _note_thinned(warehouse: Warehouse, clusters: Iterable[str]) -> None:
    """Let the next build of these clusters make everything anew. Noted before and after: a build may come in between."""
    records = warehouse.table("records")
    names = [f"{THINNED}/{cluster}" for cluster in clusters]
    if names:
        records.commit([], numbers={name: (records.number(name) or 0) + 1 for name in names})


def _last_of_each(rows: pa.Table) -> pa.Table:
    """The last record of each key; markers and records of transactions all stay."""
    is_plain = pc.and_(pc.is_valid(rows.column("key")), pc.is_null(rows.column("producer_id")))
    plain = rows.filter(is_plain).sort_by([(name, "ascending") for name in ("cluster", "log_partition", "key", "log_offset")])
    if plain.num_rows:
        keys = [plain.column(name).combine_chunks().dictionary_encode().indices.to_numpy() for name in ("cluster", "key")]
        keys.append(plain.column("log_partition").to_numpy())
        changes = np.zeros(plain.num_rows, np.bool_)
        changes[-1] = True
        for key in keys:
            changes[:-1] |= key[1:] != key[:-1]
        plain = plain.filter(pa.array(changes))
    places = [(name, "ascending") for name in ("cluster", "log_partition", "log_offset")]
    return pa.concat_tables([plain, rows.filter(pc.invert(is_plain))]).sort_by(places)


def _by_cluster(warehouse: Warehouse, name: str, rows: pa.Table) -> list[DataFile]:
    """Write the rows to files of one cluster each."""
    clusters = sorted(pc.unique(rows.column("cluster")).to_pylist())
    parts = [rows.filter(pc.equal(rows.column("cluster"), cluster)) for cluster in clusters]
    return [file for part in parts for file in write_files(warehouse.location, name, part, "")]


def forget(warehouse: Warehouse, cluster: str, source: str | None = None) -> Pruned:
    """Take away everything of a cluster, or its records of one source, whose tables the next build then makes anew."""
    found = Pruned()
    names = ["records"] if source is not None else [name for name in TABLES if name not in ("builds", "state")]
    for name in names:
        table = warehouse.table(name)
        files = table.files(cluster)
        kept = _without(table, files, lambda rows: _is_of(rows, cluster, source))
        taken = sum(file.rows for file in files) - kept.num_rows
        if taken:
            table.commit(_by_cluster(warehouse, name, kept), files, numbers=_positions(table, cluster, files, name))
            found.rows[name] = taken
    if source is None:
        state = warehouse.table("state")
        numbers = {f"{what}/{cluster}": _NEVER for what in ("records", "samples")}
        state.commit([], state.files(cluster), numbers=numbers)
    elif found.rows:
        _note_thinned(warehouse, [cluster])
    return found


def _is_of(rows: pa.Table, cluster: str, source: str | None) -> pa.Array:
    is_here = pc.equal(rows.column("cluster"), cluster)
    return is_here if source is None else pc.and_(is_here, pc.equal(rows.column("source"), source))


def _without(table: Table, files: list[DataFile], which: Callable[[pa.Table], pa.Array]) -> pa.Table:
    rows = table.rows(files)
    return rows.filter(pc.invert(which(rows)))


def _positions(table: Table, cluster: str, files: list[DataFile], name: str) -> dict[str, int]:
    """A live collection begins again where the log does, and nothing is known any more."""
    if name != "records":
        return {}
    partitions = {number for file in files for number in range(file.low["log_partition"], file.high["log_partition"] + 1)}
    names = [make(cluster, number) for number in partitions for make in (next_number, high_number)]
    return {each: _NEVER for each in names if table.number(each) is not None}
