"""A step of a build: new records of a slice and the samples up to then, made into rows and the state that the next step goes
on from.

A pure function over Arrow tables. Any cut of a history into steps gives the same rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kgctl.pipeline.builds.carry import (
    OPEN,
    PARTITIONS,
    SCHEMAS,
    Carried,
    carry,
    entries_of,
    is_of,
)
from kgctl.pipeline.builds.cut import by_partition, placed_runs, unplaced
from kgctl.pipeline.builds.sampled import kept_samples, unsure_topics
from kgctl.pipeline.decode.arrow import Bools, Int64s, int64s, order_by, ranked
from kgctl.pipeline.decode.decode import decode, resolve
from kgctl.pipeline.decode.schemas import COVERAGE, OFFSET_COMMITS, Decoded, merge_runs, runs_of
from kgctl.pipeline.tables.epochs import names_in
from kgctl.pipeline.tables.membership import assignment_changes, generation_rows, member_changes
from kgctl.pipeline.tables.registry import BEGIN_MS, EVER_MS, Horizon, OutdatedError, PartitionInputs, SamplesMissingError
from kgctl.pipeline.tables.replay import NAMES, STATES, played_back, spans
from kgctl.pipeline.tables.resets import jumps
from kgctl.pipeline.tables.rounds import EndSeen, clocks, horizon_of, likely_horizon, settled_until
from kgctl.pipeline.tables.samples import samples
from kgctl.pipeline.tables.series import begins, series

Horizons = Sequence[tuple[int, int, int]]
"""Of each partition of the log: (its number, from when on rows may change, from when on where something comes late)."""
NO_ROUNDS = np.zeros(0, np.int64)
_UNSEEN = EndSeen(BEGIN_MS, BEGIN_MS)
_DERIVED = {
    "lag": "time_ms",
    "resets": "time_ms",
    "commit_rate": "window_start_ms",
    "status_changes": "time_ms",
    "group_health": "window_start_ms",
}
"""The tables that follow from commits, group records and samples, and the column by which their rows are for good."""


@dataclass(frozen=True)
class StepInput:
    """What a step is made of.

    ``raw``: new records (`RAW`), places for offsets, sorted by them; ``fresh``: samples since the last step, as collected;
    ``rounds``: the windows up to now in which anything of the cluster was
    sampled; ``seen``: by partition, when no record of it was missing; ``before``: what earlier steps left; ``is_last``: no step
    follows for now, so that rows which may still change are asked for; ``later_ms``: no record of the steps that follow is older.
    """

    raw: pa.Table
    fresh: pa.Table
    rounds: Int64s = field(default_factory=NO_ROUNDS.copy)
    seen: Mapping[int, EndSeen] = field(default_factory=dict)
    before: Carried = field(default_factory=Carried)
    is_last: bool = True
    later_ms: int = EVER_MS


@dataclass(frozen=True)
class StepMade:
    """Rows by table of `GOLD`: ``tables`` are for good, ``provisional``, of a last step, until the next one; ``coverage``: the
    runs of the new records; ``counts`` of what people should know; ``carried``: what that next step goes on from; ``horizons``:
    see `Horizons`."""

    tables: Mapping[str, pa.Table]
    provisional: Mapping[str, pa.Table]
    coverage: pa.Table
    counts: Counter[str]
    carried: Carried
    horizons: Horizons = ()


def step(given: StepInput) -> StepMade:
    """Make the rows. Offsets in them are the log's own again.

    Raises `OutdatedError` where the new records change what was made before the horizon, `SamplesMissingError` where samples are
    needed that are not there.
    """
    before = given.before
    partitions, clock, coverage, counts, horizons = _partitions(given)
    decoded = _by_clock(decode(given.raw), given.raw, clock)
    pending = pa.concat_tables([before.table("pending"), decoded.commits]).unify_dictionaries()
    resolved = resolve(pending, decoded.markers)
    fresh = _with_clock(resolved.offset_commits, given.raw, clock)
    entries, is_new = _behind(before.table("entries"), fresh)
    counts.update(decoded.counts())
    counts.update({f"commits_{name}": number for name, number in resolved.counts().items()})
    counts["commits_overtaken"] += fresh.num_rows - int(is_new.sum())
    homes = _homes(before.table("homes"), decoded)
    where = dict(zip(homes.column("group").to_pylist(), homes.column("log_partition").to_pylist(), strict=True))
    names = _together(NAMES, before, names_in(fresh))
    states = before.table(STATES)
    played = played_back(decoded.group_records, states, _named_anew(before.table(NAMES), names))
    topics = pc.unique(entries.column("topic")).cast(pa.string())
    known, raw_samples = before.sampled.with_more(given.fresh, given.rounds, topics)
    inputs = PartitionInputs(
        offset_commits=entries,
        group_records=decoded.group_records,
        log_offsets=known,
        coverage=placed_runs(merge_runs([_last_runs(before), coverage])),
        horizon=Horizon(_horizons(before.table("partitions")), where),
        rounds=given.rounds,
        carried={**before.tables, **_played_again(before, played), NAMES: names, STATES: states.filter(is_of(states, played))},
    )
    after = Horizon(_horizons(partitions), where)
    made = inputs if given.is_last else inputs.with_commits(entries.filter(pa.array(series(inputs).is_before(after))))
    if missing := unsure_topics(made):
        raise SamplesMissingError(missing)
    tables, provisional = _rows(made, after)
    _events(inputs, before, played, tables, provisional)
    tables["offset_commits"] = fresh.filter(pa.array(is_new_commit(fresh, entries, is_new))).select(OFFSET_COMMITS.names)
    tables["undecoded"] = decoded.undecoded
    counts.update(inputs.counts)
    counts["partitions_without_samples"] = _without_samples(inputs)
    sampled_ms = max(before.sampled_ms, settled_until(given.rounds, BEGIN_MS) if len(given.rounds) else BEGIN_MS)
    kept = kept_samples(inputs, raw_samples, series(inputs).of_each(after), sampled_ms)
    carried = {
        **carry(inputs, made, before, after, played),
        "partitions": partitions,
        "homes": homes,
        NAMES: names,
        "pending": resolved.open_commits,
        **{f"{OPEN} {name}": provisional[name] for name in ("generations", "member_changes", "assignment_changes")},
        "samples": kept.cleaned,
        "raw samples": kept.raw,
    }
    likely_ms = max((horizon_ms for _, horizon_ms, sure_ms in horizons if horizon_ms > sure_ms), default=BEGIN_MS)
    settled, open_ = ({name: unplaced(table) for name, table in found.items()} for found in (tables, provisional))
    return StepMade(settled, open_, coverage, counts, Carried(carried, kept.until_ms, likely_ms), horizons)


def _partitions(given: StepInput) -> tuple[pa.Table, Int64s, pa.Table, Counter[str], Horizons]:
    """(`PARTITIONS` after this step, the time of each record that counts, the runs of the records, what there is to say,
    `Horizons`)."""
    known = {row["log_partition"]: row for row in given.before.table("partitions").to_pylist()}
    times = given.raw.column("timestamp_ms").to_numpy()
    place = given.raw.column("offset").to_numpy()
    clock, runs, counts = np.zeros(len(times), np.int64), [], Counter[str]()
    for partition, low, high in by_partition(place):
        row = known.setdefault(partition, _unknown(partition))
        offsets = place[low:high] & ((1 << 47) - 1)
        if offsets[0] <= row["last_offset"]:
            raise OutdatedError(f"records came late, as of __consumer_offsets-{partition}")
        clock[low:high], _, row["newest_ms"] = clocks(times[low:high], row["newest_ms"], row["last_ms"])
        row["last_ms"] = int(times[high - 1])
        oldest_ms = int(clock[low:high].min())
        if oldest_ms < row["horizon_ms"]:
            why = f"records of __consumer_offsets-{partition} are older than when it was last looked at"
            raise OutdatedError(why, oldest_ms)
        counts["clock_went_back"] += int(np.count_nonzero(np.diff(times[low:high]) < 0))
        runs.append(runs_of(partition, offsets, times[low:high]))
    coverage, horizons = merge_runs(runs), []
    for run in merge_runs([_last_runs(given.before), coverage]).to_pylist():  # of several the last one counts
        own = {"first_run_ms": run["first_ms"], "last_run_ms": run["last_ms"]}
        known[run["log_partition"]].update(first_offset=run["first_offset"], last_offset=run["last_offset"], **own)
    for partition, row in known.items():
        seen = given.seen.get(partition, _UNSEEN).until_ms(row["last_offset"], row["last_ms"])
        newest_ms = max(row["newest_ms"], seen)
        settled_ms = settled_until(given.rounds, newest_ms)
        likely_ms = likely_horizon(min(newest_ms, given.later_ms), given.rounds)
        sure_ms = horizon_of(newest_ms, settled_ms)
        if not given.is_last:  # the records that follow are known
            sure_ms = max(sure_ms, min(likely_ms, settled_ms))
        row["horizon_ms"] = max(row["horizon_ms"], sure_ms, likely_ms)
        horizons.append((partition, row["horizon_ms"], sure_ms))
    return pa.Table.from_pylist([known[each] for each in sorted(known)], schema=PARTITIONS), clock, coverage, counts, horizons


def _unknown(partition: int) -> dict[str, int]:
    nothing = dict.fromkeys(PARTITIONS.names, -1)
    return {**nothing, "log_partition": partition, "newest_ms": BEGIN_MS, "last_ms": BEGIN_MS, "horizon_ms": BEGIN_MS}


def _last_runs(before: Carried) -> pa.Table:
    """The last run (`COVERAGE`) of each partition."""
    table = before.table("partitions")
    columns = [table.column(name) for name in ("log_partition", "first_offset", "last_offset", "first_run_ms", "last_run_ms")]
    kinds = zip(columns, COVERAGE, strict=True)
    return pa.Table.from_arrays([column.cast(each.type) for column, each in kinds], schema=COVERAGE)


def _horizons(partitions: pa.Table) -> dict[int, int]:
    return dict(zip(*(partitions.column(name).to_pylist() for name in ("log_partition", "horizon_ms")), strict=True))


def _clock_at(places: Int64s, raw: pa.Table, clock: Int64s) -> Int64s:
    found: Int64s = clock[np.searchsorted(raw.column("offset").to_numpy(), places)] if len(places) else places
    return found


def _by_clock(decoded: Decoded, raw: pa.Table, clock: Int64s) -> Decoded:
    """With the records of groups at the times that count."""
    table = decoded.group_records
    times = pa.array(_clock_at(int64s(table, "log_offset"), raw, clock))
    place = table.schema.get_field_index("time_ms")
    return replace(decoded, group_records=table.set_column(place, table.schema.field(place), times))


def _with_clock(commits: pa.Table, raw: pa.Table, clock: Int64s) -> pa.Table:
    """With ``clock_ms``: of a transaction's commit, that of its end."""
    return commits.append_column("clock_ms", pa.array(_clock_at(int64s(commits, "effect_offset"), raw, clock)))


