"""A client's connection to a Kafka cluster: TCP, TLS, SASL, requests and responses, and who in the cluster must be asked.

Blocking sockets and, where several brokers are asked at once, a thread for each: a short-lived command pays neither for an event
loop nor for its import. Every call has a `kgctl.wire.Deadline`; nothing here waits without one.
"""

from __future__ import annotations

import time
from collections.abc import Hashable

from kgctl.errors import TimedOutError

CALLS_SHARE = 0.9
"""How much of the time that several calls have together one of them may take: something is left for what is asked beside it."""

LOOKS_SHARE = 2 / 3
"""The same where a change is to follow, or is under way."""


class Deadline:
    """Begins to run when it is made. ``timeout_ms`` is kept for messages, with that of ``whole``, of which it is a part.

    One that several calls have together, each with a ``share`` of what is left, knows what they met with: ``is_troubled``,
    whether anything had to be asked again or was not answered; ``silent``, the brokers that did not answer.
    """

    def __init__(self, timeout_ms: int, share: float = CALLS_SHARE, whole: Deadline | None = None) -> None:
        self.timeout_ms = timeout_ms
        self.share = share
        self.is_troubled = False
        self.silent: frozenset[Hashable] = frozenset()
        self._end = time.monotonic() + timeout_ms / 1000
        self._whole = whole

    @classmethod
    def of_call(cls, limit: Deadline | None, timeout_ms: int) -> Deadline:
        """Return the deadline of one of several calls that have a limit together; of its own where they have none."""
        return cls(timeout_ms) if limit is None else limit.part(limit.share, limit._whole or limit)

    def __str__(self) -> str:
        of = f" (--timeout: {self._whole.timeout_ms / 1000:g} s)" if self._whole else ""
        return f"{round(self.timeout_ms / 1000, 2):g} s{of}"

    @property
    def is_over(self) -> bool:
        """Whether no time is left."""
        return time.monotonic() >= self._end

    @property
    def left_s(self) -> float:
        """Time left, 0 where there is none."""
        return max(0.0, self._end - time.monotonic())

    def seconds_left(self, what: str = "the cluster") -> float:
        """Time left, always more than zero. Raises `TimedOutError`, naming ``what`` was waited for, when there is none."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise self.timed_out(what)
        return left

    def timed_out(self, what: str) -> TimedOutError:
        """Return the error that says that the time is up."""
        return TimedOutError(f"{what} did not answer within {self}")

    def wait(self, seconds: float) -> bool:
        """Sleep before something is asked again, but never past the end; False when nothing is left to wait for."""
        (self._whole or self).is_troubled = True
        left = self._end - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(seconds, left))
        return True

    def within(self, seconds: float) -> Deadline:
        """A deadline that is over with this one, and after so long at the latest."""
        return Deadline(max(0, round(min(seconds, self._end - time.monotonic()) * 1000)), whole=self._whole)

    def part(self, share: float, whole: Deadline | None = None) -> Deadline:
        """A deadline that leaves time for another try: this share of what is left. ``whole`` is what it says it to."""
        return Deadline(max(1, round(self.left_s * 1000 * share)), whole=whole or self._whole)

    def renewed(self, seconds: float) -> Deadline:
        """A limit of its own length whose calls are of those that have this one together."""
        return Deadline(max(1, round(seconds * 1000)), self.share, self._whole or self)

    def expects(self, broker: Hashable) -> bool:
        """Whether this broker may answer: it was not silent in an earlier call."""
        return self._whole is None or broker not in self._whole.silent

    def note_silence(self, broker: Hashable) -> None:
        """This broker did not answer."""
        whole = self._whole or self
        whole.is_troubled, whole.silent = True, whole.silent | {broker}
