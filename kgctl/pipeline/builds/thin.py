"""What stays of days that were thinned: of records what Kafka's cleaner keeps, of the tables what later answers look back at.

Both are made file by file: one that loses nothing stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kgctl.pipeline.decode.arrow import Bools
from kgctl.pipeline.store.delta import Table
from kgctl.pipeline.store.files import DataFile, is_provisional, partitions_of, prefix_of, write_files
from kgctl.pipeline.store.lookback import KEPT, is_last
from kgctl.pipeline.store.warehouse import COMPACTED, Warehouse

DAY_MS = 86_400_000


@dataclass(frozen=True)
class Replacement:
    """Files of a table that go, ``gone``, and those that come in their place, ``kept``."""

    gone: Sequence[DataFile] = ()
    kept: Sequence[DataFile] = ()

    @property
    def rows(self) -> int:
        """Return how many rows go."""
        return sum(file.rows for file in self.gone) - sum(file.rows for file in self.kept)


def day_of(time_ms: int) -> str:
    """Return the day of a moment, in UTC, as folders are named."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).date().isoformat()


def next_pruned(before: int | None, until_ms: int) -> int:
    """The number that tells of one more thinning of what is older than the day of ``until_ms``: that day's first millisecond, or
    an earlier thinning's where that took later days, and how often before."""
    day_ms = until_ms // DAY_MS * DAY_MS
    return day_ms if before is None or before < day_ms else before + 1


def pruned_until_ms(number: int | None) -> int:
    """The time before which only the last commits are kept, by that number; 0 where nothing was thinned."""
    return 0 if number is None else max(number, 0) // DAY_MS * DAY_MS


def thinned_records(table: Table, old: Sequence[DataFile]) -> Replacement:
    """Of the files of ``records`` of old days: the last record of each key, and all of transactions.

    The new files count as built, as the old ones do.
    """
    columns = ["cluster", "log_partition", "log_offset", "key", "producer_id"]
    return _thinned(table, old, columns, _last_records, lambda _: f"{COMPACTED}-")


def thinned_rows(warehouse: Warehouse, name: str, cluster: str, until_ms: int) -> Replacement:
    """Of a built table's days before ``until_ms`` what answers from then on look back at; rows that may still change stay."""
    table, day = warehouse.table(name), day_of(until_ms)
    old = [file for file in table.files(cluster) if file.date < day and not is_provisional(file)]
    if not old or name not in KEPT:
        return Replacement(old)
    columns, kept = KEPT[name]
    return _thinned(table, old, columns, kept, lambda file: prefix_of(*partitions_of(file), is_provisional=False))


def _thinned(
    table: Table,
    files: Sequence[DataFile],
    columns: Sequence[str],
    kept: Callable[[pa.Table], Bools],
    prefix: Callable[[DataFile], str],
) -> Replacement:
    parts = [table.rows([file], columns) for file in files]
    is_kept = kept(pa.concat_tables(parts)) if parts else np.zeros(0, np.bool_)
    gone, new, at = [], [], 0
    for file, part in zip(files, parts, strict=True):
        mine = is_kept[at : at + part.num_rows]
        at += part.num_rows
        if not mine.all():
            gone.append(file)
            rows = table.rows([file]).filter(pa.array(mine)) if mine.any() else table.stored.schema.empty_table()
            new += write_files(table.location, table.name, rows, prefix(file))
    return Replacement(gone, new)


def _last_records(rows: pa.Table) -> Bools:
    is_plain = pc.and_(pc.is_valid(rows.column("key")), pc.is_null(rows.column("producer_id"))).to_numpy()
    found: Bools = ~is_plain | is_last(rows, ["cluster", "log_partition", "key"], ["log_offset"], among=is_plain)
    return found
