"""When heartbeats leave: an interval, what it drifts by, and the phase, which can be moved over many beats at once."""

from __future__ import annotations

from math import isqrt

from kgctl.member.api import Rng
from kgctl.member.config import HeartbeatDrift
from kgctl.member.runtime import draw

_DRAWN_ONE_BY_ONE = 12


class HeartbeatClock:
    """The beats of one member. ``next_us`` is when the next one leaves; times and drifts are in microseconds.

    The nominal beats are an interval and a drift apart; a beat leaves its own small jitter away from its nominal time. So a skip
    over a day of beats costs what a single beat costs.
    """

    def __init__(self, drift: HeartbeatDrift, rng: Rng) -> None:
        self._drift = drift
        self._rng = rng
        self._interval_us = 1
        self._nominal_us = 0
        self.next_us = 0

    @property
    def period_us(self) -> int:
        """The mean distance of two beats."""
        return self._interval_us + self._drift.constant_us

    def restart(self, now_us: int, interval_us: int) -> None:
        """Count from now: a generation has begun (or, for a client whose phase is not locked, anywhere within the interval)."""
        self._interval_us = max(interval_us, 1)
        self._nominal_us = now_us + (0 if self._drift.phase_locked else draw(self._rng, self._interval_us) - self._interval_us)
        self._step(now_us, 1)

    def beat(self, now_us: int) -> None:
        """A beat leaves now, at ``next_us`` or late; one before it (another one failed) starts the timer anew."""
        if now_us < self.next_us:
            self._nominal_us = now_us
        else:
            self._nominal_us = max(self._nominal_us, now_us - self._drift.jitter_us)
        self._step(now_us, 1)

    def skip(self, until_us: int) -> tuple[int, int]:
        """Take the beats before ``until_us``, ``next_us`` at least, as sent: how many they were, and when the last one left."""
        period_us = self.period_us
        count = max((until_us - self._nominal_us + period_us - 1) // period_us, 1)
        last_us = min(max(self._nominal_us + (count - 1) * period_us, self.next_us), until_us - 1)
        strayed_us = self._nominal_us + count * period_us + self._walk(count) - until_us
        # What the walk adds over a long time may be more than a period; only the phase counts.
        self._nominal_us = until_us + strayed_us % period_us
        self._leave_at(until_us)
        return count, last_us

    def _step(self, now_us: int, beats: int) -> None:
        self._nominal_us += beats * self.period_us + self._walk(beats)
        self._leave_at(now_us)

    def _leave_at(self, earliest_us: int) -> None:
        jitter_us = self._drift.jitter_us
        self.next_us = max(self._nominal_us + draw(self._rng, 2 * jitter_us) - jitter_us, earliest_us)

    def _walk(self, beats: int) -> int:
        """The sum of that many draws of -walk..walk; for many, a normal one of the same spread."""
        walk_us = self._drift.walk_us
        if walk_us == 0:
            return 0
        if beats <= _DRAWN_ONE_BY_ONE:
            # As `draw`, whose call would cost as much as the number.
            bits, bound = self._rng.getrandbits, 2 * walk_us + 1
            return sum([bits(32) * bound >> 32 for _ in range(beats)]) - beats * walk_us
        # The sum of 12 numbers of 0..65535 is as good as normal, with a deviation of 65536.
        bits = self._rng.getrandbits
        normal = sum([bits(16) for _ in range(12)]) - 6 * 65_535
        return walk_us * isqrt(beats * 1_000_000 // 3) // 1000 * normal >> 16
