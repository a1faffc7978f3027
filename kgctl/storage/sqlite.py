"""One SQLite file, opened so that what is committed stays committed.

Write-ahead log (WAL): readers and the one writer do not wait for each other, and a process that is killed leaves a file that
the next opening repairs by itself. ``synchronous=FULL``: the log is flushed to the device before a commit returns, so that it
survives a power cut as well as ``kill -9``; the price is one flush an append. ``NORMAL``: it survives the end of the process,
not that of the machine, which is what Apache Kafka promises of one broker; topics use it.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from kgctl.errors import DamagedError, StorageError, UsageError
from kgctl.model.values import frozen_in_order
from kgctl.serde.crc32c import crc32c
from kgctl.storage.files import STATE_FILE, make_private

APPLICATION_ID = 0x6B676374
"""Marks a file as kgctl's own ("kgct")."""

Synchronous = Literal["FULL", "NORMAL"]


@frozen_in_order
class Schema:
    """The tables of one file, which a file of SQL beside this module makes: its statements have a blank line between them.

    ``version`` grows with every change; ``migrations`` lead from the version named to the next.
    """

    version: int
    tables: str
    migrations: Mapping[int, Sequence[str]]

    @property
    def statements(self) -> list[str]:
        return Path(__file__).with_name(self.tables).read_text(encoding="utf-8").split("\n\n")


class Queried(Protocol):
    """A database file that can be queried."""

    path: Path

    def rows(self, statement: str, arguments: Sequence[Any] = ()) -> list[Any]: ...


class DamagedRow(NamedTuple):
    """A row that is not what was written: where it is, and what is wrong with it."""

    table: str
    condition: str
    key: Sequence[Any]
    message: str


def check_readable(path: Path, schema: Schema, *, application_id: int, version: int, expected: int = 0) -> None:
    """See by its pragmas whether a file can be read. ``expected`` is the format that the folder last had it in, 0 if unknown.

    Raises:
        StorageError: a file of another program's.
        UsageError: written by a newer kgctl.
        DamagedError: neither, by what the folder knows, and yet not what was written.
    """
    if expected and (application_id != APPLICATION_ID or not expected <= version <= max(schema.version, expected)):
        kind = f"format {version}" if application_id == APPLICATION_ID else "that it is another program's"
        raise DamagedError(f"{path}: damaged: its header says {kind}, {STATE_FILE} says {expected}")
    if application_id != APPLICATION_ID:
        raise StorageError(f"{path}: an SQLite file, but none of kgctl's")
    if version > schema.version:
        raise UsageError(f"{path}: written by a newer kgctl (data format {version}, this kgctl reads up to {schema.version})")
    if version < 1:
        raise DamagedError(f"{path}: damaged: its header says format {version}")


_FORMATS = (b"\x01\x01", b"\x02\x02")


def check_header(path: Path) -> None:
    """See that SQLite knows the file's format: one that it does not know it takes for read-only. Raises `DamagedError`."""
    try:
        with path.open("rb") as file:
            header = file.read(20)
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror}") from error
    if header and header[18:] not in _FORMATS:
        raise DamagedError(f"{path}: damaged (its header is none of SQLite's)")


LOCKED_S = 5.0
"""How long a write waits for another process that has the file locked. Clients wait for their answer meanwhile."""

CHECKED_BYTES = 64 << 20
"""A larger file is not looked through while it is opened, which takes 6 ms a megabyte: `WholeCheck` does it meanwhile."""


def check_whole(path: Path, rows: Callable[[str], list[Any]]) -> None:
    """See that tables and indexes of a file agree, as `PRAGMA integrity_check` does. Raises `DamagedError`."""
    found = str(rows("PRAGMA integrity_check(1)")[0][0])
    if found != "ok":
        raise DamagedError(f"{path}: damaged ({' '.join(found.split())})")


def is_quickly_checked(path: Path) -> bool:
    """Whether a file is small enough to be looked through before anything else is done with it."""
    return path.stat().st_size <= CHECKED_BYTES


