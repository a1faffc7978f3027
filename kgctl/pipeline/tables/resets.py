"""Jumps of a committed offset that reading does not explain: one row each, with what speaks for it.

Every step back is one. A step forward is one where at least one of these holds (``evidence`` names all that do, joined by commas;
a step back with none of them is ``went_back``: a seek, or a late commit of a member that had lost the partition):

- ``topic_recreated``: the two commits carry different topic ids.
- ``group_empty``: by the group's own records it had lost its last member, and the offset had not moved since (a step back: it may
  have). A group that never had a member (a consumer that assigns its partitions itself) is never empty in this sense.
- ``past_log_end``: forward, to an offset that the log did not have even at the next sample.
- ``log_truncated``: backward, from an offset past the end that the log had at the last sample before.
- ``log_start_moved``: forward, from an offset that the log had deleted by the last sample before, to one that it still had.
- ``faster_than_consumption``: forward, at `FASTER_THAN` times the greatest speed that the series had shown before, and more than
  `FASTEST_PER_S` records a second. Speeds are taken over a second at least; a series must have shown `STEPS_TO_KNOW` steps.

Without samples and group records only topic ids and speeds can speak, so a jump forward may go unseen; none is made up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kgctl.pipeline.decode.cells import Bools, Int64s
from kgctl.pipeline.decode.columns import int64s
from kgctl.pipeline.decode.ordering import ranked, text_column
from kgctl.pipeline.decode.schemas import TEXT
from kgctl.pipeline.tables.series.commits import Series, series
from kgctl.pipeline.tables.series.samples import Samples, samples
from kgctl.pipeline.tables.series.scan import last_at_or_before, running_max

if TYPE_CHECKING:
    from kgctl.pipeline.tables.registry import PartitionInputs

NAME = "resets"
VERSION = 1
SCHEMA = pa.schema(
    [
        pa.field("group", TEXT, nullable=False),
        pa.field("topic", TEXT, nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("time_ms", pa.int64(), nullable=False),
        pa.field("offset_before", pa.int64(), nullable=False),
        pa.field("offset_after", pa.int64(), nullable=False),
        pa.field("kind", TEXT, nullable=False),
        pa.field("records", pa.int64(), nullable=False),
        pa.field("log_offset", pa.int64(), nullable=False),
        pa.field("evidence", TEXT, nullable=False),
    ]
)
FASTER_THAN = 100
FASTEST_PER_S = 1_000_000
STEPS_TO_KNOW = 10
_KINDS = pa.array(["backward", "forward"])
_SHORTEST_MS = 1000


@dataclass(frozen=True)
class Jumps:
    """The rows of ``offset_commits`` that are resets, and what speaks for each."""

    row: Int64s
    evidence: pa.Array


@dataclass(frozen=True)
class _Steps:
    """Rows that moved, with the commit before each."""

    row: Int64s
    before: Int64s
    moved: Int64s


def jumps(inputs: PartitionInputs) -> Jumps:
    """Found once for all tables."""
    return inputs.once("jumps", _jumps)


def build(inputs: PartitionInputs) -> pa.Table:
    """Sorted by group, topic, partition and, within a series, by when it took effect."""
    commits, found = series(inputs), jumps(inputs)
    before = commits.committed[commits.previous[found.row]]
    after = commits.committed[found.row]
    columns = {
        **commits.names(found.row),
        "time_ms": inputs.offset_commits.column("time_ms").take(pa.array(found.row)),
        "offset_before": pa.array(before),
        "offset_after": pa.array(after),
        "kind": text_column((after > before).astype(np.int64), _KINDS),
        "records": pa.array(after - before),
        "log_offset": pa.array(commits.log_offset[found.row]),
        "evidence": found.evidence.dictionary_encode().cast(TEXT),
    }
    return pa.Table.from_arrays([columns[name] for name in SCHEMA.names], schema=SCHEMA)


def _jumps(inputs: PartitionInputs) -> Jumps:
    commits, known = series(inputs), samples(inputs)
    row = np.flatnonzero(commits.previous >= 0)
    moved = commits.committed[row] - commits.committed[commits.previous[row]]
    row, moved = row[moved != 0], moved[moved != 0]
    steps = _Steps(row, commits.previous[row], moved)
    found = {
        "topic_recreated": _recreated(inputs.offset_commits, steps),
        "group_empty": _while_empty(inputs, commits, steps),
        "past_log_end": _past_log_end(commits, known, steps),
        "log_truncated": _truncated(commits, known, steps),
        "log_start_moved": _log_start_moved(commits, known, steps),
        "faster_than_consumption": _too_fast(commits, steps),
    }
    spoken = np.zeros(len(row), np.int64)
    for bit, holds in enumerate(found.values()):
        spoken |= holds.astype(np.int64) << bit
    is_reset = (moved < 0) | (spoken > 0)
    return Jumps(row[is_reset], _evidence(spoken[is_reset], list(found)))


def _evidence(spoken: Int64s, names: list[str]) -> pa.Array:
    texts = [
        ",".join(name for bit, name in enumerate(names) if each >> bit & 1) or "went_back" for each in range(1 << len(names))
    ]
    return pa.array(texts).take(pa.array(spoken))


def _recreated(table: pa.Table, steps: _Steps) -> Bools:
    ids, _ = ranked(table.column("topic_id"))
    before, after = ids[steps.before], ids[steps.row]
    found: Bools = (before >= 0) & (after >= 0) & (before != after)
    return found


def _while_empty(inputs: PartitionInputs, commits: Series, steps: _Steps) -> Bools:
    """The last generation before has no member, and the commit before was made when there was one."""
    generations = inputs.table("group_generations")
    group = pc.index_in(generations.column("group"), value_set=commits.groups).fill_null(-1).to_numpy().astype(np.int64)
    place, members, generation = (int64s(generations, name) for name in ("log_offset", "members", "generation_id"))
    order = np.lexsort((place, group))
    group, place, members, generation = group[order], place[order], members[order], generation[order]
    at = last_at_or_before(group, place, commits.group[steps.row], commits.log_offset[steps.row])
    if not len(group):
        return np.zeros(len(steps.row), np.bool_)
    had_members = running_max(np.maximum(members, generation), group) > 0
    is_empty = (at >= 0) & (members[at] == 0) & had_members[at]
    is_first = commits.log_offset[steps.before] < place[at]
    found: Bools = is_empty & (is_first | (steps.moved < 0))
    return found


def _past_log_end(commits: Series, known: Samples, steps: _Steps) -> Bools:
    if not len(known.end):
        return np.zeros(len(steps.row), np.bool_)
    log, clock_ms = known.log_of_key[commits.key[steps.row]], commits.clock_ms[steps.row]
    before = known.at(log, clock_ms - 1)
    next_one = np.where(before >= 0, before + 1, np.searchsorted(known.log, log)).clip(max=len(known.end) - 1)
    is_there = (known.log[next_one] == log) & (known.time_ms[next_one] >= clock_ms)
    found: Bools = (steps.moved > 0) & is_there & (commits.committed[steps.row] > known.end[next_one])
    return found


def _truncated(commits: Series, known: Samples, steps: _Steps) -> Bools:
    if not len(known.end):
        return np.zeros(len(steps.row), np.bool_)
    at = known.at(known.log_of_key[commits.key[steps.row]], commits.clock_ms[steps.row])
    since = known.time_ms[at] >= commits.clock_ms[steps.before]
    found: Bools = (steps.moved < 0) & (at >= 0) & since & (commits.committed[steps.before] > known.end[at])
    return found


def _log_start_moved(commits: Series, known: Samples, steps: _Steps) -> Bools:
    if not len(known.end):
        return np.zeros(len(steps.row), np.bool_)
    at = known.at(known.log_of_key[commits.key[steps.row]], commits.clock_ms[steps.row])
    start = known.start[at]
    found: Bools = (at >= 0) & (commits.committed[steps.before] < start) & (commits.committed[steps.row] >= start)
    return found


def _too_fast(commits: Series, steps: _Steps) -> Bools:
    forward = np.flatnonzero(steps.moved > 0)
    row, key = steps.row[forward], commits.key[steps.row[forward]]
    passed = np.maximum(commits.clock_ms[row] - commits.clock_ms[steps.before[forward]], _SHORTEST_MS)
    per_s = steps.moved[forward] * 1000 // passed
    seen = running_max(per_s, key)
    nth = np.arange(len(key)) - np.searchsorted(key, key)
    fastest_before = np.append(0, seen[:-1])[: len(seen)]
    found = np.zeros(len(steps.row), np.bool_)
    found[forward] = (nth >= STEPS_TO_KNOW) & (per_s > FASTEST_PER_S) & (per_s > FASTER_THAN * fastest_before)
    return found
