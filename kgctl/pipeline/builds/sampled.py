"""The samples that a slice goes on with: of the logs that its groups read, as many as rows still to come look back at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kgctl.pipeline.decode.arrow import Bools, Int64s, int64s, order_by, ranked
from kgctl.pipeline.tables.collected import LOG_END_COLUMNS, log_end_rows
from kgctl.pipeline.tables.lag import INTERVALS
from kgctl.pipeline.tables.points import points
from kgctl.pipeline.tables.registry import BEGIN_MS, DEFAULT_WINDOW_MS, ClusterInputs, OutdatedError, PartitionInputs
from kgctl.pipeline.tables.samples import UNKNOWN, Samples, numbered, samples
from kgctl.pipeline.tables.series import CommitSeries, begins, series

KEPT = INTERVALS + 2
"""So many samples before the horizon are kept of each log: as many as Burrow's rules look back, and those beside them."""
_NEIGHBOURS = 2
LATE = "samples of log ends came late"
CLEANED = pa.schema([*LOG_END_COLUMNS, ("number", pa.int64()), ("life", pa.int64()), ("is_first", pa.bool_())])
"""Samples with a known end, numbered without a gap by log; ``life`` numbers the log's lives, ``is_first`` begins one."""


@dataclass(frozen=True)
class Sampled:
    """``cleaned``: `CLEANED`, from before ``until_ms``; ``raw``: as collected, from then on and a few before it."""

    cleaned: pa.Table
    raw: pa.Table
    until_ms: int

    def with_more(self, fresh: pa.Table, rounds: Int64s, topics: pa.Array) -> tuple[pa.Table, pa.Table]:
        """(`CLEANED` of these topics with new samples, all samples since ``until_ms`` as they were collected). A log of which
        there was none begins with its first new one."""
        raw = each_sample_once(pa.concat_tables([self.raw, fresh]))
        found = log_end_rows(ClusterInputs(of_topics(raw, topics), rounds))
        found = found.filter(pc.is_valid(found.column("log_end_offset")))
        is_old = pc.and_(
            pc.less(found.column("timestamp_ms"), self.until_ms),
            is_of_topics(found, pc.unique(self.cleaned.column("topic"))),
        )
        return _numbered_on(self.cleaned, found.filter(pc.invert(is_old)), pc.unique(_log_texts(self.raw))), raw

    def without(self, topics: Sequence[str]) -> Sampled:
        """Return what is left without the samples of some topics."""
        gone = pa.array(topics, pa.string())
        cleaned, raw = (table.filter(pc.invert(is_of_topics(table, gone))) for table in (self.cleaned, self.raw))
        return Sampled(cleaned, raw, self.until_ms)


def of_topics(table: pa.Table, topics: pa.Array) -> pa.Table:
    """The samples of these topics."""
    return table.filter(is_of_topics(table, topics))


def is_of_topics(table: pa.Table, topics: pa.Array) -> pa.ChunkedArray:
    """Which samples are of these topics."""
    wanted = topics.cast(pa.string())
    chunks = table.column("topic").chunks
    return pa.chunked_array([pc.is_in(each.dictionary, wanted).take(each.indices) for each in chunks], pa.bool_())


def _ordered(table: pa.Table) -> tuple[Int64s, Int64s, Int64s]:
    """(rows by log and time, the logs' numbers in that order, the times)."""
    topic, _ = ranked(table.column("topic"))
    partition, times = int64s(table, "partition"), int64s(table, "timestamp_ms")
    order = order_by([topic, partition, times])
    return order, np.cumsum(begins(topic[order], partition[order])) - 1, times[order]


def each_sample_once(table: pa.Table) -> pa.Table:
    """Samples that are there twice, once; of different ones of a moment both."""
    order, log, times = _ordered(table)
    if begins(log, times).all():
        return table.take(pa.array(order))
    found = table.take(pa.array(order))
    codes = [log, times, *(int64s(found, name, UNKNOWN) for name in ("log_start_offset", "log_end_offset"))]
    order = order_by(codes)
    return found.take(pa.array(order[begins(*(code[order] for code in codes))]))


def _is_among_last(log: Int64s, number: Int64s, is_old: Bools, count: int) -> Bools:
    """Which rows have one of the last ``count`` numbers of their log, of those that are old."""
    last = np.full(int(log[-1]) + 1 if len(log) else 0, -1)
    np.maximum.at(last, log[is_old], number[is_old])
    found: Bools = is_old & (number > last[log] - count)
    return found


def _log_texts(table: pa.Table) -> pa.ChunkedArray:
    """The log of each sample, as one text."""
    return pc.binary_join_element_wise(table.column("topic").cast(pa.string()), table.column("partition").cast(pa.string()), "/")


def _numbered_on(known: pa.Table, found: pa.Table, others: pa.Array) -> pa.Table:
    """``known``, and behind it in each log the rows of ``found`` with numbers and lives that go on. The first sample of a log
    that is not known begins a life, unless there were ``others`` before it."""
    blank = {name: pa.nulls(found.num_rows, CLEANED.field(name).type) for name in ("number", "life", "is_first")}
    fresh = pa.table({**{name: found.column(name) for name in LOG_END_COLUMNS.names}, **blank}).cast(CLEANED)
    both = pa.concat_tables([known, fresh]).unify_dictionaries()
    if not both.num_rows:
        return both
    order, log, _ = _ordered(both)
    both = both.take(pa.array(order))
    is_known = order < known.num_rows
    number, life, is_first = numbered(log, int64s(both, "log_end_offset"))
    first = np.flatnonzero(begins(log))
    is_first[first] = ~pc.is_in(_log_texts(both.take(pa.array(first))), others).to_numpy()
    old_number, old_life = int64s(both, "number"), int64s(both, "life")
    last = np.maximum.accumulate(np.where(is_known, np.arange(len(log)), -1))
    goes_on = (last >= 0) & (log[last] == log)
    number = np.where(goes_on, number - number[last] + old_number[last], number)
    life = np.where(goes_on, life - life[last] + old_life[last], life)
    is_first = np.where(is_known, int64s(both, "is_first") > 0, is_first)
    columns = {name: both.column(name) for name in LOG_END_COLUMNS.names}
    columns |= {"number": pa.array(number), "life": pa.array(life), "is_first": pa.array(is_first)}
    return pa.table(columns).cast(CLEANED)


