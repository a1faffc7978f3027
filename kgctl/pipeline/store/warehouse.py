"""A warehouse, opened: its tables, what was collected of which cluster and built of that; adding records, each offset once.

Any number of processes read while others collect and build: each table changes by commits alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kgctl.errors import NotFoundError, RefusedError, UsageError
from kgctl.model.values import frozen_in_order
from kgctl.pipeline.decode.arrow import each_once
from kgctl.pipeline.store.delta import Table
from kgctl.pipeline.store.files import DataFile, StoreLocation, opened, read_file, storage_errors, write_files
from kgctl.pipeline.store.tables import RAW, TABLES, conform, to_stored

FORMAT = 2
REBUILD = "kgctl history build --rebuild makes it anew"
"""What helps against damage to what was built."""

OLD_MARKER = "warehouse.json"
_FORMAT_NUMBER = "kgctl_warehouse"
FORGOTTEN = "forgotten"
"""Under this name, and a cluster's, ``records`` counts how often a source was forgotten: what was built of it is made anew."""
PRUNED = "pruned"
"""Under this name, and a cluster's, ``records`` has its last thinning (`kgctl.pipeline.builds.thin`), and ``state`` that of the
records that were built."""
PRUNED_TABLES = "pruned-tables"
"""The last thinning that the tables have followed; in ``state``."""
COMPACTED = "c"
"""How names of files begin that hold rows of earlier files, all of them built."""


