"""Commits cut into series (one a group, topic and partition), samples of log ends, and the points at which lag is measured.

Between two samples the end is taken to have grown evenly. Outside of them it is unknown, except that an offset from before the
first one is placed by the average rate from that one to the sample behind the moment that is asked about (kafka-lag-exporter's
``LookupTable`` does so with the last one it has). Where an end is lower than the one before, another log begins, and nothing is
known in between. An incremental build has some samples only, those that its rows need: `Samples.number` tells which is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kgctl.model.lag import Flag
from kgctl.pipeline.decode.arrow import Bools, Int64s, int64s, only_used, packed, ranked, text_column

if TYPE_CHECKING:
    from kgctl.pipeline.tables.registry import PartitionInputs


_BITS = 63


def begins(*columns: npt.NDArray[np.generic]) -> Bools:
    """Where a row differs from the one before in one of the columns; the first row does."""
    found = np.ones(len(columns[0]), np.bool_)
    found[1:] = False
    for column in columns:
        found[1:] |= column[1:] != column[:-1]
    return found


def running_max(values: Int64s, run: Int64s) -> Int64s:
    """The greatest value so far of each run; ``run`` ascends."""
    both, width = packed([run, values])
    if width <= _BITS:
        low = int(values.min()) if len(values) else 0
        mask = (1 << (int(values.max()) - low).bit_length()) - 1 if len(values) else 0
        highest: Int64s = (np.maximum.accumulate(both) & mask) + low
        return highest
    distinct, rank = np.unique(values, return_inverse=True)
    found: Int64s = distinct[running_max(rank.astype(np.int64), run)]
    return found


def last_at_or_before(keys: Int64s, values: Int64s, key: Int64s, value: Int64s) -> Int64s:
    """The last row of (keys, values), which are sorted, that has ``key`` and at most ``value``; -1 where there is none."""
    count = len(keys)
    if not count or not len(key):
        return np.full(len(key), -1, np.int64)
    both, width = packed([np.concatenate([keys, key]), np.concatenate([values, value])])
    if width > _BITS:
        rank = np.unique(np.concatenate([values, value]), return_inverse=True)[1].astype(np.int64)
        return last_at_or_before(keys, rank[:count], key, rank[count:])
    at: Int64s = np.searchsorted(both[:count], both[count:], "right") - 1
    at[keys[at] != key] = -1
    return at


def window_counts(flags: Bools, first: Int64s, last: Int64s) -> Int64s:
    """How many flags are set in rows ``first`` to ``last``, ends included; ``first`` may be just behind ``last``: none."""
    total = np.zeros(len(flags) + 1, np.int64)
    np.cumsum(flags, out=total[1:])
    counted: Int64s = total[last + 1] - total[first]
    return counted


@dataclass(frozen=True)
class Series:
    """One entry a row of ``offset_commits``, in its order.

    ``key`` numbers the series, ascending. ``clock_ms`` is the time, or that of a row before it in the series if that is later,
    so that it never goes back. ``previous`` is the row of the commit before, -1 where there is none or it was removed since.
    """

    key: Int64s
    groups: pa.Array
    topics: pa.Array
    group: Int64s
    topic: Int64s
    partition: Int64s
    is_commit: Bools
    committed: Int64s
    clock_ms: Int64s
    log_offset: Int64s
    previous: Int64s

    def names(self, rows: Int64s) -> dict[str, pa.Array]:
        """The columns ``group``, ``topic``, ``partition`` of these rows."""
        return {
            "group": text_column(*only_used(self.group[rows], self.groups)),
            "topic": text_column(*only_used(self.topic[rows], self.topics)),
            "partition": pa.array(self.partition[rows].astype(np.int32)),
        }


def series(inputs: PartitionInputs) -> Series:
    """Return the inputs' series, cut up once for all tables."""
    return inputs.once("series of commits", lambda found: _series(found.offset_commits))


def _series(table: pa.Table) -> Series:
    group, groups = ranked(table.column("group"))
    topic, topics = ranked(table.column("topic"))
    partition, committed, time_ms, log_offset = (
        int64s(table, name) for name in ("partition", "committed_offset", "time_ms", "log_offset")
    )
    first = begins(group, topic, partition)
    key = np.cumsum(first) - 1
    is_commit = np.ones(len(key), np.bool_)
    if table.column("committed_offset").null_count:
        is_commit = table.column("committed_offset").is_valid().to_numpy()
    previous = np.arange(len(key)) - 1
    after_commit = np.append(False, is_commit[:-1])[: len(key)]
    previous[first | ~is_commit | ~after_commit] = -1
    clock_ms = running_max(time_ms, key)
    return Series(key, groups, topics, group, topic, partition, is_commit, committed, clock_ms, log_offset, previous)


