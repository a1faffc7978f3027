"""Offsets as they are committed, and as they are shown: with the log's bounds and the lag."""

from __future__ import annotations

from dataclasses import dataclass

from kgctl.model.partitions import TopicPartition

NO_OFFSET = -1
NO_LEADER_EPOCH = -1


@dataclass(frozen=True, slots=True)
class OffsetAndMetadata:
    """A committed offset, as a client commits or fetches it. ``leader_epoch`` is -1 where unknown."""

    offset: int
    metadata: str = ""
    leader_epoch: int = NO_LEADER_EPOCH


@dataclass(frozen=True, slots=True)
class LogOffsets:
    """The bounds of a partition's log in records; None where unknown."""

    log_start_offset: int | None = None
    log_end_offset: int | None = None


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """One row of ``describe group``. Unknown is None, never a guess.

    ``lag`` is ``log_end_offset - current_offset`` in records, not clamped: a commit past the end of the log shows as a negative
    lag, as Kafka's own tool has it.
    """

    partition: TopicPartition
    current_offset: int | None
    log_start_offset: int | None
    log_end_offset: int | None
    lag: int | None
    leader_epoch: int | None = None
    metadata: str | None = None
