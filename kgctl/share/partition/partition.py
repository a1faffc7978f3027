"""A partition as one share group reads it: who has which of its records, and what is kept of that. Kafka: SharePartition."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from enum import Enum, auto
from typing import NamedTuple

from kgctl.model.error_codes import ErrorCode
from kgctl.model.share import NO_START_OFFSET, DeliveryState, PartitionState, SharePartitionKey, StateBatch
from kgctl.model.values import quick_enum
from kgctl.serde.record_schema import uuid_text
from kgctl.share.partition.aborted import without_aborted
from kgctl.share.partition.acquisition import Acquisition
from kgctl.share.partition.changes import Leaving, StateChange, time_out
from kgctl.share.partition.effects import Effect, FetchesMayComplete, ReadState, ShareDone, WriteState
from kgctl.share.partition.in_flight import TERMINAL, InFlightBatch, InFlightState
from kgctl.share.partition.records import InFlightRecords
from kgctl.share.partition.results import (
    NOTHING,
    Aborted,
    AcknowledgementBatch,
    Acquired,
    AcquireMode,
    FetchedBatch,
    NotDoneError,
    ShareFailure,
    persister_failure,
)
from kgctl.share.partition.settings import ShareSettings


@quick_enum
class PartitionStatus(Enum):
    """Whether a share partition can be used. Kafka: SharePartitionState."""

    EMPTY = auto()
    INITIALIZING = auto()
    ACTIVE = auto()
    FAILED = auto()
    FENCED = auto()


class _Write(NamedTuple):
    """What waits for the persister; without a ticket, nobody waits for it, and it stands however the persister answers."""

    ticket: int | None
    changes: Sequence[StateChange]


class SharePartition:
    """One group's records of one partition, in flight from the fetch to the acknowledgement.

    The times of all calls are of one clock, which does not go back. `expire` is due at `next_deadline_ms`. Whoever holds this
    carries out the effects, in their order, and replaces `settings` when those of the group change. Requests have been looked at
    as KafkaApis does: batches that end before they begin, or with too few types, do not come here.
    """

    def __init__(self, key: SharePartitionKey, topic: str, leader_epoch: int, settings: ShareSettings) -> None:
        self.key = key
        self.leader_epoch = leader_epoch
        self.settings = settings
        self.status = PartitionStatus.EMPTY
        self.state_epoch = 0
        self.fetch_lock: Hashable | None = None
        self.records = InFlightRecords()
        self._name = f"{key.group_id}-{uuid_text(key.topic_id.bytes)}:{topic}-{key.partition}"
        self._loading: int = 0
        self._writes: dict[int, _Write] = {}
        self._last_token = 0

    @property
    def start_offset(self) -> int:
        """The first record that the group is not done with."""
        return self.records.start_offset

    @property
    def end_offset(self) -> int:
        """The last record in flight; without any, the next one."""
        return self.records.end_offset

    @property
    def delivery_complete_count(self) -> int:
        """How many from the start offset to the end are acknowledged or archived: they are no lag."""
        return self.records.delivery_complete_count

    def maybe_initialize(self, ticket: int) -> list[Effect]:
        """Read what is kept, if nobody has asked for that. `ShareDone` comes at once or from `read`."""
        if self.status is PartitionStatus.EMPTY:
            self.status = PartitionStatus.INITIALIZING
            self._loading = ticket
            return [ReadState(self.leader_epoch)]
        if self.status is PartitionStatus.ACTIVE:
            return [ShareDone(ticket)]
        error, problem = _NOT_READY[self.status]
        return [ShareDone(ticket, ShareFailure(error, f"Share partition {problem} {self._name}"))]

    def read(
        self, state: PartitionState | ErrorCode, message: str | None = None, *, reset_offset: int | ShareFailure | None = None
    ) -> list[Effect]:
        """Begin with what is kept, or fail with the persister's error.

        ``reset_offset``: where ``share.auto.offset.reset`` says to begin, or why that cannot be known; needed where the state has
        no start offset.
        """
        try:
            if isinstance(state, ErrorCode):
                raise NotDoneError(persister_failure(state, message))
            self._load(state, reset_offset)
        except NotDoneError as error:
            self.status = PartitionStatus.FAILED
            return [ShareDone(self._loading, error.failure)]
        self.status = PartitionStatus.ACTIVE
        return [ShareDone(self._loading)]

    def _load(self, state: PartitionState, reset_offset: int | ShareFailure | None) -> None:
        start_offset: int | ShareFailure | None = state.start_offset
        if start_offset == NO_START_OFFSET:
            start_offset = reset_offset
        if isinstance(start_offset, ShareFailure):
            raise NotDoneError(start_offset)
        assert start_offset is not None
        self.records.start_offset = start_offset
        self.state_epoch = state.state_epoch
        self.records.load(state, self._kept(state.batches))

    def _kept(self, batches: Sequence[StateBatch]) -> Iterator[InFlightBatch]:
        for batch in batches:
            if batch.first_offset < self.start_offset or batch.last_offset < batch.first_offset:
                raise _not_loaded(f"Failed to initialize the share partition {self._name}")
            if batch.delivery_state not in _DELIVERY_STATES:
                raise _not_loaded(f"Unknown record state id: {batch.delivery_state}")
            state = InFlightState(DeliveryState(batch.delivery_state), batch.delivery_count)
            yield InFlightBatch(batch.first_offset, batch.last_offset, state)

    def next_fetch_offset(self) -> int:
        """Where the next fetch is to begin."""
        return self.records.next_fetch_offset()

    def can_acquire_records(self) -> bool:
        """Whether a fetch may find something: records in flight that are free, or room for others."""
        if self.next_fetch_offset() != self.end_offset + 1:
            return True
        return self.records.count < self.settings.max_record_locks

    def maybe_acquire_fetch_lock(self, fetch_id: Hashable) -> bool:
        """Let this fetch, and no other, read the log for this share partition; False where it cannot."""
        if self.status is not PartitionStatus.ACTIVE or self.fetch_lock is not None:
            return False
        self.fetch_lock = fetch_id
        return True

    def release_fetch_lock(self, fetch_id: Hashable) -> bool:
        """Let others fetch. Return whether this fetch had the lock; it is released in any case, as by Kafka."""
        held, self.fetch_lock = self.fetch_lock == fetch_id, None
        return held

    def acquire(
        self,
        member_id: str,
        mode: AcquireMode,
        *,
        batch_size: int,
        max_fetch_records: int,
        fetch_offset: int,
        batches: Sequence[FetchedBatch],
        now_ms: int,
        aborted: Sequence[Aborted] = (),
    ) -> Acquired:
        """Give the member what is free of what was fetched at ``fetch_offset``.

        ``batch_size``: how long the batches are to be that the client acknowledges. ``max_fetch_records``: the batch in which it
        is reached goes with it, whole, unless the mode is RECORD_LIMIT. ``aborted`` is for ``read_committed`` only.
        """
        if self.status is not PartitionStatus.ACTIVE or max_fetch_records <= 0 or not batches:
            return NOTHING
        if batches[-1].last_offset < self.start_offset:
            return NOTHING
        acquisition = Acquisition(
            self.records, self.settings, member_id, mode, batch_size=batch_size, batches=batches, now_ms=now_ms
        )
        try:
            acquisition.run(fetch_offset, max_fetch_records)
            if not aborted or not acquisition.acquired:
                return Acquired(tuple(acquisition.acquired), acquisition.count)
            left = without_aborted(acquisition.acquired, self.records, batches, aborted)
        except NotDoneError as error:
            return Acquired(failure=error.failure)
        return Acquired(tuple(left), sum(each.last_offset - each.first_offset + 1 for each in left))

    def acknowledge(self, ticket: int, member_id: str, batches: Sequence[AcknowledgementBatch], now_ms: int) -> list[Effect]:
        """Do what a member says of its records: all of it, or nothing."""
        leaving = Leaving(self.records, self.settings, member_id, now_ms)
        try:
            for batch in batches:
                leaving.acknowledge(batch)
        except NotDoneError as error:
            if not error.failure.whole_request:
                self._roll_back(leaving.changes)
            return [ShareDone(ticket, error.failure)]
        return self._persist(ticket, leaving.changes)

    def release_acquired_records(self, ticket: int, member_id: str, now_ms: int) -> list[Effect]:
        """Take back what a member has: it has left, or closed its session."""
        leaving = Leaving(self.records, self.settings, member_id, now_ms)
        leaving.release()
        return self._persist(ticket, leaving.changes)

    def _persist(self, ticket: int, changes: Sequence[StateChange]) -> list[Effect]:
        if not changes:
            return [ShareDone(ticket)]
        return [self._write(_Write(ticket, changes), tuple(change.batch for change in changes))]

    def _write(self, write: _Write, batches: tuple[StateBatch, ...]) -> WriteState:
        self._last_token += 1
        self._writes[self._last_token] = write
        records = self.records
        return WriteState(
            self._last_token,
            self.state_epoch,
            self.leader_epoch,
            records.start_offset,
            records.delivery_complete_count,
            batches,
        )

    def written(self, token: int, error: ErrorCode = ErrorCode.NONE, message: str | None = None) -> list[Effect]:
        """Take the persister's answer, once for each token: what it did not keep is as it was before, unless a lock timed out."""
        write = self._writes.pop(token)
        if write.ticket is None:
            self.records.advance()
            return []
        if error is not ErrorCode.NONE:
            self._roll_back(write.changes)
            return [ShareDone(write.ticket, persister_failure(error, message))]
        self._complete(write.changes, commit=True)
        done = ShareDone(write.ticket)
        return [done, FetchesMayComplete()] if self.records.advance() else [done]

    def _complete(self, changes: Sequence[StateChange], *, commit: bool) -> None:
        for change in changes:
            change.state.complete(commit=commit, locks=self.records.locks)
            if change.state.state is DeliveryState.AVAILABLE:
                self.records.free_before_end = True

    def _roll_back(self, changes: Sequence[StateChange]) -> None:
        self._complete(changes, commit=False)
        for state, batch in changes:
            if batch.delivery_state in TERMINAL and state.state not in TERMINAL:
                self.records.delivery_complete_count -= self.records.live(batch.first_offset, batch.last_offset)

    def next_deadline_ms(self) -> int | None:
        """When the first lock times out; None where no record is locked."""
        return self.records.locks.next_deadline_ms()

    def expire(self, now_ms: int) -> list[Effect]:
        """Take back what members have had for too long. The persister is told; whatever it answers, the records are free."""
        effects: list[Effect] = []
        while (lock := self.records.locks.pop_due(now_ms)) is not None:
            told = time_out(lock, self.records, self.settings.delivery_count_limit)
            if told:
                effects += [self._write(_Write(None, ()), tuple(told)), FetchesMayComplete()]
        return effects

    def update_cache_and_offsets(self, log_start_offset: int) -> None:
        """Start where the log does now: a fetch was answered with OFFSET_OUT_OF_RANGE."""
        self.records.move_to_log_start(log_start_offset)

    def mark_fenced(self) -> None:
        """Never be used again: whoever needs the partition makes another and reads what is kept."""
        self.status = PartitionStatus.FENCED


def _not_loaded(message: str) -> NotDoneError:
    return NotDoneError(ShareFailure(ErrorCode.UNKNOWN_SERVER_ERROR, message))


_DELIVERY_STATES = frozenset(DeliveryState)
_NOT_READY = {
    PartitionStatus.FAILED: (ErrorCode.UNKNOWN_SERVER_ERROR, "failed to load"),
    PartitionStatus.INITIALIZING: (ErrorCode.LEADER_NOT_AVAILABLE, "is already initializing"),
    PartitionStatus.FENCED: (ErrorCode.LEADER_NOT_AVAILABLE, "is fenced"),
}
