"""Producers: the ids of idempotent ones and which batches of theirs are here already; what transactional ones have open.

Kafka: TransactionCoordinator, TransactionMetadata. The states are few here because markers are written at once: a transaction is
empty, ongoing, or (only in the file, for a server that died in between) ending.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from kgctl.errors import StorageError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import TopicPartition
from kgctl.model.values import frozen_in_order
from kgctl.storage.files import Documents

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


@frozen_in_order
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


@frozen_in_order
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


FILE_NAME = "transactions.json"
MAX_EPOCH = 32_766
FENCED_SINCE = 2
"""Versions of AddPartitionsToTxn, AddOffsetsToTxn and EndTxn below this know INVALID_PRODUCER_EPOCH only."""


STATES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence")
"""By Kafka's names (TransactionState); those that do not last here are known all the same."""


@dataclass(slots=True)
class Transaction:
    """One transactional id. ``ending`` is the outcome that was decided and may not have reached every partition."""

    transactional_id: str
    producer_id: int
    epoch: int
    timeout_ms: int
    partitions: set[TopicPartition] = field(default_factory=set)
    started_ms: int | None = None
    ending: bool | None = None
    last_outcome: bool | None = None
    last_started_ms: int | None = None
    """When the transaction that is open began, or the one before, if it was this epoch's."""
    last_epoch: int = -1
    """The epoch before this one, as far as a producer that says it may still go on with this one (KIP-360)."""

    @property
    def is_ongoing(self) -> bool:
        return self.started_ms is not None

    @property
    def state(self) -> str:
        """One of `STATES`."""
        if self.ending is not None:
            return "PrepareCommit" if self.ending else "PrepareAbort"
        if self.is_ongoing:
            return "Ongoing"
        return "Empty" if self.last_outcome is None else "CompleteCommit" if self.last_outcome else "CompleteAbort"


@frozen_in_order
class ProducerIdentity:
    """The producer as each request of a transaction names it."""

    transactional_id: str
    producer_id: int
    epoch: int


class Transactions:
    """All transactional ids, kept in one small file beside the log, if there is a folder."""

    def __init__(self, producers: Producers, documents: Documents, max_timeout_ms: int = 900_000) -> None:
        self._max_timeout_ms = max_timeout_ms
        self._producers = producers
        self._documents = documents
        self._by_id: dict[str, Transaction] = {}
        self.touched: set[TopicPartition] = set()
        """Every partition that ever had transactional records: what to look through at a start."""
        self.unfinished: set[str] = set()
        """Ids whose decided end could not be written everywhere: to be tried again."""
        data = documents.read(FILE_NAME)
        if data is not None:
            self._load(data)

    def __iter__(self) -> Iterator[Transaction]:
        return iter(list(self._by_id.values()))

    def find(self, identity: ProducerIdentity) -> tuple[Transaction | None, ErrorCode]:
        """The transaction of this producer, or why it has none."""
        if not identity.transactional_id:
            return None, ErrorCode.INVALID_REQUEST
        transaction = self._by_id.get(identity.transactional_id)
        if transaction is None or transaction.producer_id != identity.producer_id:
            return None, ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if transaction.epoch != identity.epoch:
            return None, ErrorCode.PRODUCER_FENCED
        if transaction.ending is not None:
            return None, ErrorCode.CONCURRENT_TRANSACTIONS
        return transaction, ErrorCode.NONE

    def init_error(self, identity: ProducerIdentity, timeout_ms: int) -> ErrorCode:
        """Why a producer cannot begin under this id. A producer id of -1: it has none yet."""
        if not identity.transactional_id or (identity.producer_id == -1) != (identity.epoch == -1):
            return ErrorCode.INVALID_REQUEST
        if not 0 < timeout_ms <= self._max_timeout_ms:
            return ErrorCode.INVALID_TRANSACTION_TIMEOUT
        known = self._by_id.get(identity.transactional_id)
        if known is not None and identity.producer_id not in (-1, known.producer_id):
            return ErrorCode.PRODUCER_FENCED
        return ErrorCode.NONE

    def init(self, identity: ProducerIdentity, timeout_ms: int) -> Transaction | None:
        """The id's next producer epoch; what it had open must have been aborted before. None: that producer is fenced.

        A producer that says the epoch before this one has not heard of this one: it goes on with it.
        """
        transaction = self._by_id.get(identity.transactional_id)
        if transaction is None:
            transaction = Transaction(identity.transactional_id, self._producers.new_id(), 0, timeout_ms)
            self._by_id[identity.transactional_id] = transaction
        else:
            if identity.epoch not in (-1, transaction.epoch, transaction.last_epoch):
                return None
            if identity.epoch in (-1, transaction.epoch):
                self._bump(transaction, last_epoch=identity.epoch)
            transaction.timeout_ms = timeout_ms
            transaction.last_outcome = transaction.last_started_ms = None
        self.save()
        return transaction

    def get(self, transactional_id: str) -> Transaction | None:
        return self._by_id.get(transactional_id)

    def add(self, transaction: Transaction, partitions: Iterable[TopicPartition], now_ms: int) -> None:
        """Add these partitions to the transaction, which begins with the first of them."""
        if transaction.started_ms is None:
            transaction.started_ms = transaction.last_started_ms = now_ms
        transaction.partitions.update(partitions)
        self.touched.update(transaction.partitions)
        self.save()

    def begin_end(self, transaction: Transaction, *, committed: bool, bump: bool) -> None:
        """The outcome is decided and kept; markers come next, with the epoch that it has now."""
        if bump:
            self._bump(transaction, last_epoch=transaction.epoch)
        transaction.ending = committed
        self.save()

    def finish_end(self, transaction: Transaction) -> None:
        """Nothing is open any more. Raises `StorageError`; the end stays decided."""
        transaction.last_outcome, transaction.ending = transaction.ending, None
        transaction.partitions.clear()
        transaction.started_ms = None
        self.save()

    def overdue(self, now_ms: int) -> list[Transaction]:
        """Return the transactions that have been open for longer than their timeout."""
        return [
            entry
            for entry in self
            if entry.started_ms is not None and entry.ending is None and entry.started_ms + entry.timeout_ms < now_ms
        ]

    def _bump(self, transaction: Transaction, *, last_epoch: int) -> None:
        transaction.last_epoch = last_epoch
        if transaction.epoch >= MAX_EPOCH:
            transaction.producer_id, transaction.epoch = self._producers.new_id(), 0
        else:
            transaction.epoch += 1

    def save(self) -> None:
        """Write all of them. Raises `StorageError`; then they are as they were when they were last written."""
        rows = [_row(entry) for entry in self]
        try:
            self._documents.write(FILE_NAME, {"transactions": rows, "touched": sorted(self.touched)})
        except StorageError:
            self._by_id.clear()
            self._load(self._documents.read(FILE_NAME) or {"transactions": [], "touched": []})
            raise

    def _load(self, data: dict[str, Any]) -> None:
        for row in data["transactions"]:
            partitions = {TopicPartition(*partition) for partition in row["partitions"]}
            self._by_id[row["transactional_id"]] = Transaction(**(row | {"partitions": partitions}))
        self.touched = {TopicPartition(*partition) for partition in data["touched"]}


def _row(transaction: Transaction) -> dict[str, Any]:
    names = Transaction.__dataclass_fields__
    return {name: getattr(transaction, name) for name in names} | {"partitions": sorted(transaction.partitions)}
