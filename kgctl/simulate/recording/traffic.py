"""What is written to each partition, as a function of time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import NamedTuple

from kgctl.simulate.scenario.quantities import UNIT_PR


class Arrivals:
    """Rates and totals of the partitions of one run, by number. A rate holds from a time on, until another is set."""

    def __init__(self) -> None:
        self.rate_uhz: list[int] = []
        self._since_us: list[int] = []
        self._total_pr: list[int] = []
        self._past: list[list[tuple[int, int, int]]] = []

    def add(self, count: int, now_us: int) -> None:
        """Add empty partitions without traffic."""
        for _ in range(count):
            self.rate_uhz.append(0)
            self._since_us.append(now_us)
            self._total_pr.append(0)
            self._past.append([])

    def set_rate(self, partition: int, rate_uhz: int, now_us: int) -> None:
        """Set the partition's rate from now on."""
        if rate_uhz != self.rate_uhz[partition]:
            self._past[partition].append((self._since_us[partition], self._total_pr[partition], self.rate_uhz[partition]))
            self._total_pr[partition] = self.total_pr(partition, now_us)
            self._since_us[partition] = now_us
            self.rate_uhz[partition] = rate_uhz

    def total_pr(self, partition: int, at_us: int) -> int:
        """How much has been written by then; ``at_us`` may lie in the past."""
        since_us = self._since_us[partition]
        if at_us >= since_us:
            return self._total_pr[partition] + self.rate_uhz[partition] * (at_us - since_us)
        past = self._past[partition]
        position = bisect_right(past, (at_us, 1 << 200, 0)) - 1
        if position < 0:
            return 0
        from_us, total_pr, rate_uhz = past[position]
        return total_pr + rate_uhz * (at_us - from_us)

    def arrived_us(self, partition: int, amount_pr: int) -> int:
        """When the record at this amount was written: the inverse of `total_pr`. The beginning for what was there first."""
        pieces = [*self._past[partition], (self._since_us[partition], self._total_pr[partition], self.rate_uhz[partition])]
        for from_us, total_pr, rate_uhz in reversed(pieces):
            if amount_pr >= total_pr and rate_uhz:
                return from_us + (amount_pr - total_pr) // rate_uhz
        return pieces[0][0]


