"""What is written to each partition, as a function of time."""

from __future__ import annotations

from bisect import bisect_right

UNIT_PR = 1_000_000_000_000
"""One record."""


class Arrivals:
    """Rates and totals of the partitions of one run, by number. A rate holds from a time on, until another is set."""

    def __init__(self) -> None:
        self.rate_uhz: list[int] = []
        self._since_us: list[int] = []
        self._total_pr: list[int] = []
        self._past: list[list[tuple[int, int, int]]] = []

    def add(self, count: int, now_us: int) -> None:
        """New partitions, empty and without traffic."""
        for _ in range(count):
            self.rate_uhz.append(0)
            self._since_us.append(now_us)
            self._total_pr.append(0)
            self._past.append([])

    def set_rate(self, partition: int, rate_uhz: int, now_us: int) -> None:
        """The partition's rate from now on."""
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
