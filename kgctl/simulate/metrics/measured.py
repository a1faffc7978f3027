"""A run, or a run so far, as the metrics look at it."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kgctl.simulate.recording.owners import NOBODY, Gap, Segment
from kgctl.simulate.scenario.checks import Filters
from kgctl.simulate.scenario.group_types import type_of_group
from kgctl.simulate.scenario.metric import MetricKind
from kgctl.simulate.scenario.vocabulary import EventStage, Identity

if TYPE_CHECKING:
    from kgctl.simulate.recording.recording import Counted, Intervals, MemberKey, Recording

SECOND = 1_000_000
LOOK_US = 250_000
"""A real group may be seen this much late, or early."""


class Measured:
    """The window is from the end of the warm-up to now (of a run that is over: its end). Times count from the run's begin."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.owners = recording.owners
        self.history = recording.history
        self.ledger = recording.ledger
        self.start_us = recording.start_us
        self._gaps: tuple[int, dict[tuple[int, int], list[Gap]]] = (-1, {})
        self._kept: tuple[int, dict[Any, Any]] = (-1, {})

    @property
    def end_us(self) -> int:
        return self.recording.end_us

    def kept(self, key: Any, make: Callable[[], Any]) -> Any:
        """What ``make`` gives, worked out once for this key as long as nothing happens in the run: several metrics ask for it."""
        if self._kept[0] != self.recording.step:
            self._kept = (self.recording.step, {})
        found = self._kept[1]
        if key not in found:
            found[key] = make()
        return found[key]

    def window(self, filters: Filters) -> tuple[int, int]:
        """The window within ``after`` and ``before``, and within an event and its step."""
        first = self.start_us if filters.after_us is None else self.start_us + filters.after_us
        last = self.end_us if filters.before_us is None else min(self.start_us + filters.before_us, self.end_us)
        if filters.during is not None or filters.step is not None:
            from_us, to_us = self._part(filters) or (first, first)
            first, last = max(first, from_us), min(last, to_us)
        return first, max(last, first)

    def knows(self, kind: MetricKind) -> bool:
        """Whether the metric is about groups such as this run's."""
        return kind.about in type_of_group(self.recording.scenario).has

    def has(self, filters: Filters) -> bool:
        """Whether there was what ``during`` and ``step`` name, if they name anything."""
        return (filters.during is None and filters.step is None) or self._part(filters) is not None

    def reaches(self, filters: Filters, kind: MetricKind) -> bool:
        """Whether a run that is over has anything of the times, pods and topics that are named: else nothing is known of them."""
        first, last = self.window(filters)
        is_empty = (filters.after_us, filters.before_us) != (None, None) and first >= last
        if is_empty or (filters.at_us is not None and self.start_us + filters.at_us > self.end_us):
            return False
        is_measured = kind.is_of_records and bool(filters.topics)  # of topics that nobody reads, too
        if "topic" in kind.filters and not is_measured and not self.partitions(filters):
            return False
        return kind.counts_pods or filters.selector is None or bool(self.pods(filters))

    def _part(self, filters: Filters) -> tuple[int, int] | None:
        """From the beginning of an event, or of its step, to the next one's (of an event: to that of another one), or the end."""
        begun = [mark for mark in self.history.events if mark.what is EventStage.BEGINS]
        stepped = {mark.event for mark in self.history.steps}
        all_names = [mark.event for mark in begun]
        names = [name for name in all_names if (name in stepped if filters.during is None else name == filters.during)]
        if not names:
            return None
        own = [mark.at_us for mark in begun if mark.event == names[-1]]
        later = [mark.at_us for mark in begun if mark.event != names[-1] and mark.at_us > own[0]]
        first, last = own[0], min(later, default=self.end_us)
        if filters.step is None:
            return first, last
        steps = [mark.at_us for mark in self.history.steps if mark.event == names[-1]]
        if not 1 <= filters.step <= len(steps):
            return None
        begins = [first, *steps[1:], last]
        return begins[filters.step - 1], begins[filters.step]

    def at(self, filters: Filters) -> int:
        """The moment that ``at`` names; the end without it."""
        return self.end_us if filters.at_us is None else min(self.start_us + filters.at_us, self.end_us)

    @property
    def near_us(self) -> int:
        """How long a group may be settled within one rebalance: two round trips.

        Of a real group it is not known what cooperative members still have to give up. They do so in their next poll(), and join
        again: so much more is within the same rebalance.
        """
        scenario = self.recording.scenario
        near_us = 4 * scenario.cluster.network.client.mean_us
        if not self.recording.is_played:
            return near_us
        polls = [members.poll for members in scenario.members]
        return near_us + LOOK_US + max(3 * poll.mean_us if poll.upper_us is None else poll.upper_us for poll in polls)

    def calm_times(self, window: tuple[int, int]) -> list[tuple[int, int]]:
        """The times within a window in which the group was settled with every partition where it belongs."""
        found = self.history.calm.until(self.end_us)
        if self.recording.is_played:
            found = [(first, last) for first, last in found if last - first > self.near_us]
        return self.clip(found, window)

    # --- partitions

    def partitions(self, filters: Filters) -> list[int]:
        """Return the numbers of the partitions that count, of the topics that are named."""
        table = self.recording.partitions
        if filters.topics:
            return [number for topic in filters.topics for number in table.by_topic.get(topic, ()) if table.counted[number]]
        return [number for number in range(len(table)) if table.counted[number]]

    def existence(self, number: int, window: tuple[int, int]) -> tuple[int, int]:
        """From when to when it existed, within a window."""
        table = self.recording.partitions
        deleted_us = table.deleted_us[number]
        last = window[1] if deleted_us is None else min(deleted_us, window[1])
        return max(table.created_us[number], window[0]), last

    def segments(self, number: int, window: tuple[int, int]) -> list[Segment]:
        return self.owners.segments(number, *window)

    def owner_at(self, number: int, at_us: int) -> int:
        """Return the pod that consumed the partition then, or `NOBODY`."""
        lane = self.owners.changes[number]
        times = lane[::2]
        position = bisect_right(times, at_us) - 1
        return max(lane[2 * position + 1], NOBODY) if position >= 0 else NOBODY

    def exists_at(self, number: int, at_us: int) -> bool:
        table = self.recording.partitions
        deleted_us = table.deleted_us[number]
        return table.created_us[number] <= at_us and (deleted_us is None or at_us < deleted_us)

    def gaps(self, filters: Filters) -> list[Gap]:
        """All gaps of the partitions and pods that are meant (the pod that had it before, else that gets it after)."""
        window = self.window(filters)
        if self._gaps[0] != self.recording.step:
            self._gaps = (self.recording.step, {})
        if window not in self._gaps[1]:
            everything = (number for number in range(len(self.recording.partitions)) if self.recording.partitions.counted[number])
            self._gaps[1][window] = [gap for number in everything for gap in self.owners.gaps(number, *window)]
        found = self._gaps[1][window]
        if filters.topics:
            meant = frozenset(self.partitions(filters))
            found = [gap for gap in found if gap.partition in meant]
        if filters.selector is not None:
            found = [gap for gap in found if self.is_meant(gap.before if gap.before != NOBODY else gap.after, filters)]
        return found

    # --- pods

    def is_meant(self, pod: int, filters: Filters) -> bool:
        selector = filters.selector
        if selector is None:
            return True
        if pod < 0:
            return selector.negated
        history = self.history.pods[pod]
        return selector.matches(history.member_set, history.index)

    def pods(self, filters: Filters) -> list[int]:
        return [number for number in range(len(self.history.pods)) if self.is_meant(number, filters)]

    def members_at(self, at_us: int, filters: Filters) -> list[int]:
        return [number for number in self.pods(filters) if self.was(self.history.pods[number].in_group, at_us)]

    def member_at(self, pod: int, at_us: int) -> MemberKey:
        """Who this pod was then, by the run's `Identity`."""
        if self.recording.identity is Identity.POD:
            return pod, 0
        return pod, bisect_right(self.history.pods[pod].lives_us, at_us)

    def was(self, intervals: Intervals, at_us: int) -> bool:
        """Return whether a moment lies in the intervals, an open one included."""
        return any(first <= at_us <= last for first, last in intervals.until(self.end_us + 1))

    # --- sums

    def total(self, counted: Sequence[Counted], filters: Filters) -> int:
        return sum(entry.amount for entry in self.select(counted, filters))

    def select(self, counted: Sequence[Counted], filters: Filters) -> list[Counted]:
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
        clipped = ((max(first, window[0]), min(last, window[1])) for first, last in intervals)
        return [(first, last) for first, last in clipped if first < last]

    def event_us(self, filters: Filters) -> int | None:
        """When the named event began, or the time given by ``at``; without both, when pods or topics were last touched."""
        if filters.at_us is not None:
            return self.start_us + filters.at_us
        for name in filters.words:
            marks = [mark.at_us for mark in self.history.events if mark.event == name and mark.what is EventStage.BEGINS]
            if marks:
                return marks[-1]
        if filters.words:
            return None
        return self.touched_us[-1]

    @property
    def touched_us(self) -> list[int]:
        """When pods or topics were touched, in order; at least the begin."""
        return [at_us for at_us in self.history.disturbances if at_us >= self.start_us] or [self.start_us]

    def assignment(self) -> Mapping[str, Mapping[str, list[int]]]:
        """Pod -> topic -> partitions, as they are consumed now; pods in the group without any are there, too."""
        found: dict[str, dict[str, list[int]]] = {
            self.history.pods[pod].name: {} for pod in self.members_at(self.end_us, Filters())
        }
        for number, owner in enumerate(self.owners.owner):
            if owner != NOBODY:
                topic, partition = self.recording.partitions.names[number]
                found.setdefault(self.history.pods[owner].name, {}).setdefault(topic, []).append(partition)
        return {pod: {topic: sorted(found[pod][topic]) for topic in sorted(found[pod])} for pod in sorted(found)}


def seconds(length_us: int) -> float:
    return length_us / SECOND


def statistic_of(lengths: Counter[int], filters: Filters, *, percent: int = 50) -> float | None:
    """Return this percentile of lengths, of which there are so many each, or the statistic that is named; None of nothing."""
    number = lengths.total()
    if not number:
        return None
    if filters.statistic == "mean":
        return seconds(sum(length * count for length, count in lengths.items()) // number)
    if filters.statistic in ("max", "min"):
        return seconds(max(lengths) if filters.statistic == "max" else min(lengths))
    rank = max(-(-number * round((percent if filters.percentile is None else filters.percentile) * 100) // 10_000), 1)
    for length in sorted(lengths):
        rank -= lengths[length]
        if rank <= 0:
            return seconds(length)
    return None