def split_rate(rate_uhz: int, partitions: int, weights: tuple[int, ...]) -> list[int]:
    """The rate of each partition: even, or by weights, which are repeated as often as needed. Remainders go to the first ones."""
    shares = [weights[number % len(weights)] for number in range(partitions)] if weights else [1] * partitions
    total = sum(shares)
    if not total:
        return [0] * partitions
    rates = [rate_uhz * share // total for share in shares]
    for number in range(rate_uhz - sum(rates)):
        rates[number % partitions] += 1
    return rates


class LinearSeries:
    """A piecewise linear sum. Changes may come in any order of their times; equal times are added up."""

    def __init__(self) -> None:
        self._changes: dict[int, list[int]] = {}

    def step(self, at_us: int, amount_pr: int) -> None:
        """Add a jump of this amount."""
        self._change(at_us)[0] += amount_pr

    def bend(self, at_us: int, rate_uhz: int) -> None:
        """Change the slope by this rate from now on."""
        self._change(at_us)[1] += rate_uhz

    def ramp(self, from_us: int, to_us: int, amount_pr: int) -> None:
        """Let the sum grow by this amount evenly, from one time to another."""
        length_us = to_us - from_us
        if length_us <= 0:
            self.step(to_us, amount_pr)
            return
        rate_uhz = amount_pr // length_us
        self.bend(from_us, rate_uhz)
        self.bend(to_us, -rate_uhz)
        self.step(to_us, amount_pr - rate_uhz * length_us)

    def piece(self, from_us: int, to_us: int, start_pr: int, rate_uhz: int) -> None:
        """Something that is there between two times: ``start_pr``, growing by a rate."""
        first, last = self._change(from_us), self._change(to_us)
        first[0] += start_pr
        first[1] += rate_uhz
        last[0] -= start_pr + rate_uhz * (to_us - from_us)
        last[1] -= rate_uhz

    @classmethod
    def merged(cls, several: Iterable[LinearSeries]) -> LinearSeries:
        """Return the sum of several series."""
        total = cls()
        for series in several:
            for at_us, (step, bend) in series._changes.items():
                total.step(at_us, step)
                total.bend(at_us, bend)
        return total

    def points(self, from_us: int, to_us: int) -> list[tuple[int, int]]:
        """(time, value) wherever it bends or jumps (there twice: before and after), from one time to another, both included."""
        found: list[tuple[int, int]] = []
        for start, stop, first, last in self._pieces(to_us):
            if stop < from_us or (stop == from_us and start < stop and stop != to_us):
                continue
            point = (
                (start, first) if start >= from_us else (from_us, first + (last - first) * (from_us - start) // (stop - start))
            )
            if not found or found[-1] != point:
                found.append(point)
            if stop > point[0]:
                found.append((stop, last))
        return found

    def pieces(self, to_us: int) -> list[tuple[int, int, int, int]]:
        """(from, to, value after the jump, value at the end) of each even stretch up to a time, first to last."""
        return list(self._pieces(to_us))

    def changes(self, from_us: int, to_us: int) -> list[int]:
        """Return the times between two at which it bends or jumps, in any order."""
        return [at_us for at_us in self._changes if from_us < at_us < to_us]

    def value(self, at_us: int) -> int:
        """Return what the sum has come to by this time, without a jump of that very moment."""
        last = 0
        for _, _, _, last in self._pieces(at_us):  # noqa: B007  # the last one counts
            pass
        return last

    def area(self, from_us: int, to_us: int) -> int:
        """Twice its integral between two times, in amount times microseconds (twice: to stay with whole numbers)."""
        pairs = pairwise(self.points(from_us, to_us))
        return sum((right[0] - left[0]) * (left[1] + right[1]) for left, right in pairs)

    def _change(self, at_us: int) -> list[int]:
        change = self._changes.get(at_us)
        if change is None:
            change = self._changes[at_us] = [0, 0]
        return change

    def _pieces(self, to_us: int) -> Iterator[tuple[int, int, int, int]]:
        """(from, to, value after the jump, value at the end), up to a time; the last one has no length."""
        now_us, value, rate = 0, 0, 0
        for at_us in sorted(self._changes):
            if at_us >= to_us:
                break
            yield now_us, at_us, value, value + rate * (at_us - now_us)
            value += rate * (at_us - now_us) + self._changes[at_us][0]
            rate += self._changes[at_us][1]
            now_us = at_us
        yield now_us, to_us, value, value + rate * (to_us - now_us)
        yield to_us, to_us, value + rate * (to_us - now_us), value + rate * (to_us - now_us)


NEVER = -1
ENTERED = 20
"""So many commits at the beginning and at the end of a quiet time are entered one by one."""


def commit_times(from_us: int, to_us: int, every_us: int) -> list[int]:
    """The times of commits that end with ``to_us``, first to last; of more than twice `ENTERED`, those at both ends."""
    count = max(-(-(to_us - from_us) // every_us), 1)
    behind = range(count) if count <= 2 * ENTERED else (*range(ENTERED), *range(count - ENTERED, count))
    return [to_us - place * every_us for place in reversed(behind)]


class QuietCommits(NamedTuple):
    """What the commits of a process in a quiet time have led to: the offset of each partition at the last one, ``to_us``.

    ``every_us``: the time between two, each a step of the lag; of very many those at both ends, with an even slope between
    them. 0: so often that the slope is all. ``behind_uhz``: how fast it reads those in which it does not keep up.
    """

    offsets: dict[int, int]
    from_us: int
    to_us: int
    every_us: int
    behind_uhz: Mapping[int, int]

    def times_us(self) -> list[int]:
        """Return when a sum of them bends or jumps, first to last."""
        return commit_times(self.from_us, self.to_us, self.every_us) if self.every_us else [self.from_us, self.to_us]

    def read_pr(self, arrivals: Arrivals, number: int, from_us: int, to_us: int) -> int:
        """Return how much of a partition it has read between two times."""
        rate_uhz = self.behind_uhz.get(number)
        if rate_uhz is None:
            return arrivals.total_pr(number, to_us) - arrivals.total_pr(number, from_us)
        return rate_uhz * (to_us - from_us)


class Wait(NamedTuple):
    """How much of a partition was read up to a time, and the shortest and longest time since it was written."""

    at_us: int
    number: int
    amount_pr: int
    shortest_us: int
    longest_us: int


class PositionLedger:
    """Positions by number of partition. A partition that is caught up reads at the rate of its arrivals: it costs nothing.

    ``committed`` is what has been committed, ``stored`` what of it the coordinator was told: commits of quiet times are not sent
    one by one. ``backlog`` and ``lag`` are sums for each topic.
    ``waits`` is what had to wait between being written and being read.
    """

    def __init__(self) -> None:
        self.arrivals = Arrivals()
        self.topic: list[str] = []
        self.is_caught_up: list[bool] = []
        self.has_position: list[bool] = []
        self.committed: list[int] = []
        self.stored: list[int] = []
        self.never_stored = 0
        """How many partitions the coordinator has no offset of."""
        self.backlog: dict[str, LinearSeries] = {}
        self.lag: dict[str, LinearSeries] = {}
        self.waits: list[Wait] = []
        self._guessed: dict[int, int] = {}
        self._guessed_lag: dict[str, LinearSeries] = {}
        self._position_pr: list[int] = []
        self._at_us: list[int] = []

    def add(self, topic: str, count: int, now_us: int) -> None:
        """New partitions of a topic: empty, at position 0, caught up as long as nothing is written."""
        self.arrivals.add(count, now_us)
        self.backlog.setdefault(topic, LinearSeries())
        self.lag.setdefault(topic, LinearSeries())
        self.never_stored += count
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
        """Return the position in whole records: the offset that a commit would have."""
        return self.position_pr(number, at_us) // UNIT_PR

    def backlog_pr(self, number: int, at_us: int) -> int:
        """Return what is written and not yet read."""
        if self.is_caught_up[number]:
            return 0
        return self.arrivals.total_pr(number, at_us) - self._position_pr[number]

    def catch_up(self, number: int, at_us: int) -> None:
        """Move the read position to the end of the log."""
        self._add_waits(number, self._position_pr[number], self.arrivals.total_pr(number, at_us), at_us, at_us)
        self.is_caught_up[number] = True

    def move(self, number: int, rate_uhz: int, from_us: int, to_us: int) -> None:
        """Read the partition at this rate between two times in which its arrivals do not change."""
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

    def read_to(self, number: int, offset: int) -> int:
        """Real clients have read it up to this offset; return up to which one they had before."""
        before_pr = self._position_pr[number]
        self._position_pr[number] = max(before_pr, offset * UNIT_PR)
        return before_pr // UNIT_PR

    def stop(self, number: int, now_us: int) -> None:
        """Record that nobody reads the partition from now on."""
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
        """Keep the partition's position from now on: until now its reader was caught up."""
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
        """Record that the coordinator has stored this offset."""
        self.never_stored -= self.stored[number] == NEVER
        self.stored[number] = offset
        moved = offset - max(self.committed[number], 0)
        self.committed[number] = offset
        if moved:
            self.lag[self.topic[number]].step(at_us, -moved * UNIT_PR)

    def committed_by(self, number: int) -> int:
        """Return what has been committed, commits of quiet times that are not entered yet included."""
        return max(self.committed[number], self._guessed.get(number, NEVER))

    def lags(self) -> Iterable[tuple[str, LinearSeries]]:
        """Return topics with what their lags are the sums of, commits of quiet times that are not entered yet included."""
        return chain(self.lag.items(), self._guessed_lag.items())

    def forget_guesses(self) -> None:
        """Go by the commits that are entered alone."""
        self._guessed, self._guessed_lag = {}, {}

    def commit_quietly(self, commits: QuietCommits, *, is_guess: bool = False) -> None:
        """Enter commits of a quiet time. ``is_guess``: for who looks now; they are forgotten with `forget_guesses`."""
        moved: dict[str, list[tuple[int, int]]] = {}
        for number, offset in commits.offsets.items():
            before = max(self.committed[number], 0)
            if offset > before:
                if is_guess:
                    self._guessed[number] = offset
                else:
                    self.committed[number] = offset
                moved.setdefault(self.topic[number], []).append((number, offset - before))
        for topic, found in moved.items():
            whole_pr = sum(records for _, records in found) * UNIT_PR
            lag = self._guessed_lag.setdefault(topic, LinearSeries()) if is_guess else self.lag[topic]
            self._step_down(lag, [number for number, _ in found], whole_pr, commits)

    def _step_down(self, lag: LinearSeries, numbers: list[int], whole_pr: int, commits: QuietCommits) -> None:
        """Take what was committed off the lag; each commit but the last leaves what was read since."""
        times_us, is_even = commits.times_us(), not commits.every_us
        last_us, before_us, before_pr = times_us[-1], times_us[0], 0
        for place, at_us in enumerate(times_us):
            later_pr = sum([commits.read_pr(self.arrivals, number, at_us, last_us) for number in numbers])
            done_pr = max(whole_pr - later_pr, before_pr)
            if (place == 1 and is_even) or (place == ENTERED and len(times_us) == 2 * ENTERED):
                lag.ramp(before_us, at_us, before_pr - done_pr)
            else:
                lag.step(at_us, before_pr - done_pr)
            before_us, before_pr = at_us, done_pr

    def _add_waits(self, number: int, from_pr: int, to_pr: int, from_us: int, to_us: int) -> None:
        """Records between two positions are read evenly between two times; each waited since it was written."""
        if to_pr <= from_pr:
            return
        first = max(from_us - self.arrivals.arrived_us(number, from_pr), 0)
        last = max(to_us - self.arrivals.arrived_us(number, to_pr), 0)
        self.waits.append(Wait(to_us, number, to_pr - from_pr, min(first, last), max(first, last)))


class Flow:
    """One process. ``rate_uhz`` None: as fast as records come; 0: it reads nothing at present."""

    __slots__ = ("_ledger", "_since_us", "partitions", "rate_uhz")

    def __init__(self, ledger: PositionLedger, rate_uhz: int | None, now_us: int) -> None:
        self._ledger = ledger
        self._since_us = now_us
        self.rate_uhz = rate_uhz
        self.partitions: dict[int, None] = {}

    def advance(self, now_us: int) -> None:
        """Bring the positions of its partitions to this time."""
        since_us = self._since_us
        if now_us <= since_us:
            return
        self._since_us = now_us
        if not self.partitions:
            return
        ledger = self._ledger
        behind = [number for number in self.partitions if not ledger.is_caught_up[number]]
        rate_uhz = self.rate_uhz
        if rate_uhz is None:
            for number in behind:
                ledger.catch_up(number, since_us)
            return
        arrivals = ledger.arrivals.rate_uhz
        if not behind and sum([arrivals[number] for number in self.partitions]) <= rate_uhz:
            return
        while since_us < now_us:
            since_us = self._advance_piece(since_us, now_us)

    def supply(self, consuming: Iterable[int], now_us: int, written_us: int) -> tuple[int, int]:
        """What was written by then of partitions that it lags behind in, and waits now; how fast the others get records.

        It was advanced to this time. Partitions that others have by now, and it reads on, are such others.
        """
        ledger, waiting_pr, rate_uhz = self._ledger, 0, 0
        for number in consuming:
            if ledger.is_caught_up[number] or number not in self.partitions:
                rate_uhz += ledger.arrivals.rate_uhz[number]
            else:
                waiting_pr += max(ledger.arrivals.total_pr(number, written_us) - ledger.position_pr(number, now_us), 0)
        return waiting_pr, rate_uhz

    def shares(self) -> dict[int, int]:
        """How fast it reads each of its partitions at present, if there is a bound to that."""
        ledger = self._ledger
        needs = {
            number: None if not ledger.is_caught_up[number] else ledger.arrivals.rate_uhz[number] for number in self.partitions
        }
        return max_min_shares(self.rate_uhz or 0, needs)

    def _advance_piece(self, since_us: int, now_us: int) -> int:
        """As far as no backlog reaches zero; returns how far."""
        ledger, shares = self._ledger, self.shares()
        until_us = now_us
        for number, share in shares.items():
            shrinks_by = share - ledger.arrivals.rate_uhz[number]
            if shrinks_by > 0 and not ledger.is_caught_up[number]:
                backlog_pr = ledger.backlog_pr(number, since_us)
                until_us = min(until_us, since_us + max(-(-backlog_pr // shrinks_by), 1))
        for number, share in shares.items():
            ledger.move(number, share, since_us, until_us)
        return until_us


def max_min_shares(rate_uhz: int, needs: dict[int, int | None]) -> dict[int, int]:
    """Everybody gets its need, or an equal share of what the less needy leave (None: without limit)."""
    shares = dict.fromkeys(needs, 0)
    open_needs = sorted((need, number) for number, need in needs.items() if need is not None)
    waiting = len(needs)
    left = rate_uhz
    for need, number in open_needs:
        if need * waiting > left:
            break
        shares[number] = need
        left -= need
        waiting -= 1
    if waiting:
        hungry = [number for number, need in needs.items() if need is None or (need and not shares[number])]
        for number in hungry:
            shares[number] = left // max(len(hungry), 1)
    return shares
