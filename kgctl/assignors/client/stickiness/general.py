"""The sticky assignment of a group whose members subscribe to different topics.

Rules: members keep what they own of topics they still subscribe to (and in their rack, where racks are in use); what is left
goes, topics with few subscribers first, to the subscriber that has least; then partitions move from members with more to members
with less until nothing improves (`balance`). If that did not lower the balance score, it is undone.

Members are numbered by member id: the load order, by number of partitions and then id, is the order of ``size * members +
member``. Kafka: ``AbstractStickyAssignor.GeneralAssignmentBuilder``.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heapreplace

from kgctl.assignors.client.stickiness.balance import Balancer
from kgctl.assignors.client.stickiness.claims import Claim, Ownership
from kgctl.assignors.client.stickiness.racks import RackInfo
from kgctl.assignors.client.stickiness.state import GeneralState
from kgctl.assignors.partition_space import PartitionSpace
from kgctl.assignors.spec import MemberSpec


class GeneralAssignment:
    """The work of one assignment. The caller's positions are those of map order, ``id_rank`` is each one's place by member id."""

    def __init__(
        self, space: PartitionSpace, members: Sequence[MemberSpec], id_rank: Sequence[int], racks: RackInfo, ownership: Ownership
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