def _behind(carried: pa.Table, fresh: pa.Table) -> tuple[pa.Table, Bools]:
    """(`ENTRIES`: carried ones and, of the commits that take effect now, those behind them; which rows are the latter),
    sorted."""
    both = pa.concat_tables([carried, entries_of(fresh)]).unify_dictionaries()
    group, topic = (ranked(both.column(name))[0] for name in ("group", "topic"))
    partition, effect, place = (int64s(both, name) for name in ("partition", "effect_offset", "log_offset"))
    order = order_by([group, topic, partition, effect])
    is_new = order >= carried.num_rows
    key = np.cumsum(begins(group[order], topic[order], partition[order])) - 1 if len(order) else order
    highest = np.full(int(key[-1]) + 1 if len(key) else 0, -1)
    np.maximum.at(highest, key[~is_new], place[order][~is_new])
    counts = ~is_new | (place[order] > highest[key])
    return both.take(pa.array(order[counts])).combine_chunks(), is_new[counts]


def is_new_commit(fresh: pa.Table, entries: pa.Table, is_new: Bools) -> Bools:
    """Which of the commits that take effect now are behind those before."""
    if int(is_new.sum()) == fresh.num_rows:
        return np.ones(fresh.num_rows, np.bool_)
    found: Bools = np.isin(int64s(fresh, "log_offset"), int64s(entries, "log_offset")[is_new])
    return found


