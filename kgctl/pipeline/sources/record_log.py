"""The record log of a data folder: what `kgctl serve` and `kgctl simulate run --records-out` keep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from kgctl.pipeline.sources.log.parse import ParsedLog
from kgctl.pipeline.store.raw import LOG_OFFSETS, RAW, rows_of
from kgctl.storage.sqlite_files import BulkReader, RecordColumns

_PAGE_ROWS = 5_000  # larger ones are slower: rows are tuples, which the search for reference cycles looks at
_PAGES = 100


@dataclass(frozen=True, slots=True)
class RecordLogPiece:
    """One partition of the record log."""

    path: Path
    partition: int
    size: int = 1

    @property
    def source(self) -> str:
        """The folder."""
        return str(self.path)

    def read(self) -> Iterator[ParsedLog]:
        """Some pages of records at a time. Raises as `BulkReader`."""
        with BulkReader(self.path) as folder:
            pages = folder.records(self.partition, page_rows=_PAGE_ROWS)
            while tables := [_table(self.partition, page) for page in islice(pages, _PAGES)]:
                yield ParsedLog(tables, batches=len(tables))


def record_log_pieces(path: Path) -> Sequence[RecordLogPiece]:
    """See `kgctl.pipeline.sources.pieces.record_log`."""
    with BulkReader(path) as folder:
        return [RecordLogPiece(path, partition) for partition in folder.partitions()]


def _table(partition: int, page: RecordColumns) -> Any:
    columns: dict[str, Any] = {"partition": [partition] * len(page.offset), **page._asdict()}
    columns["commits"] = pa.array(page.commits, pa.int8()).cast(pa.bool_())
    return rows_of(columns, RAW)


def record_log_samples(path: Path, *, every_ms: int, now_ms: int) -> Any:
    """The log offsets of the folder's topics (`LOG_OFFSETS`): their ends as their batches tell them, and both bounds as of now.

    "Now" is that of the folder: where nobody has it open, the time of the last thing in it.
    """
    with BulkReader(path) as folder:
        ends, bounds = folder.log_ends(every_ms), folder.log_bounds()
        as_of = folder.as_of_ms(now_ms)
    past = rows_of(ends._asdict(), LOG_OFFSETS)
    now = rows_of(
        {
            "topic": [bound.topic for bound in bounds],
            "partition": [bound.partition for bound in bounds],
            "timestamp_ms": [as_of] * len(bounds),
            "log_start_offset": [bound.log_start_offset for bound in bounds],
            "log_end_offset": [bound.log_end_offset for bound in bounds],
        },
        LOG_OFFSETS,
    )
    return pa.concat_tables([past, now])
