"""Stores to test with, short ways to say what is appended to them, and databases under a test's eyes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kgctl.coordinator.effects import AppendRecord
from kgctl.model.coordinator_records import (
    CoordinatorRecord,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    TransactionMarker,
)
from kgctl.storage.folder import DataFolder, memory_folder, open_folder
from kgctl.storage.record_log import CommitEntry, StoredRecord

KINDS = ("memory", "sqlite")
TOPIC_ID = UUID(int=7)


def new_folder(kind: str, path: Path, offsets_partitions: int = 4) -> DataFolder:
    """An empty store of this kind."""
    if kind == "memory":
        return memory_folder(offsets_partitions)
    return open_folder(path / "data", create=True, offsets_partitions=offsets_partitions)


def commit(
    group: str,
    partition: int,
    offset: int,
    *,
    topic: str = "t",
    member: str | None = None,
    producer: int | None = None,
    time: int = 0,
) -> AppendRecord:
    """An offset commit; pending if a producer is named."""
    value = OffsetCommitValue(offset, 0, "m", 0, -1, TOPIC_ID)
    return AppendRecord(CoordinatorRecord(OffsetCommitKey(group, topic, partition), value), producer, 0, member)


def delete(group: str, partition: int, *, topic: str = "t", producer: int | None = None) -> AppendRecord:
    """A tombstone of a committed offset."""
    return AppendRecord(CoordinatorRecord(OffsetCommitKey(group, topic, partition), None), producer)


def group_record(group: str, generation: int) -> AppendRecord:
    """A classic group's own record; a tombstone for generation -1."""
    value = None if generation < 0 else GroupMetadataValue("consumer", generation, None, None, 1)
    return AppendRecord(CoordinatorRecord(GroupMetadataKey(group), value))


def marker(producer: int, *, committed: bool = True) -> AppendRecord:
    """The end of a producer's transaction."""
    return AppendRecord(TransactionMarker(producer, 0, committed), producer)


def entry(
    group: str, partition: int, offset: int | None, time: int, *, topic: str = "t", member: str | None = None
) -> CommitEntry:
    """What the commit log says of a `commit` or `delete`."""
    if offset is None:
        return CommitEntry(group, topic, partition, None, time)
    return CommitEntry(group, topic, partition, offset, time, "m", 0, member)


def contents(folder: DataFolder) -> list[StoredRecord]:
    """The whole record log."""
    return list(folder.record_log.read())


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[sqlite3.Connection]]:
    """All connections of SQLite that are made from now on."""
    made: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def noted(*args: Any, **kwargs: Any) -> sqlite3.Connection:
        made.append(connect(*args, **kwargs))
        return made[-1]

    monkeypatch.setattr(sqlite3, "connect", noted)
    yield made
    for connection in made:
        connection.close()


def is_open(connection: sqlite3.Connection) -> bool:
    """Whether nobody has closed it."""
    try:
        connection.total_changes  # noqa: B018 - it raises
    except sqlite3.ProgrammingError:
        return False
    return True
