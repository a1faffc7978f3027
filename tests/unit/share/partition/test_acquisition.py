"""What a fetch acquires: whole batches or so many records, new ones and those that are free again, and how much in flight."""

from __future__ import annotations

from kgctl.model.error_codes import ErrorCode
from kgctl.share.partition import Acquired, AcquireMode, ShareFailure
from kgctl.share.partition.acquisition import merged
from kgctl.share.partition.results import AcquiredRecords
from tests.unit.share.partition.partitions import acknowledge, acquire, active, cache, fetch, settle

LIMIT = AcquireMode.RECORD_LIMIT


def test_batches_are_one_entry_until_they_are_longer_than_wanted() -> None:
    partition = active()

    assert fetch(partition, (0, 4), (5, 9), (10, 14), batch_size=10) == [(0, 9, 1), (10, 14, 1)]
    assert cache(partition) == ["0-9 ACQUIRED 1A", "10-14 ACQUIRED 1A"]
    assert (partition.next_fetch_offset(), partition.end_offset) == (15, 14)


def test_the_batch_in_which_the_maximum_is_reached_goes_with_it() -> None:
    partition = active()

    assert fetch(partition, (0, 4), (5, 9), (10, 14), max_fetch_records=6) == [(0, 9, 1)]
    assert partition.next_fetch_offset() == 10


def test_a_record_limit_leaves_the_rest_of_the_batch_free() -> None:
    partition = active()

    assert fetch(partition, (0, 3), (4, 9), max_fetch_records=3, mode=LIMIT) == [(0, 2, 1)]
    assert cache(partition) == ["0-3 ACQUIRED 1A/ ACQUIRED 1A/ ACQUIRED 1A/ AVAILABLE 0"]
    assert fetch(partition, (0, 3), (4, 9), member="B", max_fetch_records=3, mode=LIMIT, fetch_offset=3) == [(3, 3, 1), (4, 5, 1)]


def test_nothing_is_acquired_where_there_is_nothing_to_acquire() -> None:
    partition = active(start=10)

    assert fetch(partition, (10, 12), max_fetch_records=0) == []
    assert fetch(partition, (5, 9)) == []
    assert cache(partition) == []


def test_a_batch_that_begins_before_the_start_offset_is_acquired_from_there_on() -> None:
    assert fetch(active(start=3), (0, 9)) == [(3, 9, 1)]


def test_released_records_are_delivered_again_and_counted() -> None:
    partition = active()
    fetch(partition, (0, 4))
    settle(partition, acknowledge(partition, (0, 4, 2)))

    assert partition.next_fetch_offset() == 0
    assert fetch(partition, (0, 4), (5, 9), member="B") == [(0, 4, 2), (5, 9, 1)]


def test_what_others_have_is_left_to_them() -> None:
    partition = active()
    fetch(partition, (0, 4))

    assert fetch(partition, (0, 4), member="B") == []
    assert cache(partition) == ["0-4 ACQUIRED 1A"]


def test_a_part_of_a_free_batch_splits_it() -> None:
    partition = active()
    fetch(partition, (0, 3))
    settle(partition, acknowledge(partition, (0, 3, 2)))

    assert fetch(partition, (1, 2), member="B") == [(1, 2, 2)]
    assert cache(partition) == ["0-3 AVAILABLE 1/ ACQUIRED 2B/ ACQUIRED 2B/ AVAILABLE 1"]


def test_in_flight_records_are_limited() -> None:
    partition = active(max_record_locks=10)
    assert fetch(partition, (0, 5), (6, 12)) == [(0, 12, 1)]
    assert not partition.can_acquire_records()
    assert fetch(partition, (13, 15)) == []

    settle(partition, acknowledge(partition, (2, 3, 2)))
    assert (partition.can_acquire_records(), partition.next_fetch_offset()) == (True, 2)
    assert fetch(partition, (0, 12), (13, 20), member="B", fetch_offset=2) == [(2, 3, 2)]
    assert partition.end_offset == 12


