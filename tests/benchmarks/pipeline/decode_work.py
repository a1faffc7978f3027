"""What the decode benchmark does with a file of raw records: kgctl's way, and one record at a time."""

from __future__ import annotations

import resource
import struct
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from kgctl.pipeline.decode.decode import READ_DICTIONARY, decode

TABLES = ("commits", "group_records", "markers", "undecoded", "coverage")
_VALUE = struct.Struct(">hqi")
_INT64 = struct.Struct(">q")
_INT32 = struct.Struct(">i")
_INT16 = struct.Struct(">h")


class Work(NamedTuple):
    """A file to read, and the folder for what comes of it."""

    source: str
    target: str


class Worked(NamedTuple):
    """What it took; ``memory_kb`` is the most that the process ever had."""

    records: int
    cpu_s: float
    memory_kb: int


def decode_file(work: Work) -> Worked:
    """Parquet in, decoded Parquet out."""
    began = time.process_time()
    raw = pq.read_table(work.source, read_dictionary=list(READ_DICTIONARY), use_threads=False)
    decoded = decode(raw)
    for name in TABLES:
        pq.write_table(getattr(decoded, name), _made(Path(work.target) / name) / Path(work.source).name, compression="zstd")
    return _worked(raw.num_rows, began)


def decode_rows(work: Work) -> Worked:
    """Commits as tuples, by struct, one at a time: what a script does. Keys that were seen are not read again."""
    began = time.process_time()
    table = pq.read_table(work.source, columns=["key", "value"], use_threads=False)
    read = row_decoder()
    pairs: Iterable[tuple[bytes | None, bytes | None]] = zip(
        table.column("key").to_pylist(), table.column("value").to_pylist(), strict=True
    )
    found = [read(key, value) for key, value in pairs]
    assert sum(each is not None for each in found) > 0.9 * len(found)
    return _worked(table.num_rows, began)


def row_decoder() -> Callable[[bytes | None, bytes | None], tuple[Any, ...] | None]:
    """A function for one record."""
    keys: dict[bytes, tuple[str, str, int] | None] = {}

    def read(key: bytes | None, value: bytes | None) -> tuple[Any, ...] | None:
        if key is None:
            return None
        place = keys.get(key)
        if place is None:
            place = keys[key] = read_key(key)
        if place is None:
            return None
        return (*place, None, -1, None, None) if value is None else (*place, *read_value(value))

    return read


def read_key(key: bytes) -> tuple[str, str, int] | None:
    """Group, topic and partition of an offset commit's key."""
    if _INT16.unpack_from(key)[0] > 1:
        return None
    topic_at = 4 + _INT16.unpack_from(key, 2)[0]
    partition_at = topic_at + 2 + _INT16.unpack_from(key, topic_at)[0]
    return key[4:topic_at].decode(), key[topic_at + 2 : partition_at].decode(), _INT32.unpack_from(key, partition_at)[0]


def read_value(value: bytes) -> tuple[int, int, str, int]:
    """Offset, leader epoch, metadata and time of versions 0 to 4; metadata of less than 127 bytes in version 4."""
    version = _INT16.unpack_from(value)[0]
    if version == 4:
        _, offset, epoch = _VALUE.unpack_from(value)
        end = 14 + value[14]
        return offset, epoch, value[15:end].decode(), _INT64.unpack_from(value, end)[0]
    at = 14 if version == 3 else 10
    offset, epoch = _INT64.unpack_from(value, 2)[0], _INT32.unpack_from(value, 10)[0] if version == 3 else -1
    end = at + 2 + _INT16.unpack_from(value, at)[0]
    return offset, epoch, value[at + 2 : end].decode(), _INT64.unpack_from(value, end)[0]


def _worked(records: int, began: float) -> Worked:
    return Worked(records, time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
