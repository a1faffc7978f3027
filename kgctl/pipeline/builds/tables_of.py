"""The tables of a slice: pure functions over Arrow tables, and the task that writes what they make."""

from __future__ import annotations

import gc
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kgctl.pipeline.builds.carry import (
    Carried,
    Slice,
    bytes_of,
    carry,
    merged_samples,
    of_bytes,
    placed,
    placed_runs,
    together,
    unplaced,
)
from kgctl.pipeline.decode.arrow import Bools, each_once, int64s, order_by, plain_memory, ranked
from kgctl.pipeline.decode.decode import decode, resolve
from kgctl.pipeline.decode.schemas import OFFSET_COMMITS
from kgctl.pipeline.store.files import DataFile, Location, buckets_of, opened, prefix_of, read_file, write_files
from kgctl.pipeline.store.tables import GOLD, RAW, conform, from_stored, to_stored
from kgctl.pipeline.tables.group_history import Spans
from kgctl.pipeline.tables.membership import assignment_changes, generation_rows, member_changes, status_changes
from kgctl.pipeline.tables.registry import BEGIN_MS, DEFAULT_WINDOW_MS, OutdatedError, PartitionInputs, SamplesMissingError
from kgctl.pipeline.tables.replay import spans
from kgctl.pipeline.tables.resets import jumps
from kgctl.pipeline.tables.series import UNKNOWN, begins, points, series
from kgctl.pipeline.tables.series import samples as samples_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


EVERY_TIME_MS = 1 << 62


@dataclass(frozen=True)
class SliceInput:
    """What a slice is made of.

    ``raw``: new records (`RAW`), places for offsets, sorted by them; ``samples``: `CLEANED`, of the whole cluster, complete from
    ``samples_from_ms`` on; ``coverage``: the runs that were collected of all partitions, the last one of each at least;
    ``is_first``: rows of no group are this slice's; ``before``: what earlier builds left; ``horizon_ms``: rows from it on may
    still change, a multiple of ``window_ms``.
    """

    raw: pa.Table
    samples: pa.Table
    coverage: pa.Table
    is_first: bool = True
    window_ms: int = DEFAULT_WINDOW_MS
    before: Carried = field(default_factory=Carried)
    samples_from_ms: int = BEGIN_MS
    horizon_ms: int = EVERY_TIME_MS


@dataclass
class SliceTables:
    """Rows by table of `GOLD`: ``tables`` are for good, ``provisional`` until the next build of the slice; ``counts`` of what
    people should know; ``carried``: what that next build goes on from."""

    tables: dict[str, pa.Table]
    provisional: dict[str, pa.Table]
    counts: Counter[str]
    carried: Carried


def tables_of(given: SliceInput) -> SliceTables:
    """Compute the tables of a slice; offsets are the log's own again.

    Raises `OutdatedError` where the new records change what was made for good, `SamplesMissingError` where older samples are
    needed than there are.
    """
    _require_in_time(given)
    decoded = decode(given.raw)
    resolved = resolve(pa.concat_tables([given.before.table("open"), decoded.commits]).unify_dictionaries(), decoded.markers)
    counts = Counter(decoded.counts())
    counts.update({f"commits_{name}": number for name, number in resolved.counts().items()})
    commits, is_new = _behind(given.before.table("commits"), resolved.offset_commits)
    counts["commits_overtaken"] += resolved.offset_commits.num_rows - int(is_new.sum())
    topics = pc.unique(commits.column("topic")).cast("string")
    known = merged_samples(given.before.table("samples"), given.samples, given.samples_from_ms)
    inputs = PartitionInputs(
        offset_commits=commits,
        group_records=each_once(decoded.group_records, "log_offset"),
        log_offsets=known.filter(pc.is_in(known.column("topic"), topics)),
        coverage=placed_runs(given.coverage),
        window_ms=given.window_ms,
        horizon_ms=given.before.horizon_ms,
        carried=given.before.tables,
    )
    _require_samples(inputs, given.before)
    settled, provisional = _rows(inputs, given.horizon_ms)
    settled["offset_commits"] = commits.filter(pa.array(is_new))
    settled["undecoded"] = _undecoded(decoded.undecoded, is_first=given.is_first)
    counts.update(inputs.counts)
    counts["partitions_without_samples"] = _without_samples(inputs)
    assert resolved.open_commits is not None
    carried = carry(inputs, resolved.open_commits, given.horizon_ms)
    return SliceTables(_unplaced(settled), _unplaced(provisional), counts, carried)


