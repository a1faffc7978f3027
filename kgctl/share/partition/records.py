"""What of a partition is in flight: its batches, where they begin and end, and how the two bounds move.

Kafka: SharePartition, as far as it is about offsets.
"""

from __future__ import annotations

from collections.abc import Iterable

from kgctl.model.share import DeliveryState, PartitionState
from kgctl.share.partition.cache import InFlightCache
from kgctl.share.partition.in_flight import TERMINAL, InFlightBatch, InFlightState
from kgctl.share.partition.locks import AcquisitionLocks


class GapWindow:
    """What the persister knows nothing about lies before ``end_offset``: from ``start_offset`` on it may have to be fetched."""

    __slots__ = ("end_offset", "start_offset")

    def __init__(self, start_offset: int, end_offset: int) -> None:
        self.start_offset = start_offset
        self.end_offset = end_offset


class InFlightRecords:
    """The batches from ``start_offset`` to ``end_offset``; without any, both are the next offset to be fetched."""

    def __init__(self) -> None:
        self.batches = InFlightCache()
        self.locks = AcquisitionLocks()
        self.start_offset = 0
        self.end_offset = 0
        self.delivery_complete_count = 0
        """How many of them are acknowledged or archived."""
        self.free_before_end = False
        """Whether some before the end may be free to be acquired: `next_fetch_offset` has to look."""
        self.gap: GapWindow | None = None

    @property
    def count(self) -> int:
        """How many are in flight, as the limit of locks counts them."""
        return self.end_offset - self.start_offset + 1 if self.batches else 0

    @property
    def active_gap(self) -> GapWindow | None:
        """The window, while nothing has been fetched behind its end."""
        return self.gap if self.gap is not None and self.gap.end_offset == self.end_offset else None

    def is_cut(self, first_offset: int, last_offset: int) -> bool:
        """Whether the start offset has moved into these."""
        return first_offset < self.start_offset <= last_offset

    def live(self, first_offset: int, last_offset: int) -> int:
        """How many of these are not before the start offset."""
        return max(last_offset - max(self.start_offset, first_offset) + 1, 0)

    def load(self, state: PartitionState, batches: Iterable[InFlightBatch]) -> None:
        """Begin with what is kept, whose start offset is known; ``batches`` are its batches."""
        expected, gap_start = self.start_offset, None
        for batch in batches:
            if gap_start is None and batch.first_offset > expected:
                gap_start = expected
            expected = batch.last_offset + 1
            self.batches.put(batch)
            if batch.whole is not None and batch.whole.state in TERMINAL:
                self.delivery_complete_count += batch.size
        self.end_offset = self.start_offset
        if state.batches:
            self.free_before_end = True
            self.end_offset = self.batches.last.last_offset
            self.gap = None if gap_start is None else GapWindow(gap_start, self.end_offset)
            self.advance()

    def next_fetch_offset(self) -> int:
        """Where to fetch next: the first offset that is free, else behind the end."""
        if not self.batches or self.start_offset > self.batches.last.last_offset:
            self.free_before_end = False
            return self.end_offset
        if self.free_before_end:
            found = self._first_free()
            if found is not None:
                return found
            self.free_before_end = False
        return self.end_offset + 1

    def _first_free(self) -> int | None:
        gap = self.active_gap
        gap_start = -1 if gap is None else gap.start_offset
        for batch in self.batches:
            if gap is not None:
                if batch.first_offset > gap_start:
                    return gap_start
                gap_start = max(batch.last_offset + 1, gap_start)
            found = batch.first_free()
            if found is not None:
                return found
        return None

    def narrow_gap(self, offset: int) -> None:
        """Note that everything before ``offset`` has been fetched."""
        if self.gap is not None:
            if self.gap.end_offset == self.end_offset and offset <= self.gap.end_offset:
                self.gap.start_offset = offset
            else:
                self.gap = None

    def advance(self) -> bool:
        """Move the start offset past what is settled at the beginning, and forget that. Return whether it could move."""
        if not self._starts_settled():
            return False
        settled, finished = self._settled_prefix()
        if settled is None:
            return False
        if settled == self.batches.last.last_offset:
            self.start_offset = self.end_offset = settled + 1
            self.batches.clear()
            self.delivery_complete_count = 0
            return True
        batch = self.batches.floor(settled)
        assert batch is not None
        if settled == batch.last_offset:
            self._start_behind(settled)
        else:
            self.start_offset = max(settled + 1, self.start_offset)
            self.batches.drop_before(batch.first_offset)
        self.delivery_complete_count -= finished
        return True

    def _start_behind(self, settled: int) -> None:
        """Start with the next batch, or with a gap before it that is still to be fetched."""
        higher = self.batches.higher(settled)
        assert higher is not None
        self.start_offset = max(higher, self.start_offset)
        if self.active_gap is not None:
            self.start_offset = min(self.active_gap.start_offset, self.start_offset)
        self.batches.drop_before(settled + 1)

    def _starts_settled(self) -> bool:
        batch = self.batches.floor(self.start_offset)
        state = None if batch is None else batch.state_of(self.start_offset)
        return state is not None and state.is_settled

    def _settled_prefix(self) -> tuple[int | None, int]:
        """The last offset before the first one that is not settled, and how many up to there are in flight."""
        settled, finished, gap = None, 0, self.active_gap
        for batch in self.batches:
            if gap is not None and batch.last_offset >= gap.start_offset:
                break
            if batch.whole is not None:
                if not batch.whole.is_settled:
                    break
                settled = batch.last_offset
                finished += self.live(batch.first_offset, batch.last_offset)
                continue
            for offset, state in batch.between(batch.first_offset, batch.last_offset):
                if not state.is_settled:
                    return settled, finished
                settled = offset
                finished += offset >= self.start_offset
        return settled, finished

    def move_to_log_start(self, log_start_offset: int) -> None:
        """Start where the log does now, if that is further on: what is free before it is archived, what is acquired is not."""
        if log_start_offset <= self.start_offset:
            return
        if not self.batches:
            self.start_offset = self.end_offset = log_start_offset
            self.delivery_complete_count = 0
            return
        gone = self._terminal_before(log_start_offset)
        self.archive(self.start_offset, log_start_offset - 1, self.batches, DeliveryState.AVAILABLE, counted=False)
        self.start_offset = log_start_offset
        self.delivery_complete_count -= gone
        self.end_offset = max(self.end_offset, log_start_offset)

    def _terminal_before(self, offset: int) -> int:
        """How many from the start offset to before ``offset`` are acknowledged or archived."""
        count = 0
        for batch in self.batches.between(0, offset - 1):
            if batch.whole is None:
                count += sum(state.state in TERMINAL for _, state in batch.between(self.start_offset, offset - 1))
            elif batch.whole.state in TERMINAL:
                count += self.live(batch.first_offset, min(offset - 1, batch.last_offset))
        return count

    def archive(self, first: int, last: int, batches: Iterable[InFlightBatch], initial: DeliveryState, *, counted: bool) -> None:
        """Archive what stands so between two offsets, both inclusive; ``counted``: it counts as complete from now on."""
        archived = 0
        for batch in batches:
            if batch.first_offset > last:
                break
            archived += self._archive_of(batch, first, last, initial)
        if counted:
            self.delivery_complete_count += archived
        if archived and initial is DeliveryState.AVAILABLE:
            self.free_before_end = True

    def _archive_of(self, batch: InFlightBatch, first: int, last: int, initial: DeliveryState) -> int:
        if batch.whole is not None:
            if batch.whole.state is not initial:
                return 0
            if first <= batch.first_offset and batch.last_offset <= last:
                batch.whole.archive(self.locks)
                return batch.size
            batch.split(self.locks)
        chosen: list[InFlightState] = [state for _, state in batch.between(first, last) if state.state is initial]
        for state in chosen:
            state.archive(self.locks)
        return len(chosen)

    def archive_stale(self, fetch_offset: int, base_offset: int) -> None:
        """Archive what is available from where a fetch looked to where it found the first batch: compaction has removed it."""
        if fetch_offset < base_offset and self.batches:
            floor = self.batches.floor(fetch_offset)
            begins_before = floor is not None and floor.last_offset >= fetch_offset
            first = floor.first_offset if floor is not None and begins_before else fetch_offset
            stale = self.batches.between(first, base_offset - 1)
            self.archive(fetch_offset, base_offset - 1, stale, DeliveryState.AVAILABLE, counted=True)
