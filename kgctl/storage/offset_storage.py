"""Where an embeddable coordinator keeps committed offsets: four methods, in memory, in SQLite, or one's own.

The record log of `kgctl.storage.folder` keeps groups whole, as a broker does; this keeps offsets only, for coordinators that live
inside another system and use its store.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol, Self, TypeAlias

from kgctl.errors import StorageError
from kgctl.model.groups import TopicPartition


@dataclass(frozen=True, slots=True)
class StoredOffset:
    """A committed offset. Times are milliseconds since the epoch; ``expire_timestamp_ms`` is -1 without a limit of its own."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp_ms: int = 0
    expire_timestamp_ms: int = -1

    def as_dict(self) -> dict[str, Any]:
        """The fields by name, for stores that keep JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """Return the offset that `as_dict` wrote."""
        return cls(**fields)


Offsets = Mapping[TopicPartition, StoredOffset]
Rows: TypeAlias = list[Any]


class OffsetStorage(Protocol):
    """A store of committed offsets, called by one thread at a time.

    Duty of the implementation: when `save` or `delete` returns, what it was told survives a crash; all of one call or nothing.
    Whatever it raises reaches the caller of the commit as `kgctl.errors.StorageError`.
    """

    def save(self, group_id: str, offsets: Offsets) -> None:
        """Store these; other partitions of the group stay as they are."""
        ...

    def load(self, group_id: str) -> Offsets:
        """Return all offsets of the group; an empty mapping for a group that has none. Offset 0 is an offset."""
        ...

    def delete(self, group_id: str, partitions: Sequence[TopicPartition] | None = None) -> None:
        """Forget these partitions, or the whole group (None). What is not there is no error."""
        ...

    def list(self) -> Iterable[str]:
        """Return the ids of all groups that have offsets."""
        ...


class MemoryOffsetStorage:
    """An `OffsetStorage` that lives as long as its object."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[TopicPartition, StoredOffset]] = {}

    def save(self, group_id: str, offsets: Offsets) -> None:
        """See `OffsetStorage.save`."""
        self._groups.setdefault(group_id, {}).update(offsets)

    def load(self, group_id: str) -> Offsets:
        """See `OffsetStorage.load`."""
        return dict(self._groups.get(group_id, {}))

    def delete(self, group_id: str, partitions: Sequence[TopicPartition] | None = None) -> None:
        """See `OffsetStorage.delete`."""
        if partitions is None:
            self._groups.pop(group_id, None)
            return
        kept = self._groups.get(group_id, {})
        for partition in partitions:
            kept.pop(partition, None)
        if not kept:
            self._groups.pop(group_id, None)

    def list(self) -> Iterable[str]:
        """See `OffsetStorage.list`."""
        return sorted(self._groups)


_TABLE = """
CREATE TABLE IF NOT EXISTS offsets (
    group_id TEXT NOT NULL, topic TEXT NOT NULL, partition INTEGER NOT NULL, committed_offset INTEGER NOT NULL,
    leader_epoch INTEGER NOT NULL, metadata TEXT NOT NULL, commit_timestamp_ms INTEGER NOT NULL,
    expire_timestamp_ms INTEGER NOT NULL, PRIMARY KEY (group_id, topic, partition)
) WITHOUT ROWID
"""


class SqliteOffsetStorage:
    """An `OffsetStorage` in one SQLite file, written through to the disk before `save` returns. From any thread.

    Raises:
        StorageError: the file cannot be opened, read or written.
    """

    def __init__(self, path: Path | str) -> None:
        import sqlite3

        self._failures = sqlite3.Error
        self._path = path
        self._lock = threading.Lock()
        try:
            self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = FULL")
            self._database.execute(_TABLE)
        except sqlite3.Error as error:
            raise StorageError(f"{path}: {error}") from error

    def save(self, group_id: str, offsets: Offsets) -> None:
        """See `OffsetStorage.save`."""
        rows = [(group_id, *partition, *asdict(stored).values()) for partition, stored in offsets.items()]
        self._write("INSERT OR REPLACE INTO offsets VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def load(self, group_id: str) -> Offsets:
        """See `OffsetStorage.load`."""
        rows = self._read("SELECT * FROM offsets WHERE group_id = ?", (group_id,))
        return {TopicPartition(topic, partition): StoredOffset(*stored) for _, topic, partition, *stored in rows}

    def delete(self, group_id: str, partitions: Sequence[TopicPartition] | None = None) -> None:
        """See `OffsetStorage.delete`."""
        if partitions is None:
            self._write("DELETE FROM offsets WHERE group_id = ?", [(group_id,)])
        else:
            rows = [(group_id, *partition) for partition in partitions]
            self._write("DELETE FROM offsets WHERE group_id = ? AND topic = ? AND partition = ?", rows)

    def list(self) -> Iterable[str]:
        """See `OffsetStorage.list`."""
        return [group for (group,) in self._read("SELECT DISTINCT group_id FROM offsets ORDER BY group_id", ())]

    def close(self) -> None:
        """Give the file back. Safe to call twice."""
        with self._lock:
            self._database.close()

    def _write(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        with self._lock:
            try:
                self._database.execute("BEGIN IMMEDIATE")
                self._database.executemany(statement, rows)
                self._database.execute("COMMIT")
            except self._failures as error:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise StorageError(f"{self._path}: {error}") from error

    def _read(self, statement: str, values: tuple[Any, ...]) -> Rows:
        with self._lock:
            try:
                return self._database.execute(statement, values).fetchall()
            except self._failures as error:
                raise StorageError(f"{self._path}: {error}") from error
