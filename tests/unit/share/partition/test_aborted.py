"""Records of aborted transactions are archived in place of delivered, under read_committed."""

from __future__ import annotations

from typing import NamedTuple

from kgctl.model.error_codes import ErrorCode
from kgctl.share.partition import Acquired, AcquiredRecords, AcquireMode, FetchedBatch, ShareFailure, SharePartition
from tests.unit.share.partition.partitions import active, cache


class Transaction(NamedTuple):
    """One that was aborted."""

    producer_id: int
    first_offset: int


LOG = [
    FetchedBatch(0, 2, 1, transactional=True),
    FetchedBatch(3, 4, 2, transactional=True),
    FetchedBatch(5, 5, 1, transactional=True, abort_marker=True),
    FetchedBatch(6, 7, 1, transactional=True),
    FetchedBatch(8, 9, 1),
]


def acquire(partition: SharePartition, *aborted: Transaction) -> Acquired:
    wish = {"batch_size": 500, "max_fetch_records": 500, "fetch_offset": 0}
    return partition.acquire("A", AcquireMode.BATCH_OPTIMIZED, **wish, batches=LOG, now_ms=0, aborted=aborted)


def test_a_producers_batches_are_archived_up_to_its_marker() -> None:
    partition = active()

    assert acquire(partition, Transaction(1, 0)) == Acquired((AcquiredRecords(3, 9, 1),), 7)
    assert cache(partition) == ["0-9 " + "/ ".join(["ARCHIVED 1"] * 3 + ["ACQUIRED 1A"] * 7)]
    assert partition.delivery_complete_count == 3


def test_what_is_left_is_told_on_both_sides() -> None:
    assert acquire(active(), Transaction(2, 3)) == Acquired((AcquiredRecords(0, 2, 1), AcquiredRecords(5, 9, 1)), 8)


def test_a_transaction_that_begins_later_is_none_of_the_batches_before() -> None:
    found = acquire(active(), Transaction(1, 6), Transaction(2, 99))

    assert found == Acquired((AcquiredRecords(0, 5, 1), AcquiredRecords(8, 9, 1)), 8)


def test_an_aborted_batch_before_all_in_flight_is_an_error_as_in_kafka() -> None:
    message = "Batch record not found. The request batch offsets are not found in the cache."
    failure = ShareFailure(ErrorCode.UNKNOWN_SERVER_ERROR, message, whole_request=True)

    partition = active(start=2)
    assert acquire(partition, Transaction(1, 0)) == Acquired(failure=failure)
    assert cache(partition) == ["2-9 ACQUIRED 1A"]
