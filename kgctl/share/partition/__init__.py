"""A partition as one share group reads it, without I/O: what clients, the log and the persister say goes in, effects come out."""

from kgctl.share.partition.effects import Effect, FetchesMayComplete, ReadState, ShareDone, WriteState
from kgctl.share.partition.partition import PartitionStatus, SharePartition
from kgctl.share.partition.results import (
    Aborted,
    AcknowledgementBatch,
    AcknowledgeType,
    Acquired,
    AcquiredRecords,
    AcquireMode,
    FetchedBatch,
    ShareFailure,
    persister_failure,
    sliced,
)
from kgctl.share.partition.settings import ShareSettings

__all__ = [
    "Aborted",
    "AcknowledgeType",
    "AcknowledgementBatch",
    "AcquireMode",
    "Acquired",
    "AcquiredRecords",
    "Effect",
    "FetchedBatch",
    "FetchesMayComplete",
    "PartitionStatus",
    "ReadState",
    "ShareDone",
    "ShareFailure",
    "SharePartition",
    "ShareSettings",
    "WriteState",
    "persister_failure",
    "sliced",
]
