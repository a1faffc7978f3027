"""Where a record stands in the log."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Place:
    """``is_gapless``: nothing is missing between the group's record before and this one, so that comparing them tells a cause."""

    time_ms: int
    log_offset: int
    is_gapless: bool = True


class Coverage:
    """The runs of log offsets without a hole (rows of ``coverage``)."""

    def __init__(self, coverage: pa.Table) -> None:
        self._first: list[int] = coverage.column("first_offset").to_pylist()
        self._last: list[int] = coverage.column("last_offset").to_pylist()

    def holds(self, first_offset: int, last_offset: int) -> bool:
        """Whether all that was between these two was collected."""
        run = bisect_right(self._first, first_offset) - 1
        return run >= 0 and self._last[run] >= last_offset