Floats = npt.NDArray[np.float64]
UNKNOWN = -1


@dataclass(frozen=True)
class Samples:
    """Samples with a known end, sorted by ``log`` (a topic's partition, by number), time. ``log_of_key``: the log of each series,
    -1 where it has no samples. ``life`` numbers the logs' lives, ascending. ``start`` is `UNKNOWN` where it is. ``number`` counts
    the samples of a log without a gap, ``own_life`` its lives; ``is_first``: the life begins with this one."""

    log: Int64s
    life: Int64s
    time_ms: Int64s
    start: Int64s
    end: Int64s
    log_of_key: Int64s
    number: Int64s
    own_life: Int64s
    is_first: Bools
    rows: pa.Table = field(repr=False)
    """The samples as they were given, in this order."""

    def table(self, wanted: Bools) -> pa.Table:
        """Return the wanted samples, with their numbers and lives."""
        at = pa.array(np.flatnonzero(wanted))
        columns = {name: self.rows.column(name).take(at) for name in ("topic", "partition", "timestamp_ms")}
        columns["topic"] = columns["topic"].cast(pa.string())
        columns |= {name: self.rows.column(name).take(at) for name in ("log_start_offset", "log_end_offset")}
        columns |= {"number": pa.array(self.number[wanted]), "life": pa.array(self.own_life[wanted])}
        return pa.table(columns | {"is_first": pa.array(self.is_first[wanted])})

    def at(self, log: Int64s, time_ms: Int64s) -> Int64s:
        """The last sample of each log up to a time; -1 where there is none."""
        return last_at_or_before(self.log, self.time_ms, log, time_ms)

    def next_of(self, sample: Int64s) -> Int64s:
        """The sample after, of the same life; -1 where there is none, or no sample."""
        after = sample + 1
        if not len(self.life):
            return np.full(len(sample), -1, np.int64)
        inside = np.minimum(after, len(self.life) - 1)
        return np.where((sample >= 0) & (after < len(self.life)) & (self.life[inside] == self.life[sample]), after, -1)

    def end_at(self, sample: Int64s, time_ms: Int64s) -> Int64s:
        """The end at a time, ``sample`` being the last one up to it; `UNKNOWN` outside of the samples."""
        if not len(self.end):
            return np.full(len(sample), UNKNOWN, np.int64)
        after = self.next_of(sample)
        passed = (time_ms - self.time_ms[sample]) / np.maximum(self.time_ms[after] - self.time_ms[sample], 1)
        grown = np.floor((self.end[after] - self.end[sample]) * passed).astype(np.int64)
        exact = (sample >= 0) & (self.time_ms[sample] == time_ms)
        return np.where(exact, self.end[sample], np.where(after >= 0, self.end[sample] + grown, UNKNOWN))

    def reached_at(self, sample: Int64s, offset: Int64s) -> Floats:
        """When the end left ``offset`` behind, in the life of ``sample``; NaN: not yet, or too few samples to know."""
        if not len(self.end):
            return np.full(len(sample), np.nan)
        before, after, first = self.around(sample, offset)
        found = self._along(before, after, offset)
        behind = self.next_of(sample)
        last = np.where(behind >= 0, behind, sample)
        early = (before < 0) & (sample >= 0) & (self.end[last] > self.end[first])
        return np.where(after >= 0, found, np.where(early, self._along(first, last, offset), np.nan))

    def around(self, sample: Int64s, offset: Int64s) -> tuple[Int64s, Int64s, Int64s]:
        """In the life of each sample: (the last one with an end up to ``offset``, the one after, the first one)."""
        life = np.where(sample >= 0, self.life[sample], -1)
        before = last_at_or_before(self.life, self.end, life, offset)
        return before, self.next_of(before), np.searchsorted(self.life, life, "left").clip(max=len(self.life) - 1)

    def needed(self, sample: Int64s, offset: Int64s) -> Int64s:
        """The samples that tell when the end left ``offset`` behind, and those around the moment itself."""
        if not len(self.end):
            return np.zeros(0, np.int64)
        found = np.unique(np.concatenate([sample, self.next_of(sample), *self.around(sample, offset)]))
        return found[found >= 0]

    def is_unsure(self, sample: Int64s, offset: Int64s) -> Bools:
        """Whether a sample is missing that would have to be looked at."""
        if not len(self.end):
            return np.zeros(len(sample), np.bool_)
        before, after, first = self.around(sample, offset)
        has_gap = (after >= 0) & (self.number[after] != self.number[before] + 1)
        behind = self.next_of(sample)
        has_gap |= (behind >= 0) & (self.number[behind] != self.number[sample] + 1)
        found: Bools = (sample >= 0) & (has_gap | ((before < 0) & ~self.is_first[first]))
        return found

    def _along(self, left: Int64s, right: Int64s, offset: Int64s) -> Floats:
        width = self.end[right] - self.end[left]
        share = (offset - self.end[left]) / np.where(width > 0, width, 1)
        along: Floats = self.time_ms[left].astype(np.float64) + share * (self.time_ms[right] - self.time_ms[left])
        return along


