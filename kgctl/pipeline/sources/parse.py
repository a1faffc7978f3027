"""From bytes of a log to tables of `kgctl.pipeline.store.tables.RAW`: the records of all batches in lock step, with numpy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kgctl.pipeline.sources.batches import Batches, CodecError, Damage, Message, cut, expanded, find_batches, unpack
from kgctl.pipeline.store.tables import RAW, rows_of
from kgctl.serde.record_batch import HEADER_BYTES

SHORTEST_RECORD = 7
_NARROW = 192
"""Steps over fewer batches than this cost more than walking their records one by one."""

_AT_A_TIME = 65_536
_MOST = 1 << 31


class Places(NamedTuple):
    """First byte and last byte + 1 of records, one entry each."""

    begin: Any
    end: Any


class Fields(NamedTuple):
    """One entry a record. A length of -1 is null; ``is_bad`` records do not keep to the format, their fields mean nothing."""

    timestamp_delta: Any
    offset_delta: Any
    key_start: Any
    key_length: Any
    value_start: Any
    value_length: Any
    is_bad: Any


def record_places(buffer: Any, batches: Places, counts: Any) -> tuple[Places, Any]:
    """Where each record is, behind its length, batch by batch; and which batches' records do not end where the batch does.

    Those of a batch that is cut off are empty places.
    """
    first = np.cumsum(counts) - counts
    begin = np.zeros(int(counts.sum()), np.int64)
    length = np.zeros(len(begin), np.int64)
    order = np.argsort(-counts, kind="stable")
    position, steps = batches.begin[order].astype(np.int64), counts[order]
    step, active = 0, int((steps > 0).sum())
    while active >= _NARROW:
        size, behind = varint(buffer, position[:active])
        np.clip(size, 0, _MOST, out=size)
        place = first[order[:active]] + step
        begin[place], length[place] = behind, size
        position[:active] = np.minimum(behind + size, len(buffer))
        step += 1
        active = int(np.searchsorted(-steps, -step, side="left"))
    data = buffer.tobytes() if active else b""
    for row, batch in enumerate(order[:active].tolist()):
        begins, sizes = _walk(data, int(position[row]), int(counts[batch]) - step)
        rows = slice(first[batch] + step, first[batch] + step + len(begins))
        begin[rows], length[rows] = begins, sizes
    end = begin + length
    is_cut = np.zeros(len(counts), bool)
    filled = np.flatnonzero(counts > 0)
    is_cut[filled] = end[(first + counts - 1)[filled]] != batches.end[filled]
    is_cut |= (counts == 0) & (batches.begin != batches.end)
    if is_cut.any():
        rows_cut = np.repeat(is_cut, counts)
        begin[rows_cut] = end[rows_cut] = 0
    return Places(begin, end), is_cut


def _walk(data: bytes, position: int, count: int) -> tuple[list[int], list[int]]:
    """Where the next ``count`` records of a batch begin, and their sizes; fewer where the data ends before."""
    begins: list[int] = []
    sizes: list[int] = []
    try:
        for _ in range(count):
            size = data[position]
            position += 1
            if size > 0x7F:
                size, position = _longer(data, size, position)
            begins.append(position)
            sizes.append(size >> 1)
            position += size >> 1
    except IndexError:
        del begins[len(sizes) :]
    return begins, sizes


def _longer(data: bytes, first: int, position: int) -> tuple[int, int]:
    value, shift = first & 0x7F, 7
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
        if shift > 35:
            raise IndexError


def read_fields(buffer: Any, records: Places) -> Fields:
    """Read the fields of the records at these places."""
    parts = [
        _read_fields(buffer, records.begin[at : at + _AT_A_TIME], records.end[at : at + _AT_A_TIME])
        for at in range(0, max(len(records.begin), 1), _AT_A_TIME)
    ]
    return Fields(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _read_fields(buffer: Any, begin: Any, end: Any) -> Fields:
    timestamp_delta, position = varint(buffer, begin + 1)  # behind the attributes, which mean nothing
    offset_delta, position = varint(buffer, position)
    key_length, key_start = varint(buffer, position)
    np.clip(key_length, -2, _MOST, out=key_length)
    value_length, value_start = varint(buffer, key_start + np.maximum(key_length, 0))
    np.clip(value_length, -2, _MOST, out=value_length)
    headers, position = varint(buffer, value_start + np.maximum(value_length, 0))
    is_bad = (key_length < -1) | (value_length < -1) | (position > end) | (headers < 0) | ((headers == 0) & (position != end))
    return Fields(timestamp_delta, offset_delta, key_start, key_length, value_start, value_length, is_bad)


def varint(buffer: Any, position: Any) -> tuple[Any, Any]:
    """The zigzag numbers at these places, and the places behind them. Behind the buffer's end its last byte repeats."""
    byte = buffer.take(position, mode="clip")
    value = (byte & 0x7F).astype(np.uint64)
    behind = position + 1
    more = np.flatnonzero(byte > 0x7F)
    shift = 7
    while more.size and shift < 70:
        byte = buffer.take(behind[more], mode="clip")
        value[more] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
        behind[more] += 1
        more = more[byte > 0x7F]
        shift += 7
    signed = (value >> np.uint64(1)).view(np.int64)
    signed ^= -(value & np.uint64(1)).view(np.int64)
    return signed, behind


