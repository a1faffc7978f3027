"""What a leader tells of its logs: their bounds, offsets by time (ListOffsets), and bytes (Fetch)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from kgctl.errors import UnsupportedError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import TopicPartition
from kgctl.wire import Deadline
from kgctl.wire.asking import LEFT_OUT, Failure, by_topic, failure_in, partitions_in
from kgctl.wire.connection import FETCH, LIST_OFFSETS, Connection, Request

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
_ISOLATION_SINCE = 2
_SINCE = {MAX_TIMESTAMP: (7, "the largest timestamp"), -4: (8, "its first local record"), -5: (9, "its last tiered record")}
"""Timestamps that are marks (KIP-734, KIP-405) -> the version that has them, and what is asked for."""
_PARTITIONS_PER_REQUEST = 2_000
_CLIENT = -1  # the replica id of whoever is no broker


def list_offsets(
    connection: Connection,
    wanted: Sequence[TopicPartition],
    timestamps: Sequence[int],
    deadline: Deadline,
    *,
    read_committed: bool = False,
) -> Iterator[Mapping[TopicPartition, tuple[int | Failure, ...]]]:
    """Yield for some of the partitions at a time an offset a timestamp (milliseconds, or `LATEST`, `EARLIEST`, `MAX_TIMESTAMP`).

    Every partition that was asked for is answered: one that the broker's answer leaves out is a failure. Requests are sent ahead;
    one may name a partition only once, so each timestamp has requests of its own.
    """
    version = connection.version(LIST_OFFSETS)
    for since, what in (_SINCE[timestamp] for timestamp in timestamps if timestamp in _SINCE):
        if version < since:
            raise UnsupportedError(f"{connection.address} is too old to be asked for {what}")
    batches = [wanted[at : at + _PARTITIONS_PER_REQUEST] for at in range(0, len(wanted), _PARTITIONS_PER_REQUEST)]
    requests = [
        Request(LIST_OFFSETS, version, bounds_question(batch, timestamp, version, read_committed=read_committed))
        for batch in batches
        for timestamp in timestamps
    ]
    responses = connection.stream(requests, deadline)
    for batch in batches:
        found = [offsets_in(response) for response in islice(responses, len(timestamps))]
        yield {partition: tuple(each.get(partition, LEFT_OUT) for each in found) for partition in batch}


def bounds_question(
    wanted: Sequence[TopicPartition], timestamp: int, version: int, *, read_committed: bool = False
) -> dict[str, Any]:
    """The fields of a ListOffsets for one timestamp."""
    isolation = {"isolation_level": int(read_committed)} if version >= _ISOLATION_SINCE else {}
    asked = {"current_leader_epoch": -1, "timestamp": timestamp}
    topics = by_topic((partition, {"partition_index": partition.partition, **asked}) for partition in wanted)
    return {"replica_id": _CLIENT, **isolation, "topics": topics}


def offsets_in(response: Any) -> dict[TopicPartition, int | Failure]:
    """What an answer to ListOffsets says."""
    return {partition: failure_in(each) or each.offset for partition, each in partitions_in(response.topics)}


_CONSUMER = -1
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
    asked = {"partition_max_bytes": limits.max_partition_bytes, "current_leader_epoch": -1, "log_start_offset": -1}
    wanted = ((key, {"partition": key.partition, "fetch_offset": offset, **asked}) for key, offset in offsets.items())
    values = {
        "replica_id": _CONSUMER,
        "max_wait_ms": limits.max_wait_ms,
        "min_bytes": 1,
        "max_bytes": limits.max_bytes,
        "isolation_level": _READ_UNCOMMITTED,
        **_NO_SESSION,
        "topics": by_topic(wanted, name="topic"),
        "forgotten_topics_data": [],
    }
    answer = connection.call(FETCH, values, deadline)
    code = getattr(answer, "error_code", 0)
    if code:
        return dict.fromkeys(offsets, Failure(ErrorCode(code)))
    return {
        partition: failure_in(each)
        or Fetched(bytes(each.records or b""), each.high_watermark, getattr(each, "log_start_offset", -1))
        for partition, each in partitions_in(answer.responses, name="topic")
    }
