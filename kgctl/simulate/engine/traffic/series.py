"""A sum of things that change steadily between moments: what it was at any time, from the changes alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise


class LinearSeries:
    """A piecewise linear sum. Changes may come in any order of their times; equal times are added up."""

    def __init__(self) -> None:
        self._changes: dict[int, list[int]] = {}

    def step(self, at_us: int, amount_pr: int) -> None:
        """It jumps by this."""
        self._change(at_us)[0] += amount_pr

    def bend(self, at_us: int, rate_uhz: int) -> None:
        """It grows by so much more from here on."""
        self._change(at_us)[1] += rate_uhz

    def ramp(self, from_us: int, to_us: int, amount_pr: int) -> None:
        """It grows by this evenly, from one time to another."""
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
        """The sum of these."""
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

    def value(self, at_us: int) -> int:
        """What it has come to by this time, without a jump of that very moment."""
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
