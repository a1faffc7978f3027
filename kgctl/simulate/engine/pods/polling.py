"""When an application calls poll(), without an event for each call.

Between two moments at which poll() would do something the calls do not matter; when one begins to matter, the time until the next
call is drawn as what is left of the gap that is under way.
"""

from __future__ import annotations

from kgctl.simulate.engine.pods.pod import Pod

_FAR_ABOVE_MEAN = 50
"""A gap of a distribution without a bound is taken as shorter than so many times its mean."""
_LATENESS_DRAWS = 4
"""Commits of one quiet time share their lateness: the mean of so many."""
_MANY_CALLS = 20
"""In an interval: then a commit is as late as any moment is from the next call."""


class PollCadence:
    """The calls of one process."""

    __slots__ = ("_pod", "is_continuous", "last_us", "next_us")

    def __init__(self, pod: Pod) -> None:
        self._pod = pod
        self.is_continuous = pod.members.poll.upper_us == 0
        """Whether one call follows the other at once."""
        self.last_us = -1
        self.next_us = -1

    def may_exceed(self, limit_us: int) -> bool:
        """Whether a gap may be longer than this: then every call is an event."""
        poll = self._pod.members.poll
        upper_us = poll.mean_us * _FAR_ABOVE_MEAN if poll.upper_us is None else poll.upper_us
        return self._slowed(upper_us) > limit_us

    def polled(self, now_us: int) -> int:
        """poll() was called: when it will be called again."""
        pod = self._pod
        self.last_us = now_us
        self.next_us = now_us + self._slowed(pod.members.poll.sample(pod.poll_rng))
        return self.next_us

    def upcoming_us(self, now_us: int) -> int:
        """When the next call comes."""
        pod = self._pod
        if self.next_us < now_us:
            self.next_us = now_us + self._slowed(pod.members.poll.residual(pod.poll_rng))
        return self.next_us

    def previous_us(self, now_us: int) -> int:
        """When the last call was; drawn, where calls were left out since."""
        pod = self._pod
        if self.next_us < now_us:
            self.last_us = max(now_us - self._slowed(pod.members.poll.residual(pod.poll_rng)), self.last_us)
        return self.last_us

    def commits_late_us(self, interval_us: int, *, in_every_other: bool) -> int:
        """By how much the automatic commits of a quiet time are late: each is made by a call that comes after its interval.

        ``in_every_other``: it is made by every other call only, as measured of the Java client with the consumer protocol.
        """
        if self.is_continuous:
            return 0
        is_rare = self._slowed(self._pod.members.poll.mean_us) * _MANY_CALLS > interval_us
        late_us = self._late_by_calls_us if is_rare else self._late_us
        return sum([late_us(interval_us, in_every_other) for _ in range(_LATENESS_DRAWS)]) // _LATENESS_DRAWS

    def _late_us(self, _: int, in_every_other: bool) -> int:  # noqa: FBT001
        """After so many calls that nothing is left of how the first ones fell."""
        poll, rng = self._pod.members.poll, self._pod.poll_rng
        late_us = poll.residual(rng)
        return self._slowed(late_us + poll.sample(rng) if in_every_other and rng.getrandbits(1) else late_us)

    def _late_by_calls_us(self, interval_us: int, in_every_other: bool) -> int:  # noqa: FBT001
        poll, rng = self._pod.members.poll, self._pod.poll_rng
        passed_us = 0
        while passed_us < interval_us:
            passed_us += self._slowed(poll.sample(rng) + poll.sample(rng) if in_every_other else poll.sample(rng))
        return passed_us - interval_us

    def _slowed(self, gap_us: int) -> int:
        return gap_us * self._pod.factor_ppm // 1_000_000
