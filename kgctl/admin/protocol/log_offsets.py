"""ListOffsets at the leaders: log start and end, or the first offset at or after a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kgctl.admin.protocol.answers import partition_results
from kgctl.admin.results import PartitionResults, Results
from kgctl.model.offsets import LogOffsets
from kgctl.model.partitions import TopicPartition
from kgctl.wire.cluster import Cluster
from kgctl.wire.connection import Connection
from kgctl.wire.deadline import Deadline
from kgctl.wire.list_offsets import EARLIEST, LATEST, Answers, list_offsets
from kgctl.wire.routing import Failure, ask_leaders


def list_log_offsets(cluster: Cluster, partitions: Sequence[TopicPartition], deadline: Deadline) -> PartitionResults[LogOffsets]:
    """Log start and log end (the high watermark) of each partition, both asked at once."""

    def ask(connection: Connection, wanted: list[TopicPartition]) -> Mapping[TopicPartition, LogOffsets | Failure]:
        starts, ends = list_offsets(connection, wanted, (EARLIEST, LATEST), deadline)
        return {partition: _both(starts[partition], ends[partition]) for partition in wanted}

    return partition_results(ask_leaders(cluster, partitions, ask, deadline))


def list_offsets_at(
    cluster: Cluster, partitions: Sequence[TopicPartition], timestamp_ms: int, deadline: Deadline
) -> PartitionResults[int | None]:
    """The first offset at or after the time; None where there is no such record."""

    def ask(connection: Connection, wanted: list[TopicPartition]) -> Answers:
        (found,) = list_offsets(connection, wanted, (timestamp_ms,), deadline)
        return found

    results = partition_results(ask_leaders(cluster, partitions, ask, deadline))
    return Results({key: None if offset < 0 else offset for key, offset in results.values.items()}, results.errors)


def _both(start: int | Failure, end: int | Failure) -> LogOffsets | Failure:
    if isinstance(start, Failure):
        return start
    if isinstance(end, Failure):
        return end
    return LogOffsets(start, end)