def _unplaced(tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    return {name: unplaced(table) for name, table in tables.items()}


def _require_in_time(given: SliceInput) -> None:
    times = given.raw.column("timestamp_ms")
    if given.raw.num_rows and pc.min(times).as_py() < given.before.horizon_ms:
        raise OutdatedError("records came with older times than those that were built")


def _behind(carried: pa.Table, fresh: pa.Table) -> tuple[pa.Table, Bools]:
    """(carried commits and, of the ones that take effect now, those behind them; which rows are the latter), sorted."""
    if not carried.num_rows:
        return fresh.select(OFFSET_COMMITS.names).combine_chunks(), np.ones(fresh.num_rows, np.bool_)
    both = pa.concat_tables([carried, fresh]).unify_dictionaries()
    group, topic = (ranked(both.column(name))[0] for name in ("group", "topic"))
    partition, effect, place = (int64s(both, name) for name in ("partition", "effect_offset", "log_offset"))
    order = order_by([group, topic, partition, effect])
    is_new = order >= carried.num_rows
    key = np.cumsum(begins(group[order], topic[order], partition[order])) - 1 if len(order) else order
    highest = np.full(int(key[-1]) + 1 if len(key) else 0, -1)
    np.maximum.at(highest, key[~is_new], place[order][~is_new])
    counts = ~is_new | (place[order] > highest[key])
    return both.take(pa.array(order[counts])).select(OFFSET_COMMITS.names).combine_chunks(), is_new[counts]


def _require_samples(inputs: PartitionInputs, before: Carried) -> None:
    """That every row from the horizon on is made of the samples that all of them would give."""
    if before.horizon_ms == BEGIN_MS:
        return
    _require_no_hole(inputs, before)
    commits, known, found = series(inputs), samples_of(inputs), points(inputs)
    committed = commits.committed[found.row]
    asked = (found.time_ms >= before.horizon_ms) & commits.is_commit[found.row]
    asked &= (found.end == UNKNOWN) | (committed < found.end)
    if known.is_unsure(found.sample[asked], committed[asked]).any():
        raise SamplesMissingError


def _require_no_hole(inputs: PartitionInputs, before: Carried) -> None:
    """A log whose last sample was from before the horizon has one again: what was made of it in between is another thing now."""
    commits, last_before, last_now = (
        before.table("commits"),
        _last_times(before.table("samples")),
        _last_times(inputs.log_offsets),
    )
    old = commits.filter(pc.less(commits.column("time_ms"), before.horizon_ms)).select(["topic", "partition"])
    for row in old.group_by(["topic", "partition"]).aggregate([]).to_pylist():
        log = (row["topic"], row["partition"])
        seen = last_before.get(log, BEGIN_MS)
        if seen < before.horizon_ms and last_now.get(log, BEGIN_MS) > seen:
            raise OutdatedError("log ends were sampled again after a long time")


def _last_times(samples: pa.Table) -> dict[tuple[str, int], int]:
    last = samples.group_by(["topic", "partition"]).aggregate([("timestamp_ms", "max")]).to_pylist()
    return {(row["topic"], row["partition"]): row["timestamp_ms_max"] for row in last}


Split = tuple[dict[str, pa.Table], dict[str, pa.Table]]


def _rows(inputs: PartitionInputs, horizon_ms: int) -> Split:
    """(rows that are for good, rows that may still change) of the tables that follow from commits, group records and samples."""
    found = spans(inputs)
    commits = series(inputs)
    lag, stalls, rate, health = (inputs.table(name) for name in ("lag", "stalls", "commit_rate", "group_health"))
    status = status_changes(stalls)
    settled: dict[str, pa.Table] = {}
    provisional: dict[str, pa.Table] = {}
    timed = {
        "lag": (lag, int64s(lag, "time_ms")),
        "resets": (inputs.table("resets"), commits.clock_ms[jumps(inputs).row]),
        "commit_rate": (rate, int64s(rate, "window_start_ms")),
        "status_changes": (status, int64s(status, "time_ms")),
        "group_health": (health, int64s(health, "window_start_ms")),
    }
    for name, (table, times) in timed.items():
        settled[name] = table.filter(pa.array((times >= inputs.horizon_ms) & (times < horizon_ms)))
        provisional[name] = table.filter(pa.array(times >= max(horizon_ms, inputs.horizon_ms)))
    settled["generations"], provisional["generations"] = _generations(found)
    settled["member_changes"], provisional["member_changes"] = member_changes(found)
    settled["assignment_changes"], provisional["assignment_changes"] = assignment_changes(found)
    return settled, provisional


def _generations(found: Spans) -> tuple[pa.Table, pa.Table]:
    open_ = {id(row) for row in found.unsettled}
    return generation_rows(row for row in found.generations if id(row) not in open_), generation_rows(found.unsettled)


def _undecoded(rows: pa.Table, *, is_first: bool) -> pa.Table:
    """Markers are in every slice: those that are damaged are told by the first."""
    return rows if is_first else rows.filter(pc.is_valid(rows.column("key")))


def _without_samples(inputs: PartitionInputs) -> int:
    """How many partitions of topics are committed to and were never sampled."""
    commits = series(inputs)
    first = begins(commits.key)
    missing = samples_of(inputs).log_of_key < 0
    return len(set(zip(commits.topic[first][missing].tolist(), commits.partition[first][missing].tolist(), strict=True)))


@dataclass(frozen=True)
class SliceTask:
    """A slice to be built, and where its rows go. ``states``: the bytes of what earlier builds left, or files of table ``state``
    that have them, of this slice or of others that it has buckets of."""

    location: Location
    cluster: str
    slice: Slice
    given: SliceInput
    buckets: int
    states: Sequence[bytes | str] = ()

    @property
    def records(self) -> int:
        """Return how many records the slice has."""
        return int(self.given.raw.num_rows)


@dataclass(frozen=True)
class SliceResult:
    """The files that a slice's rows are in, by table, ``state`` among them, and what was counted. ``outdated``: why nothing was
    made, but has to be from all records; ``lacks_samples``: it has to be with all samples."""

    slice: Slice
    files: Mapping[str, Sequence[DataFile]]
    counts: Counter[str]
    outdated: str = ""
    lacks_samples: bool = False


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without Python's collector of cycles, which goes over every object again and again while a slice makes nothing but more."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def build_slice(task: SliceTask) -> SliceResult:
    """Make the tables and write them; the files count once a commit names them. Raises `StorageError`."""
    with plain_memory(), _uncollected():
        return _build_slice(task)


def _build_slice(task: SliceTask) -> SliceResult:
    try:
        made = tables_of(_with_state(task))
    except OutdatedError as error:
        return SliceResult(task.slice, {}, Counter(), outdated=str(error))
    except SamplesMissingError:
        return SliceResult(task.slice, {}, Counter(), lacks_samples=True)
    files: dict[str, list[DataFile]] = {}
    for tables, is_provisional in ((made.tables, False), (made.provisional, True)):
        prefix = prefix_of(task.slice.first, task.slice.end - 1, is_provisional=is_provisional)
        for name in GOLD:
            if name in tables:
                stored = to_stored(name, tables[name], task.cluster, keeps_dictionaries=True)
                files.setdefault(name, []).extend(write_files(task.location, name, stored, prefix))
    files["state"] = write_state(task.location, task.cluster, task.slice, bytes_of(made.carried))
    return SliceResult(task.slice, files, made.counts)


def write_state(location: Location, cluster: str, chosen: Slice, data: bytes) -> list[DataFile]:
    """Write a slice's state as a file of the table ``state``."""
    rows = pa.table({"bucket": [chosen.first], "state": [data], "time": pa.array([0], pa.int64())})
    prefix = prefix_of(chosen.first, chosen.end - 1, is_provisional=False)
    return write_files(location, "state", to_stored("state", rows, cluster), prefix)


def _with_state(task: SliceTask) -> SliceInput:
    if not task.states:
        return task.given
    bytes_ = [state if isinstance(state, bytes) else _read(task.location, state) for state in task.states]
    before = together([of_bytes(each).of_slice(task.slice, task.buckets) for each in bytes_])
    given = task.given
    return SliceInput(
        given.raw,
        given.samples,
        given.coverage,
        given.is_first,
        given.window_ms,
        before,
        given.samples_from_ms,
        max(given.horizon_ms, before.horizon_ms),
    )


def _read(location: Location, path: str) -> bytes:
    data: bytes = read_file(location, "state", path, ["state"]).column("state")[0].as_py()
    return data


_COLUMNS = ("log_partition", "log_offset", "time", "key", "value", "producer_id", "producer_epoch", "commits")
_SCHEMA = (
    "log_partition int, log_offset bigint, time timestamp, key binary, value binary, producer_id bigint, "
    "producer_epoch smallint, commits boolean"
)
_STATE = "bucket int, state binary"
_LENGTH = " + ".join(
    f"(instr('0123456789ABCDEF', substring(hex(substring(key, 3, 2)), {place + 1}, 1)) - 1) * {16 ** (3 - place)}"
    for place in range(4)
)
"""The int16 before the group's name, digit by digit: ``conv`` takes microseconds a row."""
_CHECKSUM = f"CASE WHEN length(key) < 4 OR substring(key, 3, 1) >= X'80' THEN 0 ELSE crc32(substring(key, 5, {_LENGTH})) END"
"""Of the group with which a key begins, behind its type (int16) and a length: as `buckets_of_keys` takes it."""


@dataclass(frozen=True)
class SparkWork:
    """What all slices of a build have in common. It goes to the executors."""

    location: Location
    cluster: str
    slices: Sequence[Slice]
    buckets: int
    given: SliceInput
    everything: bool
    wanted: Sequence[int]
    condition: str = "true"


def build_slices(
    spark: SparkSession, work: SparkWork, files: Sequence[DataFile], states: Sequence[tuple[DataFile, Sequence[int]]]
) -> list[SliceResult]:
    """Build the slices ``work.wanted`` of these files of records, which are of one cluster each, going on from these files of
    states; each is of some slices, by number."""
    frame = stored_frame(spark, work.location, "records", files, _SCHEMA)
    spread = frame.where(work.condition).selectExpr(*_COLUMNS, f"explode({slices_of_key(work.slices)}) AS slice")
    new = spread.where(f"slice IN ({', '.join(map(str, work.wanted))})").groupBy("slice")
    before = _states_frame(spark, work, states).groupBy("slice")
    rows = new.cogroup(before).applyInArrow(_task(work), "result string").collect()
    return [_result(json.loads(row.result)) for row in rows]


def slices_of_key(slices: Sequence[Slice]) -> str:
    """In Spark's SQL, the numbers of the slices that a record is in by its ``key``, as `carry.sliced` has it: a marker, which
    has no key, to all. The slices are of all buckets, in order.
    """
    of_bucket = [str(number) for number, each in enumerate(slices) for _ in range(each.first, each.end)]
    own = f"element_at(array({', '.join(of_bucket)}), cast(({_CHECKSUM}) % {len(of_bucket)} AS int) + 1)"
    return f"CASE WHEN key IS NULL THEN sequence(0, {len(slices) - 1}) ELSE array({own}) END"


def _states_frame(spark: SparkSession, work: SparkWork, states: Sequence[tuple[DataFile, Sequence[int]]]) -> DataFrame:
    """A row for each slice and each state that it goes on from; without a state where there is none and it is to be made."""
    stored = stored_frame(spark, work.location, "state", [file for file, _ in states], _STATE)
    cases = " ".join(f"WHEN {buckets_of(file)[0]} THEN array({', '.join(map(str, slices))})" for file, slices in states if slices)
    found = stored.selectExpr(f"explode(CASE bucket {cases} ELSE array() END) AS slice", "state") if cases else None
    if not work.everything:
        return found if found is not None else spark.createDataFrame([], "slice int, state binary")
    every = spark.createDataFrame([(number, None) for number in work.wanted], "slice int, state binary")
    return every if found is None else found.unionAll(every)


def stored_frame(spark: SparkSession, location: Location, table: str, files: Sequence[DataFile], schema: str) -> DataFrame:
    """Files of a table as a data frame: by Spark's own scan where it reaches the store without a jar, else by pyarrow."""
    paths = [f"{location.child(table)}/{file.path}" for file in files]
    if not paths:
        return spark.createDataFrame([], schema)
    if location.is_local or location.uri.startswith("hdfs:"):
        scanned = [f"file://{path}" for path in paths] if location.is_local else paths
        return spark.read.schema(schema).parquet(*scanned)
    names = spark.createDataFrame([(file.path,) for file in files], "path string").repartition(len(files))
    return names.mapInArrow(_reader(location, table, [each.split(" ")[0] for each in schema.split(", ")]), schema)


def _reader(location: Location, table: str, columns: Sequence[str]) -> Any:
    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for path in batch.column(0).to_pylist():
                with opened(location, table, path) as file:
                    yield from file.read(list(columns)).to_batches(max_chunksize=100_000)

    return read


def _task(work: SparkWork) -> Any:
    def build(key: tuple[Any, ...], rows: pa.Table, before: pa.Table) -> pa.Table:
        import pyarrow as pa

        number = int(key[0].as_py())
        if not rows.num_rows and not work.everything:
            return pa.table({"result": pa.array([], pa.string())})
        raw, _ = placed(conform(from_stored("records", rows.select(list(_COLUMNS))), RAW))
        given = replace(work.given, raw=raw, is_first=number == 0)
        states = [state for state in before.column("state").to_pylist() if state is not None]
        done = build_slice(SliceTask(work.location, work.cluster, work.slices[number], given, work.buckets, states))
        files = {name: [asdict(file) for file in found] for name, found in done.files.items()}
        return pa.table({"result": [json.dumps({**vars(done), "files": files})]})

    return build


def _result(said: dict[str, Any]) -> SliceResult:
    files = {name: [DataFile(**file) for file in found] for name, found in said.pop("files").items()}
    return SliceResult(Slice(*said.pop("slice")), files, Counter(said.pop("counts")), **said)
