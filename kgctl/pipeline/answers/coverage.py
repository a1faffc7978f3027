"""Whether what was collected of a log is enough to be certain of an answer."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Run:
    """A stretch of log offsets that was collected without a hole, both ends included, and the times of its records."""

    first_offset: int
    last_offset: int
    first_ms: int
    last_ms: int


def is_whole_between(runs: Sequence[Run], log_offset: int, at_ms: int) -> bool:
    """Whether every record after ``log_offset``, which was collected, and up to ``at_ms`` was collected too."""
    place = bisect_right(runs, log_offset, key=lambda run: run.first_offset) - 1
    return place >= 0 and (place == len(runs) - 1 or runs[place].last_ms > at_ms)


def is_whole_until(runs: Sequence[Run], at_ms: int) -> bool:
    """Whether every record from the log's very beginning up to ``at_ms`` was collected."""
    return bool(runs) and runs[0].first_offset == 0 and is_whole_between(runs, 0, at_ms)
