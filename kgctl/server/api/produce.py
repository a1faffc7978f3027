"""Produce: one record batch a partition, kept as it came."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from kgctl.errors import NotFoundError, StorageError
from kgctl.model.access import AclOperation, Resource
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import TopicPartition
from kgctl.model.values import frozen_in_order
from kgctl.serde.record_batch import (
    NO_PRODUCER_ID,
    BatchHeader,
    CorruptBatchError,
    NegativeCountError,
    UnsupportedCompressionError,
    check_batch,
    iterate_records,
    parse_header,
    stamped,
)
from kgctl.server.api.fields import each_once, partition_error
from kgctl.server.cleaner import COMPACT
from kgctl.server.cluster import INTERNAL_TOPICS
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Values
from kgctl.server.traffic import Work, all_of
from kgctl.server.transactions import ProducerIdentity, ProducerWrite
from kgctl.storage.batches import MAX_LONG, NotUnpackedError, UnpackedTooLargeError, check_records

TOPIC_IDS_SINCE = 13
IMPLICIT_SINCE = 12
BY_THE_LOG = "LogAppendTime"
WRONG_TIME = "One or more records have been rejected due to invalid timestamp"
WITHOUT_KEYS = (
    "One or more records have been rejected due to {} record errors in total, "
    "and only showing the first three errors at most: [{}]"
)
MOST_ERRORS_SHOWN = 3
NOT_ADDED = "Partition was not added to the transaction"
ACKS = (-1, 0, 1)
_BEFORE_THE_LOG = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
FORMAT = 2
MAGIC_POSITION = 16
ATTRIBUTES_POSITION, TRANSACTIONAL_BIT = 22, 0x10


def handle(context: RequestContext, body: Any) -> Work[Values | None]:
    """Answered when the batches are in the log, or never with acks=0."""
    refused = _Outcome(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED) if _has_no_right(context, body) else None
    whose = "topic_id" if context.version >= TOPIC_IDS_SINCE else "name"
    topics = yield from each_once(body.topic_data, whose, "partition_data", "index")
    responses = yield from all_of(_topic(context, body, topic, refused) for topic in topics)
    return None if body.acks == 0 else {"responses": responses}


@frozen_in_order
class _Outcome:
    """What became of one batch. ``is_in_log`` False: the log was never asked, so its start is not told either."""

    error: ErrorCode
    base_offset: int = -1
    is_in_log: bool = False
    append_time_ms: int = -1
    message: str | None = None
    record_errors: Sequence[Values] = ()


def _has_no_right(context: RequestContext, body: Any) -> bool:
    """Whether a batch is of a transaction, whose id is missing or not this user's: then nothing is written at all."""
    name = body.transactional_id
    if name is not None and context.may(AclOperation.WRITE, Resource.TRANSACTIONAL_ID, name):
        return False
    batches = (entry.records or b"" for topic in body.topic_data for entry in topic.partition_data)
    return any(len(batch) > ATTRIBUTES_POSITION and batch[ATTRIBUTES_POSITION] & TRANSACTIONAL_BIT for batch in batches)


def _topic(
    context: RequestContext, body: Any, said_of: tuple[Any, Mapping[int, Sequence[Any]]], refused: _Outcome | None
) -> Work[dict[str, Any]]:
    topic, by_index = said_of
    with_ids = context.version >= TOPIC_IDS_SINCE
    topic_id = topic.topic_id if with_ids else None
    known = context.services.catalog.by_id(topic_id) if with_ids else None
    name = topic.name if not with_ids else (known.name if known is not None else None)
    results = []
    for index, said in by_index.items():
        partition = TopicPartition(name or "", index)
        yield None
        outcome = refused or _Outcome(ErrorCode.UNKNOWN_TOPIC_ID)
        if name is not None and refused is None:
            outcome = yield from _append_last(context, body, partition, [entry.records for entry in said])
        results.append(_result(context, partition, outcome))
    return {"name": name, "topic_id": topic_id, "partition_responses": results}


def _result(context: RequestContext, partition: TopicPartition, outcome: _Outcome) -> dict[str, Any]:
    return {
        "index": partition.partition,
        "error_code": outcome.error,
        "base_offset": outcome.base_offset,
        "log_append_time_ms": outcome.append_time_ms,
        "record_errors": outcome.record_errors,
        "error_message": outcome.message,
        "log_start_offset": _log_start(context, partition) if outcome.is_in_log else -1,
    }


def _log_start(context: RequestContext, partition: TopicPartition) -> int:
    try:
        return context.services.data.bounds(partition)[0]
    except NotFoundError:
        return -1