_LOG_APPEND_TIME = 0x08
_TRANSACTIONAL = 0x10
_CONTROL = 0x20
_ABORT, _COMMIT = 0, 1
_MARKER_KEY_BYTES = 4


class Rows(NamedTuple):
    """``rows`` of `RAW`, and which of them are ``wanted``: control records that are no transaction's marker are not."""

    rows: Any
    wanted: Any


def raw_table(buffer: Any, fields: Fields, headers: Any, batch: Any, partition: int) -> Rows:
    """The rows of these records; ``batch`` is each record's row in ``headers``."""
    attributes = headers["attributes"].astype(np.int16)
    is_control = (attributes & _CONTROL != 0)[batch]
    transactions = _transaction_columns(buffer, fields, headers, batch)
    columns = [
        pa.array(np.full(len(batch), partition, np.int32)),
        pa.array(headers["base_offset"].astype(np.int64)[batch] + fields.offset_delta),
        pa.array(_timestamps(headers, attributes, fields, batch)),
        *_bytes_columns(buffer, fields, is_control),
        *transactions,
    ]
    is_marker = ~transactions[-1].is_null().to_numpy(zero_copy_only=False)
    return Rows(pa.table(columns, schema=RAW), ~is_control | is_marker)


def _bytes_columns(buffer: Any, fields: Fields, is_control: Any) -> tuple[Any, Any]:
    """Keys and values; null for control records.

    Arrow sees the buffer as pieces in turn (key, between, value, between) and copies out those it is asked for, which is many
    times faster than gathering bytes by index.
    """
    size = len(fields.key_start)
    offsets = np.empty(4 * size + 1, np.int32)
    offsets[0:-1:4] = fields.key_start
    offsets[1::4] = fields.key_start + np.maximum(fields.key_length, 0)
    offsets[2::4] = fields.value_start
    offsets[3::4] = fields.value_start + np.maximum(fields.value_length, 0)
    offsets[-1] = len(buffer)
    if fields.is_bad.any():  # their places mean nothing; Arrow must not follow them
        offsets[:-1].reshape(-1, 4)[fields.is_bad] = 0
        np.maximum.accumulate(offsets, out=offsets)
    pieces = pa.Array.from_buffers(pa.binary(), 4 * size, [None, pa.py_buffer(offsets), pa.py_buffer(buffer)])
    number = np.arange(0, 4 * size, 4, dtype=np.int32)
    keys = pieces.take(_indices(number, is_control | (fields.key_length < 0)))
    return keys, pieces.take(_indices(number + 2, is_control | (fields.value_length < 0)))


def _indices(number: Any, is_null: Any) -> Any:
    return pa.array(number, mask=is_null) if is_null.any() else pa.array(number)


