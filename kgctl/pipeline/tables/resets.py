"""Jumps of a committed offset that reading does not explain: one row each, with what speaks for it.

Every step back is one. A step forward is one where at least one of these holds (``evidence`` names all that do, joined by commas;
a step back with none of them is ``went_back``: a seek, or a late commit of a member that had lost the partition):

- ``topic_recreated``: the two commits carry different topic ids.
- ``group_empty``: by the group's own records it had lost its last member: nobody was there to read. So every step counts,
  whatever tool made it and however many came before; only after `READER_STEPS` forward in a row it is a consumer that assigns its
  partitions itself, and from there on reads. A group that never had a member is never empty in this sense.
- ``past_log_end``: forward, to an offset that the log did not have even at the next sample.
- ``log_truncated``: backward, from an offset past the end that the log had at the last sample before.
- ``log_start_moved``: forward, from an offset that the log had deleted by the last sample before, to one that it still had.
- ``faster_than_consumption``: forward, at `FASTER_THAN` times the greatest speed that the series had shown before, and more than
  `FASTEST_PER_S` records a second. Speeds are taken over a second at least; a series must have shown `STEPS_TO_KNOW` steps.

Without samples and group records only topic ids and speeds can speak, so a jump forward may go unseen; none is made up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kgctl.pipeline.decode.arrow import Bools, Int64s, int64s, ranked, text_column
from kgctl.pipeline.decode.schemas import TEXT
from kgctl.pipeline.tables.registry import DEFAULT_WINDOW_MS, PartitionInputs, Table
from kgctl.pipeline.tables.rounds import is_soon
from kgctl.pipeline.tables.samples import Samples, samples
from kgctl.pipeline.tables.series import CommitSeries, Known, begins, known_of, last_at_or_before, running_max, series

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
READER_STEPS = 20
"""Tools go back as well as forward: so many steps forward in a row, while a group is empty, are a reader's."""
_KINDS = pa.array(["backward", "forward"])
_SHORTEST_MS = 1000


@dataclass(frozen=True)
class Jumps:
    """The rows of ``offset_commits`` that are resets, and what speaks for each."""

    row: Int64s
    evidence: pa.Array


@dataclass(frozen=True)
class _Steps:
    """Commits that moved an offset, each with the commit before it."""

    row: Int64s
    before: Int64s
    moved: Int64s


def jumps(inputs: PartitionInputs) -> Jumps:
    """Return the jumps of the inputs' offsets, found once for all tables."""
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
    steps = _steps(commits, commits.is_asked)
    row, moved = steps.row, steps.moved
    found = {
        "topic_recreated": _recreated(inputs.offset_commits, steps),
        "group_empty": _while_empty(inputs, commits, steps),
        "past_log_end": _past_log_end(commits, known, steps),
        "log_truncated": _truncated(commits, known, steps),
        "log_start_moved": _log_start_moved(commits, known, steps),
        "faster_than_consumption": _too_fast(commits, steps, known_of(inputs)),
    }
    spoken = np.zeros(len(row), np.int64)
    for bit, holds in enumerate(found.values()):
        spoken |= holds.astype(np.int64) << bit
    is_reset = (moved < 0) | (spoken > 0)
    return Jumps(row[is_reset], _evidence(spoken[is_reset], list(found)))


def _steps(commits: CommitSeries, asked: Bools) -> _Steps:
    row = np.flatnonzero((commits.previous >= 0) & asked)
    moved = commits.committed[row] - commits.committed[commits.previous[row]]
    row, moved = row[moved != 0], moved[moved != 0]
    return _Steps(row, commits.previous[row], moved)


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


def _while_empty(inputs: PartitionInputs, commits: CommitSeries, steps: _Steps) -> Bools:
    stretch = _stretches(inputs, commits, steps)
    found: Bools = (stretch >= 0) & ((steps.moved < 0) | (_ahead(inputs, commits, steps, stretch) <= READER_STEPS))
    return found


def _stretches(inputs: PartitionInputs, commits: CommitSeries, steps: _Steps) -> Int64s:
    """The place of the generation that had left the group empty when each step was made; -1: it had members, or never had one."""
    generations = inputs.table("group_generations")
    group = pc.index_in(generations.column("group"), value_set=commits.groups).fill_null(-1).to_numpy().astype(np.int64)
    place, members, generation = (int64s(generations, name) for name in ("log_offset", "members", "generation_id"))
    order = np.lexsort((place, group))
    group, place, members, generation = group[order], place[order], members[order], generation[order]
    at = last_at_or_before(group, place, commits.group[steps.row], commits.log_offset[steps.row])
    if not len(group):
        return np.full(len(steps.row), -1, np.int64)
    had_members = running_max(np.maximum(members, generation), group) > 0
    return np.where((at >= 0) & (members[at] == 0) & had_members[at], place[at], -1)


