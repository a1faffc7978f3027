"""The built tables of one cluster, opened for questions."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from kgctl.errors import NotFoundError, StorageError
from kgctl.extras import require
from kgctl.model.values import frozen_in_order

if TYPE_CHECKING:
    import pyarrow as pa

    from kgctl.pipeline.store.delta import Table
    from kgctl.pipeline.store.files import DataFile, StoreLocation
    from kgctl.pipeline.store.warehouse import Warehouse


@dataclass(frozen=True, slots=True, order=True)
class CollectedRun:
    """A stretch of log offsets that was collected without a hole, both ends included, and the times of its records."""

    first_offset: int
    last_offset: int
    first_ms: int
    last_ms: int


def is_whole_between(runs: Sequence[CollectedRun], log_offset: int, at_ms: int) -> bool:
    """Whether every record after ``log_offset``, which was collected, and up to ``at_ms`` was collected too."""
    place = bisect_right(runs, log_offset, key=lambda run: run.first_offset) - 1
    return place >= 0 and (place == len(runs) - 1 or runs[place].last_ms > at_ms)


def is_whole_until(runs: Sequence[CollectedRun], at_ms: int) -> bool:
    """Whether every record from the log's very beginning up to ``at_ms`` was collected."""
    return bool(runs) and runs[0].first_offset == 0 and is_whole_between(runs, 0, at_ms)


@frozen_in_order
class Behind:
    """What was collected and not built yet; ``late`` of the records are from before what was built: tables will change."""

    records: int = 0
    late: int = 0
    samples: int = 0


_TABLES_OF_GROUPS = ("generations", "offset_commits", "member_changes")


@frozen_in_order
class Reach:
    """The times of the first and of the last record that were collected."""

    first_ms: int
    last_ms: int


