"""Acquisition locks: order, cancellation, and a heap that does not grow with what is cancelled."""

from __future__ import annotations

from kgctl.share.partition.locks import AcquisitionLock, AcquisitionLocks


def due(locks: AcquisitionLocks, now_ms: int) -> list[AcquisitionLock]:
    """What times out, in order."""
    found = []
    while (lock := locks.pop_due(now_ms)) is not None:
        found.append(lock)
    return found


def test_locks_time_out_in_order_of_deadline_then_of_arming() -> None:
    locks = AcquisitionLocks()
    later, first, second = locks.arm(0, 4, 20), locks.arm(9, 9, 10), locks.arm(5, 5, 10)

    assert (locks.next_deadline_ms(), locks.deadlines()) == (10, [10, 10, 20])
    assert due(locks, 9) == []
    assert due(locks, 20) == [first, second, later]
    assert [lock.expired for lock in (later, first, second)] == [True, True, True]
    assert locks.next_deadline_ms() is None


def test_a_cancelled_lock_does_not_time_out() -> None:
    locks = AcquisitionLocks()
    gone, left = locks.arm(0, 0, 10), locks.arm(1, 1, 20)
    locks.cancel(gone)
    locks.cancel(gone)

    assert (locks.next_deadline_ms(), due(locks, 30)) == (20, [left])
    locks.cancel(left)  # it has expired: nothing to do
    assert (left.cancelled, locks.next_deadline_ms()) == (False, None)


def test_cancelled_locks_are_thrown_away() -> None:
    locks = AcquisitionLocks()
    kept = locks.arm(0, 0, 1_000_000)
    for number in range(10_000):
        locks.cancel(locks.arm(number, number, 2_000_000))

    assert len(locks._heap) < 100
    assert due(locks, 3_000_000) == [kept]
