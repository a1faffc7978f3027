"""The record log and the commit log in SQLite: one transaction an append, rows in Kafka's own bytes."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from kgctl.coordinator.effects import AppendRecord
from kgctl.errors import DamagedError
from kgctl.model.groups import TopicPartition
from kgctl.serde.crc32c import crc32c
from kgctl.storage.record_log import (
    DEFAULT_OFFSETS_PARTITIONS,
    AppendPlan,
    CommitEntry,
    Compactor,
    LogLedger,
    LogRow,
    StoredRecord,
)
from kgctl.storage.sqlite import DamagedRow, Database, Queried

_COMMIT_PAGE_ROWS = 2_000
_MAX_KNOWN_NAMES = 50_000
_COMMIT_COLUMNS = (
    """c.sequence, g.text, t.text, c."partition", c."offset", c.timestamp_ms, c.metadata, c.leader_epoch, m.text, c.crc"""
)
_TABLES = """commit_entry c JOIN name g ON g.id = c.group_name JOIN name t ON t.id = c.topic_name
             LEFT JOIN name m ON m.id = c.member_name"""


class SqliteCommitLog:
    """One row for each committed or deleted offset. `SqliteRecordLog` fills it, inside its own transaction (`insert`)."""

    def __init__(self, database: Queried, *, has_checksums: bool = True) -> None:
        self._database = database
        self._columns = _COMMIT_COLUMNS if has_checksums else _COMMIT_COLUMNS.replace("c.crc", "NULL")
        self._names: dict[str, int] = {}

    def groups(self) -> list[str]:
        """Return the groups that have entries, sorted."""
        rows = self._database.rows("SELECT text FROM name WHERE id IN (SELECT group_name FROM commit_entry) ORDER BY text")
        return [str(row[0]) for row in rows]

    def insert(self, connection: sqlite3.Connection, entries: Sequence[CommitEntry]) -> None:
        """Add rows in a transaction that is open on ``connection``."""
        if not entries:
            return
        rows = [
            (
                self._name(connection, entry.group),
                self._name(connection, entry.topic),
                entry.partition,
                entry.offset,
                entry.timestamp_ms,
                entry.metadata,
                entry.leader_epoch,
                None if entry.member_id is None else self._name(connection, entry.member_id),
                _entry_checksum(entry),
            )
            for entry in entries
        ]
        connection.executemany(
            """INSERT INTO commit_entry
               (group_name, topic_name, "partition", "offset", timestamp_ms, metadata, leader_epoch, member_name, crc)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)""",
            rows,
        )

    def forget_names(self) -> None:
        """A transaction was rolled back: numbers given to names in it are not there."""
        self._names.clear()

    def read(
        self, group: str | None = None, *, since_ms: int | None = None, until_ms: int | None = None
    ) -> Iterator[CommitEntry]:
        """Rows in the order in which they were written, from ``since_ms`` (included) to ``until_ms`` (excluded)."""
        return map(self._entry, self._pages(group, since_ms, until_ms))

    def offsets_at(self, group: str, timestamp_ms: int) -> Mapping[TopicPartition, CommitEntry]:
        """What the group had committed at that moment, commits of that very millisecond included; sorted by partition."""
        rows = self._database.rows(
            f"""SELECT {self._columns} FROM {_TABLES} WHERE c.sequence IN (
                   SELECT max(e.sequence) FROM commit_entry e JOIN name n ON n.id = e.group_name
                   WHERE n.text = ? AND e.timestamp_ms <= ? GROUP BY e.topic_name, e."partition")""",  # noqa: S608
            (group, timestamp_ms),
        )
        entries = (self._entry(row) for row in rows)
        found = {TopicPartition(entry.topic, entry.partition): entry for entry in entries if entry.offset is not None}
        return dict(sorted(found.items()))

    def _entry(self, row: Sequence[Any]) -> CommitEntry:
        return _stored_entry(self._database.path, row)

    def _pages(self, group: str | None, since_ms: int | None, until_ms: int | None) -> Iterator[Any]:
        conditions = [
            ("c.group_name = (SELECT id FROM name WHERE text = ?)", group),
            ("c.timestamp_ms >= ?", since_ms),
            ("c.timestamp_ms < ?", until_ms),
        ]
        given = [(condition, argument) for condition, argument in conditions if argument is not None]
        where = " AND ".join(["c.sequence > ?", *(condition for condition, _ in given)])
        statement = f"SELECT {self._columns} FROM {_TABLES} WHERE {where} ORDER BY c.sequence LIMIT {_COMMIT_PAGE_ROWS}"  # noqa: S608
        last = 0
        while rows := self._database.rows(statement, (last, *(argument for _, argument in given))):
            yield from rows
            last = rows[-1][0]

    def _name(self, connection: sqlite3.Connection, text: str) -> int:
        known = self._names.get(text)
        if known is not None:
            return known
        row = connection.execute("SELECT id FROM name WHERE text = ?", (text,)).fetchone()
        number = row[0] if row else connection.execute("INSERT INTO name (text) VALUES (?)", (text,)).lastrowid
        assert number is not None
        if len(self._names) >= _MAX_KNOWN_NAMES:
            self._names.clear()
        self._names[text] = number
        return int(number)


_PAGE_ROWS = 5_000
_COLUMNS = """"partition", "offset", timestamp_ms, "key", value, producer_id, producer_epoch, "commits", coordinator_epoch"""
_CHECKED = f"{_COLUMNS}, crc, member_id"
_CHECKED_COLUMNS = 11
_MOST_ARGUMENTS = 900
# Committed offsets outside transactions: by how their keys begin.
_IS_OFFSET = """producer_id IS NULL AND substr("key", 1, 2) IN (x'0000', x'0001')"""
_NEWEST = f"""SELECT max(sequence) FROM record WHERE {_IS_OFFSET} GROUP BY "key" """  # noqa: S608
_OTHERS = f"""SELECT sequence, "commits" IS NULL AND value IS NULL FROM record WHERE value IS NULL OR NOT ({_IS_OFFSET})"""  # noqa: S608
# A tombstone takes an offset away; the group stays that the offset may have made.
_DELETED = """SELECT sequence FROM record WHERE "key" IN (SELECT "key" FROM record WHERE value IS NULL AND "commits" IS NULL)"""
_INSERT = f"""INSERT INTO record (sequence, {_CHECKED}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""  # noqa: S608
# What transactions wrote, and what was written to the same keys without one: the later of the two counts.
_OPEN_RECORDS = f"""SELECT {_CHECKED} FROM record
    WHERE producer_id IS NOT NULL
       OR "key" IN (SELECT "key" FROM record WHERE producer_id IS NOT NULL AND "key" IS NOT NULL)
    ORDER BY sequence"""  # noqa: S608


def _newest_of_each_key(database: Database) -> list[int]:
    """Find what `RecordLog.read_newest` yields: sequences, ascending. The log is sorted by SQLite, in files if it is long."""
    newest = {row[0] for row in database.rows(_NEWEST)}
    others = database.rows(_OTHERS)
    newest.update(row[0] for row in others)
    if any(is_tombstone for _, is_tombstone in others):
        newest.update(row[0] for row in database.rows(_DELETED))
    return sorted(newest)


def partitions_of(database: Queried) -> list[int]:
    """The partitions that have records, ascending; found by leaps over the index. Raises `DamagedError`."""
    found: dict[int, None] = {}
    partition = -1
    while True:
        rows = database.rows("""SELECT min("partition") FROM record WHERE "partition" > ?""", (partition,))
        if not rows or rows[0][0] is None:
            return list(found)
        partition = rows[0][0]
        if partition in found:
            raise DamagedError(f"{database.path}: damaged (an index is not in order)")
        found[partition] = None


class SqliteRecordLog:
    """The record log of a database. Safe to use from several threads."""

    def __init__(
        self, database: Database, commit_log: SqliteCommitLog, partition_count: int = DEFAULT_OFFSETS_PARTITIONS
    ) -> None:
        """``partition_count`` counts for a new database only; an existing one keeps its own."""
        self._database = database
        self._commit_log = commit_log
        count = database.value("SELECT value FROM meta WHERE name = 'offsets_partitions'")
        if count is None:
            count = partition_count
            with database.transaction() as connection:
                connection.execute("INSERT INTO meta VALUES ('offsets_partitions', ?)", (count,))
        self._ledger = self._load_ledger(count)
        self._sequence: int = database.value("SELECT max(sequence) FROM record") or 0
        self._compactor = Compactor(SqliteCompactionTarget(database))
        self.on_append: Callable[[], None] = lambda: None
        """Called when what was appended is durable; an outer transaction's owner does it itself."""

    @property
    def appended(self) -> int:
        """Return how many records were ever appended."""
        return self._sequence

    @property
    def partition_count(self) -> int:
        return self._ledger.partition_count

    def append(self, effects: Sequence[AppendRecord], now_ms: int) -> None:
        if not effects:
            return
        with self._database.lock:
            self._commit(self._ledger.plan(effects, now_ms))

    def write(self, records: Sequence[StoredRecord]) -> None:
        with self._database.lock:
            self._commit(self._ledger.plan_placed(records))

    def read(self, partition: int | None = None, start_offset: int = 0, max_records: int | None = None) -> Iterator[StoredRecord]:
        pages = self._whole_pages() if partition is None else self._partition_pages(partition, start_offset)
        yield from islice((stored_record(self._database.path, row[:_CHECKED_COLUMNS]) for row in pages), max_records)

    def read_newest(self) -> Iterator[StoredRecord]:
        sequences = _newest_of_each_key(self._database)
        for start in range(0, len(sequences), _MOST_ARGUMENTS):
            some = sequences[start : start + _MOST_ARGUMENTS]
            marks = ",".join("?" * len(some))
            statement = f"SELECT {_CHECKED} FROM record WHERE sequence IN ({marks}) ORDER BY sequence"  # noqa: S608
            yield from (stored_record(self._database.path, row) for row in self._database.rows(statement, some))

    def end_offset(self, partition: int) -> int:
        return self._ledger.end_offset(partition)

    def groups_of_transaction(self, producer_id: int) -> Collection[str]:
        return self._ledger.groups_of_transaction(producer_id)

    def compact_step(self, now_ms: int, max_records: int = 500) -> bool:
        return self._compactor.step(now_ms, max_records)

    def compact(self, now_ms: int | None = None) -> int:
        if now_ms is None:
            now_ms = self._database.value("SELECT max(timestamp_ms) FROM record") or 0
        before = self._compactor.removed
        while self._compactor.step(now_ms, _PAGE_ROWS, force=True):
            pass
        return self._compactor.removed - before

    def _commit(self, plan: AppendPlan) -> None:
        first = self._sequence + 1
        rows = [(first + i, *_columns(record, plan.members.get(i))) for i, record in enumerate(plan.records)]
        try:
            with self._database.transaction() as connection:
                connection.executemany(_INSERT, rows)
                self._commit_log.insert(connection, plan.commits)
        except BaseException:
            self._commit_log.forget_names()
            raise
        self._sequence += len(rows)
        self._ledger.adopt(plan)
        if not self._database.is_in_transaction:
            self.on_append()

    def _load_ledger(self, partition_count: int) -> LogLedger:
        """A record that is damaged keeps nobody from opening the log: who reads it is told."""
        ends = {
            partition: self._database.value("""SELECT max("offset") + 1 FROM record WHERE "partition" = ?""", (partition,))
            for partition in partitions_of(self._database)
        }
        has_transactions = self._database.value("SELECT 1 FROM record WHERE producer_id IS NOT NULL LIMIT 1")
        rows = self._database.rows(_OPEN_RECORDS) if has_transactions else []
        members = {(row[0], row[1]): row[-1] for row in rows if row[-1] is not None}
        return LogLedger(partition_count, ends, (_unchecked(row[:-2]) for row in rows), members)

    def _whole_pages(self) -> Iterator[Any]:
        """Rows of `_CHECKED` columns, with the sequence behind them."""
        last = 0
        statement = f"SELECT {_CHECKED}, sequence FROM record WHERE sequence > ? ORDER BY sequence LIMIT {_PAGE_ROWS}"  # noqa: S608
        while rows := self._database.rows(statement, (last,)):
            yield from rows
            last = rows[-1][-1]

    def _partition_pages(self, partition: int, start_offset: int) -> Iterator[Any]:
        statement = f"""SELECT {_CHECKED} FROM record WHERE "partition" = ? AND "offset" >= ?
                        ORDER BY "offset" LIMIT {_PAGE_ROWS}"""  # noqa: S608
        while rows := self._database.rows(statement, (partition, start_offset)):
            yield from rows
            start_offset = rows[-1][1] + 1


class SqliteCompactionTarget:
    """What compaction does to the record log of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def last_sequence(self) -> int:
        """See `kgctl.storage.record_log.Compactable`, as for all of these."""
        return int(self._database.value("SELECT max(sequence) FROM record") or 0)

    def cleaned_until(self) -> int:
        """The last sequence that a finished cycle has surveyed."""
        return int(self._database.value("SELECT value FROM meta WHERE name = 'cleaned_until'") or 0)

    def set_cleaned_until(self, sequence: int) -> None:
        with self._database.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('cleaned_until', ?)", (sequence,))

    def rows(self, after_sequence: int, max_rows: int) -> Sequence[LogRow]:
        statement = f"SELECT sequence, {_CHECKED} FROM record WHERE sequence > ? ORDER BY sequence LIMIT ?"  # noqa: S608
        return [self._log_row(row) for row in self._database.rows(statement, (after_sequence, max_rows))]

    def transactional_rows(self) -> Iterator[LogRow]:
        """Yield all markers and all records of transactions."""
        statement = f"SELECT sequence, {_CHECKED} FROM record WHERE producer_id IS NOT NULL ORDER BY sequence"  # noqa: S608
        return (self._log_row(row) for row in self._database.rows(statement))

    def _log_row(self, row: Sequence[Any]) -> LogRow:
        record = stored_record(self._database.path, row[1:])
        is_tombstone = record.value is None and record.commits is None
        return LogRow(row[0], record.partition, record.timestamp_ms, record.key, is_tombstone, record.producer_id, record.commits)

    def newest_of_each_partition(self) -> Collection[int]:
        """The sequence of each partition's newest record."""
        statement = """SELECT r.sequence FROM record r JOIN (
                           SELECT "partition" AS p, max("offset") AS o FROM record GROUP BY "partition") newest
                       ON r."partition" = newest.p AND r."offset" = newest.o"""
        return {row[0] for row in self._database.rows(statement)}

    def rewrite(self, removed: Sequence[int], settled: Sequence[int]) -> None:
        with self._database.transaction() as connection:
            connection.executemany("DELETE FROM record WHERE sequence = ?", [(number,) for number in removed])
            for number in settled:
                statement = f"SELECT {_CHECKED} FROM record WHERE sequence = ?"  # noqa: S608
                for row in connection.execute(statement, (number,)).fetchall():
                    plain = replace(stored_record(self._database.path, row), producer_id=None, producer_epoch=0)
                    connection.execute(
                        """UPDATE record SET producer_id = NULL, producer_epoch = 0, member_id = NULL, crc = ?
                           WHERE sequence = ?""",
                        (_record_checksum(plain, None), number),
                    )


def _columns(record: StoredRecord, member_id: str | None) -> tuple[Any, ...]:
    return (
        record.partition,
        record.offset,
        record.timestamp_ms,
        record.key,
        record.value,
        record.producer_id,
        record.producer_epoch,
        record.commits,
        record.coordinator_epoch,
        _record_checksum(record, member_id),
        member_id,
    )


def stored_record(path: Path, row: Sequence[Any]) -> StoredRecord:
    """The record of a row of `_CHECKED` columns. Raises `DamagedError` naming the record where its checksum is wrong."""
    *columns, checksum, member_id = row
    record = _unchecked(columns)
    if checksum is not None and checksum not in _checksums(record, member_id):
        place = f"offset {record.offset} of partition {record.partition}"
        raise DamagedError(f"{path}: the record at {place} is damaged (its checksum is wrong)")
    return record


def _checksums(record: StoredRecord, member_id: str | None) -> tuple[int, ...]:
    """What the checksum may be: of an older kgctl it leaves the member out. Nothing for values that were never written."""
    try:
        new = _record_checksum(record, member_id)
        return (new,) if member_id is None else (new, _record_checksum(record, None))
    except (TypeError, ValueError):
        return ()


def _unchecked(row: Sequence[Any]) -> StoredRecord:
    partition, offset, timestamp_ms, key, value, producer_id, producer_epoch, commits, coordinator_epoch = row
    if commits is not None:
        commits = bool(commits)
    return StoredRecord(partition, offset, timestamp_ms, key, value, producer_id, producer_epoch, commits, coordinator_epoch)


def damaged_records(database: Database) -> Iterator[DamagedRow]:
    """Each record that is not what was written."""
    pages = f"SELECT sequence, {_CHECKED} FROM record WHERE sequence > ? ORDER BY sequence LIMIT {_PAGE_ROWS}"  # noqa: S608
    return _damaged(database, pages, "record", lambda row: stored_record(database.path, row[1:]))


def damaged_commits(database: Database) -> Iterator[DamagedRow]:
    """Each entry of the commit log that is not what was written."""
    pages = f"SELECT {_COMMIT_COLUMNS} FROM {_TABLES} WHERE c.sequence > ? ORDER BY c.sequence LIMIT {_PAGE_ROWS}"  # noqa: S608
    return _damaged(database, pages, "commit_entry", lambda row: _stored_entry(database.path, row))


def _damaged(database: Database, pages: str, table: str, check: Callable[[Sequence[Any]], object]) -> Iterator[DamagedRow]:
    last = 0
    while rows := database.rows(pages, (last,)):
        for row in rows:
            try:
                check(row)
            except DamagedError as error:
                yield DamagedRow(table, "sequence = ?", (row[0],), error.message)
        last = rows[-1][0]


def _stored_entry(path: Path, row: Sequence[Any]) -> CommitEntry:
    sequence, *fields, checksum = row
    entry = CommitEntry(*fields)
    if checksum is not None and checksum != _checksum_or_none(entry):
        raise DamagedError(f"{path}: entry {sequence} of the commit log is damaged (its checksum is wrong)")
    return entry


def _record_checksum(record: StoredRecord, member_id: str | None) -> int:
    """CRC-32C of all that a reader gets to see, and of who wrote what waits for its transaction."""
    key, value = record.key, record.value
    member = "" if member_id is None else f",{member_id}"
    fields = (
        f"{record.partition},{record.offset},{record.timestamp_ms},{-1 if key is None else len(key)},"
        f"{-1 if value is None else len(value)},{record.producer_id},{record.producer_epoch},{record.commits},"
        f"{record.coordinator_epoch}{member}"
    )
    return crc32c(fields.encode() + (key or b"") + (value or b""))


def _checksum_or_none(entry: CommitEntry) -> int | None:
    try:
        return _entry_checksum(entry)
    except (TypeError, ValueError):
        return None


def _entry_checksum(entry: CommitEntry) -> int:
    names = "\0".join((entry.group, entry.topic, entry.metadata, "" if entry.member_id is None else f"m{entry.member_id}"))
    numbers = f"{entry.partition},{entry.offset},{entry.timestamp_ms},{entry.leader_epoch}"
    return crc32c(f"{numbers}\0{names}".encode("utf-8", "surrogatepass"))