class Warehouse:
    """Made by `open` or `create`; picklable, holds no open files."""

    def __init__(self, location: StoreLocation) -> None:
        self.location = location

    @classmethod
    def open(cls, where: str | Path | StoreLocation) -> Warehouse:
        """Open one that is there.

        Raises `NotFoundError` (no such folder), `UsageError` (no warehouse, one of an older or a newer kgctl), `StorageError`.
        """
        location = where if isinstance(where, StoreLocation) else StoreLocation.parse(where)
        found = cls(location).table("clusters")
        version = found.number(_FORMAT_NUMBER)
        if version is None:
            _refuse_old(location)
            if not _is_there(location):
                raise NotFoundError(f"no warehouse at {location}: kgctl history collect makes one")
            raise UsageError(f"{location} is not a warehouse (it has no table of clusters)")
        if version > FORMAT:
            raise UsageError(f"{location}: made by a newer kgctl (format {version}, this kgctl reads up to {FORMAT})")
        return cls(location)

    @classmethod
    def create(cls, where: str | Path | StoreLocation) -> Warehouse:
        """The one that is there, or a new one in a folder that is empty or not there. Raises as `open`."""
        location = where if isinstance(where, StoreLocation) else StoreLocation.parse(where)
        if location.is_local:
            path = Path(location.uri)
            with storage_errors(path):
                is_new = not path.exists() or (path.is_dir() and not any(path.iterdir()))
        else:
            is_new = Table(location, "clusters").version < 0
        if is_new:
            Table(location, "clusters").commit([], once=(_FORMAT_NUMBER, FORMAT))
        return cls.open(location)

    def table(self, name: str, version: int | None = None) -> Table:
        """Return a table as of now, or of a version."""
        return Table(self.location, name, version)

    def held(self) -> Warehouse:
        """Return the same warehouse for one piece of work: each table, and each version of one, is opened once.

        A table then is as of the first look at it, moved on by `Table.reload` and by what is committed to it.
        """
        return _Held(self.location)

    def clusters(self) -> list[str]:
        """Return the clusters that were collected, sorted."""
        return sorted(self._told)

    def require_cluster(self, name: str | None) -> str:
        """``name``, or the only cluster there is. Raises `NotFoundError` (not there, none there), `UsageError` (several)."""
        found = self.clusters()
        if name is not None and name not in found:
            there = ", ".join(found) or "nothing was collected yet"
            raise NotFoundError(f"{self.location}: no cluster '{name}' (there: {there})")
        if name is not None:
            return name
        if not found:
            raise NotFoundError(f"{self.location}: nothing was collected yet")
        if len(found) > 1:
            raise UsageError(f"{self.location} holds several clusters: choose one with --cluster ({', '.join(found)})")
        return found[0]

    def cluster_id(self, cluster: str) -> str | None:
        """The id of the live cluster that was collected under this name; None where only files were."""
        return self._told.get(cluster, {}).get("cluster_id")

    def log_id(self, cluster: str) -> str | None:
        """The id of its topic ``__consumer_offsets``; None where no live cluster has told it."""
        return self._told.get(cluster, {}).get("log_id")

    def topics(self, cluster: str) -> set[str]:
        """The topics that groups are known to have commits on."""
        found: set[str] = self._told.get(cluster, {}).get("topics", set())
        return found

    def tell(
        self, cluster: str, now_ms: int, *, cluster_id: str | None = None, log_id: str | None = None, topics: Iterable[str] = ()
    ) -> None:
        """Keep what was learnt of a cluster, as far as it is new."""
        self.__dict__.pop("_told", None)
        known = self._told.get(cluster)
        fresh = sorted(set(topics) - (known or {}).get("topics", set()))
        is_new = known is None
        for name, value in (("cluster_id", cluster_id), ("log_id", log_id)):
            is_new = is_new or (value is not None and value != (known or {}).get(name))
        if not is_new and not fresh:
            return
        names: list[str | None] = [None] if is_new else []
        rows = [{"cluster_id": cluster_id, "log_id": log_id, "topic": topic, "time": now_ms} for topic in [*names, *fresh]]
        kinds = {"cluster_id": pa.string(), "log_id": pa.string(), "topic": pa.string(), "time": pa.int64()}
        table = pa.Table.from_pylist(rows, schema=pa.schema(kinds))
        self.table("clusters").commit(write_files(self.location, "clusters", to_stored("clusters", table, cluster), ""))
        self.__dict__.pop("_told", None)

    @cached_property
    def _told(self) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for row in self.table("clusters").rows().sort_by("time").to_pylist():
            of_cluster = found.setdefault(row["cluster"], {"topics": set()})
            of_cluster.update({name: row[name] for name in ("cluster_id", "log_id") if row[name] is not None})
            if row["topic"] is not None:
                of_cluster["topics"].add(row["topic"])
        return found

    def add_samples(self, cluster: str, samples: pa.Table, *, is_again: bool = False) -> int:
        """Keep samples (`schemas.LOG_OFFSETS`); how many were new. ``is_again``: some may have been kept before."""
        if not samples.num_rows:
            return 0
        table = self.table("samples")
        rows = to_stored("samples", samples, cluster)
        if is_again:
            known = table.files(cluster)
            if known:
                rows = _not_among(rows, table.rows(known))
        table.commit(write_files(self.location, "samples", rows, ""))
        return int(rows.num_rows)

    def add_damaged(self, cluster: str, damaged: pa.Table, now_ms: int) -> None:
        """Keep what could not be read (`schemas.DAMAGED`)."""
        timed = damaged.append_column("time", pa.repeat(pa.scalar(now_ms, pa.int64()), damaged.num_rows))
        self.table("damaged").commit(write_files(self.location, "damaged", to_stored("damaged", timed, cluster), ""))

    def versions(self) -> dict[str, int]:
        """The version of each built table with which the last build ended; nothing before the first."""
        state = self.table("state")
        found = {name: state.number(version_number(name)) for name in TABLES}
        return {name: version for name, version in found.items() if version is not None}

    def built_version(self, cluster: str) -> int | None:
        """The version of the tables that were built of a cluster (`kgctl.pipeline.store.warehouse`); None: none were."""
        return self.table("state").number(f"tables/{cluster}")

    def new_files(self, name: str, since: int, until: int | None = None, *, cluster: str | None = None) -> list[DataFile]:
        """The files of ``records`` or ``samples`` that came after one version, up to another one or to now; those that may hold
        rows of ``cluster``, or all.

        Raises `StorageError` where the older version cannot be had any more.
        """
        now = self.table(name, until)
        if since < 0:
            return now.files(cluster)
        return [file for file in now.files(cluster, beside=self.table(name, since)) if not is_compacted(file)]

    def files_behind(self, name: str, cluster: str) -> list[DataFile]:
        """The files of ``records`` or ``samples`` of a cluster that were collected and not built yet."""
        since = self.table("state").number(f"{name}/{cluster}")
        return self.new_files(name, -1 if since is None else since, cluster=cluster)


