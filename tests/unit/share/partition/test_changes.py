"""Records leave their members: what a client says of them, what it may not say, sessions that close, locks that time out."""

from __future__ import annotations

import pytest

from kgctl.model.error_codes import ErrorCode
from kgctl.model.share import StateBatch
from kgctl.share.partition import FetchesMayComplete, ShareDone, ShareFailure, WriteState
from tests.unit.share.partition.partitions import LOCK_MS, acknowledge, active, cache, fetch, settle

ACCEPT, RELEASE, REJECT, RENEW, GAP = 1, 2, 3, 4, 0


def test_a_batch_that_is_accepted_whole_stays_one_entry_until_it_is_kept() -> None:
    partition = active()
    fetch(partition, (0, 4))
    effects = acknowledge(partition, (0, 4, ACCEPT))

    assert effects == [WriteState(1, 1, 3, 0, 5, (StateBatch(0, 4, 2, 1),))]
    assert (cache(partition), partition.start_offset) == (["0-4 ACKNOWLEDGED 1*"], 0)
    assert settle(partition, effects) == [ShareDone(7), FetchesMayComplete()]
    assert (cache(partition), partition.start_offset, partition.end_offset) == ([], 5, 5)
    assert (partition.delivery_complete_count, partition.next_deadline_ms()) == (0, None)


def test_offsets_that_are_told_apart_split_a_batch() -> None:
    partition = active()
    fetch(partition, (0, 4))
    effects = acknowledge(partition, (0, 4, ACCEPT, RELEASE, REJECT, GAP, RENEW), now=400)

    told = (StateBatch(0, 0, 2, 1), StateBatch(1, 1, 0, 1), StateBatch(2, 2, 4, 1), StateBatch(3, 3, 4, 1))
    assert effects == [WriteState(1, 1, 3, 0, 3, told)]
    settle(partition, effects)
    assert cache(partition) == ["0-4 ACKNOWLEDGED 1/ AVAILABLE 1/ ARCHIVED 1/ ARCHIVED 1/ ACQUIRED 1A"]
    assert (partition.start_offset, partition.delivery_complete_count, partition.next_deadline_ms()) == (1, 2, 400 + LOCK_MS)


def test_a_part_of_a_batch_splits_it() -> None:
    partition = active()
    fetch(partition, (0, 3))
    settle(partition, acknowledge(partition, (1, 2, ACCEPT)))

    assert cache(partition) == ["0-3 ACQUIRED 1A/ ACKNOWLEDGED 1/ ACKNOWLEDGED 1/ ACQUIRED 1A"]
    assert (partition.start_offset, partition.delivery_complete_count) == (0, 2)


def test_renewing_a_batch_moves_its_lock_and_writes_nothing() -> None:
    partition = active()
    fetch(partition, (0, 4))

    assert acknowledge(partition, (0, 4, RENEW), now=500) == [ShareDone(7)]
    assert (cache(partition), partition.next_deadline_ms()) == (["0-4 ACQUIRED 1A"], 500 + LOCK_MS)


def refusal(message: str, error: ErrorCode = ErrorCode.INVALID_RECORD_STATE) -> ShareDone:
    return ShareDone(7, ShareFailure(error, message))


NOT_ACQUIRED = "The batch cannot be acknowledged. The batch is not in the acquired state."
PAST = "Batch record not found. The {} offset in request is past acquired records."


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ((10, 14, 9), refusal("Invalid acknowledge type: [9]", ErrorCode.INVALID_REQUEST)),
        ((5, 9, ACCEPT), ShareDone(7)),
        ((8, 9, ACCEPT), ShareDone(7)),
        ((30, 31, ACCEPT), refusal(PAST.format("first"), ErrorCode.INVALID_REQUEST)),
        ((23, 27, ACCEPT), refusal(PAST.format("last"), ErrorCode.INVALID_REQUEST)),
        ((15, 19, ACCEPT), refusal(NOT_ACQUIRED)),
        ((20, 20, ACCEPT), refusal("Member is not the owner of batch record")),
        ((11, 11, ACCEPT), refusal("The offset cannot be acknowledged. The offset is not acquired.")),
    ],
)
def test_what_may_not_be_said_changes_nothing(said: tuple[int, ...], answer: ShareDone) -> None:
    partition = active(start=10)
    fetch(partition, (10, 14), (15, 19), batch_size=1)
    settle(partition, acknowledge(partition, (11, 11, RELEASE), (15, 19, RELEASE)))
    fetch(partition, (20, 24), member="B")
    before, complete = cache(partition), partition.delivery_complete_count

    assert acknowledge(partition, (10, 10, ACCEPT), said)[0] in (answer, *_writes(said))
    if answer.failure is not None:
        assert (cache(partition), partition.delivery_complete_count) == (before, complete)


