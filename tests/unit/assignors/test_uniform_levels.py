"""Receivers from the bottom, donors from the top."""

from __future__ import annotations

from kgctl.assignors.uniform import Levels


def _received(sizes: list[int], count: int) -> list[int]:
    levels = Levels(range(len(sizes)), sizes)
    received = []
    for _ in range(count):
        member = levels.next_least_loaded()
        sizes[member] += 1
        received.append(member)
    return received


def test_receivers_are_filled_level_by_level() -> None:
    assert _received([2, 0, 1], 6) == [1, 1, 2, 1, 2, 0]


def test_receivers_of_one_level_take_turns_by_number() -> None:
    assert _received([0, 0, 0], 5) == [0, 1, 2, 0, 1]


def test_donors_are_emptied_level_by_level_from_the_right() -> None:
    sizes = [0, 2, 3]
    levels = Levels(range(3), sizes)
    donors = []
    for _ in range(3):
        donor = levels.next_most_loaded()
        assert donor is not None
        sizes[donor] -= 1
        donors.append(donor)

    assert donors == [2, 2, 1]


def test_a_donor_without_partitions_is_passed_over() -> None:
    levels = Levels(range(2), [1, 3])

    assert levels.next_most_loaded() == 1
    levels.exclude_most_loaded()
    assert levels.next_most_loaded() == 0
    levels.exclude_most_loaded()
    assert levels.next_most_loaded() is None


def test_levels_that_differ_by_one_are_balanced() -> None:
    levels = Levels(range(2), [1, 2])

    assert levels.imbalance == 1
    assert not levels.is_balanced()
    levels.next_least_loaded()
    levels.next_most_loaded()
    assert levels.is_balanced()
