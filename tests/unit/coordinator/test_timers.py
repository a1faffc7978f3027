"""Keyed timers: order, replacement, cancellation, and a heap that does not grow with re-arming."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kgctl.coordinator.timers import TimerKey, TimerKind, TimerQueue

A, B, C = (TimerKey(TimerKind.SESSION, "g", name) for name in "abc")


def drain(queue: TimerQueue, now_ms: int) -> list[tuple[TimerKey, int]]:
    """Everything due, in order."""
    fired = []
    while (timer := queue.pop_due(now_ms)) is not None:
        fired.append((timer.key, timer.deadline_ms))
    return fired


def test_timers_fire_in_order_of_deadline_then_of_arming() -> None:
    queue = TimerQueue()
    queue.arm(A, 20)
    queue.arm(B, 10)
    queue.arm(C, 20)

    assert drain(queue, 20) == [(B, 10), (A, 20), (C, 20)]


def test_a_deadline_is_due_at_its_own_time_and_not_before() -> None:
    queue = TimerQueue()
    queue.arm(A, 10, argument=7)

    assert not queue.is_due(9)
    assert queue.pop_due(9) is None
    assert queue.is_due(10)
    timer = queue.pop_due(10)
    assert timer is not None
    assert (timer.key, timer.argument) == (A, 7)
    assert A not in queue


def test_arming_again_replaces_the_timer_and_its_place() -> None:
    queue = TimerQueue()
    queue.arm(A, 10)
    queue.arm(B, 10)
    queue.arm(A, 10)

    assert drain(queue, 10) == [(B, 10), (A, 10)]


def test_arming_again_may_move_a_timer_to_an_earlier_time() -> None:
    queue = TimerQueue()
    queue.arm(A, 50)
    queue.arm(A, 5)

    assert queue.next_deadline_ms() == 5
    assert drain(queue, 100) == [(A, 5)]


def test_arm_if_absent_leaves_the_old_deadline() -> None:
    queue = TimerQueue()
    queue.arm_if_absent(A, 10)
    queue.arm_if_absent(A, 20)

    assert queue.deadline_ms(A) == 10


def test_a_cancelled_timer_is_gone_and_can_be_armed_again() -> None:
    queue = TimerQueue()
    queue.arm(A, 10)
    queue.cancel(A)
    queue.cancel(B)

    assert (queue.next_deadline_ms(), queue.deadline_ms(A), len(queue)) == (None, None, 0)
    assert not queue.is_due(10)
    queue.arm(A, 30)
    assert drain(queue, 100) == [(A, 30)]


def test_clear_removes_everything() -> None:
    queue = TimerQueue()
    queue.arm(A, 10)
    queue.clear()

    assert queue.keys() == []
    assert queue.next_deadline_ms() is None


def test_heartbeats_for_a_day_leave_the_heap_small() -> None:
    queue = TimerQueue()
    for beat in range(28_800):
        queue.arm(A, beat * 3_000 + 45_000)
        queue.cancel(B)
        queue.arm(B, beat * 3_000 + 45_000)

    assert len(queue._heap) < 200


@given(st.lists(st.tuples(st.sampled_from([A, B, C]), st.none() | st.integers(0, 20))))
def test_the_queue_agrees_with_a_list_that_is_sorted(operations: list[tuple[TimerKey, int | None]]) -> None:
    queue = TimerQueue()
    expected: dict[TimerKey, tuple[int, int]] = {}
    for sequence, (key, deadline_ms) in enumerate(operations):
        if deadline_ms is None:
            queue.cancel(key)
            expected.pop(key, None)
        else:
            queue.arm(key, deadline_ms)
            expected[key] = (deadline_ms, sequence)
        assert queue.next_deadline_ms() == min((place[0] for place in expected.values()), default=None)

    in_order = sorted(expected.items(), key=lambda entry: entry[1])
    assert drain(queue, 20) == [(key, place[0]) for key, place in in_order]
