"""A run, or a run so far, as the metrics look at it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kgctl.simulate.recording.history import Counted, Identity, Intervals, MemberKey
from kgctl.simulate.recording.owners import NOBODY, Cause, Segment, cause_of
from kgctl.simulate.scenario.filters import Filters

if TYPE_CHECKING:
    from kgctl.simulate.engine.simulation import World

SECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class Gap:
    """A time in which nobody consumed a partition: who did before and after it (`NOBODY`: nobody yet), and why."""

    partition: int
    from_us: int
    to_us: int
    before: int
    after: int
    causes: tuple[tuple[Cause, int], ...]
    """(cause, microseconds), in order."""

    @property
    def length_us(self) -> int:
        """How long."""
        return self.to_us - self.from_us


class Measured:
    """The window is from the end of the warm-up to now (of a run that is over: its end). Times count from the run's begin."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.lanes = world.lanes
        self.history = world.history
        self.ledger = world.ledger
        self.start_us = world.scenario.warmup_us
        self._gaps: tuple[int, dict[tuple[int, int], list[Gap]]] = (-1, {})

    @property
    def end_us(self) -> int:
        """The end of the window."""
        return max(self.world.loop.now_us, self.start_us)

    def window(self, filters: Filters) -> tuple[int, int]:
        """The window within ``after`` and ``before``."""
        first = self.start_us if filters.after_us is None else self.start_us + filters.after_us
        last = self.end_us if filters.before_us is None else min(self.start_us + filters.before_us, self.end_us)
        return first, max(last, first)

    def at(self, filters: Filters) -> int:
        """The moment that ``at`` names; the end without it."""
        return self.end_us if filters.at_us is None else min(self.start_us + filters.at_us, self.end_us)

    # --- partitions

    def partitions(self, filters: Filters) -> list[int]:
        """Those that count, of the topics that are named."""
        table = self.world.partitions
        if filters.topics:
            return [number for topic in filters.topics for number in table.by_topic.get(topic, ()) if table.counted[number]]
        return [number for number in range(len(table)) if table.counted[number]]

    def existence(self, number: int, window: tuple[int, int]) -> tuple[int, int]:
        """From when to when it existed, within a window."""
        table = self.world.partitions
        deleted_us = table.deleted_us[number]
        last = window[1] if deleted_us is None else min(deleted_us, window[1])
        return max(table.created_us[number], window[0]), last

    def segments(self, number: int, window: tuple[int, int]) -> list[Segment]:
        """Its lane within a window."""
        return self.lanes.segments(number, *window)

    def owner_at(self, number: int, at_us: int) -> int:
        """Who consumed it then; `NOBODY`."""
        lane = self.lanes.changes[number]
        times = lane[::2]
        position = bisect_right(times, at_us) - 1
        return max(lane[2 * position + 1], NOBODY) if position >= 0 else NOBODY

    def exists_at(self, number: int, at_us: int) -> bool:
        """Whether it existed then."""
        table = self.world.partitions
        deleted_us = table.deleted_us[number]
        return table.created_us[number] <= at_us and (deleted_us is None or at_us < deleted_us)

    def gaps(self, filters: Filters) -> list[Gap]:
        """All gaps of the partitions and pods that are meant (the pod that had it before, else that gets it after)."""
        window = self.window(filters)
        if self._gaps[0] != self.world.loop.executed:
            self._gaps = (self.world.loop.executed, {})
        if window not in self._gaps[1]:
            everything = (number for number in range(len(self.world.partitions)) if self.world.partitions.counted[number])
            self._gaps[1][window] = [gap for number in everything for gap in self._gaps_of(number, window)]
        found = self._gaps[1][window]
        if filters.topics:
            meant = frozenset(self.partitions(filters))
            found = [gap for gap in found if gap.partition in meant]
        if filters.selector is not None:
            found = [gap for gap in found if self.is_meant(gap.before if gap.before != NOBODY else gap.after, filters)]
        return found

    def _gaps_of(self, number: int, window: tuple[int, int]) -> Iterable[Gap]:
        causes: list[tuple[Cause, int]] = []
        before, start = self.lanes.owner_before(number, window[0]), 0
        for from_us, to_us, value in self.segments(number, window):
            if value < 0:
                start = start if causes else from_us
                causes.append((cause_of(value), to_us - from_us))
                continue
            if causes:
                yield Gap(number, start, from_us, before, value, tuple(causes))
                causes = []
            before = value
        if causes:
            yield Gap(number, start, start + sum(length for _, length in causes), before, NOBODY, tuple(causes))

    # --- pods

    def is_meant(self, pod: int, filters: Filters) -> bool:
        """Whether the selector, if there is one, means this pod."""
        selector = filters.selector
        if selector is None:
            return True
        if pod < 0:
            return selector.negated
        history = self.history.pods[pod]
        return selector.matches(history.member_set, history.index)

    def pods(self, filters: Filters) -> list[int]:
        """The pods that are meant."""
        return [number for number in range(len(self.history.pods)) if self.is_meant(number, filters)]

    def members_at(self, at_us: int, filters: Filters) -> list[int]:
        """The pods that were in the group then."""
        return [number for number in self.pods(filters) if self.was(self.history.pods[number].in_group, at_us)]

    def member_at(self, pod: int, at_us: int) -> MemberKey:
        """Who this pod was then, by the run's `Identity`."""
        if self.world.identity is Identity.POD:
            return pod, 0
        return pod, bisect_right(self.history.pods[pod].lives_us, at_us)

    def was(self, intervals: Intervals, at_us: int) -> bool:
        """Whether it was so then (at its end: still)."""
        return any(first <= at_us <= last for first, last in intervals.until(self.end_us + 1))

    # --- sums

    def total(self, counted: Sequence[Counted], filters: Filters) -> int:
        """The sum of what the filters leave."""
        return sum(entry.amount for entry in self.select(counted, filters))

    def select(self, counted: Sequence[Counted], filters: Filters) -> list[Counted]:
        """What the filters leave."""
        first, last = self.window(filters)
        words = frozenset((*filters.words, *filters.topics))
        return [
            entry
            for entry in counted
            if first <= entry.at_us <= last
            and (not words or entry.what in words)
            and (filters.selector is None or self.is_meant(entry.pod, filters))
        ]

    def clip(self, intervals: Iterable[tuple[int, int]], window: tuple[int, int]) -> list[tuple[int, int]]:
        """What lies within a window."""
        clipped = ((max(first, window[0]), min(last, window[1])) for first, last in intervals)
        return [(first, last) for first, last in clipped if first < last]

    def event_us(self, filters: Filters) -> int | None:
        """When the named event began, or the time given by ``at``; without both, when pods or topics were last touched."""
        if filters.at_us is not None:
            return self.start_us + filters.at_us
        for name in filters.words:
            marks = [mark.at_us for mark in self.history.events if mark.name == name and mark.what == "begins"]
            if marks:
                return marks[-1]
        if filters.words:
            return None
        done = [at_us for at_us in self.history.disturbances if at_us >= self.start_us]
        return done[-1] if done else self.start_us

    def assignment(self) -> Mapping[str, Mapping[str, list[int]]]:
        """Pod -> topic -> partitions, as they are consumed now; pods in the group without any are there, too."""
        found: dict[str, dict[str, list[int]]] = {
            self.history.pods[pod].name: {} for pod in self.members_at(self.end_us, Filters())
        }
        for number, owner in enumerate(self.lanes.owner):
            if owner != NOBODY:
                topic, partition = self.world.partitions.names[number]
                found.setdefault(self.history.pods[owner].name, {}).setdefault(topic, []).append(partition)
        return {pod: {topic: sorted(found[pod][topic]) for topic in sorted(found[pod])} for pod in sorted(found)}


def percentile(values: Sequence[int], percent: float) -> int:
    """By nearest rank; 0 of nothing."""
    if not values:
        return 0
    ordered = sorted(values)
    rank = -(-len(ordered) * round(percent * 100) // 10_000)
    return ordered[max(rank, 1) - 1]


def seconds(length_us: int) -> float:
    """Microseconds as the metrics give them."""
    return length_us / SECOND