_PATIENCE_S = 1.0


class WholeCheck(threading.Thread):
    """Looks a database through that is in use, on a connection of its own; ``on_damage`` is called in this thread."""

    def __init__(self, database: Database, on_damage: Callable[[DamagedError], None]) -> None:
        super().__init__(name="kgctl-whole-check", daemon=True)
        self._path = database.path
        self._on_damage = on_damage
        self._connection = sqlite3.connect(self._path, timeout=LOCKED_S, isolation_level=None, check_same_thread=False)
        self._is_stopped = False

    def run(self) -> None:
        try:
            check_whole(self._path, lambda statement: self._connection.execute(statement).fetchall())
        except DamagedError as error:
            self._on_damage(error)
        except sqlite3.Error as error:
            if not self._is_stopped and is_damage(error):
                self._on_damage(DamagedError(f"{self._path}: damaged ({error})"))
        finally:
            self._connection.close()

    def stop(self) -> None:
        """End it. SQLite before 3.42 looks up from a tree of pages only when it is through: then the next start looks again."""
        self._is_stopped = True
        if self.is_alive():
            self._connection.interrupt()
            self.join(_PATIENCE_S)


def fetch(connection: sqlite3.Connection, statement: str, arguments: Sequence[Any] = ()) -> list[Any]:
    """Return all rows of a query. Text that is no UTF-8 was written by nobody; with replacements its row's checksum is wrong."""
    try:
        return connection.execute(statement, arguments).fetchall()
    except sqlite3.OperationalError as error:
        if not str(error).startswith("Could not decode"):
            raise
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    try:
        return connection.execute(statement, arguments).fetchall()
    finally:
        connection.text_factory = str