@dataclass
class History:
    """Made by `open`. All answers are of one build: ``versions`` are those of the tables that it ended with.

    ``as_of`` is the version of that build; None: the last one.
    """

    warehouse: Warehouse
    cluster: str
    versions: Mapping[str, int]
    as_of: int | None = None
    _homes: dict[str, int] = field(default_factory=dict)
    _tables: dict[str, Table] = field(default_factory=dict)
    _looked_back: dict[str, tuple[object, pa.Table]] = field(default_factory=dict)
    """By table what was looked back at last, and its rows: an answer asks for the same more than once."""

    @classmethod
    def open(cls, where: str | Path | StoreLocation, cluster: str | None = None, as_of: int | None = None) -> History:
        """The history of a cluster; of the only one there is, if none is named; as of now, or of a version (`versions_of`).

        Raises:
            NotFoundError: no warehouse, no such cluster or version, or nothing was built yet.
            UsageError: no warehouse but something else, several clusters and none named, or a package is missing.
            StorageError: it cannot be read.
        """
        require("kgctl history", "pyarrow", "deltalake")
        from kgctl.pipeline.store.warehouse import Warehouse

        warehouse = Warehouse.open(where).held()
        history = cls(warehouse, warehouse.require_cluster(cluster), versions_of(warehouse, as_of), as_of)
        history.require_built(str(where))
        return history

    def require_built(self, where: str) -> None:
        """Raise as `open` where there are no tables, or those of another kgctl."""
        from kgctl.pipeline.store.warehouse import TABLES_VERSION

        version = self.warehouse.table("state", self.as_of).number(f"tables/{self.cluster}")
        if version is None and self.as_of is not None:
            raise NotFoundError(f"{where}: cluster {self.cluster!r} was not built yet at version {self.as_of}")
        if version is None and not self.behind().records:
            raise NotFoundError(f"{where}: no record of a group of cluster {self.cluster!r} was collected yet")
        if version is None:
            raise NotFoundError(f"{where}: cluster {self.cluster!r} was collected but not built yet: kgctl history build does it")
        if version != TABLES_VERSION:
            raise StorageError(
                f"{where}: the tables of cluster {self.cluster!r} were built by "
                + (
                    "a newer kgctl: use that one"
                    if version > TABLES_VERSION
                    else "an older kgctl: "
                    + ("kgctl history build builds them anew" if self.as_of is None else f"ask a version later than {self.as_of}")
                )
            )

    @cached_property
    def cluster_id(self) -> str | None:
        """The cluster's own id; None where it was collected from files only."""
        return self.warehouse.cluster_id(self.cluster)

    def behind(self) -> Behind:
        """What was collected and is not in the tables; nothing of an earlier version, which is meant as it was."""
        if self.as_of is not None:
            return Behind()
        records = self.warehouse.files_behind("records", self.cluster)
        samples = self.warehouse.files_behind("samples", self.cluster)
        late = sum(self._late_rows(file) for file in records)
        return Behind(sum(file.rows for file in records), late, sum(file.rows for file in samples))

    def _late_rows(self, file: DataFile) -> int:
        """How many records of a file lie behind the last one of their log partition that was built."""
        from kgctl.pipeline.answers.rows import read_rows

        first, last = file.low["log_partition"], file.high["log_partition"]
        built = {number: runs[-1].last_offset for number in range(first, last + 1) if (runs := self.coverage(number))}
        if file.low["log_offset"] > max(built.values(), default=-1):
            return 0
        rows = read_rows(self.warehouse.table("records"), file, ("log_partition", "log_offset"))
        places = zip(*(rows.column(name).to_pylist() for name in rows.column_names), strict=True)
        return sum(1 for partition, offset in places if offset <= built.get(partition, -1))

    def rows(
        self, table: str, columns: Sequence[str], groups: Sequence[str] | None = None, span: tuple[int, int] | None = None
    ) -> pa.Table:
        """The rows of these groups, or of all, if the table has a column ``group``; times in milliseconds.

        Only files and stretches of them are read that can have one of the groups, and a time of ``span``, ends included; others
        of their rows may be there too.
        """
        from kgctl.pipeline.answers.rows import read_rows

        def read(opened: Table, file: DataFile, wanted: Sequence[str]) -> list[pa.Table]:
            is_in_time = span is None or file.may_hold(opened.stored.time, *span)
            return [read_rows(opened, file, wanted, groups, span)] if is_in_time else []

        return self._found(table, columns, groups, read)

    def looked_back(
        self, table: str, columns: Sequence[str], groups: Sequence[str] | None, at_ms: int, *, with_later: bool = False
    ) -> pa.Table:
        """Rows of these groups, or of all, that tell what held at a moment: those that `kgctl.pipeline.store.lookback` keeps of
        the rows up to there, at least; ``with_later``: and one of each key that has later ones. Times in milliseconds."""
        from kgctl.pipeline.answers.rows import read_lookback
        from kgctl.pipeline.store.tables import EARLIEST_MS

        asked = (groups if groups is None else tuple(groups), at_ms, with_later)
        known, rows = self._looked_back.get(table, (None, None))
        if known == asked and rows is not None and set(columns) <= set(rows.column_names):
            return rows.select(list(columns))
        chosen = None if groups is None else ("group", groups)

        def read(opened: Table, file: DataFile, wanted: Sequence[str]) -> list[pa.Table]:
            is_needed = with_later or file.may_hold(opened.stored.time, EARLIEST_MS, at_ms)
            return read_lookback(opened, file, wanted, chosen, at_ms, with_later=with_later) if is_needed else []

        found = self._found(table, columns, groups, read)
        self._looked_back[table] = asked, found
        return found

    def _found(
        self,
        table: str,
        columns: Sequence[str],
        groups: Sequence[str] | None,
        read: Callable[[Table, DataFile, Sequence[str]], list[pa.Table]],
    ) -> pa.Table:
        import pyarrow as pa

        from kgctl.pipeline.answers.rows import files_of
        from kgctl.pipeline.store.tables import from_stored, stored_columns

        opened = self._table(table)
        wanted = stored_columns(table, columns)
        schema = pa.schema([opened.stored.schema.field(name) for name in wanted])
        try:
            files = files_of(opened, self.cluster, groups, self.homes if groups else {})
            found = [rows for file in files for rows in read(opened, file, wanted)]
        except StorageError as error:
            raise StorageError(f"{error.message}; {self._remedy}") from error
        return from_stored(table, _together(found) if found else _as_read(schema))

    def samples(self, topics: Collection[str], until_ms: int, files: int) -> pa.Table:
        """Topic, partition and ``time_ms`` of samples of topics up to a moment, the last ten of each partition at least, from the
        newest ``files`` files that were built."""
        import pyarrow as pa
        import pyarrow.compute as pc

        from kgctl.pipeline.answers.rows import files_of
        from kgctl.pipeline.store.tables import EARLIEST_MS, from_stored, stored_columns

        built = self.warehouse.table("state", self.as_of).number(f"samples/{self.cluster}")
        table = self.warehouse.table("samples", built)
        there = [file for file in files_of(table, self.cluster, None, {}) if file.may_hold("time", EARLIEST_MS, until_ms)]
        newest = sorted(there, key=lambda file: file.high.get("time", 0))[-files:]
        wanted = stored_columns("samples", ("topic", "partition", "timestamp_ms"))
        schema = pa.schema([table.stored.schema.field(name) for name in wanted])
        found = [rows for file in newest for rows in _read_if_whole(table, file, wanted, topics, until_ms)]
        rows = from_stored("samples", _together(found) if found else _as_read(schema))
        rows = rows.rename_columns(["topic", "partition", "time_ms"])
        return rows.filter(pc.less_equal(rows.column("time_ms"), until_ms))

    def groups(self) -> list[str]:
        """The groups of which something is known, sorted."""
        return sorted(self.rows("group_health", ("group",)).column("group").unique().to_pylist())

    def unknown(self, groups: Iterable[str]) -> list[str]:
        """Return those of the groups that stand in no table."""
        wanted = list(groups)
        self._find_homes(wanted)
        return [group for group in wanted if group not in self._homes]

    def partitions(self, groups: Sequence[str] | None = None) -> list[int]:
        """The partitions of ``__consumer_offsets`` that these groups, or all, are in."""
        if groups is None:
            return sorted(self._coverage)
        self._find_homes(groups)
        return sorted({self._homes[group] for group in groups if group in self._homes})

    def reach(self, groups: Sequence[str] | None = None) -> Reach | None:
        """From when to when records of the groups' partitions, or of all, were collected; None where there are none."""
        runs = [run for partition in self.partitions(groups) for run in self.coverage(partition)]
        return Reach(min(run.first_ms for run in runs), max(run.last_ms for run in runs)) if runs else None

    def holes(self, groups: Sequence[str] | None = None) -> list[tuple[int, int]]:
        """Behind and before which times records of the groups' partitions, or of any, were not collected, or compacted away."""
        runs = [pair for partition in self.partitions(groups) for pair in pairwise(self.coverage(partition))]
        return [(before.last_ms, after.first_ms) for before, after in runs if before.last_ms < after.first_ms]

    def measured_until(self, groups: Sequence[str] | None = None) -> int | None:
        """When the lag of one of the groups, or of all, was last measured; None: never. A group may long write no record then."""
        import pyarrow.compute as pc

        from kgctl.pipeline.store.tables import LATEST_MS

        found: int | None = pc.max(self.looked_back("lag", ("time_ms",), groups, LATEST_MS).column("time_ms")).as_py()
        return found

    @cached_property
    def pruned_until_ms(self) -> int:
        """The time before which only the last commits are kept (`history prune`); 0 where nothing was thinned."""
        from kgctl.pipeline.builds.thin import pruned_until_ms
        from kgctl.pipeline.store.warehouse import PRUNED

        return pruned_until_ms(self.warehouse.table("state", self.as_of).number(f"{PRUNED}/{self.cluster}"))

    def coverage(self, log_partition: int) -> tuple[CollectedRun, ...]:
        """Which stretches of a partition's log were collected, ascending."""
        return self._coverage.get(log_partition, ())

    @property
    def _remedy(self) -> str:
        """What helps where a file of the tables is damaged: a build makes the last version anew, and never an earlier one."""
        from kgctl.pipeline.store.warehouse import REBUILD

        if self.as_of is None:
            return REBUILD
        return f"no build makes version {self.as_of} again: without --as-of-version the tables are asked as they are now"

    @cached_property
    def _coverage(self) -> dict[int, tuple[CollectedRun, ...]]:
        names = ("log_partition", "first_offset", "last_offset", "first_ms", "last_ms")
        found: dict[int, list[CollectedRun]] = {}
        for row in self.rows("coverage", names).to_pylist():
            found.setdefault(row.pop("log_partition"), []).append(CollectedRun(**row))
        return {partition: tuple(sorted(runs)) for partition, runs in found.items()}

    @cached_property
    def homes(self) -> Mapping[str, int]:
        """The partition of ``__consumer_offsets`` that each group lives on."""
        from kgctl.pipeline.store.states import homes_of

        return homes_of(self.warehouse.table("state", self.as_of), self.cluster)

    def _table(self, name: str) -> Table:
        if name not in self._tables:
            self._tables[name] = self.warehouse.table(name, self.versions.get(name, -1))
        return self._tables[name]

    def _find_homes(self, groups: Sequence[str]) -> None:
        import pyarrow.compute as pc

        from kgctl.pipeline.store.tables import LATEST_MS

        for table in _TABLES_OF_GROUPS:
            wanted = [group for group in groups if group not in self._homes]
            if not wanted:
                return
            found = self.looked_back(table, ("group", "log_partition"), wanted, LATEST_MS)
            for group in wanted:
                there = found.filter(pc.equal(found.column("group"), group))
                if there.num_rows:
                    self._homes[group] = there.column("log_partition")[0].as_py()


