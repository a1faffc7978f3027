"""Reading a data folder in bulk and from outside: columns, not objects; no lock, nothing is written, also while a server writes.

What is read is what was committed when its page was read. A server's compaction may remove older records meanwhile, as Kafka's
does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from kgctl.errors import NotFoundError, StorageError, UsageError
from kgctl.storage.folder import COORDINATOR_FILE, TOPICS_FILE
from kgctl.storage.lock import is_in_use


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
    """The log of one partition as it is."""

    topic: str
    partition: int
    log_start_offset: int
    log_end_offset: int


class BulkReader:
    """Of one data folder. ``with`` closes it."""

    def __init__(self, path: Path) -> None:
        """Raises `NotFoundError` (no data folder), `UsageError` (of a newer kgctl), `StorageError` (damaged, not readable)."""
        from kgctl.storage.sqlite.bulk import SqliteBulk

        try:
            if not path.exists():
                raise NotFoundError(f"no data folder at {path}")
            if not path.is_dir():
                raise UsageError(f"{path} is not a folder")
            if not (path / COORDINATOR_FILE).exists():
                raise NotFoundError(f"{path} holds no data of kgctl ({COORDINATOR_FILE} is not there)")
        except OSError as error:
            raise StorageError(f"{path}: {error.strerror}") from error
        self.path = path
        self._files = SqliteBulk(path / COORDINATOR_FILE, path / TOPICS_FILE)

    def partitions(self) -> Sequence[int]:
        """The partitions of ``__consumer_offsets`` that have records, ascending."""
        return self._files.partitions()

    def records(self, partition: int, from_offset: int = 0, *, page_rows: int = 10_000) -> Iterator[RecordColumns]:
        """The records of one partition, a page at a time."""
        return self._files.records(partition, from_offset, page_rows)

    def log_ends(self, every_ms: int) -> LogEndColumns:
        """Each partition's log end over time, at most one entry in ``every_ms``, by topic, partition and time."""
        return self._files.log_ends(every_ms)

    def log_bounds(self) -> Sequence[LogBound]:
        """Log start and end of all partitions, now."""
        return self._files.log_bounds()

    def as_of_ms(self, now_ms: int) -> int:
        """The moment that the folder shows: ``now_ms`` while a process has it open, else the time of the last thing in it.

        A simulation's folder has a time of its own, which has nothing to do with that of the wall.
        """
        frozen = self._files.setting("frozen_ms")
        if frozen:
            return int(frozen)
        return now_ms if is_in_use(self.path) else self._files.last_ms() or now_ms

    def close(self) -> None:
        """Safe to call twice."""
        self._files.close()

    def __enter__(self) -> BulkReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
