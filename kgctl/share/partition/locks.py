"""Acquisition locks: until when a member has records for itself."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

_GARBAGE_ALLOWED = 64


class AcquisitionLock:
    """A member's lock of the records first to last. Kafka: AcquisitionLockTimerTask."""

    __slots__ = ("cancelled", "deadline_ms", "expired", "first_offset", "last_offset")

    def __init__(self, first_offset: int, last_offset: int, deadline_ms: int) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.deadline_ms = deadline_ms
        self.cancelled = False
        self.expired = False


class AcquisitionLocks:
    """The locks of a share partition; they time out in order of deadline, then of arming."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, AcquisitionLock]] = []
        self._sequence = 0
        self._cancelled = 0

    def arm(self, first_offset: int, last_offset: int, deadline_ms: int) -> AcquisitionLock:
        """Return a lock that times out at ``deadline_ms``."""
        self._sequence += 1
        lock = AcquisitionLock(first_offset, last_offset, deadline_ms)
        heappush(self._heap, (deadline_ms, self._sequence, lock))
        return lock

    def cancel(self, lock: AcquisitionLock) -> None:
        """Let this lock never time out."""
        if lock.expired or lock.cancelled:
            return
        lock.cancelled = True
        self._cancelled += 1
        if 2 * self._cancelled > len(self._heap) + _GARBAGE_ALLOWED:
            self._heap = [each for each in self._heap if not each[2].cancelled]
            heapify(self._heap)
            self._cancelled = 0

    def next_deadline_ms(self) -> int | None:
        """When the first one times out; None where there is none."""
        while self._heap and self._heap[0][2].cancelled:
            heappop(self._heap)
            self._cancelled -= 1
        return self._heap[0][0] if self._heap else None

    def deadlines(self) -> list[int]:
        """When each of them times out, the first first."""
        return sorted(deadline_ms for deadline_ms, _, lock in self._heap if not lock.cancelled)

    def pop_due(self, now_ms: int) -> AcquisitionLock | None:
        """Take out the first lock whose deadline is not after ``now_ms``, as one that has expired; None if none is due."""
        deadline_ms = self.next_deadline_ms()
        if deadline_ms is None or deadline_ms > now_ms:
            return None
        lock = heappop(self._heap)[2]
        lock.expired = True
        return lock
