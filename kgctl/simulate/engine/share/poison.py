"""Records that applications fail on, whoever gets them: some of what is written, by chance, and what events write."""

from __future__ import annotations

import math
from bisect import bisect_left, insort

from kgctl.member.api import Rng
from kgctl.simulate.engine.context import RunContext

_ALL_PPM = 1_000_000


class Poison:
    """Which records of a run's partitions are bad. The same records are bad for every group that reads them."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._share_ppm = {topic.name: topic.poison_ppm for topic in context.scenario.topics}
        self._rng: dict[int, Rng] = {}
        self._bad: dict[int, list[int]] = {}
        self._drawn: dict[int, int] = {}

    def add(self, number: int, offset: int) -> None:
        """Let this record be bad, too."""
        bad = self._bad.setdefault(number, [])
        if offset not in bad:
            insort(bad, offset)

    def first(self, number: int, first: int, last: int) -> int | None:
        """The first bad record of these, both inclusive."""
        return next(iter(self.within(number, first, last)), None)

    def within(self, number: int, first: int, last: int) -> list[int]:
        """All bad records of these, both inclusive."""
        if self._share_ppm.get(self._context.ledger.topic[number], 0):
            self._draw(number, last)
        bad = self._bad.get(number)
        if not bad:
            return []
        return bad[bisect_left(bad, first) : bisect_left(bad, last + 1)]

    def _draw(self, number: int, last: int) -> None:
        """Draw the bad ones up to here: from one to the next it is as far as chance has it."""
        name = self._context.partitions.names[number]
        share_ppm = self._share_ppm[name.topic]
        if number not in self._rng:
            self._rng[number] = self._context.randomness.stream("bad records", str(name))
            self._drawn[number] = self._gap(number, share_ppm) - 1
        while self._drawn[number] <= last:
            self.add(number, self._drawn[number])
            self._drawn[number] += self._gap(number, share_ppm)

    def _gap(self, number: int, share_ppm: int) -> int:
        if share_ppm >= _ALL_PPM:
            return 1
        return 1 + int(math.log(1 - self._rng[number].random()) / math.log1p(-share_ppm / _ALL_PPM))
