"""``java.util.PriorityQueue``: which of equal elements comes out first follows from how its heap is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class PriorityQueue(Generic[T]):
    """The least comes out first. ``key`` is asked at each comparison, as Java's comparator is: what is outside may change."""

    def __init__(self, key: Callable[[T], Any], elements: Iterable[T] = ()) -> None:
        self._key = key
        self._heap: list[T] = []
        for element in elements:
            self.offer(element)

    def __len__(self) -> int:
        return len(self._heap)

    def offer(self, element: T) -> None:
        """Put an element in."""
        heap, key = self._heap, self._key
        place, own = len(heap), key(element)
        heap.append(element)
        while place:
            parent = (place - 1) >> 1
            if own >= key(heap[parent]):
                break
            heap[place] = heap[parent]
            place = parent
        heap[place] = element

    def poll(self) -> T | None:
        """Take the first out; None when there is none."""
        heap = self._heap
        if not heap:
            return None
        first, last = heap[0], heap.pop()
        if heap:
            self._sift_down(last)
        return first

    def _sift_down(self, element: T) -> None:
        heap, key = self._heap, self._key
        place, own, size = 0, key(element), len(heap)
        while (child := 2 * place + 1) < size:
            if child + 1 < size and key(heap[child]) > key(heap[child + 1]):
                child += 1
            if own <= key(heap[child]):
                break
            heap[place] = heap[child]
            place = child
        heap[place] = element
