"""When an application calls poll(), without an event for each call.

Between two moments at which poll() would do something the calls do not matter; when one begins to matter, the time until the next
call is drawn as what is left of the gap that is under way.
"""

from __future__ import annotations

from kgctl.simulate.engine.pods.pod import Pod

_FAR_ABOVE_MEAN = 50
"""A gap of a distribution without a bound is taken as shorter than so many times its mean."""


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

    def _slowed(self, gap_us: int) -> int:
        return gap_us * self._pod.factor_ppm // 1_000_000
