"""The rack pass of the range assignor (KIP-881)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kgctl.assignors.client.racks import partition_racks, use_racks
from kgctl.assignors.spec import MemberSpec, TopicSpec


class TopicState:
    """One topic while it is handed out. Kafka: ``RangeAssignor.TopicAssignmentState``."""

    def __init__(self, offset: int, topic: TopicSpec, subscribers: Sequence[MemberSpec]) -> None:
        self.offset = offset
        self.count = topic.partition_count
        self.consumers = {member.member_id: member.rack or None for member in subscribers}
        wanted = {rack for rack in self.consumers.values() if rack}
        self.racks = partition_racks(topic) if wanted else []
        self.needs_racks = use_racks(wanted, self.racks)
        self.unassigned = dict.fromkeys(range(self.count))
        self._taken = dict.fromkeys(self.consumers, 0)
        self._quota, self._extra = divmod(self.count, len(self.consumers))

    def matches(self, member_id: str, partition: int) -> bool:
        """Whether the member may take the partition for its rack; one without a rack takes any."""
        rack = self.consumers[member_id]
        return rack is None or (bool(self.racks) and rack in self.racks[partition])

    def allowance(self, member_id: str) -> int:
        """How many partitions the member may still take; the extra ones go to who asks first."""
        return max(0, self._quota + (self._extra > 0) - self._taken[member_id])

    def take(self, member_id: str, partitions: Sequence[int]) -> None:
        """The member has got these partitions."""
        self._taken[member_id] += len(partitions)
        if self._taken[member_id] > self._quota:
            self._extra -= 1
        for partition in partitions:
            del self.unassigned[partition]


Give = Callable[[str, TopicState, Sequence[int]], None]


def assign_with_racks(states: Sequence[TopicState], members: Sequence[MemberSpec]) -> dict[str, list[int]]:
    """Rack pass, then the plain pass; numbers of the partition space, ascending."""
    ids: dict[str, list[int]] = {member.member_id: [] for member in members}

    def give(member_id: str, state: TopicState, partitions: Sequence[int]) -> None:
        ids[member_id].extend([state.offset + partition for partition in partitions])
        state.take(member_id, partitions)

    for aligned in _aligned_topics(states):
        if len(aligned) > 1:
            _assign_aligned(aligned, give)
        elif aligned[0].needs_racks:
            _assign_runs(aligned[0], give, aligned[0].matches)
    for state in states:
        _assign_runs(state, give, lambda _member_id, _partition: True)
    return {member_id: sorted(numbers) for member_id, numbers in ids.items()}


def _aligned_topics(states: Sequence[TopicState]) -> list[list[TopicState]]:
    """Topics with the same members in the same racks and the same number of partitions (as far as racks are known at all)."""
    groups: dict[tuple[frozenset[tuple[str, str | None]], int], list[TopicState]] = {}
    for state in states:
        groups.setdefault((frozenset(state.consumers.items()), len(state.racks)), []).append(state)
    return list(groups.values())


def _assign_runs(state: TopicState, give: Give, may_take: Callable[[str, int], bool]) -> None:
    for member_id in state.consumers:
        if not state.unassigned:
            break
        allowed = state.allowance(member_id)
        found: list[int] = []
        for partition in state.unassigned:
            if len(found) >= allowed:
                break
            if may_take(member_id, partition):
                found.append(partition)
        if found:
            give(member_id, state, found)


def _assign_aligned(states: Sequence[TopicState], give: Give) -> None:
    """Partition by partition, the first member that matches in all of the topics gets that partition of every one."""
    remaining = list(states[0].consumers)
    for partition in range(len(states[0].racks)):
        taker = next((member_id for member_id in remaining if _may_take_all(states, member_id, partition)), None)
        if taker is None:
            continue
        for state in states:
            give(taker, state, [partition])
        if not any(state.allowance(taker) for state in states):
            remaining.remove(taker)
            if not remaining:
                break


def _may_take_all(states: Sequence[TopicState], member_id: str, partition: int) -> bool:
    return all(state.matches(member_id, partition) and state.allowance(member_id) for state in states)
