"""Moves of the general sticky algorithm stay reversible."""

from __future__ import annotations

from kgctl.assignors.partition_space import PartitionSpace
from kgctl.assignors.sticky_state import MovedSet, PartitionMovements


def _movements(count: int = 40) -> PartitionMovements:
    return PartitionMovements(PartitionSpace({"t": count}), 0)


def test_without_a_move_back_the_partition_itself_goes() -> None:
    moves = _movements()
    moves.move(3, source=0, target=1)

    assert moves.actual(5, source=0, target=1) == 5
    assert moves.actual(5, source=1, target=2) == 5


def test_instead_of_another_a_partition_goes_back_that_came_from_there() -> None:
    moves = _movements()
    moves.move(3, source=0, target=1)

    assert moves.actual(5, source=1, target=0) == 3


def test_a_partition_that_moves_on_keeps_its_first_source() -> None:
    moves = _movements()
    moves.move(3, source=0, target=1)
    moves.move(3, source=1, target=2)

    assert moves.actual(5, source=2, target=0) == 3
    assert moves.actual(5, source=1, target=0) == 5


def test_a_partition_that_is_home_again_is_forgotten() -> None:
    moves = _movements()
    moves.move(3, source=0, target=1)
    moves.move(3, source=1, target=0)

    assert moves.actual(5, source=1, target=0) == 5


def test_a_partition_that_moved_is_asked_for_by_its_first_source() -> None:
    moves = _movements()
    moves.move(3, source=0, target=1)
    moves.move(7, source=2, target=0)

    # Partition 3 would go from 1 to 2; its source is 0, and 7 came from 2 to 0.
    assert moves.actual(3, source=1, target=2) == 7


def test_of_several_the_first_of_a_java_set_goes_back() -> None:
    moves = _movements()
    for number in (9, 1, 30):
        moves.move(number, source=0, target=1)

    # Hashes of t-9, t-1 and t-30 are 31 * (31 + partition) + 116: buckets 12, 4 and 7 of 16.
    assert moves.actual(5, source=1, target=0) == 1


def test_of_several_the_first_of_librdkafka_s_list_goes_back() -> None:
    moves = PartitionMovements(PartitionSpace({"t": 40}), 0, MovedSet.oldest)
    for number in (9, 1, 30):
        moves.move(number, source=0, target=1)

    assert moves.actual(5, source=1, target=0) == 9
