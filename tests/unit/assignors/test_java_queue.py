"""Equal elements come out in the order of Java's heap, which is neither that in which they came in nor that of ``heapq``."""

from __future__ import annotations

from kgctl.assignors.java_queue import PriorityQueue


def test_elements_come_out_as_from_javas_queue() -> None:
    """What Java 17 prints for the same elements, compared by their digits."""
    queue = PriorityQueue(lambda text: text[1], ["a1", "b1", "c1", "d1", "e1", "f1", "g1"])

    assert [queue.poll() for _ in range(8)] == ["a1", "g1", "f1", "e1", "d1", "c1", "b1", None]


def test_an_element_that_changed_outside_has_its_new_place() -> None:
    loads = {"a": 0, "b": 1, "c": 2}
    queue = PriorityQueue(loads.__getitem__, loads)
    first = queue.poll()
    assert first == "a"
    loads[first] = 3
    queue.offer(first)

    assert [queue.poll(), queue.poll(), queue.poll(), len(queue)] == ["b", "c", "a", 0]
