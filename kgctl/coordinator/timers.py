"""Keyed timers over virtual or real time.

The queue never looks at a clock: the caller arms timers at absolute times and asks what is due. Timers fire in order of
deadline, then of arming. Kafka: CoordinatorTimer, over a hashed wheel; here a heap with lazy deletion, in which re-arming a
timer for later, what every heartbeat does, only changes a number.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from kgctl.model.values import quick_enum


@quick_enum
class TimerKind(StrEnum):
    """What a timer is for. One kind, group and member have at most one timer at a time."""

    # Classic groups. One session timer serves a pending id, a new member and a member: the latest arming wins.
    SESSION = "session"
    JOIN = "join"
    SYNC = "sync"
    # Consumer-protocol groups. The last two belong to members that use the classic protocol inside such a group.
    CONSUMER_SESSION = "consumer-session"
    CONSUMER_REBALANCE = "consumer-rebalance"
    CONSUMER_JOIN = "consumer-join"
    CONSUMER_SYNC = "consumer-sync"
    SHARE_SESSION = "share-session"
    # Streams groups. The last one belongs to the group: it waits for others to join as well.
    STREAMS_SESSION = "streams-session"
    STREAMS_REBALANCE = "streams-rebalance"
    STREAMS_INITIAL_REBALANCE = "streams-initial-rebalance"
    # The coordinator's own.
    EXPIRE_OFFSETS = "expire-offsets"
    DELETE_OFFSETS = "delete-offsets"
    STUCK_REBALANCE = "stuck-rebalance"


SESSION_TIMERS = frozenset({TimerKind.SESSION, TimerKind.CONSUMER_SESSION, TimerKind.SHARE_SESSION, TimerKind.STREAMS_SESSION})
"""Those that take a member out which has sent no heartbeat."""


class TimerKey(NamedTuple):
    """Names a timer; arming a key that exists replaces its timer."""

    kind: TimerKind
    group_id: str = ""
    member_id: str = ""


@lru_cache(maxsize=1 << 16)
def member_timer(kind: TimerKind, group_id: str, member_id: str) -> TimerKey:
    """Return the name of a member's timer; kept, as every heartbeat asks for it."""
    return TimerKey(kind, group_id, member_id)


@dataclass(slots=True)
class Timer:
    """An armed timer. ``argument`` is a number the handler gets back: the generation or epoch it was armed for."""

    key: TimerKey
    deadline_ms: int
    sequence: int
    argument: int
    queued: tuple[int, int]
    """(deadline, sequence) of the heap entry that stands for it; never later than its own."""


_GARBAGE_ALLOWED = 64
NEVER_MS = 1 << 62


class TimerQueue:
    """All timers of one coordinator, deterministic in (deadline, order of arming)."""

    def __init__(self) -> None:
        self._timers: dict[TimerKey, Timer] = {}
        self._heap: list[tuple[int, int, TimerKey]] = []
        self._sequence = 0
        self.earliest_ms = NEVER_MS
        """No timer fires before this; `next_deadline_ms` says when the first one does."""

    def __len__(self) -> int:
        return len(self._timers)

    def __contains__(self, key: TimerKey) -> bool:
        return key in self._timers

    def arm(self, key: TimerKey, deadline_ms: int, argument: int = 0) -> None:
        """Arm the timer, replacing the one under this key. A replaced timer loses its place among those of the same deadline."""
        self._sequence += 1
        timer = self._timers.get(key)
        if timer is not None and deadline_ms >= timer.queued[0]:
            timer.deadline_ms = deadline_ms
            timer.sequence = self._sequence
            timer.argument = argument
            return
        place = (deadline_ms, self._sequence)
        self._timers[key] = Timer(key, deadline_ms, self._sequence, argument, place)
        heappush(self._heap, (*place, key))
        self.earliest_ms = self._heap[0][0]
        if len(self._heap) > 2 * len(self._timers) + _GARBAGE_ALLOWED:
            self._sweep()

    def arm_if_absent(self, key: TimerKey, deadline_ms: int, argument: int = 0) -> None:
        """Arm the timer unless one is armed under this key."""
        if key not in self._timers:
            self.arm(key, deadline_ms, argument)

    def cancel(self, key: TimerKey) -> None:
        """Remove the timer of this key, if there is one."""
        self._timers.pop(key, None)

    def clear(self) -> None:
        """Remove all timers."""
        self._timers.clear()
        self._heap.clear()
        self.earliest_ms = NEVER_MS

    def deadline_ms(self, key: TimerKey) -> int | None:
        """When the timer fires; None if it is not armed."""
        timer = self._timers.get(key)
        return None if timer is None else timer.deadline_ms

    def next_deadline_ms(self) -> int | None:
        """The earliest deadline; None if nothing is armed."""
        timer = self._first()
        return None if timer is None else timer.deadline_ms

    def is_due(self, now_ms: int) -> bool:
        """Whether a timer's deadline has come. Costs next to nothing when it has not."""
        if self.earliest_ms > now_ms:
            return False
        first = self._first()
        return first is not None and first.deadline_ms <= now_ms

    def pop_due(self, now_ms: int) -> Timer | None:
        """Take the first timer whose deadline is not after ``now_ms`` out of the queue; None if none is due."""
        timer = self._first()
        if timer is None or timer.deadline_ms > now_ms:
            return None
        heappop(self._heap)
        self.earliest_ms = self._heap[0][0] if self._heap else NEVER_MS
        del self._timers[timer.key]
        return timer

    def keys(self) -> list[TimerKey]:
        """All armed keys, in the order of their first arming."""
        return list(self._timers)

    def _first(self) -> Timer | None:
        """The earliest timer, after what the heap's top hid has been put right."""
        heap = self._heap
        while heap:
            deadline_ms, sequence, key = heap[0]
            timer = self._timers.get(key)
            if timer is None or timer.queued != (deadline_ms, sequence):
                heappop(heap)
            elif timer.sequence != sequence:
                timer.queued = (timer.deadline_ms, timer.sequence)
                heappop(heap)
                heappush(heap, (*timer.queued, key))
            else:
                self.earliest_ms = deadline_ms
                return timer
        self.earliest_ms = NEVER_MS
        return None

    def _sweep(self) -> None:
        for timer in self._timers.values():
            timer.queued = (timer.deadline_ms, timer.sequence)
        self._heap = [(*timer.queued, timer.key) for timer in self._timers.values()]
        heapify(self._heap)
        self.earliest_ms = self._heap[0][0] if self._heap else NEVER_MS
