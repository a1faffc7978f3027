"""A share partition begins with what is kept, is fetched by one at a time, and tells the persister what changes."""

from __future__ import annotations

import pytest

from kgctl.model.error_codes import ErrorCode
from kgctl.model.share import PartitionState, StateBatch
from kgctl.share.partition import FetchesMayComplete, PartitionStatus, ReadState, ShareDone, ShareFailure, WriteState
from tests.unit.share.partition.partitions import LOCK_MS, acknowledge, active, cache, empty, fetch, settle

NAME = "g-AAAAAAAAAAAAAAAAAAAAAQ:t-0"


def failed(ticket: int, error: str, message: str) -> list[ShareDone]:
    return [ShareDone(ticket, ShareFailure(ErrorCode[error], message))]


def test_state_is_read_once_and_others_are_told_to_come_again() -> None:
    partition = empty()

    assert partition.maybe_initialize(1) == [ReadState(3)]
    assert partition.maybe_initialize(2) == failed(2, "LEADER_NOT_AVAILABLE", f"Share partition is already initializing {NAME}")
    assert partition.read(PartitionState(4, 10)) == [ShareDone(1)]
    assert partition.maybe_initialize(3) == [ShareDone(3)]
    assert (partition.status, partition.state_epoch, partition.start_offset, partition.end_offset) == (
        PartitionStatus.ACTIVE,
        4,
        10,
        10,
    )


def test_what_cannot_be_read_is_told_and_stays_so() -> None:
    partition = empty()
    partition.maybe_initialize(1)

    assert partition.read(ErrorCode.FENCED_LEADER_EPOCH, "old") == failed(1, "NOT_LEADER_OR_FOLLOWER", "old")
    assert partition.maybe_initialize(2) == failed(2, "UNKNOWN_SERVER_ERROR", f"Share partition failed to load {NAME}")
    assert not partition.maybe_acquire_fetch_lock(1)


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ((9, 12, 0, 1), f"Failed to initialize the share partition {NAME}"),
        ((12, 11, 0, 1), f"Failed to initialize the share partition {NAME}"),
        ((10, 12, 5, 1), "Unknown record state id: 5"),
    ],
)
def test_damaged_state_is_refused(batch: tuple[int, int, int, int], message: str) -> None:
    partition = empty()
    partition.maybe_initialize(1)

    assert partition.read(PartitionState(0, 10, batches=(StateBatch(*batch),))) == failed(1, "UNKNOWN_SERVER_ERROR", message)
    assert partition.status is PartitionStatus.FAILED


def test_a_group_without_start_offset_begins_where_its_setting_says() -> None:
    partition = empty()
    partition.maybe_initialize(1)
    assert partition.read(PartitionState(0), reset_offset=42) == [ShareDone(1)]
    assert (partition.start_offset, partition.next_fetch_offset()) == (42, 42)


def test_a_setting_that_gives_no_offset_is_a_failure() -> None:
    partition = empty()
    partition.maybe_initialize(1)
    failure = ShareFailure(ErrorCode.NOT_LEADER_OR_FOLLOWER, "moved")

    assert partition.read(PartitionState(0), reset_offset=failure) == [ShareDone(1, failure)]


def test_what_is_done_at_the_beginning_of_kept_state_is_forgotten() -> None:
    partition = active(kept=[(0, 4, 2, 1), (5, 6, 4, 1), (7, 9, 0, 2), (10, 11, 2, 1)])

    assert cache(partition) == ["7-9 AVAILABLE 2", "10-11 ACKNOWLEDGED 1"]
    assert (partition.start_offset, partition.end_offset, partition.delivery_complete_count) == (7, 11, 2)
    assert partition.next_fetch_offset() == 7


def test_one_fetch_at_a_time_has_the_lock() -> None:
    partition = active()

    assert [partition.maybe_acquire_fetch_lock(fetch_id) for fetch_id in (1, 2)] == [True, False]
    assert (partition.release_fetch_lock(2), partition.fetch_lock) == (False, None)
    assert [partition.maybe_acquire_fetch_lock(2), partition.release_fetch_lock(2)] == [True, True]


def test_a_write_that_fails_is_rolled_back() -> None:
    partition = active()
    fetch(partition, (0, 4))
    acknowledge(partition, (0, 1, 1))

    assert partition.written(1, ErrorCode.FENCED_STATE_EPOCH, "fenced") == failed(7, "NOT_LEADER_OR_FOLLOWER", "fenced")
    assert cache(partition) == ["0-4 " + "/ ".join(["ACQUIRED 1A"] * 5)]
    assert partition.delivery_complete_count == 0


def test_a_write_that_fails_after_the_lock_timed_out_leaves_the_records_free() -> None:
    partition = active()
    fetch(partition, (0, 4))
    acknowledge(partition, (0, 4, 1))

    assert partition.expire(LOCK_MS) == []
    partition.written(1, ErrorCode.NOT_COORDINATOR)
    assert (cache(partition), partition.delivery_complete_count, partition.next_fetch_offset()) == (["0-4 AVAILABLE 1"], 0, 0)


def test_writes_are_answered_in_any_order() -> None:
    partition = active()
    fetch(partition, (0, 4), (5, 9), batch_size=1)
    acknowledge(partition, (0, 4, 1))
    second = acknowledge(partition, (5, 9, 3))

    assert second == [WriteState(2, 1, 3, 0, 10, (StateBatch(5, 9, 4, 1),))]
    assert partition.written(2) == [ShareDone(7)]
    assert partition.written(1) == [ShareDone(7), FetchesMayComplete()]
    assert (partition.start_offset, partition.delivery_complete_count) == (10, 0)


def test_settings_hold_from_when_they_are_set() -> None:
    partition = active(delivery_count_limit=2)
    fetch(partition, (0, 4))
    partition.settings = type(partition.settings)(delivery_count_limit=5, record_lock_duration_ms=50)
    settle(partition, acknowledge(partition, (0, 4, 2)))
    fetch(partition, (0, 4))

    assert partition.next_deadline_ms() == 50
    settle(partition, acknowledge(partition, (0, 4, 2)))
    assert cache(partition) == ["0-4 AVAILABLE 2"]


def test_a_fenced_partition_is_not_used_again() -> None:
    partition = active()
    partition.mark_fenced()

    assert (fetch(partition, (0, 4)), partition.maybe_acquire_fetch_lock(1)) == ([], False)
    assert partition.maybe_initialize(2) == failed(2, "LEADER_NOT_AVAILABLE", f"Share partition is fenced {NAME}")
