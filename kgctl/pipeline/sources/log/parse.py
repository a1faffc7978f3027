"""From bytes of a log to tables of `kgctl.pipeline.store.raw.RAW`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from kgctl.pipeline.sources.log.batches import Batches, find_batches
from kgctl.pipeline.sources.log.codecs import CodecError, unpack
from kgctl.pipeline.sources.log.columns import raw_table
from kgctl.pipeline.sources.log.damage import Damage, cut
from kgctl.pipeline.sources.log.messages import Message, expanded
from kgctl.pipeline.sources.log.records import SHORTEST_RECORD, Places, read_fields, record_places
from kgctl.pipeline.store.raw import RAW, rows_of
from kgctl.serde.record_batch import HEADER_BYTES

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
        """Rows of all tables."""
        return sum(table.num_rows for table in self.tables)

    def table(self) -> Any:
        """All rows in one table."""
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