def samples(inputs: PartitionInputs) -> Samples:
    """Return the inputs' samples, prepared once for all tables."""
    return inputs.once("samples", lambda found: _samples(found.log_offsets, series(found)))


def _samples(table: pa.Table, commits: Series) -> Samples:
    table = table.filter(pc.is_valid(table.column("log_end_offset")))
    topic, topics = ranked(table.column("topic"))
    place = pc.index_in(topics, value_set=commits.topics).fill_null(-1).to_numpy().astype(np.int64)
    topic = place[topic] if len(place) else topic
    partition, time_ms, start, end = (
        int64s(table, name, UNKNOWN) for name in ("partition", "timestamp_ms", "log_start_offset", "log_end_offset")
    )
    order = np.lexsort((time_ms, partition, topic))
    order = order[topic[order] >= 0]
    topic, partition, time_ms, start, end = (column[order] for column in (topic, partition, time_ms, start, end))
    log = np.cumsum(begins(topic, partition)) - 1
    if "number" in table.column_names:
        number, own_life = (int64s(table, name)[order] for name in ("number", "life"))
        is_first = int64s(table, "is_first")[order] > 0
    else:
        number, own_life, is_first = numbered(log, end)
    life = np.cumsum(begins(log, own_life)) - 1
    log_of_key = _log_of_key(commits, topic, partition, log)
    rows = table.take(pa.array(order))
    return Samples(log, life, time_ms, start, end, log_of_key, number, own_life, is_first, rows)


def numbered(log: Int64s, end: Int64s) -> tuple[Int64s, Int64s, Bools]:
    """(the number of each sample in its log, its life's, whether it is the life's first); ``log`` ascends."""
    fell = np.append(False, end[1:] < end[:-1])[: len(end)]
    is_new = begins(log)
    is_first: Bools = is_new | fell
    first = np.maximum.accumulate(np.where(is_new, np.arange(len(log)), 0)) if len(log) else log
    lives: Int64s = np.cumsum(is_first).astype(np.int64)
    return np.arange(len(log)) - first, lives - lives[first], is_first


def _log_of_key(commits: Series, topic: Int64s, partition: Int64s, log: Int64s) -> Int64s:
    first = np.flatnonzero(begins(commits.key))
    at = np.flatnonzero(begins(log))
    found = last_at_or_before(topic[at], partition[at], commits.topic[first], commits.partition[first])
    if not len(at):
        return found
    return np.where((found >= 0) & (partition[at][found] == commits.partition[first]), log[at][found], -1)


_BLOCK_ROWS = 1 << 18


@dataclass(frozen=True)
class Points:
    """Sorted by series and time; a commit comes before a sample of the same time.

    ``row``: the row of ``offset_commits`` that stands then; ``is_sample``: this moment is a sample's, not the row's own;
    ``sample``: the last sample up to then, -1 for none; ``end``: the log's end, `UNKNOWN` where it is; ``lag_ms``: NaN likewise,
    and where the commit is out of the log's range; ``out``: which `RANGE` it is in.
    """

    row: Int64s
    time_ms: Int64s
    is_sample: Bools
    sample: Int64s
    end: Int64s
    lag_ms: Floats
    out: Int64s

    def lag(self, commits: Series) -> Int64s:
        """What is unread; means nothing where `is_known` does not hold."""
        found: Int64s = self.end - commits.committed[self.row]
        return found

    @property
    def is_known(self) -> Bools:
        """Return where the lag is known: that of `kgctl.model.lag.lag_of`."""
        found: Bools = (self.end != UNKNOWN) & (self.out == 0)
        return found


RANGE: Sequence[Flag | None] = (None, Flag.PAST_LOG_END, Flag.BELOW_LOG_START)
"""What `kgctl.model.lag.out_of_range` says of a commit, by number."""
PAST_END, BELOW_START = 1, 2


