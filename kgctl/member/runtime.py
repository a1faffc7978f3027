"""What the parts of one member share: the moment of the present call, what it has led to, and what is due later."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isqrt

from kgctl.member.api import Action, MemberIdentity, PositionOf, Rng
from kgctl.member.config import HeartbeatDrift, MemberConfig


class Deadlines:
    """Named deadlines; arming one again replaces it. Ties go by the order of arming."""

    __slots__ = ("_next_us", "_number", "armed")

    def __init__(self) -> None:
        self.armed: dict[str, tuple[int, int]] = {}
        """Name -> when it is due, and the how manieth it was to be armed."""
        self._number = 0
        self._next_us: int | None = None
        """The earliest; None: to be looked for."""

    def arm(self, name: str, at_us: int) -> None:
        """Arm the deadline of this name, in the place of the one there is."""
        self._number += 1
        next_us, armed = self._next_us, self.armed
        if next_us is not None:
            if at_us <= next_us:
                self._next_us = at_us
            elif name in armed and armed[name][0] == next_us:
                self._next_us = None
        armed[name] = (at_us, self._number)

    def cancel(self, name: str) -> None:
        """Disarm the deadline of this name, if it is armed."""
        entry = self.armed.pop(name, None)
        if entry is not None and entry[0] == self._next_us:
            self._next_us = None

    def at(self, name: str) -> int | None:
        """Return when the deadline of this name is due; None if it is not armed."""
        entry = self.armed.get(name)
        return None if entry is None else entry[0]

    def next_us(self) -> int | None:
        """Return the earliest deadline, None where none is armed."""
        if self._next_us is None and self.armed:
            self._next_us = min(self.armed.values())[0]
        return self._next_us

    def next_except(self, names: frozenset[str]) -> int | None:
        """The earliest deadline of another name than these."""
        if self.armed.keys() <= names:
            return None
        return min([entry[0] for name, entry in self.armed.items() if name not in names])

    def pop_due(self, now_us: int) -> str | None:
        """Take the earliest deadline that has come; None: there is none."""
        armed = self.armed
        if not armed or (self._next_us is not None and self._next_us > now_us):
            return None
        name = min(armed, key=armed.__getitem__)
        if armed[name][0] > now_us:
            self._next_us = armed[name][0]
            return None
        del armed[name]
        self._next_us = None
        return name

    def clear(self) -> None:
        """Disarm all deadlines."""
        self.armed.clear()
        self._next_us = None


@dataclass(slots=True)
class Runtime:
    """The member's surroundings in one object; ``now_us`` is the time of the call that is being answered."""

    identity: MemberIdentity
    config: MemberConfig
    rng: Rng
    position_of: PositionOf
    now_us: int = 0
    deadlines: Deadlines = field(default_factory=Deadlines)
    actions: list[Action] = field(default_factory=list)

    def emit(self, action: Action) -> None:
        """Add an action to those that the driver gets from this call."""
        self.actions.append(action)

    def take_actions(self) -> list[Action]:
        """Return the actions since the last call of this, in order."""
        taken, self.actions = self.actions, []
        return taken

    def arm_in(self, name: str, delay_us: int) -> None:
        """Arm a deadline this long from now."""
        self.deadlines.arm(name, self.now_us + delay_us)


def draw(rng: Rng, bound: int) -> int:
    """Return an evenly spread whole number of 0..bound."""
    return rng.getrandbits(32) * (bound + 1) >> 32 if bound > 0 else 0


_JITTER_PERCENT = 20


@dataclass(slots=True)
class Backoff:
    """``retry.backoff.ms`` doubled with each attempt up to ``retry.backoff.max.ms``, give or take a fifth (KIP-580)."""

    config: MemberConfig
    rng: Rng
    attempts: int = 0

    def next_us(self) -> int:
        """Return how long to wait before the next attempt: twice the last one, up to the limit."""
        first_us, limit_us = self.config.retry_backoff_ms * 1000, self.config.retry_backoff_max_ms * 1000
        base_us = min(first_us << min(self.attempts, 16), max(limit_us, first_us))
        self.attempts += 1
        spread_us = base_us * _JITTER_PERCENT // 100
        return base_us - spread_us + draw(self.rng, 2 * spread_us)

    def reset(self) -> None:
        """Begin with the shortest wait again, after a success."""
        self.attempts = 0


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
        """Return the mean distance of two beats."""
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
