"""The samples of log ends, to ask what a log's end was at a moment, and when it was at an offset.

Between two samples the end is taken to have grown evenly. Outside of them it is unknown, except that an offset from before the
first one is placed by the average rate of all of them (kafka-lag-exporter's ``LookupTable`` does so). Where an end is lower than
the one before, another log begins, and nothing is known in between.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kgctl.pipeline.decode.cells import Int64s
from kgctl.pipeline.decode.columns import int64s
from kgctl.pipeline.decode.ordering import ranked
from kgctl.pipeline.tables.series.commits import Series, series
from kgctl.pipeline.tables.series.scan import begins, last_at_or_before

if TYPE_CHECKING:
    from kgctl.pipeline.tables.registry import PartitionInputs

Floats = npt.NDArray[np.float64]
UNKNOWN = -1


@dataclass(frozen=True)
class Samples:
    """Samples with a known end, sorted by ``log`` (a topic's partition, by number), time. ``log_of_key``: the log of each series,
    -1 where it has no samples. ``life`` numbers the logs' lives, ascending. ``start`` is `UNKNOWN` where it is."""

    log: Int64s
    life: Int64s
    time_ms: Int64s
    start: Int64s
    end: Int64s
    log_of_key: Int64s

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
        life = np.where(sample >= 0, self.life[sample], -1)
        before = last_at_or_before(self.life, self.end, life, offset)
        after = self.next_of(before)
        found = self._along(before, after, offset)
        first = np.searchsorted(self.life, life, "left").clip(max=len(self.life) - 1)
        last = np.searchsorted(self.life, life, "right") - 1
        early = (before < 0) & (sample >= 0) & (self.end[last] > self.end[first])
        return np.where(after >= 0, found, np.where(early, self._along(first, last, offset), np.nan))

    def _along(self, left: Int64s, right: Int64s, offset: Int64s) -> Floats:
        width = self.end[right] - self.end[left]
        share = (offset - self.end[left]) / np.where(width > 0, width, 1)
        along: Floats = self.time_ms[left].astype(np.float64) + share * (self.time_ms[right] - self.time_ms[left])
        return along


def samples(inputs: PartitionInputs) -> Samples:
    """Prepared once for all tables."""
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
    fell = np.append(False, end[1:] < end[:-1])[: len(end)]
    return Samples(log, np.cumsum(begins(log) | fell) - 1, time_ms, start, end, _log_of_key(commits, topic, partition, log))


def _log_of_key(commits: Series, topic: Int64s, partition: Int64s, log: Int64s) -> Int64s:
    first = np.flatnonzero(begins(commits.key))
    at = np.flatnonzero(begins(log))
    found = last_at_or_before(topic[at], partition[at], commits.topic[first], commits.partition[first])
    if not len(at):
        return found
    return np.where((found >= 0) & (partition[at][found] == commits.partition[first]), log[at][found], -1)
