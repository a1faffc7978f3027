"""Fetch: the bytes of partitions' logs, markers of transactions and what transactions have not committed included."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kgctl.model.error_codes import ErrorCode
from kgctl.model.partitions import TopicPartition
from kgctl.wire.apis import FETCH
from kgctl.wire.connection import Connection
from kgctl.wire.deadline import Deadline
from kgctl.wire.routing import Failure

_CLIENT = -1
_READ_UNCOMMITTED = 0
_NO_SESSION = {"session_id": 0, "session_epoch": -1}


class FetchLimits(NamedTuple):
    """How much to send, and how long a broker may wait for something to send."""

    max_wait_ms: int = 500
    max_bytes: int = 32 << 20
    max_partition_bytes: int = 8 << 20


class Fetched(NamedTuple):
    """``records`` are batches from the one with the offset asked for on, the last of them perhaps cut off."""

    records: bytes
    high_watermark: int
    log_start_offset: int


def fetch(
    connection: Connection, offsets: Mapping[TopicPartition, int], limits: FetchLimits, deadline: Deadline
) -> dict[TopicPartition, Fetched | Failure]:
    """Ask one broker for what its partitions hold from these offsets on; an answer for each partition that it names."""
    topics: dict[str, list[dict[str, int]]] = {}
    for (topic, partition), offset in offsets.items():
        asked = {
            "partition": partition,
            "fetch_offset": offset,
            "partition_max_bytes": limits.max_partition_bytes,
            "current_leader_epoch": -1,
            "log_start_offset": -1,
        }
        topics.setdefault(topic, []).append(asked)
    values = {
        "replica_id": _CLIENT,
        "max_wait": limits.max_wait_ms,
        "min_bytes": 1,
        "max_bytes": limits.max_bytes,
        "isolation_level": _READ_UNCOMMITTED,
        **_NO_SESSION,
        "topics": [{"topic": topic, "partitions": asked} for topic, asked in topics.items()],
        "forgotten_topics_data": [],
    }
    answer = connection.call(FETCH, values, deadline)
    code = getattr(answer, "error_code", 0)
    if code:
        return dict.fromkeys(offsets, Failure(ErrorCode(code)))
    return {
        TopicPartition(topic.topic, each.partition_index): Failure(ErrorCode(each.error_code))
        if each.error_code
        else Fetched(bytes(each.records or b""), each.high_watermark, getattr(each, "log_start_offset", -1))
        for topic in answer.responses
        for each in topic.partitions
    }
