"""A warehouse, opened: its tables, what was collected of which cluster, and what was built of that.

Any number of processes read while others collect and build: each table changes by commits alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kgctl.errors import NotFoundError, UsageError
from kgctl.pipeline.store.delta import Table
from kgctl.pipeline.store.files import DataFile, storage_errors, write_files
from kgctl.pipeline.store.location import Location
from kgctl.pipeline.store.tables import TABLES, to_stored

FORMAT = 2
BUCKETS = 64
"""Groups are spread over so many buckets: how finely the work of a build can be cut."""
REBUILD = "kgctl history build --rebuild makes it anew"
"""What helps against damage to what was built."""

OLD_MARKER = "warehouse.json"
_FORMAT_NUMBER, _BUCKETS_NUMBER = "kgctl_warehouse", "kgctl_buckets"
THINNED = "thinned"
"""Under this name, and a cluster's, ``records`` counts how often something was taken away: what was built of it is made anew."""
COMPACTED = "c"
"""How names of files begin that hold rows of earlier files, all of them built."""


class Warehouse:
    """Made by `open` or `create`; picklable, holds no open files."""

    def __init__(self, location: Location) -> None:
        self.location = location

    @classmethod
    def open(cls, where: str | Path | Location) -> Warehouse:
        """Open one that is there.

        Raises `NotFoundError` (no such folder), `UsageError` (no warehouse, one of an older or a newer kgctl), `StorageError`.
        """
        location = where if isinstance(where, Location) else Location.parse(where)
        if location.is_local:
            path = Path(location.uri)
            with storage_errors(path):
                is_there = path.exists()
            if not is_there:
                raise NotFoundError(f"no warehouse at {path}: kgctl history collect makes one")
        found = cls(location).table("clusters")
        version = found.number(_FORMAT_NUMBER)
        if version is None:
            _refuse_old(location)
            raise UsageError(f"{location} is not a warehouse (it has no table of clusters)")
        if version > FORMAT:
            raise UsageError(f"{location}: made by a newer kgctl (format {version}, this kgctl reads up to {FORMAT})")
        return cls(location)

    @classmethod
    def create(cls, where: str | Path | Location) -> Warehouse:
        """The one that is there, or a new one in a folder that is empty or not there. Raises as `open`."""
        location = where if isinstance(where, Location) else Location.parse(where)
        if location.is_local:
            path = Path(location.uri)
            with storage_errors(path):
                is_new = not path.exists() or (path.is_dir() and not any(path.iterdir()))
        else:
            is_new = Table(location, "clusters").version < 0
        if is_new:
            numbers = {_FORMAT_NUMBER: FORMAT, _BUCKETS_NUMBER: BUCKETS}
            Table(location, "clusters").commit([], once=(_FORMAT_NUMBER, FORMAT), numbers=numbers)
        return cls.open(location)

    def table(self, name: str, version: int | None = None) -> Table:
        """One of its tables, as of now or of a version."""
        return Table(self.location, name, version)

    @property
    def buckets(self) -> int:
        """Over how many buckets groups are spread."""
        return self.table("clusters").number(_BUCKETS_NUMBER) or BUCKETS

    def clusters(self) -> list[str]:
        """The clusters that were collected, sorted."""
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
            known = [file for file in table.files() if file.may_hold("cluster", cluster, cluster)]
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
        """The version of the tables that were built of a cluster (`kgctl.pipeline.builds.tables_version`); None: none were."""
        return self.table("state").number(f"tables/{cluster}")

    def new_files(self, name: str, since: int, until: int | None = None) -> list[DataFile]:
        """The files of ``records`` or ``samples`` that came after one version, up to another one or to now.

        Raises `StorageError` where the older version cannot be had any more.
        """
        before = {file.path for file in self.table(name, since).files()} if since >= 0 else set()
        now = self.table(name, until).files()
        return [file for file in now if file.path not in before and not (since >= 0 and _is_compacted(file))]

    def records_behind(self, cluster: str) -> int:
        """How many records were collected and not built yet."""
        since = self.table("state").number(f"records/{cluster}")
        files = self.new_files("records", -1 if since is None else since)
        return sum(file.rows for file in files if file.may_hold("cluster", cluster, cluster))


def version_number(name: str) -> str:
    """Under which name the commit of ``state`` keeps the version of a table."""
    return f"version/{name}"


def _is_compacted(file: DataFile) -> bool:
    return file.path.rsplit("/", 1)[-1].startswith(COMPACTED + "-")


def _not_among(rows: pa.Table, known: pa.Table) -> pa.Table:
    """The rows that are not in ``known``."""
    names = rows.column_names
    marked = pa.concat_tables([known.select(names), rows])
    numbered = marked.append_column("row", pa.array(range(marked.num_rows), pa.int64()))
    first = numbered.group_by(names, use_threads=False).aggregate([("row", "min")]).column("row_min")
    fresh = first.filter(pc.greater_equal(first, known.num_rows))
    return marked.take(fresh.take(pc.sort_indices(fresh)))


def _refuse_old(location: Location) -> None:
    if location.is_local and (Path(location.uri) / OLD_MARKER).exists():
        raise UsageError(
            f"{location}: a warehouse of the format before Delta tables: "
            f"kgctl history collect --parquet {location} --warehouse NEW brings its records into a new one"
        )


def require_tables(names: Iterable[str]) -> None:
    """Raise `UsageError` where there is no table of a name."""
    for name in names:
        if name not in TABLES:
            raise UsageError(f"no table {name!r}: there are {', '.join(TABLES)}")