def _writes(said: tuple[int, ...]) -> list[WriteState]:
    """What is before the start offset is passed over: the rest is written."""
    return [WriteState(2, 1, 3, 10, 1, (StateBatch(10, 10, 2, 1),))] if said[1] < 10 else []


def test_records_that_the_persister_kept_as_acquired_are_given_back_by_whoever_goes() -> None:
    partition = active(kept=[(0, 1, 1, 1)])

    assert partition.release_acquired_records(7, "A", 0) == [WriteState(1, 1, 3, 0, 0, (StateBatch(0, 1, 0, 1),))]


def test_of_a_batch_in_which_the_log_begins_the_part_behind_that_is_acknowledged() -> None:
    partition = active()
    fetch(partition, (0, 3))
    partition.update_cache_and_offsets(2)

    assert acknowledge(partition, (0, 3, ACCEPT)) == [WriteState(1, 1, 3, 2, 2, (StateBatch(2, 2, 2, 1), StateBatch(3, 3, 2, 1)))]


def test_renewing_may_be_switched_off() -> None:
    partition = active(renew_acknowledge_enable=False)
    fetch(partition, (0, 4))

    assert acknowledge(partition, (0, 4, RENEW)) == [refusal("Renewing acquisition locks is not enabled for the group.")]


def test_what_is_in_transition_cannot_be_acknowledged_again() -> None:
    partition = active()
    fetch(partition, (0, 4))
    acknowledge(partition, (0, 4, ACCEPT))

    assert acknowledge(partition, (0, 4, ACCEPT)) == [refusal(NOT_ACQUIRED)]


def test_where_kafka_throws_the_whole_request_fails_and_nothing_is_rolled_back() -> None:
    partition = active(start=5, kept=[(8, 9, 0, 1)])
    fetch(partition, (8, 9), fetch_offset=8)
    failure = ShareFailure(ErrorCode.UNKNOWN_SERVER_ERROR, whole_request=True)

    assert acknowledge(partition, (8, 9, ACCEPT), (4, 6, ACCEPT)) == [ShareDone(7, failure)]
    assert cache(partition) == ["8-9 ACKNOWLEDGED 2*"]


def test_a_member_that_goes_gives_back_what_it_has_and_nobody_elses() -> None:
    partition = active()
    fetch(partition, (0, 4))
    fetch(partition, (5, 9), member="B")
    fetch(partition, (10, 12))
    settle(partition, acknowledge(partition, (11, 11, ACCEPT)))
    effects = partition.release_acquired_records(7, "A", 0)

    assert effects == [WriteState(2, 1, 3, 0, 1, (StateBatch(0, 4, 0, 1), StateBatch(10, 10, 0, 1), StateBatch(12, 12, 0, 1)))]
    assert settle(partition, effects) == [ShareDone(7)]
    assert cache(partition) == ["0-4 AVAILABLE 1", "5-9 ACQUIRED 1B", "10-12 AVAILABLE 1/ ACKNOWLEDGED 1/ AVAILABLE 1"]
    assert partition.release_acquired_records(8, "A", 0) == [ShareDone(8)]


def test_records_whose_lock_has_timed_out_are_free_whatever_the_persister_says() -> None:
    partition = active()
    fetch(partition, (0, 4), now=100)
    assert partition.expire(99 + LOCK_MS) == []
    effects = partition.expire(100 + LOCK_MS)

    assert effects == [WriteState(1, 1, 3, 0, 0, (StateBatch(0, 4, 0, 1),)), FetchesMayComplete()]
    assert (cache(partition), partition.next_fetch_offset()) == (["0-4 AVAILABLE 1"], 0)
    assert partition.written(1, ErrorCode.FENCED_STATE_EPOCH) == []
    assert cache(partition) == ["0-4 AVAILABLE 1"]


def test_records_that_time_out_the_last_time_are_archived() -> None:
    partition = active(kept=[(0, 0, 0, 1)], delivery_count_limit=2)
    fetch(partition, (0, 0))
    effects = partition.expire(LOCK_MS)

    assert effects == [WriteState(1, 1, 3, 0, 1, (StateBatch(0, 0, 4, 2),)), FetchesMayComplete()]
    assert partition.written(1) == []
    assert (cache(partition), partition.start_offset) == ([], 1)


def test_offsets_of_a_split_batch_time_out_each_for_itself() -> None:
    partition = active()
    fetch(partition, (0, 2))
    acknowledge(partition, (1, 1, RENEW), now=600)
    effects = partition.expire(LOCK_MS)

    told = [effect.batches for effect in effects if isinstance(effect, WriteState)]
    assert told == [(StateBatch(0, 0, 0, 1),), (StateBatch(2, 2, 0, 1),)]
    assert (cache(partition), partition.next_deadline_ms()) == (["0-2 AVAILABLE 1/ ACQUIRED 1A/ AVAILABLE 1"], 600 + LOCK_MS)
