"""Per partition: what is written, read and committed, and the sums of it over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kgctl.simulate.engine.traffic.arrivals import UNIT_PR, Arrivals
from kgctl.simulate.engine.traffic.series import LinearSeries

NEVER = -1


class Ledger:
    """Positions by number of partition. A partition that is caught up reads at the rate of its arrivals: it costs nothing.

    ``committed`` is what has been committed, ``stored`` what of it the coordinator was told: commits of quiet times are not sent
    one by one. ``backlog`` and ``lag`` are sums for each topic.
    ``waits`` has (amount, shortest, longest time in microseconds between being written and being read) of what had to wait.
    """

    def __init__(self) -> None:
        self.arrivals = Arrivals()
        self.topic: list[str] = []
        self.is_caught_up: list[bool] = []
        self.has_position: list[bool] = []
        self.committed: list[int] = []
        self.stored: list[int] = []
        self.backlog: dict[str, LinearSeries] = {}
        self.lag: dict[str, LinearSeries] = {}
        self.waits: list[tuple[int, int, int]] = []
        self._position_pr: list[int] = []
        self._at_us: list[int] = []

    def add(self, topic: str, count: int, now_us: int) -> None:
        """New partitions of a topic: empty, at position 0, caught up as long as nothing is written."""
        self.arrivals.add(count, now_us)
        self.backlog.setdefault(topic, LinearSeries())
        self.lag.setdefault(topic, LinearSeries())
        for _ in range(count):
            self.topic.append(topic)
            self.is_caught_up.append(False)
            self.has_position.append(False)
            self.committed.append(NEVER)
            self.stored.append(NEVER)
            self._position_pr.append(0)
            self._at_us.append(now_us)

    def position_pr(self, number: int, at_us: int) -> int:
        """How far it has been read. Of one that is being read, its flow has to be advanced to that time before."""
        return self.arrivals.total_pr(number, at_us) if self.is_caught_up[number] else self._position_pr[number]

    def position(self, number: int, at_us: int) -> int:
        """The same in whole records: the offset that a commit would have."""
        return self.position_pr(number, at_us) // UNIT_PR

    def backlog_pr(self, number: int, at_us: int) -> int:
        """What is written and not read."""
        if self.is_caught_up[number]:
            return 0
        return self.arrivals.total_pr(number, at_us) - self._position_pr[number]

    def catch_up(self, number: int, at_us: int) -> None:
        """Everything is read at once."""
        self._add_waits(number, self._position_pr[number], self.arrivals.total_pr(number, at_us), at_us, at_us)
        self.is_caught_up[number] = True

    def move(self, number: int, rate_uhz: int, from_us: int, to_us: int) -> None:
        """It is read at this rate between two times in which its arrivals do not change."""
        arriving = self.arrivals.rate_uhz[number]
        if self.is_caught_up[number]:
            if rate_uhz >= arriving:
                return
            self.fall_behind(number, from_us)
        start_pr = self.backlog_pr(number, from_us)
        length_us = to_us - from_us
        read_pr = min(rate_uhz * length_us, start_pr + arriving * length_us)
        before_pr = self._position_pr[number]
        self._position_pr[number] = before_pr + read_pr
        self._at_us[number] = to_us
        self.backlog[self.topic[number]].piece(from_us, to_us, start_pr, arriving - rate_uhz)
        self._add_waits(number, before_pr, before_pr + read_pr, from_us, to_us)
        if self.backlog_pr(number, to_us) <= 0:
            self.is_caught_up[number] = True

    def stop(self, number: int, now_us: int) -> None:
        """Nobody reads it from now on."""
        self.fall_behind(number, now_us)

    def start(self, number: int, offset: int, now_us: int) -> tuple[int, int]:
        """Somebody reads it from this offset on: (records that are read again, records that are skipped)."""
        self.account_waiting(number, now_us)
        before = self._position_pr[number] // UNIT_PR
        if self.has_position[number] and offset == before:
            repeated = skipped = 0
        else:
            repeated = max(before - offset, 0) if self.has_position[number] else 0
            skipped = max(offset - before, 0)
            self._position_pr[number] = offset * UNIT_PR
        if self._position_pr[number] >= self.arrivals.total_pr(number, now_us) - UNIT_PR and skipped:
            self._position_pr[number] = self.arrivals.total_pr(number, now_us)
        self.has_position[number] = True
        self.is_caught_up[number] = self._position_pr[number] >= self.arrivals.total_pr(number, now_us)
        return repeated, skipped

    def fall_behind(self, number: int, now_us: int) -> None:
        """It was caught up until now; from now on its position is kept."""
        if self.is_caught_up[number]:
            self._position_pr[number] = self.arrivals.total_pr(number, now_us)
            self.is_caught_up[number] = False
        self._at_us[number] = now_us

    def account_waiting(self, number: int, now_us: int) -> None:
        """Enter the time in which nobody has read it: before it is read again, its rate changes, or the run ends."""
        since_us = self._at_us[number]
        if now_us > since_us and not self.is_caught_up[number]:
            start_pr = self.backlog_pr(number, since_us)
            rate_uhz = self.arrivals.rate_uhz[number]
            if start_pr or rate_uhz:
                self.backlog[self.topic[number]].piece(since_us, now_us, start_pr, rate_uhz)
        self._at_us[number] = now_us

    def set_rates(self, numbers: Sequence[int], rates: Sequence[int], now_us: int) -> None:
        """New rates. Flows that read them have to be advanced before."""
        for number, rate_uhz in zip(numbers, rates, strict=True):
            change = rate_uhz - self.arrivals.rate_uhz[number]
            self.arrivals.set_rate(number, rate_uhz, now_us)
            self.lag[self.topic[number]].bend(now_us, change)

    def store(self, number: int, offset: int, at_us: int) -> None:
        """The coordinator has stored this offset."""
        self.stored[number] = offset
        moved = offset - max(self.committed[number], 0)
        self.committed[number] = offset
        if moved:
            self.lag[self.topic[number]].step(at_us, -moved * UNIT_PR)

    def commit_quietly(self, offsets: Mapping[int, int], from_us: int, to_us: int) -> None:
        """Commits of a quiet time have led to these offsets: evenly, as far as the sums are concerned."""
        moved: dict[str, int] = {}
        for number, offset in offsets.items():
            before = max(self.committed[number], 0)
            if offset > before:
                self.committed[number] = offset
                moved[self.topic[number]] = moved.get(self.topic[number], 0) + offset - before
        for topic, records in moved.items():
            self.lag[topic].ramp(from_us, to_us, -records * UNIT_PR)

    def _add_waits(self, number: int, from_pr: int, to_pr: int, from_us: int, to_us: int) -> None:
        """Records between two positions are read evenly between two times; each waited since it was written."""
        if to_pr <= from_pr:
            return
        first = max(from_us - self.arrivals.arrived_us(number, from_pr), 0)
        last = max(to_us - self.arrivals.arrived_us(number, to_pr), 0)
        self.waits.append((to_pr - from_pr, min(first, last), max(first, last)))