def points(inputs: PartitionInputs) -> Points:
    """Return the inputs' points, found once for all tables."""
    return inputs.once("points", lambda found: _points(series(found), samples(found), found.window_ms))


def _points(commits: Series, known: Samples, window_ms: int) -> Points:
    """A block of series at a time, which bounds the memory in between."""
    edges = _edges(commits.key)
    parts = [_block(commits, known, window_ms, first, last) for first, last in pairwise(edges)]
    return Points(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Points)))


def _edges(key: Int64s) -> list[int]:
    """Where to cut: at the next series after each `_BLOCK_ROWS` rows."""
    wanted = np.arange(_BLOCK_ROWS, len(key), _BLOCK_ROWS)
    return [0, *np.unique(np.searchsorted(key, key[wanted - 1], "right")).tolist(), len(key)]


def _block(commits: Series, known: Samples, window_ms: int, first: int, last: int) -> Points:
    """The points of rows ``first`` to ``last``, which are whole series."""
    key, clock_ms = commits.key[first:last], commits.clock_ms[first:last]
    row, sample = _at_samples(key, clock_ms, known, window_ms)
    stands = commits.is_commit[first + row]
    row, sample = row[stands], sample[stands]
    # Both parts are sorted already: a sample comes right behind the row that stands then.
    total = len(key) + len(row)
    is_sample = np.zeros(total, np.bool_)
    is_sample[row + 1 + np.arange(len(row))] = True
    rows, at, times = np.empty(total, np.int64), np.empty(total, np.int64), np.empty(total, np.int64)
    rows[~is_sample], rows[is_sample] = np.arange(first, last), first + row
    at[~is_sample], at[is_sample] = known.at(known.log_of_key[key], clock_ms), sample
    times[~is_sample], times[is_sample] = clock_ms, known.time_ms[sample]
    committed = commits.committed[rows]
    end = _ends(committed, known, at, times)
    out = np.where(commits.is_commit[rows], ranges(committed, _starts(known, at), end), 0)
    return Points(rows, times, is_sample, at, end, np.where(out, np.nan, _lag_ms(committed, known, at, times, end)), out)


def _at_samples(key: Int64s, clock_ms: Int64s, known: Samples, window_ms: int) -> tuple[Int64s, Int64s]:
    """(the row that stands, the sample): for each series the last sample of each window, from its first row on."""
    last = np.flatnonzero(np.append(begins(known.log, known.time_ms // window_ms)[1:], True)[: len(known.log)])
    keys = np.unique(key)
    keys = keys[known.log_of_key[keys] >= 0]
    if not len(keys) or not len(last):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    counts = np.bincount(known.log[last])
    of_key = counts[known.log_of_key[keys]]
    starts = (np.cumsum(counts) - counts)[known.log_of_key[keys]]
    nth = np.arange(of_key.sum()) - np.repeat(np.cumsum(of_key) - of_key, of_key)
    sample = last[np.repeat(starts, of_key) + nth]
    row = last_at_or_before(key, clock_ms, np.repeat(keys, of_key), known.time_ms[sample])
    return row[row >= 0], sample[row >= 0]


def _ends(committed: Int64s, known: Samples, sample: Int64s, time_ms: Int64s) -> Int64s:
    """The log is at least as long as what is committed, unless that is past even the next end: clocks may differ a little."""
    end = known.end_at(sample, time_ms)
    if not len(known.end):
        return end
    after = known.next_of(sample)
    between = (after >= 0) & (end >= 0) & (committed <= known.end[after])
    return np.where(between, np.maximum(end, committed), end)


def _starts(known: Samples, sample: Int64s) -> Int64s:
    """The log's start by the last sample; `UNKNOWN` without one."""
    return np.where(sample >= 0, known.start[sample], UNKNOWN) if len(known.start) else np.full(len(sample), UNKNOWN)


def ranges(committed: Int64s, start: Int64s, end: Int64s) -> Int64s:
    """Of each commit its place in `RANGE`; start and end may be `UNKNOWN`."""
    is_past = (end != UNKNOWN) & (committed > end)
    return np.where((start != UNKNOWN) & (committed < start), BELOW_START, np.where(is_past, PAST_END, 0))


def _lag_ms(committed: Int64s, known: Samples, sample: Int64s, time_ms: Int64s, end: Int64s) -> Floats:
    """How long ago the log's end left the commit behind: 0 where nothing is unread."""
    waited = np.maximum(time_ms - known.reached_at(sample, committed), 0)
    none_unread = (end != UNKNOWN) & (committed >= end)
    return np.where(none_unread, 0.0, waited)
