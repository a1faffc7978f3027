"""The moves by which the general sticky algorithm balances a group. Kafka: ``GeneralAssignmentBuilder#performReassignments``.

Again and again all partitions are looked at. One whose owner has at least two more than a subscriber goes to the first subscriber
in load order; one that had an owner in an older generation goes back to that one, if its present owner has at least two more. A
pass ends when the group is balanced, and as balanced means that no partition could move, that only saves time: it has to be asked
only where a partition could go back to a member that no longer subscribes, and where members hold what does not exist. Kafka's
rules for racks add nothing here: what they move would move without them, too, and to the same member.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush, heapreplace

from kgctl.assignors.client.stickiness.moves import PartitionMovements
from kgctl.assignors.client.stickiness.state import GeneralState
from kgctl.assignors.spec import AssignorError


class Balancer:
    """Runs the moves over a state. ``previous``: the owner of a partition in an older generation."""

    def __init__(self, state: GeneralState, previous: Mapping[int, int]) -> None:
        self._state = state
        self._previous = previous
        # Whether a member can seem to hold all it could, by its size, and lack something: then balance has to be asked.
        self._ask = any(state.burdens) or state.has_doubled_names
        self._movements: dict[int, PartitionMovements] = {}
        self._moved = True
        self._balanced = False

    def run(self, todo: Mapping[int, Sequence[int]]) -> bool:
        """Moves among ``todo`` (topic -> partitions, in order) until a whole pass changes nothing; whether anything moved."""
        performed = False
        while self._pass(todo):
            performed = True
        return performed

    def _pass(self, todo: Mapping[int, Sequence[int]]) -> bool:
        modified = False
        for topic, numbers in todo.items():
            if self._spread() <= 1:
                break
            if not self._previous and self._is_level(topic):
                continue
            if self._balance_topic(topic, numbers):
                modified = True
            if self._stop():
                break
        return modified

    def _spread(self) -> int:
        sizes = list(map(self._state.sizes.__getitem__, self._state.active))
        return max(sizes) - min(sizes) if sizes else 0

    def _is_level(self, topic: int) -> bool:
        sizes = list(map(self._state.sizes.__getitem__, self._state.subscribers[topic]))
        return max(sizes) - min(sizes) <= 1

    def _stop(self) -> bool:
        """Whether Kafka would end the pass for balance where this would go on."""
        return self._ask and self._is_balanced()

    def _is_balanced(self) -> bool:
        if self._moved:
            self._balanced = self._state.is_balanced()
            self._moved = False
        return self._balanced

    def _balance_topic(self, topic: int, numbers: Sequence[int]) -> bool:
        state, previous = self._state, self._previous
        sizes, owners = state.sizes, state.owners
        queue = LoadQueue(sizes, [member for member in state.subscribers[topic] if member not in state.fixed])
        least = sizes[queue.first()]
        modified = False
        for number in numbers:
            size = sizes[owners[number]]
            if previous and number in previous and self._goes_back(previous[number], size):
                target = previous[number]
                self._ask = self._ask or topic not in state.subscribed[target]
                if self._stop():
                    return modified
            elif size > least + 1:
                if self._stop():
                    return modified
                target = queue.first()
            else:
                continue
            self._move(topic, number, target, queue)
            least = sizes[queue.first()]
            modified = True
        return modified

    def _goes_back(self, former: int, size: int) -> bool:
        """Whether a partition may go back from an owner of this size.

        Raises:
            AssignorError: the former owner is out of play and the group unbalanced; Kafka does not look out for that.
        """
        if former in self._state.fixed and not self._is_balanced():
            raise AssignorError("NullPointerException: a former owner of a partition takes no part in balancing")
        return size > self._state.sizes[former] + 1

    def _move(self, topic: int, number: int, target: int, queue: LoadQueue) -> None:
        state = self._state
        movements = self._movements.get(topic)
        if movements is None:
            movements = self._movements[topic] = PartitionMovements(state.space, topic)
        number = movements.actual(number, state.owners[number], target)
        source = state.owners[number]
        movements.move(number, source, target)
        # Kafka takes the partition out of the list of its owner and puts it into the target's, also if they are the same.
        state.sizes[source] -= 1
        state.sizes[target] += 1
        state.owners[number] = target
        queue.update(source)
        self._moved = True


class LoadQueue:
    """The members of one topic by size and number, lowest first. Sizes change under it; who got fewer has to be announced."""

    def __init__(self, sizes: Sequence[int], members: Sequence[int]) -> None:
        self._sizes = sizes
        self._count = len(sizes)
        self._members = frozenset(members)
        self._heap = [sizes[member] * self._count + member for member in members]
        heapify(self._heap)

    def first(self) -> int:
        """The member with the fewest partitions, of several the first by id."""
        heap, sizes, count = self._heap, self._sizes, self._count
        while True:
            key = heap[0]
            size, member = divmod(key, count)
            present = sizes[member]
            if present == size:
                return member
            if present > size:
                heapreplace(heap, present * count + member)
            else:
                heappop(heap)

    def update(self, member: int) -> None:
        """The member has fewer partitions than before."""
        if member in self._members:
            heappush(self._heap, self._sizes[member] * self._count + member)
