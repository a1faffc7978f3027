"""Fetch: whole batches, waiting for data as long as the client allows. Fetch sessions (KIP-227) are never opened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kgctl.errors import NotFoundError, StorageError
from kgctl.model.access import AclOperation
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import TopicPartition
from kgctl.serde.record_batch import iterate_batches
from kgctl.server.api.fields import NO_EPOCH, each_once, partition_error
from kgctl.server.partition_data import LEADER_EPOCH
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Answer, Values
from kgctl.server.traffic import finish, is_long

TOPIC_IDS_SINCE = 13
READ_COMMITTED = 1

FULL_EPOCHS = (-1, 0)
"""Epochs of fetch sessions that name all partitions: the last one of a session, and the first."""
_BEFORE_THE_LOG = frozenset(
    {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.TOPIC_AUTHORIZATION_FAILED}
)
"""Errors that Kafka finds before it asks a log; the others come with a null list of aborted transactions."""


@dataclass(slots=True)
class _Read:
    """The outcome of one pass over the partitions."""

    responses: list[dict[str, Any]]
    size: int
    has_error: bool
    partitions: list[TopicPartition]
    room: int

    @property
    def room_left(self) -> int:
        """Return how many bytes may still be added."""
        return self.room - self.size

    def failed(self, partition: int, error: ErrorCode) -> dict[str, Any]:
        """The answer for a partition that cannot be read; it ends the waiting."""
        self.has_error = True
        return {
            "partition_index": partition,
            "error_code": error,
            "high_watermark": -1,
            "last_stable_offset": -1,
            "log_start_offset": -1,
            "aborted_transactions": [] if error in _BEFORE_THE_LOG else None,
            "records": b"",
        }


def handle(context: RequestContext, body: Any) -> Answer:
    """Answer at once where there is enough, something is wrong or nobody waits; else when data comes or time is up."""
    if getattr(body, "session_epoch", FULL_EPOCHS[0]) not in FULL_EPOCHS:
        return {"error_code": ErrorCode.FETCH_SESSION_ID_NOT_FOUND, "session_id": 0, "responses": []}
    if is_long(body.topics) or _finds_data(context, body):
        return _answer(context, body, None)
    read = _read(context, body)
    if read.has_error or body.min_bytes <= 0 or body.max_wait_ms <= 0 or not read.partitions:
        return _response(read)
    return _answer(context, body, read)


async def _answer(context: RequestContext, body: Any, found: _Read | None) -> Values:
    """What is read, in a thread, as soon as there is enough of it; ``found`` is what there was just now."""
    data, clock = context.services.data, context.services.runtime.clock
    deadline_ms = clock() + body.max_wait_ms
    read = await data.in_thread(_read, context, body) if found is None else found
    while read.size < body.min_bytes and not read.has_error and read.partitions and (left_ms := deadline_ms - clock()) > 0:
        await data.signal.wait(read.partitions, left_ms / 1000)
        read = await data.in_thread(_read, context, body)
    return _response(read)


def _finds_data(context: RequestContext, body: Any) -> bool:
    """Whether some partition has records for this request, so that reading takes time."""
    data, catalog = context.services.data, context.services.catalog
    for topic in body.topics:
        name, _ = _name(context, topic)
        for entry in topic.partitions:
            partition = TopicPartition(name or "", entry.partition)
            if catalog.has_partition(partition) and entry.fetch_offset < data.bounds(partition)[1]:
                return True
    return False


def _response(read: _Read) -> Values:
    return {"error_code": ErrorCode.NONE, "session_id": 0, "responses": read.responses}


def _read(context: RequestContext, body: Any) -> _Read:
    read = _Read([], 0, has_error=False, partitions=[], room=min(body.max_bytes, context.services.config.fetch_max_bytes))
    whose = "topic_id" if context.version >= TOPIC_IDS_SINCE else "topic"
    for topic, by_index in finish(each_once(body.topics, whose, "partitions", "partition")):
        name, topic_id = _name(context, topic)
        entries = [_partition(context, body, name, said[-1], read) for said in by_index.values()]
        read.responses += [{"topic": name, "topic_id": topic_id, "partitions": entries}] if entries else []
    return read


def _name(context: RequestContext, topic: Any) -> tuple[str | None, Any]:
    if context.version < TOPIC_IDS_SINCE:
        return topic.topic, None
    known = context.services.catalog.by_id(topic.topic_id)
    return (None if known is None else known.name), topic.topic_id


def _partition(context: RequestContext, body: Any, name: str | None, entry: Any, read: _Read) -> dict[str, Any]:
    if name is None:
        return read.failed(entry.partition, ErrorCode.UNKNOWN_TOPIC_ID)
    partition = TopicPartition(name, entry.partition)
    error = partition_error(context, AclOperation.READ, partition, getattr(entry, "current_leader_epoch", NO_EPOCH))
    if error is not ErrorCode.NONE:
        return read.failed(entry.partition, error)
    try:
        start, end = context.services.data.bounds(partition)
    except NotFoundError:  # deleted meanwhile
        return read.failed(entry.partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if problem := _problem(body, entry, start, end):
        return read.failed(entry.partition, problem)
    read.partitions.append(partition)
    stable = context.services.data.stable_offset(partition, end)
    upper, aborted = end, None
    if body.isolation_level == READ_COMMITTED:
        upper = stable
        aborted = _aborted(context, partition, entry.fetch_offset, upper)
    try:
        records = _records(context, partition, entry, read, upper) if entry.fetch_offset < upper else b""
    except StorageError as failure:
        return read.failed(entry.partition, context.services.data.storage_failed(failure))
    read.size += len(records)
    return {
        "partition_index": entry.partition,
        "error_code": ErrorCode.NONE,
        "high_watermark": end,
        "last_stable_offset": stable,
        "log_start_offset": start,
        "aborted_transactions": aborted,
        "records": records,
    }


def _problem(body: Any, entry: Any, start: int, end: int) -> ErrorCode:
    """Why a log gives nothing from there on. Kafka: UnifiedLog#read, and its exception for sizes below 0."""
    if not start <= entry.fetch_offset <= end or getattr(entry, "last_fetched_epoch", NO_EPOCH) > LEADER_EPOCH:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    is_none = entry.fetch_offset < end and min(entry.partition_max_bytes, body.max_bytes) < 0
    return ErrorCode.UNKNOWN_SERVER_ERROR if is_none else ErrorCode.NONE


def _aborted(context: RequestContext, partition: TopicPartition, start: int, end: int) -> list[dict[str, int]]:
    aborted = context.services.data.aborted_between(partition, start, end)
    return [{"producer_id": entry.producer_id, "first_offset": entry.first_offset} for entry in aborted]


def _records(context: RequestContext, partition: TopicPartition, entry: Any, read: _Read, upper: int) -> bytes:
    """The first batch of the whole response is sent however large it is (KIP-74); nothing from ``upper`` on is."""
    if read.size and read.room_left <= 0:
        return b""
    records = context.services.data.read(partition, entry.fetch_offset, min(entry.partition_max_bytes, read.room_left))
    records = _before(records, upper)
    return b"" if read.size and len(records) > read.room_left else records


def _before(batches: bytes, upper: int) -> bytes:
    for position, header in iterate_batches(batches):
        if header.base_offset >= upper:
            return batches[:position]
    return batches


SPEC = ApiSpec(1, "Fetch", 4, 18, handle)
