"""Batches and segments as brokers write them, every codec and format, from records."""

from __future__ import annotations

import struct
import warnings
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from google_crc32c import value as crc32c

from kgctl.serde.record_batch import HEADER_BYTES, Record, build_batch

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
XERIAL = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)


def compressed(batch: bytes, codec: str, *, log_append_time: bool = False) -> bytes:
    """The same batch with its records compressed, as Kafka's own clients frame them."""
    (attributes,) = struct.unpack_from(">h", batch, 21)
    attributes |= CODECS[codec] | (0x08 if log_append_time else 0)
    rest = struct.pack(">h", attributes) + batch[23:HEADER_BYTES] + pack(batch[HEADER_BYTES:], codec)
    return batch[:8] + struct.pack(">i", len(rest) + 9) + batch[12:17] + struct.pack(">I", crc32c(rest)) + rest


def pack(payload: bytes, codec: str) -> bytes:
    """Bytes in Kafka's framing of a codec."""
    if codec == "none":
        return payload
    if codec == "gzip":
        packer = zlib.compressobj(wbits=31)
        return packer.compress(payload) + packer.flush()
    if codec == "snappy":
        blocks = [payload[at : at + 1_000] for at in range(0, len(payload), 1_000)]
        packed = [pa.Codec("snappy").compress(block, asbytes=True) for block in blocks]
        return XERIAL + b"".join(struct.pack(">i", len(block)) + block for block in packed)
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(payload)
    return bytes(sink.getvalue())


def segment(counts: Iterable[int], *, codec: str = "none", first_offset: int = 0) -> bytes:
    """Batches of so many commit-like records each."""
    batches = []
    for count in counts:
        records = [commit_like(first_offset + number) for number in range(count)]
        batches.append(compressed(build_batch(records), codec) if codec != "none" else build_batch(records))
        first_offset += count
    return b"".join(batches)


def commit_like(offset: int) -> Record:
    """A commit, of value version 3."""
    key = struct.pack(">hh8sh6si", 1, 8, b"group-%02d" % (offset % 90), 6, b"orders", offset % 12)
    return Record(offset, 1_700_000_000_000 + offset // 10, key, struct.pack(">hqihq", 3, offset, -1, 0, offset))


def message(
    offset: int, key: bytes | None, value: bytes | None, *, timestamp_ms: int | None = None, attributes: int = 0
) -> bytes:
    """A message of format 1, or 0 where it has no time."""
    head = struct.pack(">bb", 0 if timestamp_ms is None else 1, attributes)
    time = b"" if timestamp_ms is None else struct.pack(">q", timestamp_ms)
    body = head + time + b"".join(struct.pack(">i", -1) if x is None else struct.pack(">i", len(x)) + x for x in (key, value))
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def read_by_kafka_python(data: bytes) -> list[tuple[int, int, bytes | None, bytes | None]]:
    """(offset, timestamp, key, value) of the records that kafka-python sees, control records left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from kafka.record.memory_records import MemoryRecords

        found: list[Any] = []
        for batch in MemoryRecords(data):
            assert batch.validate_crc()
            if not getattr(batch, "is_control_batch", False):
                found += [(each.offset, each.timestamp, _bytes(each.key), _bytes(each.value)) for each in batch]
    return found


def rows(table: Any) -> Sequence[tuple[int, int, bytes | None, bytes | None]]:
    """The same of a table of `kgctl.pipeline.store.tables.RAW`."""
    columns = [table.column(name).to_pylist() for name in ("offset", "timestamp_ms", "key", "value")]
    return list(zip(*columns, strict=True))


def _bytes(found: Any) -> bytes | None:
    return None if found is None else bytes(found)


def example_segments(folder: Path) -> None:
    """A broker's log directory: two partitions of ``__consumer_offsets``, commits of March 2026 in two segments and in one."""
    start_ms = 1_772_438_400_000  # 2026-03-02T08:00:00Z
    for partition, group, offsets in ((7, b"payments", range(40)), (31, b"shipping", range(100, 112))):
        records = [
            Record(
                offset,
                start_ms + 60_000 * number,
                struct.pack(">hh8sh6si", 1, 8, group, 6, b"orders", number % 3),
                struct.pack(">hqihq", 3, 10 * number, -1, 0, start_ms),
            )
            for number, offset in enumerate(offsets)
        ]
        path = folder / f"__consumer_offsets-{partition}"
        path.mkdir(parents=True)
        cut = len(records) if partition == 31 else len(records) // 2
        for part in (records[:cut], records[cut:]):
            if part:
                batches = [build_batch(part[at : at + 4]) for at in range(0, len(part), 4)]
                (path / f"{part[0].offset:020d}.log").write_bytes(b"".join(batches))
