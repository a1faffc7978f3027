"""The log's beginning goes: what is free before it is archived, what is acquired follows; as in Kafka 4.3.1, faults included."""

from __future__ import annotations

from kgctl.share.partition import ShareDone
from tests.unit.share.partition.partitions import LOCK_MS, acknowledge, acquire, active, cache, fetch, settle


def test_without_records_in_flight_both_offsets_move() -> None:
    partition = active(start=5)
    partition.update_cache_and_offsets(9)

    assert (partition.start_offset, partition.end_offset, partition.next_fetch_offset()) == (9, 9, 9)
    partition.update_cache_and_offsets(3)
    assert partition.start_offset == 9


def test_what_is_free_before_it_is_archived_and_counts_no_longer() -> None:
    partition = active(kept=[(0, 4, 0, 1), (5, 9, 2, 1), (10, 14, 0, 1)])
    assert partition.delivery_complete_count == 5
    partition.update_cache_and_offsets(7)

    assert cache(partition) == ["0-4 ARCHIVED 1", "5-9 ACKNOWLEDGED 1", "10-14 AVAILABLE 1"]
    assert (partition.start_offset, partition.end_offset, partition.delivery_complete_count) == (7, 14, 3)
    assert partition.next_fetch_offset() == 10


def test_behind_all_records_the_partition_is_fresh() -> None:
    partition = active()
    fetch(partition, (0, 4))
    partition.update_cache_and_offsets(9)

    assert (partition.start_offset, partition.end_offset, partition.next_fetch_offset()) == (9, 9, 9)
    assert cache(partition) == ["0-4 ACQUIRED 1A"]
    assert acknowledge(partition, (0, 4, 1)) == [ShareDone(7)]


def test_within_an_acquired_batch_the_part_before_it_is_archived_once_the_lock_times_out() -> None:
    partition = active()
    fetch(partition, (0, 3))
    partition.update_cache_and_offsets(2)
    partition.expire(LOCK_MS)

    assert cache(partition) == ["0-3 ARCHIVED 1/ ARCHIVED 1/ AVAILABLE 1/ AVAILABLE 1"]
    assert (partition.delivery_complete_count, partition.next_fetch_offset()) == (0, 2)


def test_records_before_it_that_are_settled_later_draw_the_start_back() -> None:
    """Kafka's SharePartition#maybeUpdateCachedStateAndOffsets does: the next fetch is out of range and moves it again."""
    partition = active()
    fetch(partition, (0, 0))
    partition.update_cache_and_offsets(2)
    settle(partition, partition.release_acquired_records(1, "A", 0))

    assert (partition.start_offset, partition.end_offset) == (1, 1)


def test_a_batch_that_is_split_in_a_transition_keeps_locks_that_nobody_ends() -> None:
    """Kafka's InFlightBatch#maybeInitializeOffsetStateUpdate gives them to free offsets: acquiring those fails until they end."""
    partition = active()
    fetch(partition, (0, 1))
    partition.release_acquired_records(1, "A", 0)
    partition.update_cache_and_offsets(1)
    found = acquire(partition, (1, 1), member="B", fetch_offset=1)

    assert found.failure is not None
    assert found.failure.message == "Existing acquisition lock timeout exists, cannot override."
    assert cache(partition) == ["0-1 ARCHIVED 1/ ACQUIRED 2B"]
