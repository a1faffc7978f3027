"""Records in flight: a batch is one entry until single offsets of it differ.

Kafka: InFlightState, InFlightBatch, RecordState.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kgctl.model.share import DeliveryState
from kgctl.share.partition.locks import AcquisitionLock, AcquisitionLocks
from kgctl.share.partition.results import thrown

NOBODY = ""
"""In place of a member, where records are not acquired."""
_AVAILABLE, _ACQUIRED, _ARCHIVED = DeliveryState.AVAILABLE, DeliveryState.ACQUIRED, DeliveryState.ARCHIVED
TERMINAL = frozenset({DeliveryState.ACKNOWLEDGED, DeliveryState.ARCHIVED})
"""From these there is no way back."""


class _Before(NamedTuple):
    """What a transition began with, and the limit of deliveries at that time."""

    state: DeliveryState
    member_id: str
    delivery_count: int
    delivery_count_limit: int


class InFlightState:
    """How a batch stands, or one offset. A transition of it is under way until the persister has answered."""

    __slots__ = ("_archived_for_good", "_before", "delivery_count", "lock", "member_id", "state")

    def __init__(
        self, state: DeliveryState, delivery_count: int, member_id: str = NOBODY, lock: AcquisitionLock | None = None
    ) -> None:
        self.state = state
        self.delivery_count = delivery_count
        self.member_id = member_id
        self.lock = lock
        self._before: _Before | None = None
        self._archived_for_good = False

    @property
    def in_transition(self) -> bool:
        """Whether a change of it waits for the persister."""
        return self._before is not None

    @property
    def is_free(self) -> bool:
        """Whether it can be acquired."""
        return self.state is _AVAILABLE and self._before is None

    @property
    def is_settled(self) -> bool:
        """Whether it is done with, and the persister knows."""
        return self._before is None and self.state in TERMINAL

    def acquire(self, member_id: str) -> None:
        """Give it to a member, once more; it must be free."""
        self.state = _ACQUIRED
        self.delivery_count += 1
        self.member_id = member_id

    def leave(self, state: DeliveryState, delivery_count_limit: int) -> None:
        """Take it from its member: it must be acquired. It is archived where it would be available once too often."""
        too_often = state is _AVAILABLE and self.delivery_count >= delivery_count_limit
        self.state = _ARCHIVED if too_often else state
        self.member_id = NOBODY

    def begin(self, state: DeliveryState, delivery_count_limit: int) -> None:
        """Leave its member in a transition, which `complete` ends."""
        before = _Before(self.state, self.member_id, self.delivery_count, delivery_count_limit)
        self.leave(state, delivery_count_limit)
        self._before = before

    def complete(self, *, commit: bool, locks: AcquisitionLocks) -> None:
        """End the transition: for good, or back to what was, if the lock has not timed out since."""
        before, self._before = self._before, None
        if commit or self._archived_for_good or before is None:
            self.unlock(locks)
        elif self.lock is not None and self.lock.expired:
            self.state = _ARCHIVED if before.delivery_count >= before.delivery_count_limit else _AVAILABLE
            self.member_id = NOBODY
            self.lock = None
        else:
            self.state, self.member_id = before.state, before.member_id

    def archive(self, locks: AcquisitionLocks) -> None:
        """Archive it whatever it is; no transition that is under way changes that."""
        self._archived_for_good = True
        self.state = _ARCHIVED
        self.member_id = NOBODY
        self.unlock(locks)

    def lock_with(self, lock: AcquisitionLock) -> None:
        """Set the lock; as in Kafka, one that is there still is an error."""
        if self.lock is not None:
            raise thrown("Existing acquisition lock timeout exists, cannot override.")
        self.lock = lock

    def unlock(self, locks: AcquisitionLocks) -> None:
        """Cancel the lock, if there is one."""
        if self.lock is not None:
            locks.cancel(self.lock)
            self.lock = None


class InFlightBatch:
    """Offsets first to last, which stand alike (`whole`) or each for itself (`offsets`): one of the two is None."""

    __slots__ = ("first_offset", "last_offset", "offsets", "whole")

    def __init__(self, first_offset: int, last_offset: int, whole: InFlightState) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.whole: InFlightState | None = whole
        self.offsets: list[InFlightState] | None = None

    @property
    def size(self) -> int:
        """How many offsets it spans."""
        return self.last_offset - self.first_offset + 1

    def split(self, locks: AcquisitionLocks) -> list[InFlightState]:
        """Let each offset stand for itself from now on, with a lock of its own where the batch has one."""
        whole = self.whole
        if whole is None:
            assert self.offsets is not None
            return self.offsets
        states = [InFlightState(whole.state, whole.delivery_count, whole.member_id) for _ in range(self.size)]
        if whole.lock is not None:
            for offset, state in enumerate(states, self.first_offset):
                state.lock = locks.arm(offset, offset, whole.lock.deadline_ms)
            whole.unlock(locks)
        self.whole, self.offsets = None, states
        return states

    def split_at(self, last_acquired: int, locks: AcquisitionLocks, deadline_ms: int) -> None:
        """Let each offset stand for itself: those up to ``last_acquired`` as the batch does, the others as never delivered."""
        whole = self.whole
        assert whole is not None
        states = []
        for offset in range(self.first_offset, self.last_offset + 1):
            if offset <= last_acquired:
                lock = locks.arm(offset, offset, deadline_ms)
                states.append(InFlightState(whole.state, whole.delivery_count, whole.member_id, lock))
            else:
                states.append(InFlightState(_AVAILABLE, whole.delivery_count - 1))
        self.whole, self.offsets = None, states

    def between(self, first_offset: int, last_offset: int) -> Iterator[tuple[int, InFlightState]]:
        """The offsets of a split batch that lie in these bounds, both inclusive."""
        assert self.offsets is not None
        start = max(first_offset - self.first_offset, 0)
        return enumerate(self.offsets[start : max(last_offset - self.first_offset + 1, 0)], self.first_offset + start)

    def state_of(self, offset: int) -> InFlightState | None:
        """How this offset stands; the whole batch's state, wherever the offset is, while there is one (as Kafka asks it)."""
        if self.offsets is None:
            return self.whole
        return self.offsets[offset - self.first_offset] if self.first_offset <= offset <= self.last_offset else None

    def first_free(self) -> int | None:
        """The first offset that can be acquired."""
        if self.whole is not None:
            return self.first_offset if self.whole.is_free else None
        assert self.offsets is not None
        return next((offset for offset, state in enumerate(self.offsets, self.first_offset) if state.is_free), None)
