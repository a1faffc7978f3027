"""Commits: the only module that imports deltalake. One version of one table, all or nothing, each kind of work once.

A commit carries transactions of its application, (name, number): deltalake keeps the highest number of each name with the table,
so that what was done is done once, whoever does it again, and a number (the next offset to collect) changes with the rows.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from kgctl.errors import AuthError, KgctlError, StorageError, UnreachableError
from kgctl.pipeline.store.files import DataFile, StoreLocation, instant_ms, one_line, read_file, statistics_columns
from kgctl.pipeline.store.tables import TABLES

if TYPE_CHECKING:
    from deltalake import DeltaTable

_ATTEMPTS = 20
_CHECKPOINT_EVERY = "5"
"""Opening a table reads every commit since the last checkpoint, 0.3 ms each; writing one takes 1 ms for 250 files."""
_NO_DAY = [("date", "=", "0001-01-01")]
"""What an overwriting commit takes away: nothing. Only such a commit changes the schema of a table that is there."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_STATUS, _CODE = re.compile(r"\b(4\d\d [A-Z][a-z]+(?: [A-Z][a-z]+)*)"), re.compile(r"<Code>(\w+)</Code>")
"""What a store of objects answers: the status of HTTP, and its own name of the trouble."""


class Table:
    """One table of a warehouse as of now, or of ``version``. It need not be there yet: then it has no files and version -1."""

    def __init__(self, location: StoreLocation, name: str, version: int | None = None) -> None:
        self.location = location
        self.name = name
        self.stored = TABLES[name]
        self._asked = version
        self._opened: DeltaTable | None = None
        self._is_looked_for = False
        self._actions: pa.Table | None = None

    @property
    def uri(self) -> str:
        """Return the table's URI."""
        return self.location.child(self.name)

    @property
    def version(self) -> int:
        """Return the table's version, or -1 where there is no table."""
        opened = self._open()
        return -1 if opened is None else opened.version()

    def reload(self) -> Table:
        """Return the table as of its newest version; where it was opened before, only the commits since then are read."""
        if self._opened is None or self._asked is not None:
            self._is_looked_for, self._actions = False, None
            return self
        before = self._opened.version()
        with _told(self.uri):
            self._opened.update_incremental()
        if self._opened.version() != before:
            self._actions = None
        return self

    def number(self, app: str) -> int | None:
        """The highest number of this name; None where there is none."""
        opened = self._open()
        return None if opened is None else opened.transaction_version(app)

    def files(self, cluster: str | None = None, *, named: str = "", beside: Table | None = None) -> list[DataFile]:
        """Return the table's data files: those that may hold rows of ``cluster``, whose names begin with ``named``, and that
        ``beside`` has not."""
        found = self._listed(cluster)
        if found is None:
            return []
        if named:
            found = found.filter(pc.match_substring_regex(found.column("path"), f"(^|/){named}[^/]*$"))
        others = None if beside is None else beside._listed(None)
        if others is not None:
            found = found.filter(pc.invert(pc.is_in(found.column("path"), others.column("path").combine_chunks())))
        return list(_data_files(found, self.stored.ranges))

    def count(self, cluster: str) -> int:
        """Return how many rows the files have that may hold some of a cluster."""
        found = self._listed(cluster)
        return 0 if found is None else pc.sum(found.column("num_records")).as_py() or 0

    def _listed(self, cluster: str | None) -> pa.Table | None:
        """What the log says of the files that count now; None where there is no table."""
        opened = self._open()
        if opened is None:
            return None
        if self._actions is None:
            with _told(self.uri):
                self._actions = pa.table(opened.get_add_actions(flatten=True))
        low, high = (f"{end}.cluster" for end in ("min", "max"))
        if cluster is None or not {low, high}.issubset(self._actions.column_names):
            return self._actions
        below, above = (pc.fill_null(pc.cast(self._actions.column(name), pa.string()), cluster) for name in (low, high))
        return self._actions.filter(pc.and_(pc.less_equal(below, cluster), pc.greater_equal(above, cluster)))

    def rows(self, files: Iterable[DataFile] | None = None, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows of some of the table's files, or of all."""
        chosen = self.files() if files is None else files
        schema = self.stored.schema
        if columns is not None:
            schema = pa.schema([schema.field(name) for name in columns])
        found = [read_file(self.location, self.name, file.path, columns).cast(schema) for file in chosen]
        return pa.concat_tables([schema.empty_table(), *found])

    def commit(
        self,
        adds: Sequence[DataFile],
        removes: Iterable[DataFile] = (),
        *,
        once: tuple[str, int] | None = None,
        numbers: Mapping[str, int] | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> bool:
        """Add and remove files in one version; whether that was done now.

        ``once``: not done where this name has this number or a higher one already. ``numbers`` are kept in the same step, also
        where there is no file to add. ``check`` looks at the table as it is before each try and raises where the files no longer
        fit; two writers that keep a number of the same name never both get through unseen. Raises `StorageError`.
        """
        from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

        gone = list(removes)
        for attempt in range(_ATTEMPTS):
            before = self.reload().version
            check()
            done = None if once is None else self.number(once[0])
            if once is not None and done is not None and done >= once[1]:
                return False
            try:
                self._commit(adds, gone, {**(numbers or {}), **dict([once] if once else [])})
            except (CommitFailedError, TableNotFoundError):
                if attempt == _ATTEMPTS - 1:
                    raise StorageError(f"{self.uri}: too many writers at once") from None
                continue
            except DeltaError as error:
                if self.reload().version != before and attempt < _ATTEMPTS - 1:  # somebody else was first
                    continue
                raise _failure(f"{self.uri}: cannot be written", error) from error
            except OSError as error:
                raise _failure(f"{self.uri}: cannot be written", error) from error
            self.reload()
            return True
        return False

    def _commit(self, adds: Sequence[DataFile], removes: Sequence[DataFile], numbers: Mapping[str, int]) -> None:
        from deltalake import CommitProperties, Schema
        from deltalake.transaction import RemoveAction, Transaction, create_table_with_add_actions

        schema = Schema.from_arrow(self.stored.dated(has_comments=True))
        properties = CommitProperties(
            app_transactions=[Transaction(name, number) for name, number in sorted(numbers.items())],
        )
        added = [self._add(file) for file in adds]
        opened = self._open()
        if opened is None:
            create_table_with_add_actions(
                self.uri,
                schema,
                added,
                partition_by=["date"],
                name=self.name,
                description=self.stored.about,
                configuration={
                    "delta.checkpointInterval": _CHECKPOINT_EVERY,
                    "delta.dataSkippingStatsColumns": ",".join(statistics_columns(self.stored.schema)),
                },
                storage_options=self.location.storage_options(),
                commit_properties=properties,
            )
            return
        listed = self._listed(None) if removes else None
        there = set() if listed is None else set(listed.column("path").to_pylist())
        now_ms = time.time_ns() // 1_000_000  # noqa: TID251 - what `vacuum` counts the hours from
        gone = [each for each in removes if each.path in there]
        removed = [RemoveAction(each.path, True, now_ms, each.size, {"date": each.date}) for each in gone]  # noqa: FBT003
        known = {each.name: each.nullable for each in opened.schema().fields}
        if any(each.nullable and not known.get(each.name, True) for each in schema.fields):
            # By itself: a commit that overwrites removes no file by name.
            opened.create_write_transaction([], "overwrite", schema, partition_by=["date"], partition_filters=_NO_DAY)
            opened.update_incremental()
        opened.create_write_transaction([*added, *removed], "append", schema, partition_by=["date"], commit_properties=properties)

    def _add(self, file: DataFile) -> Any:
        from deltalake.transaction import AddAction

        return AddAction(file.path, file.size, {"date": file.date}, 0, True, file.stats)  # noqa: FBT003

    def _open(self) -> DeltaTable | None:
        if self._is_looked_for:
            return self._opened
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        self._opened = None
        if self._asked is None or self._asked >= 0:
            try:
                with _told(self.uri):
                    self._opened = DeltaTable(self.uri, version=self._asked, storage_options=self.location.storage_options())
            except TableNotFoundError as error:
                if self._asked is not None:
                    raise StorageError(f"{self.uri}: version {self._asked} is not kept any more") from error
        self._is_looked_for = True
        return self._opened


def vacuum(table: Table, *, hours: int, read: Iterable[int] = (), listed: Iterable[int] = ()) -> int:
    """Remove files that no version of the last ``hours`` has, and the log of more than a month ago; return how many files went.

    The versions ``read`` keep their files; these and those ``listed`` can still be opened, whatever their age: a checkpoint of
    each makes the log before the oldest of them dispensable, and that alone.
    """
    from deltalake import DeltaTable
    from deltalake.exceptions import TableNotFoundError

    options = table.location.storage_options()
    with suppress(TableNotFoundError), _told(table.uri):
        opened = DeltaTable(table.uri, storage_options=options)
        now, kept = opened.version(), sorted(set(read))
        found = opened.vacuum(hours, dry_run=False, enforce_retention_duration=False, keep_versions=kept)
        for version in sorted({*kept, *listed} - {now}):
            DeltaTable(table.uri, version=version, storage_options=options).create_checkpoint()
            _renew(table, version)
        DeltaTable(table.uri, storage_options=options).create_checkpoint()
        opened.cleanup_metadata()
        return len(found)
    return 0


def _renew(table: Table, version: int) -> None:
    """Write a version's checkpoint again as it is: the log is cleaned up to the oldest file that is not old, and deltalake
    leaves a checkpoint that is there as old as it was."""
    filesystem, root = table.location.filesystem()
    path = f"{root}/{table.name}/_delta_log/{version:020}.checkpoint.parquet"
    with filesystem.open_input_stream(path) as source, filesystem.open_output_stream(f"{path}.new") as sink:
        sink.write(source.read())
    filesystem.move(f"{path}.new", path)


def dataset(table: Table) -> Any:
    """The table as a pyarrow dataset; None where it is not there."""
    opened = table._open()
    return None if opened is None else opened.to_pyarrow_dataset()


@contextmanager
def _told(uri: str) -> Iterator[None]:
    from deltalake.exceptions import DeltaError, TableNotFoundError

    try:
        yield
    except TableNotFoundError:
        raise
    except (DeltaError, OSError) as error:
        raise _failure(f"{uri}: cannot be read", error) from error


def _failure(what: str, error: BaseException) -> KgctlError:
    """An error of the store, told from its last cause: rights that are lacking, nobody who answers, or anything else."""
    causes = [cause.strip(" -") for cause in _COLOUR.sub("", one_line(error)).split("\u21b3")]
    found = [_STATUS.search(" ".join(causes)), _CODE.search(causes[-1])]
    said = ": ".join(match[1] for match in found if match) or causes[-1]
    if re.search(r"\b40[13] |lacked the necessary privileges|Unauthenticated", said):
        return AuthError(f"{what}: {said}")
    if re.search(r"Connection refused|timed out|dns error|failed to lookup", said):
        return UnreachableError(f"{what}: the store does not answer: {said}")
    return StorageError(f"{what}: {said}")


def _data_files(actions: pa.Table, ranges: Sequence[str]) -> Iterator[DataFile]:
    names = set(actions.column_names)
    kept = [name for name in ranges if f"min.{name}" in names and f"max.{name}" in names]
    bounds = [f"{end}.{name}" for name in kept for end in ("min", "max")]
    for row in actions.select(["path", "size_bytes", "num_records", "partition.date", *bounds]).to_pylist():
        low = {name: _plain(row[f"min.{name}"]) for name in kept if row[f"min.{name}"] is not None}
        high = {name: _plain(row[f"max.{name}"]) for name in low}
        yield DataFile(row["path"], row["size_bytes"], row["num_records"], row["partition.date"].isoformat(), low, high)


def _plain(value: Any) -> Any:
    return instant_ms(value) if isinstance(value, datetime) else value
