"""Lag: committed offsets beside the bounds of the log, and what stands out about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kgctl.model.offsets import NO_LEADER_EPOCH, NO_OFFSET, LogOffsets, OffsetAndMetadata, PartitionLag
from kgctl.model.partitions import TopicPartition

BELOW_LOG_START = "below-log-start"
PAST_LOG_END = "past-log-end"


def partition_lag(partition: TopicPartition, committed: OffsetAndMetadata | None, log: LogOffsets) -> PartitionLag:
    """One row. A committed offset of -1 stands for no commit, as brokers answer it."""
    if committed is None or committed.offset == NO_OFFSET:
        return PartitionLag(partition, None, log.log_start_offset, log.log_end_offset, None)
    end = log.log_end_offset
    return PartitionLag(
        partition,
        committed.offset,
        log.log_start_offset,
        end,
        None if end is None else end - committed.offset,
        None if committed.leader_epoch == NO_LEADER_EPOCH else committed.leader_epoch,
        committed.metadata,
    )


def total_lag(rows: Iterable[PartitionLag]) -> int:
    """The sum of the lags in records. Partitions without a commit, or with an unknown end, count nothing."""
    return sum(row.lag for row in rows if row.lag is not None)


def range_flags(row: PartitionLag) -> tuple[str, ...]:
    """What is wrong with the commit: a consumer that starts there finds no such offset in the log."""
    if row.current_offset is None:
        return ()
    if row.log_start_offset is not None and row.current_offset < row.log_start_offset:
        return (BELOW_LOG_START,)
    if row.log_end_offset is not None and row.current_offset > row.log_end_offset:
        return (PAST_LOG_END,)
    return ()


def lag_by_group(
    committed: Mapping[str, Mapping[TopicPartition, OffsetAndMetadata]], logs: Mapping[TopicPartition, LogOffsets]
) -> dict[str, int | None]:
    """Total lag of each group. None where the end of a partition with a commit is unknown.

    Made for many groups: no row is built a partition.
    """
    ends = {partition: log.log_end_offset for partition, log in logs.items()}
    return {group_id: _sum_of_lags(offsets, ends) for group_id, offsets in committed.items()}


def _sum_of_lags(offsets: Mapping[TopicPartition, OffsetAndMetadata], ends: Mapping[TopicPartition, int | None]) -> int | None:
    total = 0
    for partition, committed in offsets.items():
        if committed.offset == NO_OFFSET:
            continue
        end = ends.get(partition)
        if end is None:
            return None
        total += end - committed.offset
    return total
