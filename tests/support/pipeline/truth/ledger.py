"""The book in which every accepted commit is written down with its time."""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

Place = tuple[str, str, int]
"""Group, topic, partition."""
Commit = tuple[int, str]
"""Offset and metadata."""


def now_ms() -> int:
    """The clock that the broker on this machine has, too."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class Entry:
    """One change: it took effect at some millisecond of this stretch, both ends included. ``commit`` None: it was deleted."""

    from_ms: int
    to_ms: int
    commit: Commit | None


@dataclass
class Ledger:
    """All changes, in the order in which they were made; changes of one place do not overlap."""

    entries: dict[Place, list[Entry]] = field(default_factory=lambda: defaultdict(list))

    @contextmanager
    def changing(self, group: str, commits: Mapping[tuple[str, int], Commit | None]) -> Iterator[None]:
        """A change that the block makes; when it ends without an exception, the cluster has accepted it."""
        from_ms = now_ms()
        yield
        to_ms = now_ms()
        for (topic, partition), commit in commits.items():
            self.entries[group, topic, partition].append(Entry(from_ms, to_ms, commit))

    @property
    def groups(self) -> list[str]:
        """The groups with a commit, sorted."""
        return sorted({group for group, _, _ in self.entries})

    def possible(self, place: Place, at_ms: int) -> Sequence[Commit | None]:
        """What may have been committed at a time: one answer, or two where a change was under way in that very millisecond."""
        past: Commit | None = None
        for entry in self.entries[place]:
            if entry.to_ms < at_ms:
                past = entry.commit
            elif entry.from_ms <= at_ms:
                return (past, entry.commit)
        return (past,)

    def span(self) -> tuple[int, int]:
        """From the first change's begin to the last one's end."""
        every = [entry for entries in self.entries.values() for entry in entries]
        return min(entry.from_ms for entry in every), max(entry.to_ms for entry in every)

    def random_times(self, count: int, seed: int = 1) -> list[int]:
        """So many moments between the first change and the last, and one before and one after them all."""
        chance, (first, last) = random.Random(seed), self.span()
        return [first - 1, last + 1, *(chance.randint(first, last) for _ in range(count))]
