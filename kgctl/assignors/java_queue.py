"""``java.util.PriorityQueue``: which of equal elements comes out first follows from how its heap is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class PriorityQueue(Generic[T]):
    """The least comes out first. ``key`` is asked at each comparison, as Java's comparator is: what is outside may change."""

    def __init__(self, key: Callable[[T], Any], elements: Iterable[T] = ()) -> None:
        self._key = key
        self._heap: list[T] = []
        for element in elements:
            self.offer(element)

    @classmethod
    def heapified(cls, key: Callable[[T], Any], elements: Iterable[T]) -> PriorityQueue[T]:
        """Return the queue that Java makes of a collection at once: another heap than that of elements put in one by one."""
        queue = cls(key)
        queue._heap = list(elements)
        for place in range(len(queue._heap) // 2 - 1, -1, -1):
            queue._sift_down(queue._heap[place], place)
        return queue

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[T]:
        """In the order of the heap, as in Java."""
        return iter(self._heap)

    def offer(self, element: T) -> None:
        """Put an element in."""
        self._heap.append(element)
        self._sift_up(len(self._heap) - 1, element)

    def remove(self, element: T) -> None:
        """Take this element out, wherever it stands."""
        place, last = self._heap.index(element), self._heap.pop()
        if place < len(self._heap):
            self._sift_down(last, place)
            if self._heap[place] is last:
                self._sift_up(place, last)

    def _sift_up(self, place: int, element: T) -> None:
        heap, key = self._heap, self._key
        own = key(element)
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

    def _sift_down(self, element: T, place: int = 0) -> None:
        heap, key = self._heap, self._key
        own, size = key(element), len(heap)
        while (child := 2 * place + 1) < size:
            if child + 1 < size and key(heap[child]) > key(heap[child + 1]):
                child += 1
            if own <= key(heap[child]):
                break
            heap[place] = heap[child]
            place = child
        heap[place] = element
