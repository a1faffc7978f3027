"""The commit log in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from kgctl.model.partitions import TopicPartition
from kgctl.storage.protocols import CommitEntry
from kgctl.storage.sqlite.database import Database

_PAGE_ROWS = 2_000
_MAX_KNOWN_NAMES = 50_000
_COLUMNS = """c.sequence, g.text, t.text, c."partition", c."offset", c.timestamp_ms, c.metadata, c.leader_epoch, m.text"""
_TABLES = """commit_entry c JOIN name g ON g.id = c.group_name JOIN name t ON t.id = c.topic_name
             LEFT JOIN name m ON m.id = c.member_name"""


class SqliteCommitLog:
    """One row for each committed or deleted offset. `SqliteRecordLog` fills it, inside its own transaction (`insert`)."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._names: dict[str, int] = {}

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
            )
            for entry in entries
        ]
        connection.executemany(
            """INSERT INTO commit_entry
               (group_name, topic_name, "partition", "offset", timestamp_ms, metadata, leader_epoch, member_name)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?)""",
            rows,
        )

    def forget_names(self) -> None:
        """A transaction was rolled back: numbers given to names in it are not there."""
        self._names.clear()

    def read(
        self,
        group: str | None = None,
        *,
        partitions: Collection[TopicPartition] | None = None,
        since_ms: int | None = None,
        until_ms: int | None = None,
        max_entries: int | None = None,
    ) -> Iterator[CommitEntry]:
        """See `kgctl.storage.protocols.CommitLog`."""
        wanted = None if partitions is None else set(partitions)
        found = 0
        for row in self._pages(group, since_ms, until_ms):
            if found == max_entries:
                return
            entry = CommitEntry(*row[1:])
            if wanted is None or (entry.topic, entry.partition) in wanted:
                found += 1
                yield entry

    def offsets_at(self, group: str, timestamp_ms: int) -> Mapping[TopicPartition, CommitEntry]:
        """See `kgctl.storage.protocols.CommitLog`."""
        rows = self._database.rows(
            f"""SELECT {_COLUMNS} FROM {_TABLES} WHERE c.sequence IN (
                   SELECT max(e.sequence) FROM commit_entry e JOIN name n ON n.id = e.group_name
                   WHERE n.text = ? AND e.timestamp_ms <= ? GROUP BY e.topic_name, e."partition")""",  # noqa: S608
            (group, timestamp_ms),
        )
        entries = (CommitEntry(*row[1:]) for row in rows)
        found = {TopicPartition(entry.topic, entry.partition): entry for entry in entries if entry.offset is not None}
        return dict(sorted(found.items()))

    def _pages(self, group: str | None, since_ms: int | None, until_ms: int | None) -> Iterator[Any]:
        conditions = [
            ("c.group_name = (SELECT id FROM name WHERE text = ?)", group),
            ("c.timestamp_ms >= ?", since_ms),
            ("c.timestamp_ms < ?", until_ms),
        ]
        given = [(condition, argument) for condition, argument in conditions if argument is not None]
        where = " AND ".join(["c.sequence > ?", *(condition for condition, _ in given)])
        statement = f"SELECT {_COLUMNS} FROM {_TABLES} WHERE {where} ORDER BY c.sequence LIMIT {_PAGE_ROWS}"  # noqa: S608
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