def versions_of(warehouse: Warehouse, as_of: int | None) -> Mapping[str, int]:
    """The version of each built table as of now, or at a version of the table ``state``, which every build makes a new one of.

    Raises:
        NotFoundError: there is no such version, or its log was cleaned away.
    """
    if as_of is None:
        return warehouse.versions()
    from kgctl.pipeline.store.tables import TABLES
    from kgctl.pipeline.store.warehouse import version_number

    last = warehouse.table("state").version
    if as_of > last:
        there = "nothing was built yet" if last < 0 else f"the last one is {last}"
        raise NotFoundError(f"{warehouse.location}: there is no version {as_of}: {there}")
    state = warehouse.table("state", as_of)
    try:
        found = {name: state.number(version_number(name)) for name in TABLES}
    except StorageError as error:
        raise NotFoundError(f"{warehouse.location}: version {as_of} is not kept any more ({error.message})") from error
    return {name: version for name, version in found.items() if version is not None}


def _read_if_whole(
    table: Table, file: DataFile, columns: Sequence[str], topics: Collection[str], until_ms: int
) -> list[pa.Table]:
    """Samples of a damaged file count as not taken: a build names it."""
    from kgctl.pipeline.answers.rows import read_lookback

    try:
        return read_lookback(table, file, columns, ("topic", topics), until_ms)
    except StorageError:
        return []


def _together(tables: Sequence[pa.Table]) -> pa.Table:
    """The rows of several files, with one dictionary for each column of texts: pyarrow cannot group by several dictionaries."""
    import pyarrow as pa

    return pa.concat_tables(tables).unify_dictionaries()


def _as_read(schema: pa.Schema) -> pa.Table:
    """Return no rows, in the types that files are read in."""
    import pyarrow as pa

    from kgctl.pipeline.answers.rows import DICTIONARIES

    kinds = [(each.name, pa.dictionary(pa.int32(), pa.string()) if each.name in DICTIONARIES else each.type) for each in schema]
    return pa.schema(kinds).empty_table()
