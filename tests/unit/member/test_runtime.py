"""Deadlines by name, and evenly spread numbers."""

from __future__ import annotations

from random import Random  # the seeded source that members are handed

from kgctl.member.runtime import Deadlines, draw


def test_deadlines_come_in_order_of_time_then_of_arming() -> None:
    deadlines = Deadlines()
    for name, at_us in (("late", 9), ("second", 5), ("first", 3), ("third", 5)):
        deadlines.arm(name, at_us)

    assert deadlines.next_us() == 3
    assert [deadlines.pop_due(8) for _ in range(4)] == ["first", "second", "third", None]
    assert deadlines.next_us() == 9


def test_arming_again_replaces_and_cancelling_forgets() -> None:
    deadlines = Deadlines()
    deadlines.arm("a", 3)
    deadlines.arm("a", 7)
    deadlines.arm("b", 8)
    deadlines.cancel("b")
    deadlines.cancel("never armed")

    assert (deadlines.at("a"), deadlines.at("b"), "b" in deadlines.armed) == (7, None, False)
    assert deadlines.next_except(frozenset({"a"})) is None
    deadlines.clear()
    assert deadlines.next_us() is None
    assert deadlines.pop_due(10) is None


def test_draw_covers_the_whole_range_evenly() -> None:
    rng = Random(1)
    drawn = [draw(rng, 3) for _ in range(4_000)]

    assert sorted(set(drawn)) == [0, 1, 2, 3]
    assert all(abs(drawn.count(number) - 1_000) < 120 for number in range(4))
    assert draw(rng, 0) == 0
