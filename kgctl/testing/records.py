"""What a test writes to topics and reads of them, without a client: straight into the logs of its server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kgctl.arguments import check_of
from kgctl.errors import UnsupportedError, UsageError
from kgctl.model.groups import TopicPartition
from kgctl.model.records import TopicRecord
from kgctl.serde.record_batch import (
    Record,
    UnsupportedCompressionError,
    build_batch,
    check_batch,
    iterate_batches,
    iterate_records,
)
from kgctl.server.partition_data import PartitionData

Value = bytes | str | None
_CHECK = check_of(Value)
_READ_BYTES = 1 << 20
_SEED, _M = 0x9747B28C, 0x5BD1E995


class Writing(NamedTuple):
    """How the values of one call are written; ``turn``: how many the topic has got before; ``most_bytes``: of a batch."""

    key: Value
    partition: int | None
    headers: Mapping[str, Value] | None
    timestamp_ms: int
    turn: int
    most_bytes: int


def write(data: PartitionData, topic: str, partitions: int, values: tuple[Value, ...], how: Writing) -> list[TopicPartition]:
    """Append each value to the partition that is named, or that its key chooses, or to one after the other."""
    if how.partition is not None and not 0 <= how.partition < partitions:
        raise UsageError(f"topic '{topic}' has the partitions 0 to {partitions - 1}, not {how.partition}")
    key = as_bytes(how.key)
    headers = tuple((name, as_bytes(value)) for name, value in (how.headers or {}).items())
    written = []
    for position, value in enumerate(values):
        number = how.partition if how.partition is not None else _partition_of(key, partitions, how.turn + position)
        batch = build_batch([Record(0, how.timestamp_ms, key, as_bytes(value), headers)])
        if len(batch) > how.most_bytes:
            raise UsageError(f"topic '{topic}' takes {how.most_bytes} bytes at most (max.message.bytes), not {len(batch)}")
        written.append(TopicPartition(topic, number))
        data.append(written[-1], batch, check_batch(batch), how.timestamp_ms)
    return written


def read(data: PartitionData, partition: TopicPartition, *, read_committed: bool) -> Iterator[TopicRecord]:
    """Every record of a partition in the order of offsets, without markers and, ``read_committed``, what was not committed.

    Raises `UnsupportedError` for batches of snappy, lz4 or zstd, which only a client unpacks.
    """
    start, end = data.bounds(partition)
    stable = data.stable_offset(partition, end) if read_committed else end
    aborted = data.aborted_between(partition, start, end) if read_committed else []
    offset = start
    while offset < stable:
        batches = data.read(partition, offset, _READ_BYTES)
        for position, header in iterate_batches(batches):
            offset = header.last_offset + 1
            is_aborted = header.is_transactional and any(
                each.producer_id == header.producer_id and each.first_offset <= header.base_offset <= each.last_offset
                for each in aborted
            )
            if not (header.is_control or is_aborted or header.base_offset >= stable):
                yield from _of_batch(partition, batches, position, start)
        if not batches:
            return


def _of_batch(partition: TopicPartition, batches: bytes, position: int, start: int) -> Iterator[TopicRecord]:
    try:
        for each in iterate_records(batches, position):
            if each.offset >= start:
                yield TopicRecord(*partition, each.offset, each.key, each.value, each.headers, each.timestamp_ms)
    except UnsupportedCompressionError as error:
        raise UnsupportedError(f"{partition}: {error}: read it with a client, on `bootstrap`") from None


def as_bytes(value: Value) -> bytes | None:
    """Text as UTF-8. Raises `UsageError` for what cannot be that."""
    if _CHECK is not None and (problem := _CHECK(value)) is not None:
        raise UsageError(f"a value {problem}")
    return value.encode() if isinstance(value, str) else value


def _partition_of(key: bytes | None, partitions: int, turn: int) -> int:
    """Kafka: BuiltInPartitioner#partitionForKey; without a key in turns, so that a test knows where its records are."""
    return turn % partitions if key is None else (murmur2(key) & 0x7FFFFFFF) % partitions


def murmur2(data: bytes) -> int:
    """Kafka: Utils#murmur2, as an unsigned number."""
    value = _SEED ^ len(data)
    whole = len(data) & ~3
    for position in range(0, whole, 4):
        word = int.from_bytes(data[position : position + 4], "little") * _M & 0xFFFFFFFF
        value = value * _M & 0xFFFFFFFF ^ (word ^ word >> 24) * _M & 0xFFFFFFFF
    if rest := data[whole:]:
        value = (value ^ int.from_bytes(rest, "little")) * _M & 0xFFFFFFFF
    value = (value ^ value >> 13) * _M & 0xFFFFFFFF
    return value ^ value >> 15
