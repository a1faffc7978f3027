"""Acquiring what a fetch found: free records that are in flight already, and new ones. Kafka: SharePartition#acquire."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import islice

from kgctl.model.share import DeliveryState
from kgctl.share.partition.in_flight import InFlightBatch, InFlightState
from kgctl.share.partition.records import InFlightRecords
from kgctl.share.partition.results import AcquiredRecords, AcquireMode, FetchedBatch, thrown
from kgctl.share.partition.settings import ShareSettings

_ACQUIRED, _AVAILABLE = DeliveryState.ACQUIRED, DeliveryState.AVAILABLE


class Acquisition:
    """One member's fetch, while it acquires. Batches are acquired whole, if the mode does not say otherwise."""

    def __init__(
        self,
        records: InFlightRecords,
        settings: ShareSettings,
        member_id: str,
        mode: AcquireMode,
        *,
        batch_size: int,
        batches: Sequence[FetchedBatch],
        now_ms: int,
    ) -> None:
        self._records = records
        self._settings = settings
        self._member_id = member_id
        self._limited = mode is AcquireMode.RECORD_LIMIT
        self._batch_size = batch_size
        self._batches = batches
        self._deadline_ms = now_ms + settings.record_lock_duration_ms
        self._maximum = 0
        self._last_offset = batches[-1].last_offset
        self.acquired: list[AcquiredRecords] = []
        self.count = 0

    @property
    def _first_offset(self) -> int:
        return self._batches[0].base_offset

    def run(self, fetch_offset: int, max_fetch_records: int) -> None:
        """Acquire at most so many, but for the rest of a batch."""
        self._bound(fetch_offset, max_fetch_records)
        if self._maximum <= 0:
            return
        base = self._first_offset
        self._records.archive_stale(fetch_offset, base)
        base = self._adjusted(base)
        begin = min(self._first_offset, base)
        if begin > self._last_offset:
            raise thrown("inconsistent range")
        known = self._records.batches.between(begin, self._last_offset)
        if not known:
            self._acquire_new(base, self._last_offset)
            return
        self._acquire_known(known, base)
        if self.count < self._maximum and known[-1].last_offset < self._last_offset:
            self._acquire_new(known[-1].last_offset + 1, self._last_offset)
        if self.acquired:
            self._records.narrow_gap(self.acquired[-1].last_offset + 1)

    def _bound(self, fetch_offset: int, max_fetch_records: int) -> None:
        """So many as the group's limit of locks has room for; where it has none, only records that are in flight already."""
        end_offset = self._records.end_offset
        self._maximum = min(max_fetch_records, self._settings.max_record_locks - self._records.count)
        if self._maximum <= 0 and fetch_offset <= end_offset:
            self._maximum = min(max_fetch_records, end_offset - fetch_offset + 1)
            self._last_offset = min(self._last_offset, end_offset)

    def _adjusted(self, base: int) -> int:
        """Where to begin: not within a batch in flight, nor before the start offset."""
        floor = self._records.batches.floor(base)
        if floor is None:
            return max(base, self._records.start_offset)
        return floor.first_offset if floor.last_offset >= base else base

    def _acquire_known(self, known: Sequence[InFlightBatch], base: int) -> None:
        """Go through the batches in flight, and what lies between them as far as the persister did not know it."""
        gap_start = base
        for batch in known:
            if self.count >= self._maximum:
                return
            if self._records.active_gap is not None:
                if gap_start < batch.first_offset:
                    self._acquire_new(gap_start, batch.first_offset - 1)
                gap_start = batch.last_offset + 1
                if self.count >= self._maximum:
                    return
            self._acquire_batch(batch)

    def _acquire_batch(self, batch: InFlightBatch) -> None:
        throttled = self._is_throttled(batch)
        if throttled and self.count:
            self._maximum = 0
            return
        if batch.whole is not None and not batch.whole.is_free:
            return
        room = self._maximum - self.count
        part = not self._spans(batch) or throttled or (self._limited and batch.size > room)
        if batch.whole is not None and not part:
            self._acquire_whole(batch, batch.whole)
            return
        batch.split(self._records.locks)
        if self._acquire_offsets(batch, room) and throttled:
            self._maximum = 0

    def _spans(self, batch: InFlightBatch) -> bool:
        return batch.first_offset >= self._first_offset and batch.last_offset <= self._last_offset

    def _is_throttled(self, batch: InFlightBatch) -> bool:
        """Whether something of it that is free has been delivered so often that it is to be delivered in small numbers."""
        least = self._settings.throttled_count
        if batch.whole is not None:
            return batch.whole.is_free and batch.whole.delivery_count >= least
        fetched = batch.between(self._first_offset, self._last_offset)
        return any(state.delivery_count >= least and state.is_free for _, state in fetched)

    def _acquire_whole(self, batch: InFlightBatch, state: InFlightState) -> None:
        self._take(state, batch.first_offset, batch.last_offset)
        self.acquired.append(AcquiredRecords(batch.first_offset, batch.last_offset, state.delivery_count))
        self.count += batch.size

    def _take(self, state: InFlightState, first_offset: int, last_offset: int) -> None:
        state.acquire(self._member_id)
        state.lock_with(self._records.locks.arm(first_offset, last_offset, self._deadline_ms))

    def _acquire_offsets(self, batch: InFlightBatch, room: int) -> int:
        """Acquire what is free of a split batch; a record at its last attempt, alone. Return how many."""
        taken: list[tuple[int, int]] = []
        limit = room if self._limited else batch.size
        throttle = None
        for offset, state in batch.between(self._first_offset, self._last_offset):
            if not state.is_free:
                continue
            if taken and self._is_last_attempt(state.delivery_count + 1):
                break
            if throttle is None and state.delivery_count >= self._settings.throttled_count:
                throttle = max(1, batch.size >> (state.delivery_count - self._settings.throttled_count + 1))
            self._take(state, offset, offset)
            taken.append((offset, state.delivery_count))
            if self._is_last_attempt(state.delivery_count) or len(taken) in (limit, throttle):
                break
        self.acquired += merged(taken)
        self.count += len(taken)
        return len(taken)

    def _is_last_attempt(self, delivery_count: int) -> bool:
        return self._settings.has_last_attempt and delivery_count == self._settings.delivery_count_limit

    def _acquire_new(self, first_offset: int, last_offset: int) -> None:
        """Acquire what is not in flight yet; the rest of the batch in which the maximum is reached goes with it."""
        records, room = self._records, self._maximum - self.count
        if not records.batches:
            first_offset = max(first_offset, records.end_offset)
        if room < last_offset - first_offset + 1:
            within = self._end_of_batch(first_offset + room - 1)
            last_offset = min(within, last_offset) if records.active_gap is not None else within
        self._add(first_offset, last_offset, room)
        if records.batches.first.first_offset == first_offset:
            records.start_offset = first_offset
        records.end_offset = max(records.end_offset, last_offset)
        last_acquired = self.acquired[-1].last_offset
        records.narrow_gap(last_acquired + 1)
        self.count += last_acquired - first_offset + 1

    def _end_of_batch(self, offset: int) -> int:
        """The last offset of the fetched batch that this offset is in; the offset, where it is in none."""
        place = bisect_right(self._batches, offset, key=_base_offset)
        return max(offset, self._batches[place - 1].last_offset) if place else offset

    def _add(self, first_offset: int, last_offset: int, room: int) -> None:
        if self._limited and last_offset - first_offset + 1 > room:
            self._add_part(first_offset, last_offset, room)
            return
        for first, last in self._pieces(first_offset, last_offset):
            lock = self._records.locks.arm(first, last, self._deadline_ms)
            self._records.batches.put(InFlightBatch(first, last, InFlightState(_ACQUIRED, 1, self._member_id, lock)))
            self.acquired.append(AcquiredRecords(first, last, 1))

    def _add_part(self, first_offset: int, last_offset: int, room: int) -> None:
        """Put all of it in flight, and acquire so many: the others are free."""
        last_acquired = first_offset + room - 1
        batch = InFlightBatch(first_offset, last_offset, InFlightState(_ACQUIRED, 1, self._member_id))
        batch.split_at(last_acquired, self._records.locks, self._deadline_ms)
        self._records.free_before_end = True
        self._records.batches.put(batch)
        self.acquired.append(AcquiredRecords(first_offset, last_acquired, 1))

    def _pieces(self, first_offset: int, last_offset: int) -> list[tuple[int, int]]:
        """Cut into batches of the wanted size or a little more, where the log's batches end."""
        pieces = []
        if not self._limited and last_offset - first_offset + 1 > self._batch_size:
            until = bisect_right(self._batches, last_offset, key=_base_offset)
            for batch in islice(self._batches, until):
                if batch.base_offset - first_offset >= self._batch_size:
                    pieces.append((first_offset, batch.base_offset - 1))
                    first_offset = batch.base_offset
        pieces.append((first_offset, last_offset))
        return pieces


def _base_offset(batch: FetchedBatch) -> int:
    return batch.base_offset


def merged(taken: Sequence[tuple[int, int]]) -> list[AcquiredRecords]:
    """Offsets with their delivery counts as ranges of equal counts. Kafka: ShareFetchUtils#accumulateAcquiredRecords."""
    found: list[AcquiredRecords] = []
    first = last = count = -1
    for offset, delivery_count in taken:
        if first >= 0 and offset == last + 1 and delivery_count == count:
            last = offset
            continue
        if first >= 0:
            found.append(AcquiredRecords(first, last, count))
        first, last, count = offset, offset, delivery_count
    if first >= 0:
        found.append(AcquiredRecords(first, last, count))
    return found
