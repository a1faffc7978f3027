"""Samples of log ends from build to build: cleaned once, and of those from before the horizon the last few of each log.

The samples from the horizon on are cleaned again by each build, with all that came since: whether one is dropped depends on the
next. What is older is settled.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kgctl.pipeline.decode.cells import Bools, Int64s
from kgctl.pipeline.decode.columns import int64s
from kgctl.pipeline.decode.ordering import order_by, ranked
from kgctl.pipeline.store.raw import LOG_OFFSETS
from kgctl.pipeline.tables import log_end_offsets
from kgctl.pipeline.tables.outdated import OutdatedError
from kgctl.pipeline.tables.registry import BEGIN_MS, ClusterInputs
from kgctl.pipeline.tables.series.burrow import INTERVALS
from kgctl.pipeline.tables.series.samples import numbered
from kgctl.pipeline.tables.series.scan import begins

KEPT = INTERVALS + 2
"""So many samples before the horizon are kept of each log: as many as Burrow's rules look back, and those beside them."""
_NEIGHBOURS = 2

CLEANED = pa.schema([*LOG_OFFSETS, ("number", pa.int64()), ("life", pa.int64()), ("is_first", pa.bool_())])
"""Samples with a known end, numbered without a gap by log; ``life`` numbers the log's lives, ``is_first`` begins one."""


@dataclass(frozen=True)
class Sampled:
    """``cleaned``: `CLEANED`, settled; ``raw``: as collected, from the horizon on and a few before it."""

    cleaned: pa.Table
    raw: pa.Table
    horizon_ms: int = BEGIN_MS

    @classmethod
    def nothing(cls) -> Sampled:
        """Before the first build."""
        return cls(CLEANED.empty_table(), LOG_OFFSETS.empty_table())

    def with_more(self, fresh: pa.Table) -> pa.Table:
        """`CLEANED`: what was settled, and what is so far of the samples from the horizon on, new ones among them.

        Raises `OutdatedError` where a new one is older than the horizon, or shows that a settled one has to go.
        """
        if fresh.num_rows and pc.min(fresh.column("timestamp_ms")).as_py() < self.horizon_ms:
            raise OutdatedError("samples of log ends came late")
        together = pa.concat_tables([self.raw, fresh])
        found = _clean(together)
        is_settled = pc.less(found.column("timestamp_ms"), self.horizon_ms)
        if self.raw.num_rows and fresh.num_rows:
            before = _clean(self.raw)
            if not _has_all(_until_first_behind(found, self.horizon_ms), _until_first_behind(before, self.horizon_ms)):
                raise OutdatedError("a sample of a log end came from a replica that was behind")
        return _numbered_on(self.cleaned, found.filter(pc.invert(is_settled)))

    def until(self, horizon_ms: int, fresh: pa.Table, cleaned: pa.Table) -> Sampled:
        """What is kept for a build from a later horizon on. ``cleaned``: what `with_more` has made of ``fresh``."""
        raw = pa.concat_tables([self.raw, fresh])
        order, log, times = _ordered(raw)
        is_old = times < horizon_ms
        moments: Int64s = np.cumsum(begins(log, times)).astype(np.int64)
        kept = ~is_old | _is_among_last(log, moments, is_old, _NEIGHBOURS)
        return Sampled(settled(cleaned, horizon_ms), raw.take(pa.array(order[kept])), horizon_ms)


def settled(cleaned: pa.Table, horizon_ms: int) -> pa.Table:
    """The last samples of each log before the horizon, and the first of its life then."""
    order, log, times = _ordered(cleaned)
    life, is_first = int64s(cleaned, "life")[order], int64s(cleaned, "is_first")[order] > 0
    is_old = times < horizon_ms
    kept = _is_among_last(log, np.arange(len(log)), is_old, KEPT)
    last_life = np.full(int(log[-1]) + 1 if len(log) else 0, -1)
    np.maximum.at(last_life, log[is_old], life[is_old])
    kept |= is_old & is_first & (life == last_life[log])
    return cleaned.take(pa.array(order[kept]))


def _until_first_behind(cleaned: pa.Table, horizon_ms: int) -> pa.Table:
    """The samples that rows from before the horizon depend on: those up to there, and the next one of each log."""
    order, log, times = _ordered(cleaned)
    is_behind = times >= horizon_ms
    first = is_behind & begins(log, is_behind.astype(np.int64)) if len(log) else is_behind
    return cleaned.select(LOG_OFFSETS.names).take(pa.array(order[~is_behind | first]))


def _has_all(table: pa.Table, rows: pa.Table) -> bool:
    names = rows.column_names
    both = pa.concat_tables([table, rows]).append_column("count", pa.array([1] * (table.num_rows + rows.num_rows), pa.int64()))
    counts = both.group_by(names).aggregate([("count", "sum")]).column("count_sum")
    return bool((pc.sum(pc.equal(counts, 2)).as_py() or 0) == rows.num_rows)


def _clean(raw: pa.Table) -> pa.Table:
    found = log_end_offsets.build(ClusterInputs(raw))
    known = found.filter(pc.is_valid(found.column("log_end_offset")))
    return known.set_column(0, "topic", known.column("topic").cast(pa.string()))


def _ordered(table: pa.Table) -> tuple[Int64s, Int64s, Int64s]:
    """(rows by log and time, the logs' numbers in that order, the times)."""
    topic, _ = ranked(table.column("topic"))
    partition, times = int64s(table, "partition"), int64s(table, "timestamp_ms")
    order = order_by([topic, partition, times])
    return order, np.cumsum(begins(topic[order], partition[order])) - 1, times[order]


def _is_among_last(log: Int64s, number: Int64s, is_old: Bools, count: int) -> Bools:
    """Which rows have one of the last ``count`` numbers of their log, of those that are old."""
    last = np.full(int(log[-1]) + 1 if len(log) else 0, -1)
    np.maximum.at(last, log[is_old], number[is_old])
    found: Bools = is_old & (number > last[log] - count)
    return found


def _numbered_on(known: pa.Table, found: pa.Table) -> pa.Table:
    """``known``, and behind it in each log the rows of ``found`` with numbers and lives that go on."""
    if not known.num_rows and not found.num_rows:
        return known
    blank = {name: pa.nulls(found.num_rows, CLEANED.field(name).type) for name in ("number", "life", "is_first")}
    fresh = pa.table({**{name: found.column(name) for name in LOG_OFFSETS.names}, **blank}).cast(CLEANED)
    both = pa.concat_tables([known, fresh])
    order, log, _ = _ordered(both)
    both = both.take(pa.array(order))
    is_known = order < known.num_rows
    number, life, is_first = numbered(log, int64s(both, "log_end_offset"))
    old_number, old_life = int64s(both, "number"), int64s(both, "life")
    last = np.maximum.accumulate(np.where(is_known, np.arange(len(log)), -1))
    goes_on = (last >= 0) & (log[last] == log)
    number = np.where(goes_on, number - number[last] + old_number[last], number)
    life = np.where(goes_on, life - life[last] + old_life[last], life)
    is_first = np.where(is_known, int64s(both, "is_first") > 0, is_first)
    columns = {name: both.column(name) for name in LOG_OFFSETS.names}
    columns |= {"number": pa.array(number), "life": pa.array(life), "is_first": pa.array(is_first)}
    return pa.table(columns).cast(CLEANED)
