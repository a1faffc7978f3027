"""A slice of a build: its new records, portion by portion, each a few steps long, so that memory is that of a step and the state.

A step ends where it has enough records, or the samples of enough windows for all series: a history in which little happens is
long, too.
"""

from __future__ import annotations

import gc
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kgctl.pipeline.builds.carry import Carried, Slice, bytes_of, of_bytes, together
from kgctl.pipeline.builds.cut import Extent, by_partition, placed, read_records, row_groups_between
from kgctl.pipeline.builds.sampled import LATE, is_of_topics, of_topics, require_in_time
from kgctl.pipeline.builds.step import NO_ROUNDS, Horizons, StepInput, StepMade, step
from kgctl.pipeline.decode.arrow import Int64s, plain_memory
from kgctl.pipeline.decode.records import topics_of
from kgctl.pipeline.decode.schemas import COVERAGE, merge_runs
from kgctl.pipeline.store.files import DataFile, StoreLocation, opened, prefix_of, write_files
from kgctl.pipeline.store.states import read_state, write_state
from kgctl.pipeline.store.tables import GOLD, LOG_OFFSETS, from_stored, stored_columns, to_stored
from kgctl.pipeline.tables.collected import LOG_END_COLUMNS
from kgctl.pipeline.tables.registry import BEGIN_MS, DEFAULT_WINDOW_MS, EVER_MS, OutdatedError, SamplesMissingError
from kgctl.pipeline.tables.rounds import EndSeen, clocks, sampled_for

STEP_POINTS, STEP_SAMPLES = 250_000, 400_000
"""Series times windows of a step, and samples of its topics, about."""


@dataclass(frozen=True)
class SampleFiles:
    """``new``: what this build reads of the samples; ``every``: all files there are, for what has to be looked up."""

    new: Sequence[DataFile] = ()
    every: Sequence[DataFile] = ()


@dataclass(frozen=True)
class Portion:
    """A portion of a slice. ``states``: the bytes of what earlier builds or portions left, or files of table ``state`` that have
    them. ``sampled_from_ms``: up to where portions before it took samples; ``is_last``: no portion comes after it;
    ``later_ms``: no record of those that do is older; ``sure_ms``: before which no sample counts that an earlier state is given
    anew."""

    location: StoreLocation
    cluster: str
    slice: Slice
    records: Sequence[Extent]
    samples: SampleFiles = field(default_factory=SampleFiles)
    rounds: Int64s = field(default_factory=NO_ROUNDS.copy)
    seen: Mapping[int, EndSeen] = field(default_factory=dict)
    states: Sequence[bytes | str] = ()
    sampled_from_ms: int = BEGIN_MS
    is_last: bool = True
    later_ms: int = EVER_MS
    sure_ms: int = BEGIN_MS


@dataclass(frozen=True)
class Folded:
    """What came of a portion: the files that its rows are in, by table; ``state``, the file of it; ``coverage`` (`COVERAGE`);
    ``homes``: the groups that were not known before; what was counted; `Horizons`. ``outdated``: why nothing was made, but has
    to be from all records, or from an earlier state where ``since_ms`` tells from when on."""

    slice: Slice
    files: Mapping[str, Sequence[DataFile]]
    state: DataFile | None
    coverage: pa.Table
    homes: Mapping[str, int]
    counts: Counter[str]
    sampled_to_ms: int = EVER_MS
    horizons: Horizons = ()
    outdated: str = ""
    since_ms: int | None = None

    def text(self) -> str:
        """Return it as JSON."""
        files = {name: [asdict(file) for file in found] for name, found in self.files.items()}
        told = {"files": files, "state": self.state and asdict(self.state), "coverage": self.coverage.to_pylist()}
        return json.dumps({**vars(self), **told})

    @classmethod
    def of_text(cls, text: str) -> Folded:
        """Read what `text` gave."""
        said = json.loads(text)
        files = {name: [DataFile(**file) for file in found] for name, found in said["files"].items()}
        state = said["state"] and DataFile(**said["state"])
        coverage = pa.Table.from_pylist(said["coverage"], schema=COVERAGE)
        told = {"slice": Slice(*said["slice"]), "files": files, "state": state, "coverage": coverage}
        return cls(**{**said, **told, "counts": Counter(said["counts"])})


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without Python's collector of cycles, which goes over every object again and again while a step makes nothing but more."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def fold(portion: Portion) -> Folded:
    """Make the rows of a portion and write them; the files count once a commit names them. Raises `StorageError`."""
    with plain_memory():
        raw, _ = placed(read_records(portion.location, portion.records))
        return folding(portion, raw)


def folding(portion: Portion, raw: pa.Table) -> Folded:
    """The same of records that were read: `RAW`, with places, sorted by them."""
    try:
        with plain_memory(), _uncollected():
            return _Fold(portion).run(raw)
    except OutdatedError as error:
        return Folded(
            portion.slice, {}, None, COVERAGE.empty_table(), {}, Counter(), outdated=str(error), since_ms=error.since_ms
        )


