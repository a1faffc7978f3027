"""Records of aborted transactions, which a fetch of ``read_committed`` archives in place of delivering them.

Kafka: SharePartition#filterAbortedTransactionalAcquiredRecords.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kgctl.model.share import DeliveryState
from kgctl.share.partition.records import InFlightRecords
from kgctl.share.partition.results import NO_PRODUCER_ID, Aborted, AcquiredRecords, FetchedBatch, thrown


def without_aborted(
    acquired: Sequence[AcquiredRecords],
    records: InFlightRecords,
    batches: Sequence[FetchedBatch],
    transactions: Sequence[Aborted],
) -> list[AcquiredRecords]:
    """Archive what lies in an aborted batch, and return what is left of ``acquired``."""
    left = list(acquired)
    for batch in list(_aborted(batches, transactions)):
        floor = records.batches.floor(batch.base_offset)
        if floor is None:
            raise thrown("Batch record not found. The request batch offsets are not found in the cache.")
        held = records.batches.between(floor.first_offset, batch.last_offset)
        records.archive(batch.base_offset, batch.last_offset, held, DeliveryState.ACQUIRED, counted=True)
        left = [piece for each in left for piece in _outside(each, batch)]
    return left


def _aborted(batches: Sequence[FetchedBatch], transactions: Sequence[Aborted]) -> Iterator[FetchedBatch]:
    begun = sorted(transactions, key=lambda each: each.first_offset)
    aborted: set[int] = set()
    place = 0
    for batch in batches:
        if batch.producer_id <= NO_PRODUCER_ID:
            continue
        while place < len(begun) and begun[place].first_offset <= batch.last_offset:
            aborted.add(begun[place].producer_id)
            place += 1
        if batch.abort_marker:
            aborted.discard(batch.producer_id)
        elif batch.transactional and batch.producer_id in aborted:
            yield batch


def _outside(acquired: AcquiredRecords, batch: FetchedBatch) -> Iterator[AcquiredRecords]:
    if acquired.last_offset < batch.base_offset or batch.last_offset < acquired.first_offset:
        yield acquired
        return
    if acquired.first_offset < batch.base_offset:
        yield AcquiredRecords(acquired.first_offset, batch.base_offset - 1, acquired.delivery_count)
    if batch.last_offset < acquired.last_offset:
        yield AcquiredRecords(batch.last_offset + 1, acquired.last_offset, acquired.delivery_count)