class _Held(Warehouse):
    """A warehouse that keeps its tables open."""

    def __init__(self, location: StoreLocation) -> None:
        super().__init__(location)
        self._tables: dict[tuple[str, int | None], Table] = {}

    def table(self, name: str, version: int | None = None) -> Table:
        """Return a table as of the first look at it, or of a version."""
        newest = self._tables.get((name, None))
        if newest is not None and version is not None and newest.version == version:
            return newest
        return self._tables.setdefault((name, version), super().table(name, version))

    def __reduce__(self) -> tuple[type[Warehouse], tuple[StoreLocation]]:
        return Warehouse, (self.location,)


def version_number(name: str) -> str:
    """Under which name the commit of ``state`` keeps the version of a table."""
    return f"version/{name}"


def is_compacted(file: DataFile) -> bool:
    """Whether it holds rows of earlier files."""
    return file.path.rsplit("/", 1)[-1].startswith(COMPACTED + "-")


def _not_among(rows: pa.Table, known: pa.Table) -> pa.Table:
    """Return the rows that are not in ``known``."""
    names = rows.column_names
    marked = pa.concat_tables([known.select(names), rows])
    numbered = marked.append_column("row", pa.array(range(marked.num_rows), pa.int64()))
    first = numbered.group_by(names, use_threads=False).aggregate([("row", "min")]).column("row_min")
    fresh = first.filter(pc.greater_equal(first, known.num_rows))
    return marked.take(fresh.take(pc.sort_indices(fresh)))


def _is_there(location: StoreLocation) -> bool:
    """Whether there is anything; a store of objects has no empty folders."""
    with storage_errors(location.uri):
        if location.is_local:
            return Path(location.uri).exists()
        filesystem, path = location.filesystem()
        return bool(filesystem.get_file_info(path).type.name != "NotFound")


def _refuse_old(location: StoreLocation) -> None:
    with storage_errors(location.uri):
        is_old = location.is_local and (Path(location.uri) / OLD_MARKER).exists()
    if is_old:
        raise UsageError(
            f"{location}: a warehouse of the format before Delta tables: "
            f"kgctl history collect --parquet {location} --warehouse NEW brings its records into a new one"
        )


def require_tables(names: Iterable[str]) -> None:
    """Raise `UsageError` where there is no table of a name."""
    for name in names:
        if name not in TABLES:
            raise UsageError(f"no table {name!r}: there are {', '.join(TABLES)}")


_IDENTITY = ("time", "key", "value")
"""What a record never loses; who produced it goes when kgctl's own log is compacted."""


@frozen_in_order
class Staged:
    """Records of one partition that are written and that no commit has named. Times are in milliseconds."""

    partition: int
    rows: int
    first_offset: int
    last_offset: int
    first_ms: int
    last_ms: int
    files: Sequence[DataFile] = field(default_factory=tuple)


@dataclass(frozen=True)
class Known:
    """The records of a cluster that there are already: which files, and the offset behind the last one of each partition.

    Picklable: whoever stages looks into these files and needs no deltalake, which does not outlive a fork.
    """

    location: StoreLocation
    cluster: str
    files: Sequence[DataFile]
    highs: Mapping[int, int]

    @classmethod
    def of(cls, warehouse: Warehouse, cluster: str) -> Known:
        """Return what the warehouse knows of the cluster now."""
        table = warehouse.table("records")
        files = table.files(cluster)
        bounds = [(file.low["log_partition"], file.high["log_partition"]) for file in files]
        partitions = {number for low, high in bounds for number in range(low, high + 1)}
        highs = {number: table.number(high_number(cluster, number)) for number in partitions}
        return cls(warehouse.location, cluster, files, {number: high for number, high in highs.items() if high is not None})