class Database:
    """A connection that several threads may share; every call holds its lock.

    All errors come as `kgctl.errors.StorageError` with the file's name, a file of a newer kgctl as `kgctl.errors.UsageError`.
    """

    def __init__(
        self,
        path: Path,
        schema: Schema,
        *,
        synchronous: Synchronous = "FULL",
        beside: Database | None = None,
        expected_version: int = 0,
    ) -> None:
        """``beside`` is another connection to the same file; who waits for it to write goes on at once when it has written.

        Without it, SQLite would ask again after longer and longer pauses. ``expected_version``: see `check_readable`. A small
        file is looked through.
        """
        self.path = path
        self.lock = threading.RLock()
        self.write_lock: threading.RLock = threading.RLock() if beside is None else beside.write_lock
        self._connection: sqlite3.Connection | None = None
        self.is_unchecked = beside is None
        """Whether tables and indexes are still to be held against each other."""
        if beside is None:
            # Never beside another connection: closing a descriptor drops all locks of this process on the file (POSIX), and
            # another program that reads it would then take its write-ahead log away.
            make_private(path)
            check_header(path)
        with self._translated():
            self._connection = sqlite3.connect(path, timeout=LOCKED_S, isolation_level=None, check_same_thread=False)
        try:
            self._prepare(schema, synchronous, expected_version)
        except Exception:
            self.close()
            raise

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Everything inside is committed and flushed when the block ends, or nothing is. Inside another: when that one ends."""
        with self.lock, self.write_lock, self._translated():
            connection = self._connected()
            if connection.in_transaction:
                yield connection
                return
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def rows(self, statement: str, arguments: Sequence[Any] = ()) -> list[Any]:
        """Return all rows of a query."""
        with self.lock, self._translated():
            return fetch(self._connected(), statement, arguments)

    def value(self, statement: str, arguments: Sequence[Any] = ()) -> Any:
        """The first column of the first row; None where there is no row."""
        rows = self.rows(statement, arguments)
        return rows[0][0] if rows else None

    @property
    def is_in_transaction(self) -> bool:
        """Whether what was written is still to be committed by an outer `transaction`."""
        return self._connected().in_transaction

    def read_meta(self, name: str) -> Any:
        """Return a named value of the file, or None."""
        return self.value("SELECT value FROM meta WHERE name = ?", (name,))

    def write_meta(self, name: str, value: Any) -> None:
        with self.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    @contextmanager
    def flushing(self) -> Iterator[None]:
        """Transactions inside survive a power cut, whatever the file's own setting."""
        with self.lock, self._translated():
            before = self.value("PRAGMA synchronous")
            self._connected().execute("PRAGMA synchronous = FULL")
            try:
                yield
            finally:
                self._connected().execute(f"PRAGMA synchronous = {before}")

    def close(self) -> None:
        """Move the write-ahead log into the file and close it. Safe to call twice."""
        with self.lock, self.write_lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            raise StorageError(f"{self.path}: closed already")
        return self._connection

    @property
    def tables(self) -> str:
        """The format of the file, and a checksum of its tables as they were declared."""
        declared = self.rows("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name")
        return f"{self.value('PRAGMA user_version')}.{crc32c(repr(declared).encode()):08x}"

    def _prepare(self, schema: Schema, synchronous: Synchronous, expected_version: int) -> None:
        with self._translated():
            connection = self._connected()
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
            connection.execute(f"PRAGMA synchronous = {synchronous}")
            connection.execute("PRAGMA foreign_keys = ON")
        found = self.value("PRAGMA user_version")
        if found == 0 and not self.rows("SELECT 1 FROM sqlite_master LIMIT 1"):
            self._create(schema)
            self.is_unchecked = False
        else:
            check_readable(
                *(self.path, schema),
                application_id=self.value("PRAGMA application_id"),
                version=found,
                expected=expected_version,
            )
            if self.is_unchecked and is_quickly_checked(self.path):
                check_whole(self.path, self.rows)
                self.is_unchecked = False
            self._migrate(schema, found)

    def _migrate(self, schema: Schema, version: int) -> None:
        """Bring the tables of an older kgctl up to now, in one transaction."""
        if version == schema.version:
            return
        with self.transaction() as connection:
            for step in range(version, schema.version):
                for statement in schema.migrations[step]:
                    connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {schema.version}")

    def _create(self, schema: Schema) -> None:
        with self.transaction() as connection:
            for statement in schema.statements:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {schema.version}")

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            kind = DamagedError if is_damage(error) else StorageError
            raise kind(f"{self.path}: {_explain(error)}") from error


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the file is no longer what SQLite wrote: a table that is not there is as wrong as a page that cannot be read.

    Python raises an error without a name for text that is no UTF-8.
    """
    if isinstance(error, sqlite3.ProgrammingError):
        return False
    name = getattr(error, "sqlite_errorname", "SQLITE_ERROR")
    return name == "SQLITE_ERROR" or name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_FORMAT"))


def _explain(error: sqlite3.Error) -> str:
    text = str(error)
    name = getattr(error, "sqlite_errorname", "")
    if is_damage(error):
        return f"damaged ({text})"
    if name.startswith(("SQLITE_IOERR_WRITE", "SQLITE_IOERR_FSYNC", "SQLITE_IOERR_TRUNCATE", "SQLITE_IOERR_SHM")):
        return f"cannot write: {text} (the disk, or a limit of file sizes)"
    if name.startswith("SQLITE_FULL"):
        return "cannot write: the disk is full"
    if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
        return f"cannot write: {text}"
    return text


COORDINATOR = Schema(
    version=2,
    tables="coordinator.sql",
    migrations={1: ("ALTER TABLE record ADD COLUMN crc INTEGER", "ALTER TABLE commit_entry ADD COLUMN crc INTEGER")},
)
TOPICS = Schema(
    version=3,
    tables="topics.sql",
    migrations={
        1: ("CREATE TABLE meta (name TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID",),
        2: ("ALTER TABLE topic ADD COLUMN crc INTEGER", "ALTER TABLE log_start ADD COLUMN crc INTEGER"),
    },
)
