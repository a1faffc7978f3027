"""ListOffsets at the leaders: log start and end, or the first offset at or after a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kgctl.admin.protocol.answers import partition_results
from kgctl.admin.results import PartitionResults, Results
from kgctl.model.error_codes import ErrorCode
from kgctl.model.offsets import LogOffsets
from kgctl.model.partitions import TopicPartition
from kgctl.wire.apis import LIST_OFFSETS
from kgctl.wire.cluster import Cluster
from kgctl.wire.connection import Connection, Request
from kgctl.wire.deadline import Deadline
from kgctl.wire.routing import Failure, ask_leaders

_LATEST = -1
_EARLIEST = -2
_PARTITIONS_PER_REQUEST = 2_000
_CLIENT = -1  # the replica id of whoever is no broker

Answers = Mapping[TopicPartition, int | Failure]


def list_log_offsets(cluster: Cluster, partitions: Sequence[TopicPartition], deadline: Deadline) -> PartitionResults[LogOffsets]:
    """Log start and log end (the high watermark) of each partition, both asked at once."""

    def ask(connection: Connection, wanted: list[TopicPartition]) -> Mapping[TopicPartition, LogOffsets | Failure]:
        starts, ends = _list_offsets(connection, wanted, (_EARLIEST, _LATEST), deadline)
        return {partition: _both(starts[partition], ends[partition]) for partition in wanted}

    return partition_results(ask_leaders(cluster, partitions, ask, deadline))


def list_offsets_at(
    cluster: Cluster, partitions: Sequence[TopicPartition], timestamp_ms: int, deadline: Deadline
) -> PartitionResults[int | None]:
    """The first offset at or after the time; None where there is no such record."""

    def ask(connection: Connection, wanted: list[TopicPartition]) -> Answers:
        (found,) = _list_offsets(connection, wanted, (timestamp_ms,), deadline)
        return found

    results = partition_results(ask_leaders(cluster, partitions, ask, deadline))
    return Results({key: None if offset < 0 else offset for key, offset in results.values.items()}, results.errors)


def _both(start: int | Failure, end: int | Failure) -> LogOffsets | Failure:
    if isinstance(start, Failure):
        return start
    if isinstance(end, Failure):
        return end
    return LogOffsets(start, end)


def _list_offsets(
    connection: Connection, wanted: Sequence[TopicPartition], timestamps: Sequence[int], deadline: Deadline
) -> list[Answers]:
    """One mapping a timestamp: a request may name a partition only once, so each timestamp has requests of its own."""
    version = connection.version(LIST_OFFSETS)
    batches = [wanted[at : at + _PARTITIONS_PER_REQUEST] for at in range(0, len(wanted), _PARTITIONS_PER_REQUEST)]
    requests = [
        Request(LIST_OFFSETS, version, {"replica_id": _CLIENT, "topics": _topics(batch, timestamp)})
        for timestamp in timestamps
        for batch in batches
    ]
    answers: list[dict[TopicPartition, int | Failure]] = [{} for _ in timestamps]
    for position, response in enumerate(connection.stream(requests, deadline)):
        found = answers[position // len(batches)]
        for topic in response.topics:
            for each in topic.partitions:
                failure = Failure(ErrorCode(each.error_code)) if each.error_code else None
                found[TopicPartition(topic.name, each.partition_index)] = failure or each.offset
    return list(answers)


def _topics(partitions: Sequence[TopicPartition], timestamp: int) -> list[dict[str, object]]:
    by_topic: dict[str, list[dict[str, int]]] = {}
    for topic, partition in partitions:
        asked = {"partition_index": partition, "current_leader_epoch": -1, "timestamp": timestamp}
        by_topic.setdefault(topic, []).append(asked)
    return [{"name": topic, "partitions": asked} for topic, asked in by_topic.items()]
