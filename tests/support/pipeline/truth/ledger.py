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


GRAIN_MS = 1
"""How far two clocks of this machine may be apart, each read to the millisecond."""
_UNDISTURBED_NS = 100_000
"""Two clocks that are read one after the other are compared when that took no longer: nothing else ran in between."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One change: it took effect at some millisecond of this stretch, both ends included. ``commit`` None: it was deleted."""

    from_ms: int
    to_ms: int
    commit: Commit | None


@dataclass
class Ledger:
    """All changes, in the order in which they were made; changes of one place do not overlap.

    ``slack_ms`` is how far the server's clock may be from the one that is read here: it grows where the system's clock is set
    while the book is kept, for a server's may be the system's, or one that is steady.
    """

    entries: dict[Place, list[Entry]] = field(default_factory=lambda: defaultdict(list))
    _apart_ns: list[int] = field(default_factory=list)

    @property
    def slack_ms(self) -> int:
        """In milliseconds, of both ends of every entry."""
        return GRAIN_MS + (max(self._apart_ns, default=0) - min(self._apart_ns, default=0)) // 1_000_000

    def now_ms(self) -> int:
        """The system's clock, which the broker on this machine has too."""
        before_ns, now_ns, after_ns = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        if after_ns - before_ns < _UNDISTURBED_NS:
            self._apart_ns.append(now_ns - before_ns)
        return now_ns // 1_000_000

    @contextmanager
    def changing(self, group: str, commits: Mapping[tuple[str, int], Commit | None]) -> Iterator[None]:
        """A change that the block makes; when it ends without an exception, the cluster has accepted it."""
        from_ms = self.now_ms()
        yield
        to_ms = self.now_ms()
        for (topic, partition), commit in commits.items():
            self.entries[group, topic, partition].append(Entry(from_ms, to_ms, commit))

    @property
    def groups(self) -> list[str]:
        """The groups with a commit, sorted."""
        return sorted({group for group, _, _ in self.entries})

    def possible(self, place: Place, at_ms: int) -> Sequence[Commit | None]:
        """What may have been committed at a time: one answer, or more where a change was under way then."""
        slack_ms = self.slack_ms
        found: list[Commit | None] = [None]
        for entry in self.entries[place]:
            if entry.to_ms + slack_ms < at_ms:
                found = [entry.commit]
            elif entry.from_ms - slack_ms <= at_ms:
                found.append(entry.commit)
        return found

    def span(self) -> tuple[int, int]:
        """From before the first change's begin to after the last one's end."""
        every = [entry for entries in self.entries.values() for entry in entries]
        outside_ms = self.slack_ms + 1
        return min(entry.from_ms for entry in every) - outside_ms, max(entry.to_ms for entry in every) + outside_ms

    def random_times(self, count: int, seed: int = 1) -> list[int]:
        """So many moments between the first change and the last, and one before and one after them all."""
        chance, (first, last) = random.Random(seed), self.span()
        return [first, last, *(chance.randint(first, last) for _ in range(count))]
