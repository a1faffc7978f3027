"""What a share partition is given and gives back: fetched batches, acquired records, acknowledgements, failures."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple, Protocol

from kgctl.model.error_codes import ErrorCode
from kgctl.model.values import frozen_in_order, quick_enum

NO_PRODUCER_ID = -1


@quick_enum
class AcquireMode(IntEnum):
    """How many records a fetch takes: whole batches, or so many and no more (KIP-1206). Kafka: ShareAcquireMode."""

    BATCH_OPTIMIZED = 0
    RECORD_LIMIT = 1


@quick_enum
class AcknowledgeType(IntEnum):
    """What a client says of a record. Kafka: AcknowledgeType; its gap is a record that the client did not find in a batch."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


class AcknowledgementBatch(NamedTuple):
    """What is said of the records first to last: one type for all of them, or one for each. Kafka: ShareAcknowledgementBatch."""

    first_offset: int
    last_offset: int
    types: tuple[int, ...]


class FetchedBatch(NamedTuple):
    """A batch of the log as a fetch found it. ``abort_marker``: a control batch that ends its producer's transaction so."""

    base_offset: int
    last_offset: int
    producer_id: int = NO_PRODUCER_ID
    transactional: bool = False
    abort_marker: bool = False


class Aborted(Protocol):
    """A transaction that was aborted, as a fetch of ``read_committed`` tells it."""

    @property
    def producer_id(self) -> int: ...
    @property
    def first_offset(self) -> int: ...


_FENCING = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}


@frozen_in_order
class ShareFailure:
    """Why something was not done; ``message`` goes to the client.

    ``whole_request``: Kafka's code throws at this place, and the whole request is answered with the error. What was in transition
    stays so, there and here.
    """

    error: ErrorCode
    message: str | None = None
    whole_request: bool = False

    @property
    def fences(self) -> bool:
        """Whether the partition is to be fenced and forgotten. Kafka: SharePartitionManager#fencedSharePartitionHandler."""
        return self.error in _FENCING


class NotDoneError(Exception):
    """Raised while a request is looked at; its handler answers with the failure."""

    def __init__(self, failure: ShareFailure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def thrown(message: str | None = None) -> NotDoneError:
    """What stands for an exception that Kafka's code does not expect."""
    return NotDoneError(ShareFailure(ErrorCode.UNKNOWN_SERVER_ERROR, message, whole_request=True))


_PERSISTER_FAILURES = {
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
_NOT_TOLD = {ErrorCode.SASL_AUTHENTICATION_FAILED, ErrorCode.UNSUPPORTED_VERSION}


def persister_failure(error: ErrorCode, message: str | None = None) -> ShareFailure:
    """What a client is told where the persister answers with ``error``. Kafka: SharePartition#fetchPersisterError."""
    if error in _NOT_TOLD:
        message = "Unable to complete operation due to server error."
    return ShareFailure(_PERSISTER_FAILURES.get(error, ErrorCode.UNKNOWN_SERVER_ERROR), message)


@frozen_in_order
class AcquiredRecords:
    """Records that a member was given, first to last, and how often they have been delivered by now."""

    first_offset: int
    last_offset: int
    delivery_count: int


@frozen_in_order
class Acquired:
    """What a fetch acquired. ``failure``: it went wrong on the way; what was acquired until then stays so."""

    records: tuple[AcquiredRecords, ...] = ()
    count: int = 0
    failure: ShareFailure | None = None


NOTHING = Acquired()


def sliced(batches: Sequence[FetchedBatch], acquired: Acquired) -> slice:
    """Which of the fetched batches are sent: those from the first acquired record to the last; there is at least one record.

    Kafka: ShareFetchUtils#maybeSliceFetchRecords.
    """
    first, last = acquired.records[0].first_offset, acquired.records[-1].last_offset
    begin = max((place for place, batch in enumerate(batches) if batch.base_offset <= first), default=0)
    end = next((place for place, batch in enumerate(batches) if place > begin and batch.base_offset > last), len(batches))
    return slice(begin, end)