def _append_last(context: RequestContext, body: Any, partition: TopicPartition, given: Sequence[bytes | None]) -> Work[_Outcome]:
    """Of a partition that is named twice the last whole batch is written, and one that is none is what is told (KafkaApis)."""
    whole = [records for records in given if _is_whole(records)] if len(given) > 1 else given
    outcome = yield from _append(context, body, partition, (whole or given)[-1])
    is_told = outcome.error in _BEFORE_THE_LOG or len(whole) == len(given)
    return outcome if is_told else _Outcome(ErrorCode.INVALID_RECORD)


def _append(context: RequestContext, body: Any, partition: TopicPartition, records: bytes | None) -> Work[_Outcome]:
    try:
        return (yield from _try_append(context, body, partition, records))
    except StorageError as error:
        return _Outcome(context.services.data.storage_failed(error))
    except NotFoundError:  # deleted meanwhile
        return _Outcome(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _try_append(context: RequestContext, body: Any, partition: TopicPartition, records: bytes | None) -> Work[_Outcome]:
    error = partition_error(context, AclOperation.WRITE, partition)
    if body.acks not in ACKS and error not in _BEFORE_THE_LOG:
        error = ErrorCode.INVALID_REQUIRED_ACKS
    if error is ErrorCode.NONE and partition.topic in INTERNAL_TOPICS:
        error = ErrorCode.INVALID_TOPIC_EXCEPTION
    if error is not ErrorCode.NONE:
        return _Outcome(error)
    batch = bytes(records or b"")
    header, error = _checked(
        batch, context.services.settings.of_topic(partition.topic, "max.message.bytes", context.broker.node_id)
    )
    if header is None:
        return _Outcome(error)
    if not header.is_transactional:
        return _append_checked(context, partition, batch, header)
    error = _transaction_error(context, body, partition, header)
    if error is not ErrorCode.NONE:
        return _Outcome(error, message=NOT_ADDED if error is ErrorCode.INVALID_TXN_STATE else None)
    outcome: _Outcome = yield context.services.data.in_thread(_append_checked, context, partition, batch, header)
    return outcome


def _refused(batch: bytes, header: BatchHeader, bounds_ms: tuple[int, int], compacted: TopicPartition | None) -> _Outcome | None:
    """What to answer where the batch, unpacked piece by piece, does not hold its records (Kafka: LogValidator); else None.

    ``compacted``: the partition, where each record needs a key.
    """
    error = ErrorCode.INVALID_RECORD
    if header.is_control or header.base_offset or header.record_count < 1 or header.last_offset_delta != header.record_count - 1:
        return _Outcome(error, is_in_log=True)
    try:
        wrong = check_records(batch, header, *bounds_ms)
    except CorruptBatchError as problem:
        return _Outcome(ErrorCode.UNKNOWN_SERVER_ERROR if isinstance(problem, NotUnpackedError) else error, is_in_log=True)
    except UnpackedTooLargeError:
        return _Outcome(ErrorCode.MESSAGE_TOO_LARGE, is_in_log=True)
    keyless = [] if compacted is None else _without_keys(batch)
    bounds = f"is out of range. The timestamp should be within [{bounds_ms[0]}, {bounds_ms[1]}]"
    times = {place: f"Timestamp {time_ms} of message with offset {place} {bounds}" for place, time_ms in wrong}
    no_key = f"Compacted topic cannot accept message without key in topic partition {compacted}"
    return _rejected({**times, **dict.fromkeys(keyless, no_key)}, is_about_time=not {*times} <= {*keyless})


def _without_keys(batch: bytes) -> list[int]:
    """Return the places of records without keys; none of a batch that cannot be unpacked here."""
    try:
        return [place for place, record in enumerate(iterate_records(batch)) if record.key is None]
    except UnsupportedCompressionError:
        return []


def _rejected(problems: dict[int, str], *, is_about_time: bool) -> _Outcome | None:
    """Kafka: LogValidator#processRecordErrors."""
    if not problems:
        return None
    errors = [{"batch_index": place, "batch_index_error_message": problems[place]} for place in sorted(problems)]
    if is_about_time:
        return _Outcome(ErrorCode.INVALID_TIMESTAMP, is_in_log=True, message=WRONG_TIME, record_errors=errors)
    shown = [f"RecordError(batchIndex={place}, message='{problems[place]}')" for place in sorted(problems)[:MOST_ERRORS_SHOWN]]
    message = WITHOUT_KEYS.format(len(errors), ", ".join(shown))
    return _Outcome(ErrorCode.INVALID_RECORD, is_in_log=True, message=message, record_errors=errors)


def _transaction_error(context: RequestContext, body: Any, partition: TopicPartition, header: BatchHeader) -> ErrorCode:
    """Whether the partition belongs to the producer's transaction; from version 12 on writing to it is enough (KIP-890)."""
    if body.transactional_id is None:
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    transactions = context.services.transactions
    identity = ProducerIdentity(body.transactional_id, header.producer_id, header.producer_epoch)
    transaction, error = transactions.find(identity)
    if transaction is None:
        if error is ErrorCode.CONCURRENT_TRANSACTIONS and context.version < IMPLICIT_SINCE:
            return ErrorCode.NOT_ENOUGH_REPLICAS  # as Kafka tells producers that do not know the other (ReplicaManager)
        return ErrorCode.INVALID_PRODUCER_EPOCH if error is ErrorCode.PRODUCER_FENCED else error
    if partition not in transaction.partitions:
        if context.version < IMPLICIT_SINCE:
            return ErrorCode.INVALID_TXN_STATE
        transactions.add(transaction, [partition], context.services.runtime.clock())
    return ErrorCode.NONE


def _is_whole(records: bytes | None) -> bool:
    return _header_of(bytes(records or b"")) is not None


def _header_of(batch: bytes) -> BatchHeader | None:
    """That of exactly one whole batch of format 2; None of all else (Kafka: ProduceRequest#validateRecords)."""
    if len(batch) <= MAGIC_POSITION or batch[MAGIC_POSITION] != FORMAT:
        return None
    try:
        header = parse_header(batch)
    except CorruptBatchError:
        return None
    return header if header.size_bytes == len(batch) else None


def _checked(batch: bytes, max_bytes: int) -> tuple[BatchHeader | None, ErrorCode]:
    """One whole batch must be there; then its checksum counts."""
    header = _header_of(batch)
    if header is None:
        return None, ErrorCode.INVALID_RECORD
    try:
        with suppress(NegativeCountError):  # told by the log
            check_batch(batch)
    except CorruptBatchError:
        return None, ErrorCode.CORRUPT_MESSAGE
    if len(batch) > max_bytes:
        return None, ErrorCode.MESSAGE_TOO_LARGE
    return header, ErrorCode.NONE


def _append_checked(context: RequestContext, partition: TopicPartition, batch: bytes, header: BatchHeader) -> _Outcome:
    services = context.services
    now_ms = services.runtime.clock()

    def setting(name: str) -> Any:
        return services.settings.of_topic(partition.topic, name, context.broker.node_id)

    is_by_log = setting("message.timestamp.type") == BY_THE_LOG
    before_ms, after_ms = (setting(f"message.timestamp.{side}.max.ms") for side in ("before", "after"))
    bounds_ms = (-MAX_LONG, MAX_LONG) if is_by_log else (now_ms - before_ms, min(now_ms + after_ms, MAX_LONG))
    refused = _refused(batch, header, bounds_ms, partition if COMPACT in setting("cleanup.policy") else None)
    if refused is not None:
        return refused
    append_time_ms = -1
    if is_by_log:
        batch, append_time_ms = stamped(batch, now_ms), now_ms
    if header.producer_id == NO_PRODUCER_ID:
        base_offset = services.data.append(partition, batch, header, now_ms)
        return _Outcome(ErrorCode.NONE, base_offset, is_in_log=True, append_time_ms=append_time_ms)
    write = ProducerWrite(
        partition, header.producer_id, header.producer_epoch, header.base_sequence, header.last_offset_delta + 1
    )
    check = services.producers.check(write)
    if check.duplicate_of is not None:
        return _Outcome(ErrorCode.NONE, check.duplicate_of, is_in_log=True, append_time_ms=header.max_timestamp_ms)
    if check.error is not ErrorCode.NONE:
        return _Outcome(check.error, is_in_log=True)
    base_offset = services.data.append(partition, batch, header, now_ms)
    services.producers.appended(write, base_offset)
    return _Outcome(ErrorCode.NONE, base_offset, is_in_log=True, append_time_ms=append_time_ms)


def _runs_in_thread(_: RequestContext, body: Any) -> bool:
    """Transactions are the event loop's; their batches are read and written in the thread all the same."""
    return body.transactional_id is None


SPEC = ApiSpec(0, "Produce", 3, 13, handle, advertised_min=0, runs_in_thread=_runs_in_thread)
