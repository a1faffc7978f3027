"""Samples of log ends, and what they say of the moments in between.

Between two samples the end is taken to have grown evenly, if the later one comes soon (`kgctl.pipeline.tables.rounds`).
Outside of them it is unknown, except that an offset from before the first one is placed by the average rate from that one to
the sample behind the moment that is asked about (kafka-lag-exporter's ``LookupTable`` does so with the last one it has). Where
an end is lower than the one before, another log begins, and nothing is known in between. An incremental build has some samples
only, those that its rows need: `Samples.number` tells which is missing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kgctl.pipeline.decode.arrow import Bools, Int64s, int64s, order_by, ranked
from kgctl.pipeline.tables.rounds import is_soon, rounds_of
from kgctl.pipeline.tables.series import CommitSeries, begins, last_at_or_before, series

if TYPE_CHECKING:
    from kgctl.pipeline.tables.registry import PartitionInputs


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
    rounds: Int64s
    rows: pa.Table = field(repr=False)
    """The samples as they were given, in this order."""

    def table(self, wanted: Bools) -> pa.Table:
        """Return the wanted samples, with their numbers and lives."""
        at = pa.array(np.flatnonzero(wanted))
        columns = {name: self.rows.column(name).take(at) for name in ("topic", "partition", "timestamp_ms")}
        columns |= {name: self.rows.column(name).take(at) for name in ("log_start_offset", "log_end_offset")}
        columns |= {"number": pa.array(self.number[wanted]), "life": pa.array(self.own_life[wanted])}
        return pa.table(columns | {"is_first": pa.array(self.is_first[wanted])})

    def at(self, log: Int64s, time_ms: Int64s) -> Int64s:
        """The last sample of each log up to a time; -1 where there is none."""
        return last_at_or_before(self.log, self.time_ms, log, time_ms)

    def next_of(self, sample: Int64s, time_ms: Int64s | None = None) -> Int64s:
        """The sample after, of the same life; -1 where there is none, no sample, or it comes too late to count for
        ``time_ms``."""
        after = sample + 1
        if not len(self.life):
            return np.full(len(sample), -1, np.int64)
        inside = np.minimum(after, len(self.life) - 1)
        is_there = (sample >= 0) & (after < len(self.life)) & (self.life[inside] == self.life[sample])
        if time_ms is not None:
            is_there &= is_soon(self.rounds, time_ms, self.time_ms[inside])
        return np.where(is_there, after, -1)

    def end_at(self, sample: Int64s, time_ms: Int64s) -> Int64s:
        """The end at a time, ``sample`` being the last one up to it; `UNKNOWN` outside of the samples."""
        if not len(self.end):
            return np.full(len(sample), UNKNOWN, np.int64)
        after = self.next_of(sample, time_ms)
        passed = (time_ms - self.time_ms[sample]) / np.maximum(self.time_ms[after] - self.time_ms[sample], 1)
        grown = np.floor((self.end[after] - self.end[sample]) * passed).astype(np.int64)
        exact = (sample >= 0) & (self.time_ms[sample] == time_ms)
        return np.where(exact, self.end[sample], np.where(after >= 0, self.end[sample] + grown, UNKNOWN))

    def reached_at(self, sample: Int64s, offset: Int64s, time_ms: Int64s) -> Floats:
        """When the end left ``offset`` behind, in the life of ``sample``; NaN: not yet, or too few samples to know."""
        if not len(self.end):
            return np.full(len(sample), np.nan)
        before, after, first = self.around(sample, offset)
        behind = self.next_of(sample, time_ms)
        last = np.where(behind >= 0, behind, sample)
        is_past = (after >= 0) & (after <= last)
        early = (before < 0) & (sample >= 0) & (self.end[last] > self.end[first])
        along = np.where(early, self._along(first, last, offset), np.nan)
        return np.where(is_past, self._along(before, after, offset), along)

    def around(self, sample: Int64s, offset: Int64s) -> tuple[Int64s, Int64s, Int64s]:
        """In the life of each sample: (the last one with an end up to ``offset``, the one after, the first one)."""
        life = np.where(sample >= 0, self.life[sample], -1)
        before = last_at_or_before(self.life, self.end, life, offset)
        return before, self.next_of(before), np.where(sample >= 0, self.first_of_life[life], 0)

    @cached_property
    def first_of_life(self) -> Int64s:
        """By number of a life, its first sample."""
        return np.flatnonzero(begins(self.life))

    def needed(self, sample: Int64s, offset: Int64s) -> Int64s:
        """The samples that tell when the end left ``offset`` behind, and those around the moment itself."""
        found = np.zeros(len(self.end) + 1, np.bool_)
        for each in (sample, self.next_of(sample), *self.around(sample, offset)):
            found[each] = True  # the last one is for -1
        return np.flatnonzero(found[:-1])

    def is_unsure(self, sample: Int64s, offset: Int64s, log: Int64s) -> Bools:
        """Whether a sample is missing that would have to be looked at; ``log``: of which log the moments are."""
        if not len(self.end):
            return np.zeros(len(sample), np.bool_)
        before, after, first = self.around(sample, offset)
        has_gap = (after >= 0) & (after <= sample) & (self.number[after] != self.number[before] + 1)
        behind = self.next_of(sample)
        has_gap |= (behind >= 0) & (self.number[behind] != self.number[sample] + 1)
        first_of_log = np.searchsorted(self.log, log).clip(max=len(self.log) - 1)
        is_before = (sample < 0) & ~self.is_first[first_of_log]
        found: Bools = is_before | ((sample >= 0) & (has_gap | ((before < 0) & ~self.is_first[first])))
        return found

    def _along(self, left: Int64s, right: Int64s, offset: Int64s) -> Floats:
        width = self.end[right] - self.end[left]
        share = (offset - self.end[left]) / np.where(width > 0, width, 1)
        along: Floats = self.time_ms[left].astype(np.float64) + share * (self.time_ms[right] - self.time_ms[left])
        return along


def samples(inputs: PartitionInputs) -> Samples:
    """Return the inputs' samples, prepared once for all tables."""
    return inputs.once("samples", _samples)