def _homes(known: pa.Table, decoded: Decoded) -> pa.Table:
    """The partition of the log that each group lives on."""
    parts = [known]
    for table in (decoded.commits, decoded.group_records):
        found = table.group_by("group", use_threads=False).aggregate([("log_partition", "min")])
        columns = [found.column("group"), found.column("log_partition_min")]
        kinds = zip(columns, known.schema, strict=True)
        parts.append(pa.Table.from_arrays([column.cast(each.type) for column, each in kinds], schema=known.schema))
    both = pa.concat_tables(parts).unify_dictionaries()
    found = both.group_by("group", use_threads=False).aggregate([("log_partition", "min")])
    return found.rename_columns(known.schema.names).cast(known.schema)


def _together(name: str, before: Carried, fresh: pa.Table) -> pa.Table:
    """The rows of both, each once."""
    both = pa.concat_tables([before.table(name), fresh.cast(SCHEMAS[name])]).unify_dictionaries()
    return both.group_by(both.column_names, use_threads=False).aggregate([]).cast(SCHEMAS[name])


def _named_anew(known: pa.Table, now: pa.Table) -> set[str]:
    """The groups of which a topic's name was told that was not known before."""
    if now.num_rows == known.num_rows:
        return set()
    both = pa.concat_tables([known, now]).unify_dictionaries()
    counted = both.group_by(both.column_names, use_threads=False).aggregate([([], "count_all")])
    return set(counted.filter(pc.equal(counted.column("count_all"), 1)).column("group").unique().to_pylist())