def high_number(cluster: str, partition: int) -> str:
    """Under which name the offset behind the last known record of a partition is kept."""
    return f"high/{cluster}/{partition}"


def next_number(cluster: str, partition: int) -> str:
    """Under which name the offset is kept from which the next live collection goes on."""
    return f"next/{cluster}/{partition}"


def next_offset(warehouse: Warehouse, cluster: str, partition: int) -> int | None:
    """Where the next live collection goes on; None before the first."""
    return warehouse.table("records").number(next_number(cluster, partition))


def stage_records(known: Known, table: pa.Table, source: str) -> Staged | None:
    """Write what is new among records of one partition (`RAW`); None where nothing is.

    Any number of processes may stage at a time; `commit_records` makes the files count. Raises `RefusedError` where an offset is
    there with another record: then this is another cluster, or the topic was made anew.
    """
    fresh = fresh_records(known, table, source)
    return write(known.location, fresh) if fresh.num_rows else None


def stage_together(known: Known, tables: Sequence[pa.Table], source: str) -> list[Staged]:
    """As `stage_records`, for tables of a partition each: their rows share files, and each `Staged` but one has none."""
    fresh = [rows for table in tables if (rows := fresh_records(known, table, source)).num_rows]
    if not fresh:
        return []
    files = write_files(known.location, "records", pa.concat_tables(fresh), "")
    return [_staged(rows, files if number == 0 else []) for number, rows in enumerate(fresh)]


def fresh_records(known: Known, table: pa.Table, source: str) -> pa.Table:
    """The rows of table ``records`` that these records of one partition are, less those it has. Raises as `stage_records`."""
    once = each_once(conform(table, RAW), "offset")
    rows = to_stored("records", once.append_column("source", pa.repeat(pa.scalar(source), once.num_rows)), known.cluster)
    if not rows.num_rows:
        return rows
    partition, first = rows.column("log_partition")[0].as_py(), rows.column("log_offset")[0].as_py()
    if first >= known.highs.get(partition, 0):
        return rows
    return _without_known(known, partition, known.files, rows)


def write(location: StoreLocation, rows: pa.Table) -> Staged:
    """Stage rows of table ``records`` that are new, all of one partition."""
    return _staged(rows, write_files(location, "records", rows, ""))


def _staged(rows: pa.Table, files: Sequence[DataFile]) -> Staged:
    offsets = rows.column("log_offset")
    times = pc.min_max(rows.column("time").cast(pa.timestamp("ms", "UTC")).cast(pa.int64())).as_py()
    partition = rows.column("log_partition")[0].as_py()
    return Staged(partition, rows.num_rows, offsets[0].as_py(), offsets[-1].as_py(), times["min"], times["max"], tuple(files))


class OvertakenError(RefusedError):
    """Another collection has added records of the same partitions since these were staged: stage them again."""


def commit_records(
    warehouse: Warehouse, before: Known, staged: Sequence[Staged], *, positions: Mapping[int, int] | None = None
) -> dict[int, list[Staged]]:
    """From now on the staged records count, in one step; what two have in common is kept once. By partition, what came.

    ``before``: what the records were staged against. ``positions`` are kept in the same step: where the next live collection
    goes on. Raises `RefusedError` where two hold different records of one offset, and `OvertakenError`.
    """
    cluster = before.cluster
    fresh: dict[int, list[Staged]] = {}
    known = Known(warehouse.location, cluster, (), {})
    for each in sorted(staged, key=lambda each: (each.partition, each.first_offset, each.last_offset)):
        here = fresh.setdefault(each.partition, [])
        whole = _unlike(known, here, each)
        if whole is not None:
            here.append(whole)
    records = warehouse.table("records")
    numbers = {}
    for partition, found in fresh.items():
        name = high_number(cluster, partition)
        numbers[name] = max(each.last_offset + 1 for each in found)
        numbers[name] = max(numbers[name], records.number(name) or 0)
    for partition, position in (positions or {}).items():
        numbers[next_number(cluster, partition)] = position
    files = [file for found in fresh.values() for each in found for file in each.files]
    if files or numbers:
        records.commit(files, numbers=numbers, check=partial(_require_not_overtaken, warehouse, before, fresh))
    return fresh


