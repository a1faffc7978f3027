"""Sequences of requests to a share coordinator, and lists of batches to combine; number N of a seed is always the same."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests.conformance.notation import START_MS

Step = dict[str, Any]
Sequence = dict[str, Any]
Batch = tuple[int, int, int, int]
"""First and last offset, delivery state and count."""

GROUPS = ("g", "gruppe-\u00e4")
TOPICS = ("t000A4s3VTwiI5CTbEp6PO", "u000B4s3VTwiI5YHbPp6YQ", "v000C4s3VTwiI5YHbPp6YA")
COLD_MS = 1_000
LONGEST = 40
_STATES = (0, 0, 2, 4)


def sequence(source: random.Random) -> Sequence:
    """A sequence of some steps."""
    config = {
        "share.coordinator.snapshot.update.records.per.snapshot": source.choice((0, 1, 2, 3, 500)),
        "share.coordinator.cold.partition.snapshot.interval.ms": COLD_MS,
    }
    return {"config": config, "steps": _Writer(source).steps(source.randint(3, LONGEST))}


def batch_lists(source: random.Random) -> dict[str, Any]:
    """What is to be combined."""
    before, after = (_batches(source, source.randint(0, 12)) for _ in range(2))
    return {"before": before, "after": after, "start": source.choice((-1, -1, source.randint(0, 50)))}


def _batches(source: random.Random, count: int) -> list[Batch]:
    return [_batch(source) for _ in range(count)]


def _batch(source: random.Random) -> Batch:
    first = source.randint(0, 45)
    return first, first + source.choice((0, 0, 1, source.randint(2, 20))), source.choice(_STATES), source.randint(1, 3)


class _Writer:
    """Writes the steps; knows the epochs that it has used, so that most requests are of the latest."""

    def __init__(self, source: random.Random) -> None:
        self.source = source
        self.now_ms = START_MS
        self.state_epoch = self.leader_epoch = 0
        self.written = 0
        self.operations: list[tuple[int, Callable[[], Step]]] = [
            (3, self._initialize),
            (14, self._write),
            (5, self._read),
            (3, self._summary),
            (1, self._delete),
            (2, self._cold),
            (1, self._forget),
            (1, self._topics),
            (1, self._load),
            (1, self._place),
        ]

    def steps(self, count: int) -> list[Step]:
        weights, operations = zip(*self.operations, strict=True)
        first = [{"op": "topics", "topics": dict.fromkeys(TOPICS, 3)}, *(self._initialize() for _ in range(4))]
        steps = [*first, *(operation() for operation in self.source.choices(operations, weights, k=count))]
        return [{**step, "at": self._later()} for step in steps]

    def _later(self) -> int:
        self.now_ms += self.source.choice((0, 0, 1, 10, COLD_MS - 1, COLD_MS))
        return self.now_ms

    def _key(self) -> dict[str, Any]:
        """Mostly the same one, which is initialized at first."""
        if self.source.random() < 0.7:
            return {"key": (GROUPS[0], TOPICS[0], 0)}
        return {"key": (self.source.choice(GROUPS), self.source.choice(TOPICS), self.source.choice((0, 0, 1, 2, 3, -1)))}

    def _start(self) -> int:
        return self.source.choice((-1, self.source.randint(0, 50)))

    def _epoch(self, latest: int) -> int:
        return self.source.choice((latest, latest, latest, latest + 1, max(latest - 1, 0), -1))

    def _initialize(self) -> Step:
        epoch = self._epoch(self.state_epoch)
        self.state_epoch = max(epoch, self.state_epoch)
        return {"op": "initialize", **self._key(), "state_epoch": epoch, "start": self._start()}

    def _write(self) -> Step:
        epochs = {"state_epoch": self._epoch(self.state_epoch), "leader_epoch": self._epoch(self.leader_epoch)}
        batches = _batches(self.source, self.source.randint(0, 4))
        complete = self.source.randint(-1, 9)
        return {"op": "write", **self._key(), **epochs, "start": self._start(), "complete": complete, "batches": batches}

    def _read(self) -> Step:
        epoch = self._epoch(self.leader_epoch)
        self.leader_epoch = max(epoch, self.leader_epoch)
        return {"op": "read", **self._key(), "leader_epoch": epoch}

    def _summary(self) -> Step:
        return {"op": "summary", **self._key()}

    def _delete(self) -> Step:
        return {"op": "delete", **self._key()}

    def _cold(self) -> Step:
        return {"op": "cold"}

    def _forget(self) -> Step:
        return {"op": "forget", "topics": self.source.sample(TOPICS, self.source.randint(0, 2))}

    def _topics(self) -> Step:
        return {"op": "topics", "topics": {topic: self.source.randint(1, 4) for topic in TOPICS if self.source.random() < 0.9}}

    def _load(self) -> Step:
        return {"op": "load", "from": self.source.choice((0, 0, self.source.randint(0, 10)))}

    def _place(self) -> Step:
        return {"op": "place", **self._key(), "of": self.source.choice((1, 7, 50))}
