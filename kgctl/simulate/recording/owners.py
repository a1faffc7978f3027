"""Who consumes each partition over time, beside whom the coordinator has assigned it to, and the gaps between."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from kgctl.model.values import frozen_in_order
from kgctl.simulate.scenario.vocabulary import GapCause

if TYPE_CHECKING:
    from kgctl.model.groups import TopicPartition

NOBODY = -1


_CAUSES = tuple(GapCause)
_NOTHING: tuple[int, ...] = ()


def code_of(cause: GapCause) -> int:
    """A cause as it stands in a lane, where owners are numbers of 0 and more."""
    return -1 - cause


def cause_of(code: int) -> GapCause:
    """The cause that a negative number in a lane stands for."""
    return _CAUSES[-1 - code]


class PartitionTable:
    """Partition <-> number; when each was created and deleted. ``counted``: somebody subscribes to its topic."""

    def __init__(self) -> None:
        self.names: list[TopicPartition] = []
        self.labels: list[str] = []
        """The names as texts: "topic-0"."""
        self.numbers: dict[TopicPartition, int] = {}
        self.created_us: list[int] = []
        self.deleted_us: list[int | None] = []
        self.counted: list[bool] = []
        self.by_topic: dict[str, list[int]] = {}
        self._newest: dict[str, list[int]] = {}
        """Topic, there or not -> partition -> the number that it had last."""
        self.present: dict[str, list[int]] = {}
        """Topic that there is -> the numbers of its partitions, in their order."""

    def __len__(self) -> int:
        return len(self.names)

    def add(self, topic: str, count: int, now_us: int, *, counted: bool) -> list[int]:
        """The topic has these many partitions more. Their numbers."""
        from kgctl.model.groups import TopicPartition

        present, newest = self.present.setdefault(topic, []), self._newest.setdefault(topic, [])
        added = []
        for partition in range(len(present), len(present) + count):
            name = TopicPartition(topic, partition)
            number = len(self.names)
            self.names.append(name)
            self.labels.append(str(name))
            self.numbers[name] = number
            self.created_us.append(now_us)
            self.deleted_us.append(None)
            self.counted.append(counted)
            self.by_topic.setdefault(topic, []).append(number)
            added.append(number)
        newest[len(present) : len(present) + count] = added
        present += added
        return added

    def delete(self, topic: str, now_us: int) -> list[int]:
        """The topic is gone. The numbers that its partitions had."""
        gone = [number for number in self.by_topic.get(topic, ()) if self.deleted_us[number] is None]
        for number in gone:
            self.deleted_us[number] = now_us
        self.present.pop(topic, None)
        return gone

    def numbers_of(self, partitions: Iterable[TopicPartition]) -> list[int]:
        """The numbers of these; names that do not exist are left out."""
        newest, nothing = self._newest, _NOTHING
        try:
            return [newest[topic][partition] for topic, partition in partitions]
        except LookupError:
            known = [(newest.get(topic, nothing), partition) for topic, partition in partitions]
            return [numbers[partition] for numbers, partition in known if partition < len(numbers)]

    def existing(self) -> list[int]:
        """Return the partitions that exist now and are measured."""
        return [number for number in range(len(self.names)) if self.counted[number] and self.deleted_us[number] is None]


Segment = tuple[int, int, int]
"""(from, to, owner or code of a cause)"""


@frozen_in_order
class Gap:
    """A time in which nobody consumed a partition: who did before and after it (`NOBODY`: nobody yet), and why."""

    partition: int
    from_us: int
    to_us: int
    before: int
    after: int
    causes: tuple[tuple[GapCause, int], ...]
    """(cause, microseconds), in order."""

    @property
    def length_us(self) -> int:
        """Return the length of the gap."""
        return self.to_us - self.from_us


class PartitionOwners:
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
        self.unreadable: dict[int, list[tuple[int, int]]] = {}
        """Partition -> (from, to) of the times in which the broker that leads it was away."""
        self.dark: dict[int, int] = {}
        """Partitions whose broker is away now -> since when."""

    @property
    def had_doubles(self) -> bool:
        """Whether a partition has ever had two consumers."""
        return bool(self._older) or bool(self.double_owned)

    @property
    def has_doubles(self) -> bool:
        """Return whether a partition has two consumers now."""
        return bool(self._older)

    @property
    def unread(self) -> int:
        """How many partitions that count nobody reads now: they have no consumer, or no broker."""
        if not self.dark:
            return self.unowned
        counted = self._partitions.counted
        return self.unowned + sum(counted[number] and self.owner[number] != NOBODY for number in self.dark)

    def consumers(self, partition: int) -> int:
        """Return how many processes consume the partition now."""
        return (self.owner[partition] != NOBODY) + len(self._older.get(partition, ()))

    def older_consumers(self) -> list[tuple[int, int, int]]:
        """(partition, pod, since) of those that have a successor already."""
        return [(partition, pod, since) for partition, found in self._older.items() for pod, since in found]

    def add(self, numbers: Sequence[int], cause: GapCause, now_us: int) -> None:
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
            self.changes[number] += (now_us, code_of(GapCause.DISCOVERY))
            self.owner[number] = self.assigned[number] = NOBODY
            self._older.pop(number, None)

    def own(self, pod: int, numbers: Iterable[int], now_us: int) -> None:
        """Record that the pod consumes these partitions from now on."""
        changes, owner, assigned, last_owner = self.changes, self.owner, self.assigned, self.last_owner
        change = (now_us, pod)
        owned = placed = 0
        for number in numbers:
            before = owner[number]
            if before == pod:
                continue
            if before == NOBODY:
                owned += 1
            else:
                self._older.setdefault(number, []).append((before, now_us))
                placed -= assigned[number] == before
            if assigned[number] == pod:
                placed += 1
            owner[number] = last_owner[number] = pod
            changes[number].extend(change)
        self.unowned -= owned
        self.misplaced -= placed

    def own_again(self, pod: int, numbers: Iterable[int], now_us: int) -> None:
        """The pod goes on consuming these; those that have another owner by now have two."""
        taken = [number for number in numbers if self.owner[number] not in (NOBODY, pod)]
        for number in taken:
            self._older.setdefault(number, []).append((pod, now_us))
        self.own(pod, [number for number in numbers if self.owner[number] == NOBODY], now_us)

    def release(self, pod: int, numbers: Iterable[int], cause: GapCause, now_us: int) -> None:
        """Record that the pod has ceased to consume these partitions."""
        changes, owner, assigned, older = self.changes, self.owner, self.assigned, self._older
        change = (now_us, code_of(cause))
        released = displaced = 0
        for number in numbers:
            if owner[number] != pod:
                self._end_older(number, pod, now_us)
                continue
            if assigned[number] == pod:
                displaced += 1
            if number in older:
                successor = self._end_newest(number, now_us)
                changes[number].extend((now_us, successor))
                continue
            owner[number] = NOBODY
            released += 1
            changes[number].extend(change)
        self.unowned += released
        self.misplaced += displaced

    def set_cause(self, numbers: Iterable[int], cause: GapCause, now_us: int) -> None:
        """The gaps of these, where there are any, have another cause from now on."""
        code, owner, changes = code_of(cause), self.owner, self.changes
        change = (now_us, code)
        for number in numbers:
            if owner[number] == NOBODY and changes[number][-1] != code:
                changes[number].extend(change)

    def darken(self, numbers: Iterable[int], now_us: int) -> None:
        """Nobody can read these from now on, whoever consumes them."""
        self.dark.update(dict.fromkeys(numbers, now_us))

    def lighten(self, numbers: Iterable[int], now_us: int) -> None:
        """Record that these partitions can be read again."""
        for number in numbers:
            self.unreadable.setdefault(number, []).append((self.dark.pop(number), now_us))

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

    def gap_cause(self, number: int) -> GapCause | None:
        """Why nobody consumes it now; None: somebody does."""
        return None if self.owner[number] != NOBODY else cause_of(self.changes[number][-1])

    def segments(self, number: int, from_us: int, to_us: int) -> list[Segment]:
        """Return the lane within this time and the partition's own, in order, neighbours of one value joined.

        Where the partition's broker was away it has that cause in place of an owner.
        """
        found = self._segments(number, from_us, to_us)
        away = list(self.unreadable.get(number, ()))
        if number in self.dark:
            away.append((self.dark[number], to_us))
        return list(_without(found, away)) if away else found

    def _segments(self, number: int, from_us: int, to_us: int) -> list[Segment]:
        lane = self.changes[number]
        deleted_us = self._partitions.deleted_us[number]
        end_us = to_us if deleted_us is None else min(to_us, deleted_us)
        times, values = lane[::2], lane[1::2]
        position = max(bisect_right(times, from_us) - 1, 0)
        start_us, before = max(times[position], from_us), values[position]
        if start_us >= end_us:
            return []
        found: list[Segment] = []
        # In the inner loop of every metric: no calls.
        for at_us, value in zip(times[position + 1 :], values[position + 1 :], strict=True):
            if at_us >= end_us:
                break
            if value != before:
                if start_us < at_us:
                    found.append((start_us, at_us, before))
                    start_us = at_us
                elif found and found[-1][2] == value:
                    start_us = found.pop()[0]
                before = value
        found.append((start_us, end_us, before))
        return found

    def unread_us(self, number: int, from_us: int, to_us: int) -> list[int]:
        """Return how long nobody could read the partition within this time, by cause: the sums of `gaps`, without any gap."""
        found = [0] * len(_CAUSES)
        if number in self.unreadable or number in self.dark:
            for first_us, last_us, value in self.segments(number, from_us, to_us):
                if value < 0:
                    found[-1 - value] += last_us - first_us
            return found
        times, values = self.changes[number][::2], self.changes[number][1::2]
        deleted_us = self._partitions.deleted_us[number]
        end_us = to_us if deleted_us is None else min(to_us, deleted_us)
        position = max(bisect_right(times, from_us) - 1, 0)
        times[position] = max(times[position], from_us)
        del times[bisect_left(times, end_us) :]
        times.append(end_us)
        for first_us, last_us, value in zip(times[position:], times[position + 1 :], values[position:], strict=False):
            if value < 0:
                found[-1 - value] += last_us - first_us
        return found

    def gaps(self, number: int, from_us: int, to_us: int) -> Iterator[Gap]:
        """Give the partition's gaps within this time, in order."""
        causes: list[tuple[GapCause, int]] = []
        before, start = self.owner_before(number, from_us), 0
        for first_us, last_us, value in self.segments(number, from_us, to_us):
            if value < 0:
                start = start if causes else first_us
                causes.append((cause_of(value), last_us - first_us))
                continue
            if causes:
                yield Gap(number, start, first_us, before, value, tuple(causes))
                causes = []
            before = value
        if causes:
            yield Gap(number, start, start + sum(length for _, length in causes), before, NOBODY, tuple(causes))

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


def _without(segments: Iterable[Segment], away: Sequence[tuple[int, int]]) -> Iterator[Segment]:
    """Give the segments, those of an owner cut where the partition's broker was away."""
    code = code_of(GapCause.BROKER)
    for first_us, last_us, value in segments:
        at_us = first_us
        for from_us, to_us in away if value >= 0 else ():
            start_us, stop_us = max(from_us, at_us), min(to_us, last_us)
            if start_us < stop_us:
                if at_us < start_us:
                    yield at_us, start_us, value
                yield start_us, stop_us, code
                at_us = stop_us
        if at_us < last_us:
            yield at_us, last_us, value
