"""The moves of the general sticky algorithm, kept reversible. Kafka: ``AbstractStickyAssignor.PartitionMovements``.

If partitions of a topic have moved from b to a and one shall now move from a to b, one of those goes back instead. Which one is
the first of a Java ``HashSet``.
"""

from __future__ import annotations

from collections import defaultdict

from kgctl.assignors.partition_space import PartitionSpace
from kgctl.model.java_order import bucket, string_hash

Pair = tuple[int, int]


class PartitionMovements:
    """Moves of one topic's partitions between members. A partition that moves again keeps its first source."""

    def __init__(self, space: PartitionSpace, topic: int) -> None:
        self._offset = space.offsets[topic]
        # TopicPartition.hashCode: 31 * (31 + partition) + hash of the name
        self._hash = 31 * 31 + string_hash(space.names[topic])
        self._pairs: defaultdict[Pair, _JavaSet] = defaultdict(_JavaSet)
        self._moved: dict[int, Pair] = {}

    def actual(self, number: int, source: int, target: int) -> int:
        """The partition that really goes to ``target`` when ``number`` should go there from ``source``."""
        if number in self._moved:
            source = self._moved[number][0]
        back = self._pairs.get((target, source))
        return number if not back else back.first()

    def move(self, number: int, source: int, target: int) -> None:
        """Records a move; a partition that comes home is forgotten."""
        pair = self._moved.pop(number, None)
        if pair is not None:
            moved = self._pairs[pair]
            moved.remove(number)
            if not moved:
                del self._pairs[pair]
            source = pair[0]
            if source == target:
                return
        self._moved[number] = (source, target)
        self._pairs[source, target].add(number, 31 * (number - self._offset) + self._hash)


class _JavaSet:
    """A ``HashSet`` that is asked for its first element: lowest bucket, there the oldest. Its table grows and never shrinks."""

    def __init__(self) -> None:
        self._hashes: dict[int, int] = {}
        self._capacity = 16

    def __bool__(self) -> bool:
        return bool(self._hashes)

    def add(self, number: int, key_hash: int) -> None:
        self._hashes[number] = key_hash
        if len(self._hashes) > self._capacity * 3 // 4:
            self._capacity *= 2

    def remove(self, number: int) -> None:
        del self._hashes[number]

    def first(self) -> int:
        capacity = self._capacity
        return min(self._hashes.items(), key=lambda item: bucket(item[1], capacity))[0]
