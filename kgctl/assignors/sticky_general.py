"""The sticky assignment of a group whose members subscribe to different topics.

Rules: members keep what they own of topics they still subscribe to (and in their rack, where racks are in use); what is left
goes, topics with few subscribers first, to the subscriber that has least; then partitions move from members with more to members
with less until nothing improves (`balance`). If that did not lower the balance score, it is undone.

Members are numbered by member id: the load order, by number of partitions and then id, is the order of ``size * members +
member``. Kafka: ``AbstractStickyAssignor.GeneralAssignmentBuilder``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush, heapreplace

from kgctl.assignors.partition_space import PartitionSpace
from kgctl.assignors.spec import AssignorError, MemberSpec
from kgctl.assignors.sticky_state import Claim, GeneralState, PartitionMovements, RackInfo, StickyOwnership


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
        """Move the member to its place by size, now that it has fewer partitions."""
        if member in self._members:
            heappush(self._heap, self._sizes[member] * self._count + member)


class GeneralAssignment:
    """The work of one assignment. The caller's positions are those of map order, ``id_rank`` is each one's place by member id."""

    def __init__(
        self,
        space: PartitionSpace,
        members: Sequence[MemberSpec],
        id_rank: Sequence[int],
        racks: RackInfo,
        ownership: StickyOwnership,
    ) -> None:
        self._space = space
        self._racks = racks
        self._ownership = ownership
        self._id_rank = id_rank
        self._position_of = sorted(range(len(id_rank)), key=id_rank.__getitem__)
        self._state = GeneralState(space, [members[position] for position in self._position_of], id_rank)
        self._revocation_required = False

    def build(self, claims: Sequence[Claim]) -> list[list[int]]:
        """Each member's partitions, by position in map order."""
        state = self._state
        kept = [self._keep(position, owned) for position, owned in enumerate(self._ownership.owned)]
        self._take(kept)
        unassigned = self._unassigned()
        is_initial = not any(state.sizes)
        self._assign(unassigned)
        state.fix_members()
        todo = {topic: numbers for topic, numbers in unassigned.items() if state.can_move(topic)}
        before = state.copy()
        balancer = Balancer(state, self._previous_owners(claims))
        if not self._revocation_required:
            balancer.run(todo)
        movable = {topic: state.numbers(topic) for topic in state.topic_order if state.can_move(topic)}
        if balancer.run(movable) and not is_initial and state.score() >= before.score():
            state.restore(before)
        by_rank = state.lists()
        return [by_rank[rank] for rank in self._id_rank]

    def _keep(self, position: int, owned: Sequence[int]) -> Sequence[int]:
        rank = self._id_rank[position]
        subscribed = self._state.subscribed[rank]
        if len(subscribed) == len(self._space.names) and self._racks.of_consumer(position) is None:
            return owned
        topic, racks = self._space.topic, self._racks
        kept = [number for number in owned if topic(number) in subscribed and not racks.mismatch(position, number)]
        self._revocation_required |= len(kept) < len(owned)
        return kept

    def _take(self, kept: Sequence[Sequence[int]]) -> None:
        """Members get what they keep. What does not exist, and what the merge misses for it, is a burden: see the state."""
        state, space = self._state, self._space
        for position, numbers in enumerate(kept):
            rank = self._id_rank[position]
            state.sizes[rank] = len(numbers)
            for number in numbers:
                if number < space.total:
                    state.owners[number] = rank
        if self._ownership.is_clean:
            return
        met = self._met_by_merge([number for numbers in kept for number in numbers if number >= space.total])
        for position, numbers in enumerate(kept):
            for number in numbers:
                if number >= space.total or number not in met:
                    state.burdens[self._id_rank[position]].append(number)
                    if number < space.total:
                        state.owners[number] = -1

    def _met_by_merge(self, phantoms: Sequence[int]) -> set[int]:
        """The partitions that sort before all that do not exist: Kafka's merge of all and kept partitions stops at the first."""
        met: set[int] = set()
        ends: dict[int, int] = {}
        for number in phantoms:
            topic, end = self._space.topic(number), self._space.phantom_end(number)
            ends[topic] = min(end, ends.get(topic, end))
        for topic in self._state.topic_order:
            if topic in ends:
                met.update(number for number in self._state.numbers(topic) if number < ends[topic])
                break
            met.update(self._state.numbers(topic))
        return met

    def _unassigned(self) -> dict[int, list[int]]:
        owners = self._state.owners
        return {
            topic: [number for number in self._state.numbers(topic) if owners[number] < 0] for topic in self._state.topic_order
        }

    def _assign(self, unassigned: dict[int, list[int]]) -> None:
        left = unassigned
        if self._racks.in_use:
            left = {topic: self._assign_in_rack(topic, numbers) for topic, numbers in unassigned.items()}
        for topic, numbers in left.items():
            if numbers:
                self._assign_topic(topic, numbers)

    def _assign_topic(self, topic: int, numbers: Sequence[int]) -> None:
        state = self._state
        size = len(state.sizes)
        heap = [state.sizes[member] * size + member for member in state.subscribers[topic]]
        heapify(heap)
        for number in numbers:
            key = heap[0]
            member = key % size
            state.owners[number] = member
            state.sizes[member] += 1
            heapreplace(heap, key + size)

    def _assign_in_rack(self, topic: int, numbers: Sequence[int]) -> list[int]:
        """The first subscriber in load order whose rack matches; one without rack always does. What fits nowhere is returned."""
        state = self._state
        left: list[int] = []
        for number in numbers:
            fitting = [m for m in state.subscribers[topic] if not self._racks.mismatch(self._position_of[m], number)]
            if fitting:
                state.give(number, min(fitting, key=lambda member: (state.sizes[member], member)))
            else:
                left.append(number)
        return left

    def _previous_owners(self, claims: Sequence[Claim]) -> dict[int, int]:
        """Who claimed a partition in an older generation than the highest; of several the one with the newest."""
        highest = self._ownership.max_generation
        previous: dict[int, tuple[int, int]] = {}
        for position, claim in enumerate(claims):
            generation = -1 if claim.generation is None else claim.generation
            if generation >= highest:
                continue
            for number in claim.ids:
                if number not in previous or generation > previous[number][0]:
                    previous[number] = (generation, self._id_rank[position])
        return {number: rank for number, (_, rank) in previous.items()}
