"""A client's connection to a Kafka cluster: TCP, TLS, SASL, requests and responses, and who in the cluster must be asked.

Blocking sockets and, where several brokers are asked at once, a thread for each: a short-lived command pays neither for an event
loop nor for its import. Every call has a `kgctl.wire.Deadline`; nothing here waits without one.
"""

from __future__ import annotations

import time

from kgctl.errors import TimedOutError

CALLS_SHARE = 2 / 3
"""How much of the time that several calls have together one of them may take."""


class Deadline:
    """Begins to run when it is made. ``timeout_ms`` is kept for messages."""

    def __init__(self, timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms
        self._end = time.monotonic() + timeout_ms / 1000

    @classmethod
    def of_call(cls, limit: Deadline | None, timeout_ms: int) -> Deadline:
        """Return the deadline of one of several calls that have a limit together; of its own where they have none."""
        return cls(timeout_ms) if limit is None else limit.part(CALLS_SHARE)

    @property
    def is_over(self) -> bool:
        """Whether no time is left."""
        return time.monotonic() >= self._end

    def seconds_left(self, what: str = "the cluster") -> float:
        """Time left, always more than zero. Raises `TimedOutError`, naming ``what`` was waited for, when there is none."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise self.timed_out(what)
        return left

    def timed_out(self, what: str) -> TimedOutError:
        """Return the error that says that the time is up."""
        return TimedOutError(f"{what} did not answer within {round(self.timeout_ms / 1000, 2):g} s")

    def wait(self, seconds: float) -> bool:
        """Sleep, but never past the end; False when nothing is left to wait for."""
        left = self._end - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(seconds, left))
        return True

    def within(self, seconds: float) -> Deadline:
        """A deadline that is over with this one, and after so long at the latest."""
        return Deadline(max(0, round(min(seconds, self._end - time.monotonic()) * 1000)))

    def part(self, share: float) -> Deadline:
        """A deadline that leaves time for another try: this share of what is left."""
        return Deadline(max(1, round(max(0.0, self._end - time.monotonic()) * 1000 * share)))