def _played_again(before: Carried, played: set[str]) -> dict[str, pa.Table]:
    """Rows that were carried, less those that playing back these groups makes again."""
    found = {}
    for name in ("group_generations", "members"):
        table = before.table(name)
        again = pc.and_(table.column("is_open"), is_of(table, played))
        found[name] = table.filter(pc.invert(again)).drop_columns(["is_open"])
    return found


def _rows(inputs: PartitionInputs, after: Horizon) -> tuple[dict[str, pa.Table], dict[str, pa.Table]]:
    """(rows that are for good, rows that may still change)."""
    settled, provisional = {}, {}
    for name, column in _DERIVED.items():
        table = inputs.table(name)
        times = series(inputs).clock_ms[jumps(inputs).row] if name == "resets" else int64s(table, column)
        is_settled = pa.array(times < after.of_rows(table.column("group")))
        settled[name], provisional[name] = table.filter(is_settled), table.filter(pc.invert(is_settled))
    return settled, provisional


def _events(
    inputs: PartitionInputs,
    before: Carried,
    played: set[str],
    settled: dict[str, pa.Table],
    provisional: dict[str, pa.Table],
) -> None:
    """The same of the tables that follow from group records alone; of groups without any, what may still change stays so."""
    found = spans(inputs)
    open_ = {id(row) for row in found.unsettled}
    fresh = {
        "generations": (
            generation_rows(row for row in found.generations if id(row) not in open_),
            generation_rows(found.unsettled),
        ),
        "member_changes": member_changes(found),
        "assignment_changes": assignment_changes(found),
    }
    for name, (for_good, other) in fresh.items():
        known = before.table(f"{OPEN} {name}")
        settled[name] = for_good
        provisional[name] = pa.concat_tables([known.filter(pc.invert(is_of(known, played))), other])


def _without_samples(inputs: PartitionInputs) -> int:
    """How many partitions of topics are committed to and were never sampled."""
    commits = series(inputs)
    first = begins(commits.key)
    missing = samples(inputs).log_of_key < 0
    return len(set(zip(commits.topic[first][missing].tolist(), commits.partition[first][missing].tolist(), strict=True)))