def _samples(inputs: PartitionInputs) -> Samples:
    table, commits = inputs.log_offsets, series(inputs)
    rounds = rounds_of(int64s(table, "timestamp_ms")) if inputs.rounds is None else inputs.rounds
    table = table.filter(pc.is_valid(table.column("log_end_offset")))
    topic, topics = ranked(table.column("topic"))
    place = pc.index_in(topics, value_set=commits.topics).fill_null(-1).to_numpy().astype(np.int64)
    topic = place[topic] if len(place) else topic
    partition, time_ms, start, end = (
        int64s(table, name, UNKNOWN) for name in ("partition", "timestamp_ms", "log_start_offset", "log_end_offset")
    )
    order = order_by([topic, partition, time_ms])
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
    return Samples(log, life, time_ms, start, end, log_of_key, number, own_life, is_first, rounds, rows)


def numbered(log: Int64s, end: Int64s) -> tuple[Int64s, Int64s, Bools]:
    """(the number of each sample in its log, its life's, whether it is the life's first); ``log`` ascends."""
    fell = np.append(False, end[1:] < end[:-1])[: len(end)]
    is_new = begins(log)
    is_first: Bools = is_new | fell
    first = np.maximum.accumulate(np.where(is_new, np.arange(len(log)), 0)) if len(log) else log
    lives: Int64s = np.cumsum(is_first).astype(np.int64)
    return np.arange(len(log)) - first, lives - lives[first], is_first


def _log_of_key(commits: CommitSeries, topic: Int64s, partition: Int64s, log: Int64s) -> Int64s:
    first = np.flatnonzero(begins(commits.key))
    at = np.flatnonzero(begins(log))
    found = last_at_or_before(topic[at], partition[at], commits.topic[first], commits.partition[first])
    if not len(at):
        return found
    return np.where((found >= 0) & (partition[at][found] == commits.partition[first]), log[at][found], -1)