def test_records_that_were_delivered_often_come_in_smaller_numbers_and_the_last_time_alone() -> None:
    partition = active(kept=[(0, 7, 0, 3), (8, 9, 0, 1)], delivery_count_limit=5)

    assert fetch(partition, (0, 7), (8, 9)) == [(0, 3, 4)]
    assert fetch(partition, (0, 7), (8, 9), fetch_offset=4) == [(4, 7, 4)]
    settle(partition, partition.release_acquired_records(1, "A", 0))
    assert [fetch(partition, (0, 7), (8, 9), fetch_offset=offset) for offset in (0, 1)] == [[(0, 0, 5)], [(1, 1, 5)]]


def test_records_delivered_often_are_not_mixed_with_others() -> None:
    partition = active(kept=[(0, 1, 0, 1), (2, 3, 0, 4)], delivery_count_limit=5)

    assert fetch(partition, (0, 1), (2, 3)) == [(0, 1, 2)]


def test_gaps_of_what_the_persister_knew_are_acquired() -> None:
    partition = active(kept=[(3, 4, 2, 1), (8, 9, 0, 1)])

    assert partition.next_fetch_offset() == 0
    assert fetch(partition, (0, 9), (10, 12)) == [(0, 2, 1), (5, 7, 1), (8, 9, 2), (10, 12, 1)]
    assert partition.records.gap is None


def test_the_start_does_not_pass_a_gap_that_is_still_to_be_fetched() -> None:
    partition = active(kept=[(0, 2, 0, 1), (5, 6, 2, 1), (8, 9, 0, 1)])
    fetch(partition, (0, 2))
    assert (partition.next_fetch_offset(), partition.records.gap is None) == (3, False)
    settle(partition, acknowledge(partition, (0, 2, 1)))

    assert (partition.start_offset, partition.delivery_complete_count) == (3, 2)
    assert cache(partition) == ["5-6 ACKNOWLEDGED 1", "8-9 AVAILABLE 1"]


def test_the_start_passes_what_was_fetched_again_behind_a_gap() -> None:
    partition = active(kept=[(0, 2, 0, 1), (5, 6, 0, 1), (8, 9, 2, 1)])
    fetch(partition, (0, 2), (5, 6))
    settle(partition, acknowledge(partition, (0, 2, 1), (3, 4, 1), (5, 6, 1)))

    assert (partition.start_offset, partition.next_fetch_offset()) == (7, 7)


def test_a_record_limit_takes_a_part_of_a_free_batch() -> None:
    partition = active(kept=[(0, 4, 0, 1)])

    assert fetch(partition, (0, 4), max_fetch_records=2, mode=LIMIT) == [(0, 1, 2)]
    assert partition.next_fetch_offset() == 2


def test_a_record_at_its_last_attempt_ends_what_is_acquired_before_it() -> None:
    partition = active(kept=[(0, 3, 0, 1)], delivery_count_limit=3)
    fetch(partition, (2, 2), fetch_offset=2)
    settle(partition, acknowledge(partition, (2, 2, 2)))

    assert fetch(partition, (0, 3)) == [(0, 1, 2)]
    assert fetch(partition, (0, 3), fetch_offset=2) == [(2, 2, 3)]


def test_what_compaction_removed_is_archived_so_that_the_start_can_move() -> None:
    partition = active()
    fetch(partition, (0, 4), (5, 9), batch_size=1)
    settle(partition, acknowledge(partition, (0, 9, 2)))

    assert fetch(partition, (5, 9), fetch_offset=0) == [(5, 9, 2)]
    assert cache(partition) == ["0-4 ARCHIVED 1", "5-9 ACQUIRED 2A"]
    assert partition.delivery_complete_count == 5


def test_where_kafka_throws_the_whole_request_fails() -> None:
    partition = active(max_record_locks=5)
    fetch(partition, (0, 4))
    failure = ShareFailure(ErrorCode.UNKNOWN_SERVER_ERROR, "inconsistent range", whole_request=True)

    assert acquire(partition, (8, 9), fetch_offset=2) == Acquired(failure=failure)


def test_offsets_of_equal_counts_are_one_range() -> None:
    assert merged([(3, 1), (4, 1), (5, 2), (7, 2)]) == [
        AcquiredRecords(3, 4, 1),
        AcquiredRecords(5, 5, 2),
        AcquiredRecords(7, 7, 2),
    ]
    assert merged([]) == []
