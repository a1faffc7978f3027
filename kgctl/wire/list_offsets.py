"""ListOffsets at one broker: log start, log end, or the first offset at or after a time, of the partitions that it leads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kgctl.model.error_codes import ErrorCode
from kgctl.model.partitions import TopicPartition
from kgctl.wire.apis import LIST_OFFSETS
from kgctl.wire.connection import Connection, Request
from kgctl.wire.deadline import Deadline
from kgctl.wire.routing import LEFT_OUT, Failure

LATEST = -1
EARLIEST = -2
_PARTITIONS_PER_REQUEST = 2_000
_CLIENT = -1  # the replica id of whoever is no broker

Answers = Mapping[TopicPartition, int | Failure]


def list_offsets(
    connection: Connection, wanted: Sequence[TopicPartition], timestamps: Sequence[int], deadline: Deadline
) -> list[Answers]:
    """One mapping a timestamp (milliseconds, or `LATEST`, `EARLIEST`); all requests are on their way at once.

    Each has every partition that was asked for: one that the broker's answer leaves out is a failure.
    A request may name a partition only once, so each timestamp has requests of its own.
    """
    version = connection.version(LIST_OFFSETS)
    batches = [wanted[at : at + _PARTITIONS_PER_REQUEST] for at in range(0, len(wanted), _PARTITIONS_PER_REQUEST)]
    requests = [
        Request(LIST_OFFSETS, version, {"replica_id": _CLIENT, "topics": _topics(batch, timestamp)})
        for timestamp in timestamps
        for batch in batches
    ]
    answers: list[dict[TopicPartition, int | Failure]] = [dict.fromkeys(wanted, LEFT_OUT) for _ in timestamps]
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