def _require_not_overtaken(warehouse: Warehouse, before: Known, partitions: Iterable[int]) -> None:
    now = Known.of(warehouse, before.cluster).highs
    moved = [partition for partition in partitions if now.get(partition) != before.highs.get(partition)]
    if moved:
        raise OvertakenError(
            f"cluster '{before.cluster}': another collection has added records of {len(moved)} partition(s) meanwhile "
            f"(__consumer_offsets-{moved[0]} is one); nothing of this one was added: run it again"
        )


def _unlike(known: Known, fresh: Sequence[Staged], each: Staged) -> Staged | None:
    """``each``, or one with what of it is in none of the others, or None."""
    overlapping = [other for other in fresh if each.first_offset <= other.last_offset and other.first_offset <= each.last_offset]
    if not overlapping:
        return each
    schema = TABLES["records"].schema
    rows = pa.concat_tables([read_file(known.location, "records", file.path).cast(schema) for file in each.files])
    others = [file for other in overlapping for file in other.files]
    rows = _without_known(known, each.partition, others, rows.sort_by("log_offset"))
    if rows.num_rows == each.rows:
        return each
    return write(known.location, rows) if rows.num_rows else None


def _without_known(known: Known, partition: int, files: Sequence[DataFile], rows: pa.Table) -> pa.Table:
    """The rows whose offset is in none of these files. Raises `RefusedError` where one is there with another record."""
    for file in files:
        if not rows.num_rows:
            break
        offsets = rows.column("log_offset").to_numpy()
        first, last = int(offsets[0]), int(offsets[-1])
        if not (
            file.may_hold("cluster", known.cluster, known.cluster)
            and file.may_hold("log_partition", partition, partition)
            and file.may_hold("log_offset", first, last)
        ):
            continue
        there = _read(known, file, partition)
        is_known = np.isin(offsets, there.column("log_offset").to_numpy(), assume_unique=True)
        if is_known.any():
            mine = rows.filter(pa.array(is_known))
            theirs = there.filter(pc.is_in(there.column("log_offset"), mine.column("log_offset").combine_chunks()))
            _require_same(known.cluster, partition, mine, theirs.sort_by("log_offset"))
            rows = rows.filter(pa.array(~is_known))
    return rows


def _read(known: Known, file: DataFile, partition: int) -> pa.Table:
    columns = ["cluster", "log_partition", "log_offset", *_IDENTITY]
    schema = pa.schema([TABLES["records"].schema.field(name) for name in columns])
    with opened(known.location, "records", file.path) as source:
        found = source.read(columns).cast(schema)
    is_here = pc.and_(pc.equal(found.column("cluster"), known.cluster), pc.equal(found.column("log_partition"), partition))
    return found.filter(is_here)


def _require_same(cluster: str, partition: int, mine: pa.Table, known: pa.Table) -> None:
    for column in _IDENTITY:
        left, right = mine.column(column).combine_chunks(), known.column(column).combine_chunks()
        if left.equals(right):
            continue
        both_null = pc.and_(pc.is_null(left), pc.is_null(right))
        is_same = pc.fill_null(pc.or_(both_null, pc.equal(left, right)), fill_value=False)
        offset = mine.column("log_offset")[pc.index(is_same, value=False).as_py()].as_py()
        raise RefusedError(
            f"partition {partition} of cluster '{cluster}': offset {offset} is in the warehouse with another record. "
            "Another cluster has this name here (--cluster NAME tells them apart), or __consumer_offsets was made anew"
        )


TABLES_VERSION = 8
"""Raised when the functions give other rows: the next build then makes everything anew."""
