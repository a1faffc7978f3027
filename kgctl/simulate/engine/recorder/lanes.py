"""Who consumes each partition, over time, beside whom the coordinator has assigned it to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kgctl.simulate.engine.recorder.causes import NOBODY, Cause, cause_of, code_of
from kgctl.simulate.engine.recorder.partitions import PartitionTable

Segment = tuple[int, int, int]
"""(from, to, owner or code of a cause)"""


class Lanes:
    """One lane a partition: changes as flat pairs (time, owner or cause), and the counts that say whether all is in its place.

    Owners are the numbers of pods. ``misplaced``: partitions that exist, count, and are not consumed by exactly the pod that
    they are assigned to. A partition may have several consumers for a while (a zombie and its successor): the newest is the
    owner, and ``double_owned`` has (partition, from, to, the older pod) of each such time.
    """

    def __init__(self, partitions: PartitionTable) -> None:
        self._partitions = partitions
        self.changes: list[list[int]] = []
        self.owner: list[int] = []
        self.assigned: list[int] = []
        self.last_owner: list[int] = []
        self.misplaced = 0
        self.unowned = 0
        self.double_owned: list[tuple[int, int, int, int]] = []
        self._older: dict[int, list[tuple[int, int]]] = {}

    @property
    def had_doubles(self) -> bool:
        """Whether a partition has ever had two consumers."""
        return bool(self._older) or bool(self.double_owned)

    @property
    def has_doubles(self) -> bool:
        """Whether a partition has two consumers now."""
        return bool(self._older)

    def consumers(self, partition: int) -> int:
        """How many processes consume it now."""
        return (self.owner[partition] != NOBODY) + len(self._older.get(partition, ()))

    def older_consumers(self) -> list[tuple[int, int, int]]:
        """(partition, pod, since) of those that have a successor already."""
        return [(partition, pod, since) for partition, found in self._older.items() for pod, since in found]

    def add(self, numbers: Sequence[int], cause: Cause, now_us: int) -> None:
        """New partitions, nobody's, in the order of their numbers."""
        for number in numbers:
            assert number == len(self.changes)
            self.changes.append([now_us, code_of(cause)])
            self.owner.append(NOBODY)
            self.assigned.append(NOBODY)
            self.last_owner.append(NOBODY)
            counts = self._partitions.counted[number]
            self.misplaced += counts
            self.unowned += counts

    def delete(self, numbers: Sequence[int], now_us: int) -> None:
        """Partitions that are gone: nobody's, and no gap."""
        for number in numbers:
            counts = self._partitions.counted[number]
            self.misplaced -= counts and not self._is_placed(number)
            self.unowned -= counts and self.owner[number] == NOBODY
            self.changes[number] += (now_us, code_of(Cause.DISCOVERY))
            self.owner[number] = self.assigned[number] = NOBODY
            self._older.pop(number, None)

    def own(self, pod: int, numbers: Iterable[int], now_us: int) -> None:
        """The pod consumes these from now on."""
        changes, owner, assigned, last_owner = self.changes, self.owner, self.assigned, self.last_owner
        for number in numbers:
            before = owner[number]
            if before == pod:
                continue
            if before == NOBODY:
                self.unowned -= 1
            else:
                self._older.setdefault(number, []).append((before, now_us))
                if assigned[number] == before:
                    self.misplaced += 1
            if assigned[number] == pod:
                self.misplaced -= 1
            owner[number] = last_owner[number] = pod
            lane = changes[number]
            lane.append(now_us)
            lane.append(pod)

    def own_again(self, pod: int, numbers: Iterable[int], now_us: int) -> None:
        """The pod goes on consuming these; those that have another owner by now have two."""
        taken = [number for number in numbers if self.owner[number] not in (NOBODY, pod)]
        for number in taken:
            self._older.setdefault(number, []).append((pod, now_us))
        self.own(pod, [number for number in numbers if self.owner[number] == NOBODY], now_us)

    def disown(self, pod: int, numbers: Iterable[int], cause: Cause, now_us: int) -> None:
        """The pod does not consume these any more."""
        changes, owner, assigned = self.changes, self.owner, self.assigned
        code = code_of(cause)
        for number in numbers:
            if owner[number] != pod:
                self._end_older(number, pod, now_us)
                continue
            if assigned[number] == pod:
                self.misplaced += 1
            lane = changes[number]
            lane.append(now_us)
            if number in self._older:
                successor = self._end_newest(number, now_us)
                lane.append(successor)
                continue
            owner[number] = NOBODY
            self.unowned += 1
            lane.append(code)

    def recause(self, numbers: Iterable[int], cause: Cause, now_us: int) -> None:
        """The gaps of these, where there are any, have another cause from now on."""
        code, owner, changes = code_of(cause), self.owner, self.changes
        for number in numbers:
            if owner[number] == NOBODY and changes[number][-1] != code:
                changes[number] += (now_us, code)

    def assign(self, pod: int, numbers: Iterable[int]) -> None:
        """The coordinator gives these to the pod (`NOBODY`: to nobody)."""
        owner, assigned = self.owner, self.assigned
        for number in numbers:
            before, is_owner = assigned[number], owner[number]
            if before == pod:
                continue
            assigned[number] = pod
            if is_owner != NOBODY:
                self.misplaced += (before == is_owner) - (pod == is_owner)

    def gap_cause(self, number: int) -> Cause | None:
        """Why nobody consumes it now; None: somebody does."""
        return None if self.owner[number] != NOBODY else cause_of(self.changes[number][-1])

    def segments(self, number: int, from_us: int, to_us: int) -> list[Segment]:
        """The lane within this time and the partition's own, in order, neighbours of one value joined."""
        found: list[Segment] = []
        lane = self.changes[number]
        deleted_us = self._partitions.deleted_us[number]
        end_us = to_us if deleted_us is None else min(to_us, deleted_us)
        first, last, before = 0, 0, None
        for start, value, following in zip(lane[::2], lane[1::2], [*lane[2::2], end_us], strict=True):
            start = max(start, from_us)  # noqa: PLW2901  # in the inner loop of every metric
            stop = min(following, end_us)
            if start >= stop:
                continue
            if value != before:
                if before is not None:
                    found.append((first, last, before))
                first, before = start, value
            last = stop
        if before is not None:
            found.append((first, last, before))
        return found

    def owner_before(self, number: int, at_us: int) -> int:
        """Who consumed it last before this time; `NOBODY`: nobody ever did."""
        lane = self.changes[number]
        found = NOBODY
        for position in range(0, len(lane), 2):
            if lane[position] >= at_us:
                break
            found = lane[position + 1] if lane[position + 1] >= 0 else found
        return found

    def _is_placed(self, number: int) -> bool:
        return self.owner[number] != NOBODY and self.owner[number] == self.assigned[number]

    def _end_older(self, number: int, pod: int, now_us: int) -> None:
        older = self._older.get(number, [])
        for entry in [entry for entry in older if entry[0] == pod]:
            older.remove(entry)
            self.double_owned.append((number, entry[1], now_us, pod))
        if not older:
            self._older.pop(number, None)

    def _end_newest(self, number: int, now_us: int) -> int:
        """The owner is gone, and one that it followed still consumes: it is the owner again."""
        older = self._older[number]
        pod, since_us = older.pop()
        if not older:
            del self._older[number]
        self.double_owned.append((number, since_us, now_us, pod))
        self.owner[number] = pod
        if self.assigned[number] == pod:
            self.misplaced -= 1
        return pod
