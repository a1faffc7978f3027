"""What one process reads: its rate, shared by its partitions, so that backlogs shrink as fast as they can.

Max-min fair: a partition gets what it needs (its arrivals, when it has no backlog) or an equal share of the rest. A flow is only
looked at when something touches it; what happened since, backlogs that reached zero on the way, is worked out then.
"""

from __future__ import annotations

from kgctl.simulate.recording.traffic import Ledger


class Flow:
    """One process. ``rate_uhz`` None: as fast as records come; 0: it reads nothing at present."""

    __slots__ = ("_ledger", "_since_us", "partitions", "rate_uhz")

    def __init__(self, ledger: Ledger, rate_uhz: int | None, now_us: int) -> None:
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
            since_us = self._advance_piece(rate_uhz, since_us, now_us)

    def _advance_piece(self, rate_uhz: int, since_us: int, now_us: int) -> int:
        """As far as no backlog reaches zero; returns how far."""
        ledger = self._ledger
        needs = {
            number: None if not ledger.is_caught_up[number] else ledger.arrivals.rate_uhz[number] for number in self.partitions
        }
        shares = max_min_shares(rate_uhz, needs)
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