def _timestamps(headers: Any, attributes: Any, fields: Fields, batch: Any) -> Any:
    times = headers["base_timestamp_ms"].astype(np.int64)[batch] + fields.timestamp_delta
    appended = attributes & _LOG_APPEND_TIME != 0
    if appended.any():
        times = np.where(appended[batch], headers["max_timestamp_ms"].astype(np.int64)[batch], times)
    return times


def _transaction_columns(buffer: Any, fields: Fields, headers: Any, batch: Any) -> list[Any]:
    attributes, size = headers["attributes"], len(batch)
    is_plain = (attributes & (_TRANSACTIONAL | _CONTROL) == 0)[batch]
    if is_plain.all():
        return [pa.nulls(size, pa.int64()), pa.nulls(size, pa.int16()), pa.nulls(size, pa.bool_())]
    is_control = (attributes & _CONTROL != 0)[batch]
    kind = _marker_kinds(buffer, fields)
    return [
        pa.array(headers["producer_id"].astype(np.int64)[batch], mask=is_plain),
        pa.array(headers["producer_epoch"].astype(np.int16)[batch], mask=is_plain),
        pa.array(kind == _COMMIT, mask=~is_control | ((kind != _COMMIT) & (kind != _ABORT))),
    ]


def _marker_kinds(buffer: Any, fields: Fields) -> Any:
    """The kind in a control record's key (version int16, kind int16); -1 where the key is too short."""
    high, low = (buffer.take(fields.key_start + at, mode="clip").astype(np.int32) for at in (2, 3))
    return np.where(fields.key_length >= _MARKER_KEY_BYTES, (high << 8) | low, -1)


_GROUP_BYTES = 1 << 25
_GROUP_RECORDS = 1 << 19
_ARENA_BYTES = 1 << 28
_MALFORMED = "records that do not keep to the format"


@dataclass(slots=True)
class ParsedLog:
    """What a stretch of log holds.

    ``tables`` are of `RAW`, in the order of the log; markers of transactions are rows in them, other control records are left
    out. ``torn`` counts the bytes at the end that begin a batch which is not all there, ``next_offset`` is the offset behind the
    last batch that could be read (None: there is none).
    """

    tables: list[Any] = field(default_factory=list)
    damaged: list[Damage] = field(default_factory=list)
    batches: int = 0
    torn: int = 0
    next_offset: int | None = None

    @property
    def records(self) -> int:
        """Return the number of rows of all tables."""
        return sum(table.num_rows for table in self.tables)

    def table(self) -> Any:
        """Return all rows in one table."""
        return pa.concat_tables(self.tables) if self.tables else RAW.empty_table()


def parse_log(data: Any, partition: int) -> ParsedLog:
    """Read ``data``: bytes, or anything with a buffer of them; whole batches of one partition's log, one after the other.

    Reads every batch of format 2 with a right checksum, whatever its codec, and messages of the formats 0 and 1. All
    else is an item of ``damaged``. Never raises for what the bytes are.
    """
    view = memoryview(data).cast("B")
    found = find_batches(view)
    parsed = ParsedLog(damaged=found.damaged, batches=len(found.starts), torn=found.torn)
    if found.starts:
        batches = Batches.of(np.frombuffer(view, np.uint8), found)
        last = batches.headers["base_offset"] + batches.headers["last_offset_delta"]
        parsed.next_offset = int(last.max()) + 1
        for group in _groups(batches):
            parsed.tables.append(_table(batches.part(group), partition, parsed.damaged))
    if found.messages:
        _add_messages(found.messages, partition, view, parsed)
    parsed.damaged.sort(key=lambda damage: damage.position)
    return parsed


def _groups(batches: Batches) -> Iterator[slice]:
    """Batches that are read together: enough for numpy, few enough for the caches and for Arrow's 32-bit offsets."""
    spans = np.diff(batches.ends, prepend=batches.starts[0])
    weight = np.maximum(spans / _GROUP_BYTES, np.clip(batches.headers["count"], 0, None) / _GROUP_RECORDS)
    group = np.floor(np.cumsum(weight)).astype(np.int64)
    edges = [0, *(np.flatnonzero(np.diff(group)) + 1).tolist(), len(group)]
    yield from (slice(low, high) for low, high in pairwise(edges) if low < high)


