"""Compaction of the record log: what replay would overwrite anyway goes, in steps so small that commits never wait for long.

A cycle has two phases. The *survey* walks over the part of the log that the last cycle has not seen and notes the newest
place of each key. The *sweep* walks over the whole log from its beginning and removes: records with a newer one of the same
key, records of aborted transactions, markers whose transaction is settled, and tombstones that are older than a day (other
readers of the log need time to see them). A record of a committed transaction that stays becomes a plain one, which is why
its marker can go.

Nothing at or after the first record of a transaction that is still open is touched, since its outcome is not known; nor is
the newest record of a partition, which says where the log ends. Each step is one small transaction of the store, and the log
means the same after each of them: a crash in between loses nothing. Kafka: ``LogCleaner``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple, Protocol

DELETE_RETENTION_MS = 86_400_000
"""Kafka's ``delete.retention.ms``: how long a tombstone stays."""

_MIN_DIRTY_RECORDS = 10_000
_MAX_KEYS = 1_000_000


class LogRow(NamedTuple):
    """What compaction needs to know of a record. ``sequence`` is its place in the whole log, over all partitions."""

    sequence: int
    partition: int
    timestamp_ms: int
    key: bytes | None
    is_tombstone: bool
    producer_id: int | None
    commits: bool | None


class Compactable(Protocol):
    """A log that can be compacted."""

    def last_sequence(self) -> int:
        """The sequence of the newest record; 0 for an empty log."""
        ...

    def cleaned_until(self) -> int:
        """The last sequence that a finished cycle has surveyed."""
        ...

    def set_cleaned_until(self, sequence: int) -> None:
        """A cycle is finished."""
        ...

    def rows(self, after_sequence: int, max_rows: int) -> Sequence[LogRow]:
        """The next rows, ascending."""
        ...

    def transactional_rows(self) -> Iterator[LogRow]:
        """All markers and all records of transactions, ascending."""
        ...

    def newest_of_each_partition(self) -> Collection[int]:
        """The sequence of each partition's newest record."""
        ...

    def rewrite(self, removed: Sequence[int], settled: Sequence[int]) -> None:
        """Remove some records, and make some records of transactions plain ones, both or none."""
        ...


class Compactor:
    """Steps through one cycle after the other. Keeps what a survey found in memory, up to a million keys."""

    def __init__(self, log: Compactable) -> None:
        self._log = log
        self.removed = 0
        self._phase: Callable[[int, int], bool] = self._begin
        self._position = 0
        self._bound = 0
        self._newest: dict[tuple[int, bytes], int] = {}
        self._aborted: set[int] = set()
        self._keep: Collection[int] = ()

    def step(self, now_ms: int, max_records: int, *, force: bool = False) -> bool:
        """One step; True while there is more to do. A cycle begins by itself once enough has been appended, or with ``force``."""
        if self._phase == self._begin and not (force or self._is_worth_it()):
            return False
        return self._phase(now_ms, max_records)

    def _is_worth_it(self) -> bool:
        end, cleaned = self._log.last_sequence(), self._log.cleaned_until()
        return end - cleaned >= max(_MIN_DIRTY_RECORDS, cleaned // 2)

    def _begin(self, _now_ms: int, _max_records: int) -> bool:
        self._newest.clear()
        self._aborted.clear()
        first_open = self._find_outcomes()
        self._bound = self._log.last_sequence() if first_open is None else first_open - 1
        self._position = self._log.cleaned_until()
        self._phase = self._survey
        return True

    def _find_outcomes(self) -> int | None:
        """Note the records of aborted transactions; the first record of one that is open, or None."""
        waiting: dict[int, list[int]] = {}
        for row in self._log.transactional_rows():
            producer = row.producer_id or 0
            if row.commits is None:
                waiting.setdefault(producer, []).append(row.sequence)
                continue
            ended = waiting.pop(producer, [])
            if not row.commits:
                self._aborted.update(ended)
        return min((sequences[0] for sequences in waiting.values()), default=None)

    def _survey(self, _now_ms: int, max_records: int) -> bool:
        rows = [row for row in self._log.rows(self._position, max_records) if row.sequence <= self._bound]
        for row in rows:
            if row.key is not None and row.sequence not in self._aborted:
                self._newest[row.partition, row.key] = row.sequence
        if rows:
            self._position = rows[-1].sequence
        if len(self._newest) > _MAX_KEYS:
            self._bound = self._position
        if not rows or self._position >= self._bound:
            self._keep = self._log.newest_of_each_partition()
            self._position = 0
            self._phase = self._sweep
        return True

    def _sweep(self, now_ms: int, max_records: int) -> bool:
        rows = [row for row in self._log.rows(self._position, max_records) if row.sequence <= self._bound]
        if not rows:
            return self._finish()
        removed = [row.sequence for row in rows if row.sequence not in self._keep and self._is_obsolete(row, now_ms)]
        gone = set(removed)
        settled = [r.sequence for r in rows if r.producer_id is not None and r.commits is None and r.sequence not in gone]
        settled = [sequence for sequence in settled if sequence not in self._aborted]
        if removed or settled:
            self._log.rewrite(removed, settled)
        self.removed += len(removed)
        self._position = rows[-1].sequence
        return True

    def _is_obsolete(self, row: LogRow, now_ms: int) -> bool:
        if row.commits is not None or row.sequence in self._aborted:
            return True
        if self._newest.get((row.partition, row.key or b""), 0) > row.sequence:
            return True
        return row.is_tombstone and row.timestamp_ms + DELETE_RETENTION_MS < now_ms

    def _finish(self) -> bool:
        self._log.set_cleaned_until(self._bound)
        self._newest.clear()
        self._phase = self._begin
        return False
