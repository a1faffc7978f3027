"""Who consumes what."""

from __future__ import annotations

from kgctl.model.groups import TopicPartition
from kgctl.simulate.recording.owners import NOBODY, PartitionOwners, PartitionTable, code_of
from kgctl.simulate.scenario.vocabulary import GapCause

BOOT, HANDOVER = code_of(GapCause.BOOT), code_of(GapCause.HANDOVER)


def owners(count: int = 2) -> PartitionOwners:
    table = PartitionTable()
    numbers = table.add("t", count, 0, counted=True)
    made = PartitionOwners(table)
    made.add(numbers, GapCause.BOOT, 0)
    return made


def test_a_lane_has_owners_and_causes() -> None:
    made = owners()
    made.own(7, [0], 10)
    made.release(7, [0], GapCause.HANDOVER, 20)
    made.set_cause([0], GapCause.FETCH, 25)
    made.own(8, [0], 30)
    assert made.segments(0, 0, 40) == [
        (0, 10, BOOT),
        (10, 20, 7),
        (20, 25, HANDOVER),
        (25, 30, code_of(GapCause.FETCH)),
        (30, 40, 8),
    ]
    assert made.segments(0, 12, 22) == [(12, 20, 7), (20, 22, HANDOVER)]
    assert made.segments(1, 0, 40) == [(0, 40, BOOT)]


def test_misplaced_counts_what_is_not_where_it_is_assigned() -> None:
    made = owners()
    assert (made.misplaced, made.unowned) == (2, 2)
    made.assign(7, [0, 1])
    made.own(7, [0], 10)
    made.own(8, [1], 10)
    assert (made.misplaced, made.unowned) == (1, 0)
    made.assign(8, [1])
    assert made.misplaced == 0
    made.assign(NOBODY, [0])
    assert made.misplaced == 1
    made.release(7, [0], GapCause.HANDOVER, 20)
    assert (made.misplaced, made.unowned) == (1, 1)


def test_a_zombie_and_its_successor_are_counted_as_two() -> None:
    made = owners()
    made.assign(8, [0])
    made.own(7, [0], 10)
    made.own(8, [0], 20)
    assert (made.consumers(0), made.owner[0], made.misplaced) == (2, 8, 1)
    made.release(7, [0], GapCause.REBALANCE, 50)
    assert (made.consumers(0), made.owner[0], made.double_owned) == (1, 8, [(0, 20, 50, 7)])
    assert made.segments(0, 0, 60) == [(0, 10, BOOT), (10, 20, 7), (20, 60, 8)]


def test_a_zombie_that_outlives_its_successor_is_the_owner_again() -> None:
    made = owners()
    made.own(8, [0], 10)
    made.own_again(7, [0, 1], 20)
    assert (made.owner, made.consumers(0)) == ([8, 7], 2)
    made.release(8, [0], GapCause.HANDOVER, 30)
    assert (made.owner, made.consumers(0), made.double_owned) == ([7, 7], 1, [(0, 20, 30, 7)])


def test_a_deleted_partition_is_no_gap() -> None:
    table = PartitionTable()
    made = PartitionOwners(table)
    made.add(table.add("t", 1, 0, counted=True), GapCause.BOOT, 0)
    made.delete(table.delete("t", 50), 50)
    assert (made.segments(0, 0, 100), made.misplaced, made.unowned) == ([(0, 50, BOOT)], 0, 0)


def test_unread_time_is_that_of_the_segments_in_any_window() -> None:
    made = owners()
    made.own(7, [0], 10)
    made.release(7, [0], GapCause.HANDOVER, 20)
    made.set_cause([0], GapCause.FETCH, 25)
    made.own(8, [0], 25)
    made.release(8, [0], GapCause.STALL, 30)
    for from_us in range(0, 40, 3):
        for to_us in range(from_us, 45, 4):
            expected = [0] * len(GapCause)
            for first_us, last_us, value in made.segments(0, from_us, to_us):
                if value < 0:
                    expected[-1 - value] += last_us - first_us
            assert made.unread_us(0, from_us, to_us) == expected, (from_us, to_us)


def test_a_name_stands_for_the_partition_that_had_it_last() -> None:
    table = PartitionTable()
    table.add("t", 3, 0, counted=True)
    table.add("u", 1, 0, counted=True)
    table.delete("t", 5)
    assert table.numbers_of([TopicPartition("u", 0), TopicPartition("t", 1)]) == [3, 1]
    table.add("t", 2, 6, counted=True)
    table.add("t", 2, 7, counted=True)
    wanted = [
        TopicPartition("t", 3),
        TopicPartition("t", 2),
        TopicPartition("v", 0),
        TopicPartition("t", 0),
        TopicPartition("t", 4),
    ]
    assert table.numbers_of(wanted) == [7, 6, 4]
    assert table.numbers_of(wanted) == [table.numbers[name] for name in wanted if name in table.numbers]