def _ahead(inputs: PartitionInputs, commits: CommitSeries, steps: _Steps, stretch: Int64s) -> Int64s:
    """How many steps forward have followed each other in the same stretch, each step counted; 0 for a step back."""
    if not len(steps.row):
        return steps.moved
    key, number = commits.key[steps.row], np.arange(len(steps.row))
    is_first = begins(key)
    after_back = np.append(True, steps.moved[:-1] < 0)[: len(number)]
    is_new = begins(key, stretch) | after_back
    counted = number - np.maximum.accumulate(np.where(is_new, number, 0)) + 1
    known = known_of(inputs)
    goes_on = is_first & (stretch >= 0) & (known["stretch"][key] == stretch)
    run = np.cumsum(is_new) - 1
    before = np.where(goes_on, known["ahead"][key], 0)[is_new][run]
    return np.where(steps.moved > 0, counted + before, 0)


def _past_log_end(commits: CommitSeries, known: Samples, steps: _Steps) -> Bools:
    """By the sample after, if it counts; without one before, if it is of the same window or the next."""
    if not len(known.end):
        return np.zeros(len(steps.row), np.bool_)
    log, clock_ms = known.log_of_key[commits.key[steps.row]], commits.clock_ms[steps.row]
    before = known.at(log, clock_ms - 1)
    next_one = np.where(before >= 0, before + 1, np.searchsorted(known.log, log)).clip(max=len(known.end) - 1)
    next_ms = known.time_ms[next_one]
    is_near = next_ms // DEFAULT_WINDOW_MS <= clock_ms // DEFAULT_WINDOW_MS + 1
    is_there = (known.log[next_one] == log) & (next_ms >= clock_ms)
    is_there &= np.where(before >= 0, is_soon(known.rounds, clock_ms, next_ms), is_near)
    found: Bools = (steps.moved > 0) & is_there & (commits.committed[steps.row] > known.end[next_one])
    return found


def _truncated(commits: CommitSeries, known: Samples, steps: _Steps) -> Bools:
    if not len(known.end):
        return np.zeros(len(steps.row), np.bool_)
    at = known.at(known.log_of_key[commits.key[steps.row]], commits.clock_ms[steps.row])
    since = known.time_ms[at] >= commits.clock_ms[steps.before]
    found: Bools = (steps.moved < 0) & (at >= 0) & since & (commits.committed[steps.before] > known.end[at])
    return found


def _log_start_moved(commits: CommitSeries, known: Samples, steps: _Steps) -> Bools:
    if not len(known.end):
        return np.zeros(len(steps.row), np.bool_)
    at = known.at(known.log_of_key[commits.key[steps.row]], commits.clock_ms[steps.row])
    start = known.start[at]
    found: Bools = (at >= 0) & (commits.committed[steps.before] < start) & (commits.committed[steps.row] >= start)
    return found


def _too_fast(commits: CommitSeries, steps: _Steps, known: Known) -> Bools:
    forward = np.flatnonzero(steps.moved > 0)
    row, key = steps.row[forward], commits.key[steps.row[forward]]
    per_s = _per_s(commits, row, steps.before[forward], steps.moved[forward])
    seen = running_max(per_s, key)
    nth = np.arange(len(key)) - np.searchsorted(key, key)
    fastest_before = np.maximum(np.where(nth > 0, np.append(0, seen[:-1])[: len(seen)], 0), known["fastest"][key])
    found = np.zeros(len(steps.row), np.bool_)
    is_known = nth + known["steps"][key] >= STEPS_TO_KNOW
    found[forward] = is_known & (per_s > FASTEST_PER_S) & (per_s > FASTER_THAN * fastest_before)
    return found


def _per_s(commits: CommitSeries, row: Int64s, before: Int64s, moved: Int64s) -> Int64s:
    passed = np.maximum(commits.clock_ms[row] - commits.clock_ms[before], _SHORTEST_MS)
    found: Int64s = moved * 1000 // passed
    return found


def moves_until(inputs: PartitionInputs, until: Int64s) -> Known:
    """What is known of how each series moves (`kgctl.pipeline.tables.series`) before later horizons, one of each series."""
    commits, before = series(inputs), known_of(inputs)
    fastest, known_steps, stretch, ahead = (before[name].copy() for name in ("fastest", "steps", "stretch", "ahead"))
    steps = _steps(commits, commits.is_asked & (commits.clock_ms < until[commits.key]))
    forward = np.flatnonzero(steps.moved > 0)
    key = commits.key[steps.row]
    per_s = _per_s(commits, steps.row[forward], steps.before[forward], steps.moved[forward])
    np.maximum.at(fastest, key[forward], per_s)
    np.add.at(known_steps, key[forward], 1)
    last = np.flatnonzero(np.append(begins(key)[1:], True)[: len(key)])
    stretches = _stretches(inputs, commits, steps)
    stretch[key[last]] = stretches[last]
    ahead[key[last]] = _ahead(inputs, commits, steps, stretches)[last]
    enough = np.minimum(known_steps, STEPS_TO_KNOW)
    return {"fastest": fastest, "steps": enough, "stretch": stretch, "ahead": np.minimum(ahead, READER_STEPS)}


RESETS = Table("resets", SCHEMA, build)