def require_in_time(raw: pa.Table, fresh: pa.Table, horizon_ms: int, topics: pa.Array) -> None:
    """Raise `OutdatedError` where new samples of these topics, none older than a horizon, change what is known of the time before
    it, which is the begin of a window in which anything was sampled; ``raw``: those before, of each log the last two at least.

    One tells of the time since the one before it, if it comes soon, and whether that was an answer of a replica behind.
    """
    known = of_topics(raw, topics)
    both = pa.concat_tables([known, of_topics(fresh, topics)])
    order, log, times = _ordered(both)
    end, place = int64s(both, "log_end_offset", UNKNOWN)[order], np.arange(len(log))
    new = np.flatnonzero(order >= known.num_rows)
    at = new[begins(log[new])]
    is_there = [(at >= back) & (log[place[at - back]] == log[at]) for back in (1, 2)]
    (ms, other_ms), (last, other) = (
        [np.where(there, values[at - back], blank) for back, there in enumerate(is_there, 1)]
        for values, blank in ((times, BEGIN_MS), (end, UNKNOWN))
    )
    stays = (last != UNKNOWN) & (last >= other) & (ms < times[at])
    is_far = (ms < horizon_ms) & (times[at] >= horizon_ms + 2 * DEFAULT_WINDOW_MS)
    is_late = ~((stays & (ms >= horizon_ms)) | ((other != UNKNOWN) & (other_ms >= horizon_ms)) | is_far)
    if is_late.any():
        raise OutdatedError(LATE, int(np.where(stays, ms, other_ms)[is_late].min()))


def unsure_topics(inputs: PartitionInputs) -> list[str]:
    """The topics of which rows need samples that are not there."""
    commits, known, found = series(inputs), samples(inputs), points(inputs)
    log = known.log_of_key[commits.key[found.row]]
    is_asked = commits.is_commit[found.row] & (log >= 0)
    committed = commits.committed[found.row]
    missing = is_asked & known.is_unsure(found.sample, committed, log)
    return sorted({commits.topics[number].as_py() for number in np.unique(commits.topic[found.row[missing]])})


def kept_samples(inputs: PartitionInputs, raw: pa.Table, until: Int64s, until_ms: int) -> Sampled:
    """What is kept for rows from later horizons on, one of each series; ``until_ms``: before which no sample changes any more."""
    commits, known = series(inputs), samples(inputs)
    wanted = _wanted(commits, known, until)
    is_settled = known.time_ms < until_ms
    wanted |= _lookback(known, until) | _is_among_last(known.log, np.arange(len(known.log)), is_settled, 1)
    settled = known.table(wanted & is_settled).cast(CLEANED)
    order, log, times = _ordered(raw)
    is_old = times < until_ms
    moments: Int64s = np.cumsum(begins(log, times)).astype(np.int64)
    kept = ~is_old | _is_among_last(log, moments, is_old, _NEIGHBOURS)
    return Sampled(settled, raw.take(pa.array(order[kept])), until_ms)


def _lookback(known: Samples, until: Int64s) -> Bools:
    """Of each log the last samples before the lowest horizon of its series, all since, and the first of its life."""
    if not len(known.log):
        return np.zeros(0, np.bool_)
    lowest = np.full(int(known.log[-1]) + 1, np.iinfo(np.int64).max)
    has_log = known.log_of_key >= 0
    np.minimum.at(lowest, known.log_of_key[has_log], until[has_log])
    is_old = known.time_ms < lowest[known.log]
    found = ~is_old | _is_among_last(known.log, np.arange(len(known.log)), is_old, KEPT)
    last_life = np.full(len(lowest), -1)
    np.maximum.at(last_life, known.log[is_old], known.own_life[is_old])
    found |= is_old & known.is_first & (known.own_life == last_life[known.log])
    return found


def _wanted(commits: CommitSeries, known: Samples, until: Int64s) -> Bools:
    """The samples around the moments at which the end left commits behind that rows still to come are of; and all since, where a
    series moves."""
    is_last = np.append(commits.key[1:] != commits.key[:-1], True)[: len(commits.key)]
    moves = commits.clock_ms >= until[commits.key]
    stands = is_last | np.append(moves[1:], False)[: len(moves)]
    rows = np.flatnonzero((moves | stands) & commits.is_commit)
    log = known.log_of_key[commits.key[rows]]
    rows, log = rows[log >= 0], log[log >= 0]
    wanted = np.zeros(len(known.log), np.bool_)
    if not len(rows) or not len(known.log):
        return wanted
    last, committed = np.searchsorted(known.log, log, "right") - 1, commits.committed[rows]
    for sample in (known.at(log, commits.clock_ms[rows]), last):
        wanted[known.needed(sample, committed)] = True
    log, last, committed = (each[moves[rows]] for each in (log, last, committed))
    before = known.around(last, committed)[0]
    since = np.where(before >= 0, before, np.searchsorted(known.log, log))
    edges = np.zeros(len(known.log) + 1, np.int64)
    np.add.at(edges, since, 1)
    np.subtract.at(edges, last + 1, 1)
    return wanted | (np.cumsum(edges)[:-1] > 0)
