"""Idempotent producers: their ids, and which batches of theirs are here already."""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import dataclass, field

from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import TopicPartition

REMEMBERED_BATCHES = 5
"""As many as a producer may have in flight (Kafka: ProducerStateEntry.NUM_BATCHES_TO_RETAIN)."""
_SEQUENCES = 2**31


@dataclass(slots=True)
class _Batch:
    first_sequence: int
    last_sequence: int
    base_offset: int


@dataclass(slots=True)
class _State:
    epoch: int
    batches: deque[_Batch] = field(default_factory=lambda: deque(maxlen=REMEMBERED_BATCHES))


@dataclass(frozen=True, slots=True)
class ProducerWrite:
    """A batch of an idempotent producer, as far as its order matters."""

    partition: TopicPartition
    producer_id: int
    epoch: int
    first_sequence: int
    record_count: int

    @property
    def last_sequence(self) -> int:
        return (self.first_sequence + self.record_count - 1) % _SEQUENCES


@dataclass(frozen=True, slots=True)
class SequenceCheck:
    """What is to become of a batch: append it, or answer with an error or with the offset of its first copy."""

    error: ErrorCode = ErrorCode.NONE
    duplicate_of: int | None = None


class Producers:
    """The producers' state, in memory: after a restart a producer goes on at any sequence, as one whose state has expired.

    Kafka: ProducerAppendInfo, ProducerStateManager.
    """

    def __init__(self, first_id: int) -> None:
        self._ids = itertools.count(first_id)
        self._states: dict[tuple[TopicPartition, int], _State] = {}

    def new_id(self) -> int:
        return next(self._ids)

    def check(self, write: ProducerWrite) -> SequenceCheck:
        state = self._states.get((write.partition, write.producer_id))
        if state is None:
            return SequenceCheck()
        if write.epoch < state.epoch:
            return SequenceCheck(ErrorCode.INVALID_PRODUCER_EPOCH)
        if write.epoch > state.epoch:
            return SequenceCheck() if write.first_sequence == 0 else SequenceCheck(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
        for batch in state.batches:
            if (batch.first_sequence, batch.last_sequence) == (write.first_sequence, write.last_sequence):
                return SequenceCheck(duplicate_of=batch.base_offset)
        if state.batches and write.first_sequence != (state.batches[-1].last_sequence + 1) % _SEQUENCES:
            return SequenceCheck(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
        return SequenceCheck()

    def appended(self, write: ProducerWrite, base_offset: int) -> None:
        key = (write.partition, write.producer_id)
        state = self._states.get(key)
        if state is None or state.epoch != write.epoch:
            state = self._states[key] = _State(write.epoch)
        state.batches.append(_Batch(write.first_sequence, write.last_sequence, base_offset))

    def forget(self, topic: str) -> None:
        for key in [key for key in self._states if key[0].topic == topic]:
            del self._states[key]
