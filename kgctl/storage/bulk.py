"""Reading a data folder in bulk, from outside: columns, not objects, without a lock, also while a server writes.

Nothing is written. What is read is what was committed when its page was read. A server's compaction may remove older records
meanwhile, as Kafka's does.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from kgctl.errors import DamagedError, NotFoundError, StorageError, UsageError
from kgctl.storage.files import COORDINATOR_FILE, LOCK_FILE, TOPICS_FILE, is_in_use, traces
from kgctl.storage.record_log import MAX_PARTITIONS, CommitEntry
from kgctl.storage.sqlite import COORDINATOR, TOPICS, Schema, check_readable, check_whole, fetch, is_damage, is_quickly_checked
from kgctl.storage.sqlite_files import checked_setting
from kgctl.storage.sqlite_logs import SqliteCommitLog, partitions_of, stored_record
from kgctl.storage.sqlite_topics import damaged_topics


class RecordColumns(NamedTuple):
    """Records of one partition, one entry each, by offset.

    ``producer_id`` and ``producer_epoch`` are None outside of transactions, ``commits`` for all but the markers.
    """

    offset: Sequence[int]
    timestamp_ms: Sequence[int]
    key: Sequence[bytes | None]
    value: Sequence[bytes | None]
    producer_id: Sequence[int | None]
    producer_epoch: Sequence[int | None]
    commits: Sequence[int | None]


class LogEndColumns(NamedTuple):
    """Log ends of topics over time: the end offset that a partition had once its records up to ``timestamp_ms`` were there."""

    topic: Sequence[str]
    partition: Sequence[int]
    timestamp_ms: Sequence[int]
    log_end_offset: Sequence[int]


class LogBound(NamedTuple):
    """Where the log of one partition starts and ends."""

    topic: str
    partition: int
    log_start_offset: int
    log_end_offset: int


_RECORDS = """SELECT "partition", "offset", timestamp_ms, "key", value, producer_id, producer_epoch, "commits",
                     coordinator_epoch, {crc}, member_id
              FROM record WHERE "partition" = ? AND "offset" >= ? ORDER BY "offset" LIMIT ?"""
_CHECKSUMS_SINCE = 2
_LOG_ENDS = """SELECT t.name, b."partition", max(b.max_timestamp_ms), max(b.last_offset) + 1
               FROM batch b JOIN topic t ON t.id = b.topic
               GROUP BY t.name, b."partition", b.max_timestamp_ms / ?
               ORDER BY t.name, b."partition", max(b.max_timestamp_ms)"""
_ENDS = """SELECT topic, "partition", max(last_offset) + 1 FROM batch GROUP BY topic, "partition" """


class BulkReader:
    """Reads one data folder in bulk. ``with`` closes it."""

    def __init__(self, path: Path) -> None:
        """Raises `NotFoundError` (no folder), `UsageError` (of a newer kgctl), `DamagedError`, `StorageError` (not readable)."""
        try:
            if not path.exists():
                raise NotFoundError(f"no data folder at {path}")
            if not path.is_dir():
                raise UsageError(f"{path} is not a folder")
            if not (path / COORDINATOR_FILE).exists():
                if found := traces(path, had_lock=(path / LOCK_FILE).exists()):
                    raise DamagedError(f"{path}: damaged: {COORDINATOR_FILE} is missing, though {', '.join(found)} is there")
                raise NotFoundError(f"{path} holds no data of kgctl ({COORDINATOR_FILE} is not there)")
        except OSError as error:
            raise StorageError(f"{path}: {error.strerror}") from error
        self.path = path
        with ExitStack() as opened:
            self._coordinator = opened.enter_context(closing(_ReadOnly(path / COORDINATOR_FILE, COORDINATOR)))
            self._topics = None
            if (path / TOPICS_FILE).exists():
                self._topics = opened.enter_context(closing(_ReadOnly(path / TOPICS_FILE, TOPICS)))
                for damaged in damaged_topics(self._topics, has_checksums=self._topics.version > 2):
                    raise DamagedError(damaged.message)
            opened.pop_all()

    def partitions(self) -> Sequence[int]:
        """The partitions of ``__consumer_offsets`` that have records, ascending."""
        return partitions_of(self._coordinator)

    def records(self, partition: int, from_offset: int = 0, *, page_rows: int = 10_000) -> Iterator[RecordColumns]:
        """The records of one partition, a page at a time."""
        statement = _RECORDS.format(crc="crc" if self._coordinator.version >= _CHECKSUMS_SINCE else "NULL")
        while rows := self._coordinator.rows(statement, (partition, from_offset, page_rows)):
            for row in rows:
                stored_record(self._coordinator.path, row)  # raises where its checksum is wrong
            _, offset, time, key, value, producer_id, epoch, commits, *_ = zip(*rows, strict=True)
            epochs = [None if producer is None else each for producer, each in zip(producer_id, epoch, strict=True)]
            yield RecordColumns(offset, time, key, value, producer_id, epochs, commits)
            from_offset = offset[-1] + 1

    def log_ends(self, every_ms: int) -> LogEndColumns:
        """Each partition's log end over time, at most one entry in ``every_ms``, by topic, partition and time."""
        rows = self._topics.rows(_LOG_ENDS, (every_ms,)) if self._topics else []
        return LogEndColumns(*zip(*rows, strict=True)) if rows else LogEndColumns((), (), (), ())

    def log_bounds(self) -> Sequence[LogBound]:
        """Return the start and end of all partitions' logs, now."""
        if self._topics is None:
            return []
        ends = {row[:2]: row[2] for row in self._topics.rows(_ENDS)}
        starts = {row[:2]: row[2] for row in self._topics.rows("""SELECT topic, "partition", "offset" FROM log_start""")}
        statement = "SELECT id, name, partition_count FROM topic WHERE partition_count <= ? ORDER BY name"
        topics = self._topics.rows(statement, (MAX_PARTITIONS,))
        return [
            LogBound(name, partition, starts.get((number, partition), 0), ends.get((number, partition), 0))
            for number, name, count in topics
            for partition in range(count)
        ]

    def commits(
        self, groups: Sequence[str] = (), *, since_ms: int | None = None, until_ms: int | None = None
    ) -> Iterator[CommitEntry]:
        """The commit log in the order of writing, of these groups or of all."""
        wanted = set(groups)
        only = groups[0] if len(groups) == 1 else None
        entries = self._commit_log().read(only, since_ms=since_ms, until_ms=until_ms)
        return (entry for entry in entries if not wanted or entry.group in wanted)

    def committing_groups(self) -> Sequence[str]:
        """Return the groups of the commit log, sorted."""
        return self._commit_log().groups()

    def offsets_at(self, group: str, timestamp_ms: int) -> Sequence[CommitEntry]:
        """What the group had committed at that moment, by partition."""
        return list(self._commit_log().offsets_at(group, timestamp_ms).values())

    def as_of_ms(self, now_ms: int) -> int:
        """The moment that the folder shows: ``now_ms`` while a process has it open, else the time of the last thing in it.

        A simulation's folder has a time of its own, which has nothing to do with that of the wall.
        """
        rows = self._coordinator.rows("SELECT value FROM meta WHERE name = 'setting.frozen_ms'")
        frozen = checked_setting(self._coordinator.path, "frozen_ms", rows[0][0]) if rows else ""
        if frozen:
            return int(frozen)
        return now_ms if is_in_use(self.path) else self._last_ms() or now_ms

    def close(self) -> None:
        """Safe to call twice."""
        self._coordinator.close()
        if self._topics is not None:
            self._topics.close()

    def _last_ms(self) -> int | None:
        """Return the newest time of a record or a batch."""
        times = [self._coordinator.rows("SELECT max(timestamp_ms) FROM record")[0][0]]
        if self._topics is not None:
            times.append(self._topics.rows("SELECT max(max_timestamp_ms) FROM batch")[0][0])
        return max((time for time in times if time is not None), default=None)

    def _commit_log(self) -> SqliteCommitLog:
        return SqliteCommitLog(self._coordinator, has_checksums=self._coordinator.version >= _CHECKSUMS_SINCE)

    def __enter__(self) -> BulkReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _ReadOnly:
    """A connection that cannot write. A folder that this user may not write to is read all the same."""

    def __init__(self, path: Path, schema: Schema) -> None:
        self.path = path
        with self._translated():
            self._connection = _connect(path)
        try:
            application_id, self.version = self._pragma("application_id"), self._pragma("user_version")
            check_readable(path, schema, application_id=application_id, version=self.version)
            if is_quickly_checked(path):
                check_whole(path, self.rows)
        except BaseException:
            self.close()
            raise

    def rows(self, statement: str, arguments: Sequence[Any] = ()) -> list[Any]:
        """Return all rows of a query."""
        with self._translated():
            return fetch(self._connection, statement, arguments)

    def close(self) -> None:
        """Safe to call twice."""
        self._connection.close()

    def _pragma(self, name: str) -> int:
        return int(self.rows(f"PRAGMA {name}")[0][0])

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            kind = DamagedError if is_damage(error) else StorageError
            raise kind(f"{self.path}: cannot be read: {error}") from error


def _connect(path: Path) -> sqlite3.Connection:
    """With ``immutable`` where the folder cannot be written to and no writer has left its files: SQLite needs them otherwise."""
    name = f"file:{quote(str(path.absolute()))}?mode=ro"
    connection = sqlite3.connect(name, uri=True, timeout=30, isolation_level=None)
    try:
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
    except sqlite3.Error as error:
        connection.close()
        if not isinstance(error, sqlite3.OperationalError) or path.with_name(f"{path.name}-wal").exists():
            raise
        connection = sqlite3.connect(f"{name}&immutable=1", uri=True, isolation_level=None)
    return connection
