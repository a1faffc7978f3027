"""Produce: one record batch a partition, kept as it came."""

from __future__ import annotations

from typing import Any

from kgctl.model.error_codes import ErrorCode
from kgctl.model.partitions import TopicPartition
from kgctl.serde.record_batch import NO_PRODUCER_ID, BatchHeader, CorruptBatchError, check_batch, parse_header
from kgctl.server.api.data.partition_errors import partition_error
from kgctl.server.call import Call
from kgctl.server.cluster import OFFSETS_TOPIC
from kgctl.server.producers import ProducerWrite
from kgctl.server.registry import ApiSpec, Values

TOPIC_IDS_SINCE = 13
ACKS = (-1, 0, 1)
FORMAT = 2
MAGIC_POSITION = 16


def handle(call: Call, body: Any) -> Values | None:
    """Answered when the batches are in the log, or never with acks=0."""
    responses = [_topic(call, body, topic) for topic in body.topic_data]
    return None if body.acks == 0 else {"responses": responses}


def _topic(call: Call, body: Any, topic: Any) -> dict[str, Any]:
    with_ids = call.version >= TOPIC_IDS_SINCE
    topic_id = topic.topic_id if with_ids else None
    known = call.services.catalog.by_id(topic_id) if with_ids else None
    name = topic.name if not with_ids else (known.name if known is not None else None)
    results = []
    for entry in topic.partition_data:
        if name is None:
            error, offset = ErrorCode.UNKNOWN_TOPIC_ID, -1
        else:
            error, offset = _append(call, body, TopicPartition(name, entry.index), entry.records)
        results.append(_result(call, entry.index, TopicPartition(name or "", entry.index), error, offset))
    return {"name": name, "topic_id": topic_id, "partition_responses": results}


def _result(call: Call, index: int, partition: TopicPartition, error: ErrorCode, offset: int) -> dict[str, Any]:
    start = call.services.data.bounds(partition)[0] if error is ErrorCode.NONE else -1
    return {"index": index, "error_code": error, "base_offset": offset, "log_append_time": None, "log_start_offset": start}


def _append(call: Call, body: Any, partition: TopicPartition, records: bytes | None) -> tuple[ErrorCode, int]:
    if body.acks not in ACKS:
        return ErrorCode.INVALID_REQUIRED_ACKS, -1
    error = partition_error(call, partition)
    if error is ErrorCode.NONE and partition.topic == OFFSETS_TOPIC:
        error = ErrorCode.INVALID_TOPIC_EXCEPTION
    if error is not ErrorCode.NONE:
        return error, -1
    batch = bytes(records or b"")
    header, error = _checked(batch, call.services.config.message_max_bytes)
    if header is None:
        return error, -1
    return _append_checked(call, partition, batch, header)


def _checked(batch: bytes, max_bytes: int) -> tuple[BatchHeader | None, ErrorCode]:
    if len(batch) <= MAGIC_POSITION or batch[MAGIC_POSITION] != FORMAT:
        return None, ErrorCode.INVALID_RECORD
    try:
        if parse_header(batch).size_bytes != len(batch):
            return None, ErrorCode.INVALID_RECORD
        header = check_batch(batch)
    except CorruptBatchError:
        return None, ErrorCode.CORRUPT_MESSAGE
    if len(batch) > max_bytes:
        return None, ErrorCode.MESSAGE_TOO_LARGE
    if header.is_control or header.is_transactional or header.record_count == 0:
        return None, ErrorCode.INVALID_RECORD
    return header, ErrorCode.NONE


def _append_checked(call: Call, partition: TopicPartition, batch: bytes, header: BatchHeader) -> tuple[ErrorCode, int]:
    services = call.services
    now_ms = services.runtime.clock()
    if header.producer_id == NO_PRODUCER_ID:
        return ErrorCode.NONE, services.data.append(partition, batch, now_ms)
    write = ProducerWrite(
        partition, header.producer_id, header.producer_epoch, header.base_sequence, header.last_offset_delta + 1
    )
    check = services.producers.check(write)
    if check.error is not ErrorCode.NONE:
        return check.error, -1
    if check.duplicate_of is not None:
        return ErrorCode.NONE, check.duplicate_of
    base_offset = services.data.append(partition, batch, now_ms)
    services.producers.appended(write, base_offset)
    return ErrorCode.NONE, base_offset


SPEC = ApiSpec(0, "Produce", 3, 13, handle, advertised_min=0)
