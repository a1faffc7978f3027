"""Records that leave their members: acknowledged, released, or because a lock has timed out. Kafka: SharePartition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kgctl.model.error_codes import ErrorCode
from kgctl.model.share import DeliveryState, StateBatch
from kgctl.share.partition.in_flight import NOBODY, TERMINAL, InFlightBatch, InFlightState
from kgctl.share.partition.locks import AcquisitionLock
from kgctl.share.partition.records import InFlightRecords
from kgctl.share.partition.results import AcknowledgementBatch, AcknowledgeType, NotDoneError, ShareFailure, thrown
from kgctl.share.partition.settings import ShareSettings

_ACQUIRED, _AVAILABLE, _ARCHIVED = DeliveryState.ACQUIRED, DeliveryState.AVAILABLE, DeliveryState.ARCHIVED
_STATES: dict[int, DeliveryState] = {
    AcknowledgeType.GAP: DeliveryState.ARCHIVED,
    AcknowledgeType.ACCEPT: DeliveryState.ACKNOWLEDGED,
    AcknowledgeType.RELEASE: DeliveryState.AVAILABLE,
    AcknowledgeType.REJECT: DeliveryState.ARCHIVED,
}
_TYPES = frozenset(AcknowledgeType)


class StateChange(NamedTuple):
    """A state that has begun to change, and what the persister is told of it. Kafka: PersisterBatch."""

    state: InFlightState
    batch: StateBatch


def _refused(message: str, error: ErrorCode = ErrorCode.INVALID_RECORD_STATE) -> NotDoneError:
    return NotDoneError(ShareFailure(error, message))


def _state_batch(first_offset: int, last_offset: int, state: InFlightState) -> StateBatch:
    return StateBatch(first_offset, last_offset, state.state, state.delivery_count)


class Leaving:
    """What one request lets go of, a transition each; `changes` is for the persister, or to be rolled back."""

    def __init__(self, records: InFlightRecords, settings: ShareSettings, member_id: str, now_ms: int) -> None:
        self._records = records
        self._settings = settings
        self._member_id = member_id
        self._deadline_ms = now_ms + settings.record_lock_duration_ms
        self.changes: list[StateChange] = []

    def _begin(self, first_offset: int, last_offset: int, state: InFlightState, to: DeliveryState) -> None:
        state.begin(to, self._settings.delivery_count_limit)
        self.changes.append(StateChange(state, _state_batch(first_offset, last_offset, state)))
        if state.state in TERMINAL:
            self._records.delivery_complete_count += self._records.live(first_offset, last_offset)

    def release(self) -> None:
        """Make available what the member has acquired; what is before the start offset is archived."""
        for batch in self._records.batches:
            whole, is_cut = batch.whole, self._records.is_cut(batch.first_offset, batch.last_offset)
            if whole is not None and not (is_cut and whole.state is _ACQUIRED and whole.member_id == self._member_id):
                self._release(batch.first_offset, batch.last_offset, whole)
                continue
            for offset, state in enumerate(batch.split(self._records.locks), batch.first_offset):
                self._release(offset, offset, state)

    def _release(self, first_offset: int, last_offset: int, state: InFlightState) -> None:
        if state.state is _ACQUIRED and state.member_id in (self._member_id, NOBODY):
            self._begin(first_offset, last_offset, state, _let_go(last_offset, self._records))

    def acknowledge(self, batch: AcknowledgementBatch) -> None:
        """Do what the client says of these records, as far as they are not before the start offset.

        Raises `NotDoneError`, and has begun to change what came before.
        """
        if not _TYPES.issuperset(batch.types):
            raise _refused(f"Invalid acknowledge type: {list(batch.types)}", ErrorCode.INVALID_REQUEST)
        if batch.last_offset < self._records.start_offset:
            return
        for in_flight in self._find(batch):
            if in_flight.last_offset >= self._records.start_offset:
                self._acknowledge(batch, in_flight)

    def _find(self, batch: AcknowledgementBatch) -> Sequence[InFlightBatch]:
        batches = self._records.batches
        floor = batches.floor(batch.first_offset)
        if floor is None:
            if not self._records.is_cut(batch.first_offset, batch.last_offset):
                raise _refused("Batch record not found. The request batch offsets are not found in the cache.")
            floor = batches.floor(self._records.start_offset)
            if floor is None:
                raise thrown()
        found = batches.between(floor.first_offset, batch.last_offset)
        if found[-1].last_offset < batch.last_offset:
            end = "first" if found[-1].last_offset < batch.first_offset else "last"
            message = f"Batch record not found. The {end} offset in request is past acquired records."
            raise _refused(message, ErrorCode.INVALID_REQUEST)
        return found

    def _acknowledge(self, batch: AcknowledgementBatch, in_flight: InFlightBatch) -> None:
        whole, first, last = in_flight.whole, in_flight.first_offset, in_flight.last_offset
        if whole is not None:
            self._check_whole(whole)
            spanned = batch.first_offset <= first and last <= batch.last_offset
            if spanned and len(batch.types) == 1 and not self._records.is_cut(first, last):
                self._apply(first, last, whole, batch.types[0])
                return
            in_flight.split(self._records.locks)
        for offset, state in in_flight.between(max(batch.first_offset, self._records.start_offset), batch.last_offset):
            self._check_offset(state)
            self._apply(offset, offset, state, _type_of(offset, batch))

    def _check_whole(self, state: InFlightState) -> None:
        if state.member_id == NOBODY:
            raise _refused("The batch cannot be acknowledged. The batch is not in the acquired state.")
        if state.member_id != self._member_id:
            raise _refused("Member is not the owner of batch record")

    def _check_offset(self, state: InFlightState) -> None:
        if state.state is not _ACQUIRED:
            raise _refused("The offset cannot be acknowledged. The offset is not acquired.")
        if state.member_id != self._member_id:
            raise _refused("Member is not the owner of offset")

    def _apply(self, first_offset: int, last_offset: int, state: InFlightState, said: int) -> None:
        if said != AcknowledgeType.RENEW:
            self._begin(first_offset, last_offset, state, _STATES[said])
            return
        if not self._settings.renew_acknowledge_enable:
            raise _refused("Renewing acquisition locks is not enabled for the group.")
        state.unlock(self._records.locks)
        state.lock_with(self._records.locks.arm(first_offset, last_offset, self._deadline_ms))


def _let_go(last_offset: int, records: InFlightRecords) -> DeliveryState:
    return _ARCHIVED if last_offset < records.start_offset else _AVAILABLE


def _type_of(offset: int, batch: AcknowledgementBatch) -> int:
    if len(batch.types) == 1:
        return batch.types[0]
    return batch.types[offset - batch.first_offset]


def time_out(lock: AcquisitionLock, records: InFlightRecords, delivery_count_limit: int) -> list[StateBatch]:
    """Take from their member the records of a lock that has expired, for good. Return what the persister is to be told."""
    floor = records.batches.floor(lock.first_offset)
    if floor is None:
        return []
    told = []
    for first, last, state in _locked(lock, floor, records):
        if state.state is _ACQUIRED and not state.in_transition:
            state.leave(_let_go(last, records), delivery_count_limit)
            state.unlock(records.locks)
            told.append(_state_batch(first, last, state))
            if state.state in TERMINAL:
                records.delivery_complete_count += records.live(first, last)
            if state.state is not _ARCHIVED:
                records.free_before_end = True
    return told


def _locked(lock: AcquisitionLock, floor: InFlightBatch, records: InFlightRecords) -> Iterator[tuple[int, int, InFlightState]]:
    for batch in records.batches.between(floor.first_offset, lock.last_offset):
        whole, is_cut = batch.whole, records.is_cut(batch.first_offset, batch.last_offset)
        if whole is not None and not (is_cut and whole.state is _ACQUIRED):
            yield batch.first_offset, batch.last_offset, whole
            continue
        batch.split(records.locks)
        for offset, state in batch.between(lock.first_offset, lock.last_offset):
            yield offset, offset, state
