"""State batches of before and new ones as one list in which no offset occurs twice. Kafka: PersisterStateBatchCombiner."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from kgctl.model.share import NO_START_OFFSET, StateBatch


class _Span(NamedTuple):
    """A `StateBatch` in its order: by offsets, then by who wins where two overlap, the later delivery, then the later state."""

    first: int
    last: int
    deliveries: int
    state: int

    @property
    def rank(self) -> tuple[int, int]:
        return self.deliveries, self.state


def combined(batches: Iterable[StateBatch], start_offset: int = NO_START_OFFSET) -> tuple[StateBatch, ...]:
    """These batches, sorted and without overlaps, but for what lies before ``start_offset``.

    Where two overlap the higher delivery count wins, and then the higher state. Neighbours that are alike become one as far as
    Kafka sees them: what was passed is not looked at again when what follows it is cut.
    """
    heap = list(_from(start_offset, batches))
    heapify(heap)
    found: list[_Span] = []
    while heap:
        ahead = heappop(heap)
        if heap and _touches(ahead, heap[0]):
            for part in _resolved(ahead, heappop(heap)):
                heappush(heap, part)
        else:
            found.append(ahead)
    return tuple(StateBatch(first, last, state, deliveries) for first, last, deliveries, state in found)


def _from(start_offset: int, batches: Iterable[StateBatch]) -> Iterator[_Span]:
    """Yield what of these does not lie before the start."""
    for each in batches:
        span = _Span(each.first_offset, each.last_offset, each.delivery_count, each.delivery_state)
        if start_offset == NO_START_OFFSET or span.first >= start_offset:
            yield span
        elif span.last >= start_offset:
            yield span._replace(first=start_offset)


def _touches(ahead: _Span, behind: _Span) -> bool:
    """Whether they overlap, or are alike and one follows the other."""
    return behind.first <= ahead.last or (behind.first == ahead.last + 1 and behind.rank == ahead.rank)


def _resolved(ahead: _Span, behind: _Span) -> Iterable[_Span]:
    """What stands for two that touch, the second of which does not begin before the first."""
    if ahead.rank == behind.rank:
        return (ahead._replace(last=max(ahead.last, behind.last)),)
    if behind.rank < ahead.rank:
        return (ahead, *([behind._replace(first=ahead.last + 1)] if behind.last > ahead.last else []))
    before = [ahead._replace(last=behind.first - 1)] if behind.first > ahead.first else []
    after = [ahead._replace(first=behind.last + 1)] if behind.last < ahead.last else []
    return (*before, behind, *after)
