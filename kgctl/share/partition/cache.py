"""The batches in flight by their first offsets, in order. Kafka: SharePartition's cachedState, a skip list; here two lists."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from kgctl.share.partition.in_flight import InFlightBatch


class InFlightCache:
    """Batches under their first offsets. Those that come go to the end, mostly, and those that go are at the beginning."""

    def __init__(self) -> None:
        self._keys: list[int] = []
        self._batches: list[InFlightBatch] = []

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[InFlightBatch]:
        return iter(self._batches)

    @property
    def first(self) -> InFlightBatch:
        """The first one; there must be one."""
        return self._batches[0]

    @property
    def last(self) -> InFlightBatch:
        """The last one; there must be one."""
        return self._batches[-1]

    def put(self, batch: InFlightBatch) -> None:
        """Put it in, in place of the one with the same first offset."""
        place = bisect_left(self._keys, batch.first_offset)
        if place < len(self._keys) and self._keys[place] == batch.first_offset:
            self._batches[place] = batch
        else:
            self._keys.insert(place, batch.first_offset)
            self._batches.insert(place, batch)

    def floor(self, offset: int) -> InFlightBatch | None:
        """The last one that begins at ``offset`` or before it; it may end before it."""
        place = bisect_right(self._keys, offset)
        return self._batches[place - 1] if place else None

    def higher(self, offset: int) -> int | None:
        """The first offset of the first one that begins after ``offset``."""
        place = bisect_right(self._keys, offset)
        return self._keys[place] if place < len(self._keys) else None

    def between(self, first: int, last: int) -> list[InFlightBatch]:
        """Those that begin in these bounds, both inclusive."""
        return self._batches[bisect_left(self._keys, first) : bisect_right(self._keys, last)]

    def drop_before(self, offset: int) -> None:
        """Remove those that begin before ``offset``."""
        place = bisect_left(self._keys, offset)
        del self._keys[:place]
        del self._batches[:place]

    def clear(self) -> None:
        """Remove all."""
        self._keys.clear()
        self._batches.clear()