class _Fold:
    def __init__(self, portion: Portion) -> None:
        self.portion = portion
        bytes_ = [state if isinstance(state, bytes) else read_state(portion.location, state) for state in portion.states]
        self.carried = together([of_bytes(each).of_slice(portion.slice) for each in bytes_])
        self.known = set(self.carried.table("homes").column("group").to_pylist())
        self.files: dict[str, list[DataFile]] = {}
        self.runs: list[pa.Table] = []
        self.counts: Counter[str] = Counter()
        self.horizons: Horizons = ()

    def run(self, raw: pa.Table) -> Folded:
        portion = self.portion
        samples = _Samples(portion, self.carried, topics_of(raw.column("key")))
        high, ends = _ends(portion, raw, self.carried, samples)
        bounds = [max(sampled_for(portion.rounds, end_ms), portion.sampled_from_ms) for end_ms in ends]
        unsampled = samples.new_topics if self.carried.tables else []
        from_ms, taken = portion.sampled_from_ms, np.zeros(raw.num_rows, np.bool_)
        times = raw.column("timestamp_ms").to_numpy()
        for number, (end_ms, to_ms) in enumerate(zip(ends, bounds, strict=True), 1):
            is_end = number == len(ends)
            is_now = ~taken if is_end else ~taken & (high < end_ms)
            taken |= is_now
            fresh, oldest_ms = samples.between(from_ms, to_ms)
            given = StepInput(
                raw.filter(pa.array(is_now)),
                fresh,
                portion.rounds[portion.rounds < to_ms // DEFAULT_WINDOW_MS],
                self._seen(end_ms, is_end=is_end),
                self.carried,
                is_last=is_end and portion.is_last,
                later_ms=min(portion.later_ms, int(times[~taken].min(initial=EVER_MS))),
            )
            self._require_in_time(given, oldest_ms)
            self._take(_stepped(given, samples, to_ms, unsampled), is_last=given.is_last)
            from_ms, unsampled = to_ms, []
        homes = self.carried.table("homes")
        places = zip(homes.column("group").to_pylist(), homes.column("log_partition").to_pylist(), strict=True)
        fresh = {group: partition for group, partition in places if group not in self.known}
        first, end = portion.slice
        prefix = prefix_of(first, end - 1, is_provisional=False)
        state = write_state(portion.location, portion.cluster, prefix, bytes_of(self.carried), first)
        return Folded(portion.slice, self.files, state, merge_runs(self.runs), fresh, self.counts, from_ms, self.horizons)

    def _require_in_time(self, given: StepInput, oldest_ms: int) -> None:
        before = given.before
        if before.likely_ms > self.portion.sure_ms:
            if oldest_ms < before.likely_ms:
                raise OutdatedError(LATE, BEGIN_MS)
            topics = pc.unique(before.table("entries").column("topic"))
            require_in_time(before.sampled.raw, given.fresh, before.likely_ms, topics)

    def _seen(self, to_ms: int, *, is_end: bool) -> Mapping[int, EndSeen]:
        """By partition, when no record was missing: within a portion none of the whole slice is."""
        first, end = self.portion.slice
        return self.portion.seen if is_end else dict.fromkeys(range(first, end), EndSeen(BEGIN_MS, to_ms - 1))

    def _take(self, made: StepMade, *, is_last: bool) -> None:
        self.carried, self.horizons = made.carried, made.horizons
        self.runs.append(made.coverage)
        self.counts.update(made.counts)
        self.counts["partitions_without_samples"] = made.counts["partitions_without_samples"]
        for tables, is_provisional in ((made.tables, False), (made.provisional, True)):
            if is_last or not is_provisional:
                self._write(tables, is_provisional=is_provisional)

    def _write(self, tables: Mapping[str, pa.Table], *, is_provisional: bool) -> None:
        first, end = self.portion.slice
        prefix = prefix_of(first, end - 1, is_provisional=is_provisional)
        for name in GOLD:
            if name in tables:
                stored = to_stored(name, tables[name], self.portion.cluster, keeps_dictionaries=True)
                self.files.setdefault(name, []).extend(write_files(self.portion.location, name, stored, prefix))


def _ends(portion: Portion, raw: pa.Table, carried: Carried, samples: _Samples) -> tuple[Int64s, list[int]]:
    """(up to when the clock of its partition has come with each record, where the portion's steps end; begins of windows)."""
    state = {row["log_partition"]: row for row in carried.table("partitions").to_pylist()}
    high, newest_ms = np.zeros(raw.num_rows, np.int64), BEGIN_MS
    times = raw.column("timestamp_ms").to_numpy()
    for partition, low, end in by_partition(raw.column("offset").to_numpy()):
        row = state.get(partition, {"newest_ms": BEGIN_MS, "last_ms": BEGIN_MS})
        _, high[low:end], known_ms = clocks(times[low:end], row["newest_ms"], row["last_ms"])
        newest_ms = max(newest_ms, known_ms)
    last_ms = EVER_MS if portion.is_last else newest_ms // DEFAULT_WINDOW_MS * DEFAULT_WINDOW_MS
    horizons = [row["horizon_ms"] for row in state.values() if row["horizon_ms"] != BEGIN_MS]
    since_ms = min([*horizons, int(times.min()) if len(times) else EVER_MS])
    rounds = portion.rounds[portion.rounds >= since_ms // DEFAULT_WINDOW_MS]
    series = carried.table("known").num_rows + len(pc.unique(raw.column("key")))
    every = max(min(STEP_POINTS // max(series, 1), STEP_SAMPLES // max(samples.in_window(rounds), 1)), _FEW)
    ends = (rounds[every::every] * DEFAULT_WINDOW_MS).tolist()
    return high, [*(each for each in ends if portion.sampled_from_ms < each < last_ms), last_ms]


def _stepped(given: StepInput, samples: _Samples, to_ms: int, topics: Sequence[str]) -> StepMade:
    """A step, with all samples of ``topics``, of which none were kept; and where it needs others that were not, with theirs."""
    while True:
        if topics:
            kept = given.before.sampled.without(topics)
            tables = {**given.before.tables, "samples": kept.cleaned, "raw samples": kept.raw}
            others = given.fresh.filter(pc.invert(is_of_topics(given.fresh, pa.array(topics, pa.string()))))
            fresh = pa.concat_tables([others, samples.of_topics(topics, to_ms)])
            given = replace(given, before=replace(given.before, tables=tables), fresh=fresh)
        try:
            return step(given)
        except SamplesMissingError as error:
            topics = list(error.topics)


class _Samples:
    """The samples of a portion: of the topics that its commits are of, these and those of the state. One without a state begins
    with all that there are."""

    def __init__(self, portion: Portion, carried: Carried, topics: pa.Array) -> None:
        self._location, self._every = portion.location, portion.samples.every
        is_new = portion.sampled_from_ms == BEGIN_MS and not carried.tables
        self._new = portion.samples.every if is_new else portion.samples.new
        self._settled_ms = BEGIN_MS if portion.sampled_from_ms != BEGIN_MS else carried.sampled_ms
        known = {name for table in ("entries", "pending") for name in pc.unique(carried.table(table).column("topic")).to_pylist()}
        self.new_topics = sorted(set(topics.to_pylist()) - known)
        self._topics = [*known, *self.new_topics]

    def between(self, from_ms: int, to_ms: int) -> tuple[pa.Table, int]:
        """(those from one time on and before another, how old the oldest one of any topic is). Raises `OutdatedError` where some
        are older than what is settled."""
        found, oldest_ms = self._read(self._new, from_ms, to_ms, self._topics)
        if oldest_ms < self._settled_ms:
            raise OutdatedError(LATE)
        return found, oldest_ms

    def in_window(self, rounds: Int64s) -> int:
        """Return about how many there are in one of these windows: as many as in the one in the middle."""
        if len(rounds) <= _FEW:
            return 0
        from_ms = int(rounds[len(rounds) // 2]) * DEFAULT_WINDOW_MS
        return len(self._read(self._new, from_ms, from_ms + DEFAULT_WINDOW_MS, self._topics)[0])

    def of_topics(self, topics: Sequence[str], to_ms: int) -> pa.Table:
        """All of these topics before a time."""
        return self._read(self._every, BEGIN_MS, to_ms, topics)[0]

    def _read(self, files: Sequence[DataFile], from_ms: int, to_ms: int, topics: Sequence[str]) -> tuple[pa.Table, int]:
        """Batch by batch: a file may have many more than those of these times."""
        parts, wanted, oldest_ms = [LOG_END_COLUMNS.empty_table()], pa.array(topics, pa.string()), EVER_MS
        for file in files:
            if not file.may_hold("time", from_ms, to_ms - 1):
                continue
            with opened(self._location, "samples", file.path, ["topic"]) as source:
                numbers = row_groups_between(source.metadata, from_ms, to_ms)
                for batch in source.iter_batches(_BATCH_ROWS, numbers, _SAMPLE_COLUMNS):
                    rows = _between(from_stored("samples", pa.Table.from_batches([batch])), from_ms, to_ms)
                    oldest_ms = min(oldest_ms, pc.min(rows.column("timestamp_ms")).as_py() if rows.num_rows else EVER_MS)
                    parts.append(of_topics(rows, wanted).cast(LOG_END_COLUMNS))
        return pa.concat_tables(parts).unify_dictionaries(), oldest_ms


def _between(rows: pa.Table, from_ms: int, to_ms: int) -> pa.Table:
    times = rows.column("timestamp_ms")
    return rows.filter(pc.and_(pc.greater_equal(times, from_ms), pc.less(times, to_ms)))


_FEW = 4
"""So many windows are one step, however many samples they have."""
_BATCH_ROWS = 50_000
_SAMPLE_COLUMNS = stored_columns("samples", LOG_OFFSETS.names)
