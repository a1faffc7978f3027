"""Batches by their first offsets: what is asked of Java's navigable map."""

from __future__ import annotations

from kgctl.model.share import DeliveryState
from kgctl.share.partition.cache import InFlightCache
from kgctl.share.partition.in_flight import InFlightBatch, InFlightState


def batch(first: int, last: int) -> InFlightBatch:
    return InFlightBatch(first, last, InFlightState(DeliveryState.AVAILABLE, 1))


def cache(*ranges: tuple[int, int]) -> InFlightCache:
    found = InFlightCache()
    for first, last in ranges:
        found.put(batch(first, last))
    return found


def firsts(found: InFlightCache) -> list[int]:
    return [each.first_offset for each in found]


def test_batches_are_in_order_however_they_come() -> None:
    found = cache((20, 29), (0, 4), (10, 19))

    assert (firsts(found), len(found), found.first.last_offset, found.last.last_offset) == ([0, 10, 20], 3, 4, 29)


def test_a_batch_replaces_the_one_that_begins_where_it_does() -> None:
    found = cache((0, 4), (5, 9))
    found.put(batch(0, 2))

    assert [(each.first_offset, each.last_offset) for each in found] == [(0, 2), (5, 9)]


def test_floor_is_the_last_that_begins_at_or_before() -> None:
    found = cache((5, 6), (10, 19))

    assert [None if each is None else each.first_offset for each in map(found.floor, (4, 5, 9, 10, 99))] == [None, 5, 5, 10, 10]
    assert [found.higher(offset) for offset in (4, 5, 9, 10)] == [5, 10, 10, None]


def test_both_bounds_of_a_part_belong_to_it() -> None:
    found = cache((0, 4), (5, 9), (10, 14))

    assert [[each.first_offset for each in found.between(*bounds)] for bounds in ((0, 10), (1, 9), (6, 9))] == [
        [0, 5, 10],
        [5],
        [],
    ]


def test_what_begins_before_an_offset_is_dropped() -> None:
    found = cache((0, 4), (5, 9), (10, 14))
    found.drop_before(5)
    assert firsts(found) == [5, 10]
    found.clear()
    assert (firsts(found), bool(found)) == ([], False)