def _table(batches: Batches, partition: int, damaged: list[Damage]) -> Any:
    """The rows of these batches. Those of compressed ones are read from buffers of their own and brought into order."""
    codecs = batches.codecs
    plain, packed = np.flatnonzero(codecs == 0), np.flatnonzero(codecs != 0)
    parts = []
    if len(plain):
        low, high = int(batches.starts[0]), int(batches.ends[-1])
        places = Places(batches.starts[plain] + HEADER_BYTES - low, batches.ends[plain] - low)
        parts.append(_read(batches, plain, batches.buffer[low:high], places, partition, damaged=damaged))
    for numbers, arena, places in _unpacked(batches, packed.tolist(), damaged):
        parts.append(_read(batches, numbers, arena, places, partition, damaged=damaged))
    if len(parts) == 1:
        return parts[0][0]
    if not parts:
        return RAW.empty_table()
    order = np.argsort(np.concatenate([numbers for _, numbers in parts]), kind="stable")
    return pa.concat_tables([table for table, _ in parts]).take(pa.array(order))


def _read(
    batches: Batches, numbers: Any, buffer: Any, places: Places, partition: int, *, damaged: list[Damage]
) -> tuple[Any, Any]:
    """The rows of the batches with these numbers, whose records are at ``places`` of ``buffer``; and the batch of each row."""
    counts = batches.headers["count"][numbers].astype(np.int64)
    is_bad = (counts < 0) | (counts * SHORTEST_RECORD > places.end - places.begin)
    counts[is_bad] = 0
    ends = np.where(is_bad, places.begin, places.end)
    records, is_cut = record_places(buffer, Places(places.begin, ends), counts)
    fields = read_fields(buffer, records)
    batch = np.repeat(np.arange(len(numbers)), counts)
    is_bad |= is_cut
    is_bad[batch[fields.is_bad]] = True
    damaged.extend(batches.damage(number, _MALFORMED) for number in numbers[is_bad].tolist())
    table = raw_table(buffer, fields, batches.headers[numbers], batch, partition)
    keep = table.wanted & ~is_bad[batch]
    if keep.all():
        return table.rows, numbers[batch]
    return table.rows.filter(pa.array(keep)), numbers[batch[keep]]


def _unpacked(batches: Batches, numbers: Sequence[int], damaged: list[Damage]) -> Iterator[tuple[Any, Any, Places]]:
    """The records of compressed batches one after the other in a buffer, the batches they are of, and their places in it."""
    contents: list[bytes] = []
    good: list[int] = []
    size = 0
    for number in numbers:
        try:
            content = unpack(int(batches.codecs[number]), batches.payload(number))
        except CodecError as error:
            damaged.append(batches.damage(number, str(error)))
            continue
        contents.append(content)
        good.append(number)
        size += len(content)
        if size > _ARENA_BYTES:
            yield _joined(contents, good)
            contents, good, size = [], [], 0
    if good:
        yield _joined(contents, good)


def _joined(contents: Sequence[bytes], numbers: Sequence[int]) -> tuple[Any, Any, Places]:
    sizes = np.array([len(content) for content in contents], np.int64)
    ends = np.cumsum(sizes)
    return np.array(numbers), np.frombuffer(b"".join(contents), np.uint8), Places(ends - sizes, ends)


def _add_messages(messages: Sequence[Message], partition: int, view: memoryview, parsed: ParsedLog) -> None:
    rows: list[Message] = []
    for message in messages:
        try:
            rows += expanded(message)
        except CodecError as error:
            data = cut(view[message.start : message.end])
            parsed.damaged.append(Damage(message.start, message.end - message.start, str(error), message.offset, None, data))
    columns: dict[str, list[Any]] = {
        name: [getattr(row, name) for row in rows] for name in ("offset", "timestamp_ms", "key", "value")
    }
    parsed.tables.append(rows_of({"partition": [partition] * len(rows), **columns}, RAW))
    parsed.batches += len(messages)
    parsed.next_offset = max(parsed.next_offset or 0, max(message.offset for message in messages) + 1)
