"""The build as a whole: what is new, cut into slices, done by an engine, committed table by table, the state last.

The row of ``builds`` comes first and fixes what a build reads: whoever finds it there, because its writer has died or is at
work, builds the same. Each table takes each build once, and readers go by the versions that the commit of ``state`` names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from kgctl import __version__
from kgctl.errors import KgctlError, RefusedError, StorageError
from kgctl.pipeline.builds.carry import Sampled, Slice, sliced, slices_into, slices_of
from kgctl.pipeline.builds.state import (
    SLICES,
    Late,
    Standing,
    beside,
    covered,
    last_runs,
    late_records,
    late_samples,
    new_files,
    newest_of,
    records_in,
    replaced,
    samples_in,
    stored_coverage,
)
from kgctl.pipeline.builds.tables_of import SliceInput, SliceResult, SliceTask, build_slice
from kgctl.pipeline.builds.thin import Thinned, pruned_until_ms, thinned_rows
from kgctl.pipeline.decode.arrow import plain_memory
from kgctl.pipeline.decode.schemas import merge_runs
from kgctl.pipeline.store.files import PROVISIONAL, DataFile, prefix_of, read_file, write_files
from kgctl.pipeline.store.tables import GOLD, RAW, to_stored
from kgctl.pipeline.store.warehouse import FORGOTTEN, PRUNED, PRUNED_TABLES, TABLES_VERSION, version_number
from kgctl.pipeline.tables.registry import BEGIN_MS, LateSamplesError, OutdatedError

if TYPE_CHECKING:
    from kgctl.pipeline.engines import Done, Engine
    from kgctl.pipeline.store.warehouse import Warehouse

COMMITTED = (*GOLD, "coverage")


@dataclass(frozen=True, slots=True)
class TableSummary:
    """One table of one cluster after the build. ``written``: rows that this build wrote."""

    cluster: str
    table: str
    rows: int
    written: int
    changed: bool


@dataclass
class BuildResult:
    """What came of it. ``decoded``: records that were decoded now.

    ``counts``, by cluster, are of what was built now; ``rebuilt`` names clusters whose tables an older kgctl had built;
    ``skipped``: damaged files that were left out; ``late`` says, by cluster, what changed things that were built for good, and
    what was made anew for that.
    """

    tables: list[TableSummary] = field(default_factory=list)
    built: int = 0
    unchanged: int = 0
    decoded: int = 0
    failed: list[KgctlError] = field(default_factory=list)
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    rebuilt: list[str] = field(default_factory=list)
    late: dict[str, list[str]] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far it is: records of the slices that are done, and of all."""

    records: int
    of_records: int


@dataclass(frozen=True, slots=True)
class Range:
    """What a build reads, as its row of ``builds`` says: from the versions that were built before up to others."""

    number: int
    bronze_from: int
    bronze_to: int
    samples_from: int
    samples_to: int
    is_rebuild: bool


def build(
    warehouse: Warehouse,
    clusters: Sequence[str],
    engine: Callable[[int], Engine],
    *,
    now_ms: int = 0,
    is_rebuild: bool = False,
    skips_damaged: bool = False,
    on_progress: Callable[[Progress], object] = lambda _: None,
) -> BuildResult:
    """Bring the tables of these clusters up to date. ``engine`` is asked for, with the number of records, when there is something
    to do. ``skips_damaged``: files of records and samples that cannot be read are left out, for good or until a rebuild.
    A build that somebody has begun, and may have died of, is ended first: it reads what was there when it began.

    A cluster that fails keeps the tables it had, and is no reason for the others to. Raises `RefusedError` (tables are of a
    newer kgctl), `StorageError`, and what ``engine`` raises.
    """
    if not is_rebuild:
        _refuse_newer(warehouse, clusters)
    result = BuildResult()
    for cluster in clusters:
        try:
            first = warehouse.held()
            for held in [first] if begun_range(first, cluster) is None else [first, warehouse.held()]:
                plan = _begun(held, cluster, result, now_ms, is_rebuild=is_rebuild)
                if plan is not None:
                    readable = partial(_readable, held, result) if skips_damaged else _every
                    _build_cluster(_Job(held, cluster, plan, readable), engine, result, on_progress)
        except _NoEngineError as error:
            raise error.__cause__ or error from None
        except KgctlError as error:
            result.failed.append(KgctlError(f"cluster '{cluster}' was not built: {error.message}", code=error.code))
    return result


class _NoEngineError(Exception):
    """The engine cannot be had, for its cause: no cluster can be built."""


Readable = Callable[[str, Sequence[DataFile]], Sequence[DataFile]]


def _every(_: str, files: Sequence[DataFile]) -> Sequence[DataFile]:
    return files


def _readable(warehouse: Warehouse, result: BuildResult, name: str, files: Sequence[DataFile]) -> Sequence[DataFile]:
    """The files of a table that can be read; the others are noted."""
    fine = []
    for file in files:
        try:
            read_file(warehouse.location, name, file.path)
        except StorageError:
            path = f"{warehouse.location.child(name)}/{file.path}"
            result.skipped += [path] if path not in result.skipped else []
        else:
            fine.append(file)
    return fine


@dataclass(frozen=True)
class _Job:
    """A build of a cluster that has begun. ``readable`` says which of a table's files are read."""

    warehouse: Warehouse
    cluster: str
    plan: Range
    readable: Readable

    @property
    def pruned(self) -> int | None:
        """Return the last thinning of the records that are built."""
        return self.warehouse.table("records", self.plan.bronze_to).number(_number(PRUNED, self.cluster))

    def thinned_coverage(self) -> list[pa.Table]:
        """What was collected and thinned since (``COVERAGE``), for a build that makes everything anew of less."""
        is_known = self.pruned is not None and not _differ(self.warehouse, self.cluster, FORGOTTEN, FORGOTTEN)
        with suppress(StorageError):
            return [stored_coverage(self.warehouse, self.cluster)] if is_known else []
        return []

    def new_files(self, name: str, since: int, until: int) -> Sequence[DataFile]:
        """The files of ``records`` or ``samples`` that came after a version, up to another one."""
        return self.readable(name, new_files(self.warehouse, name, self.cluster, since, until))


def _begun(warehouse: Warehouse, cluster: str, result: BuildResult, now_ms: int, *, is_rebuild: bool) -> Range | None:
    """Return the range to build, or None where nothing is new."""
    is_older = warehouse.table("state").number(_number("tables", cluster)) not in (None, TABLES_VERSION)
    if is_older:
        result.rebuilt.append(cluster)
    plan = _plan(warehouse, cluster, now_ms, is_rebuild=is_rebuild or is_older)
    if plan is None:
        result.unchanged += not any(each.cluster == cluster for each in result.tables)
        _sum_up(warehouse, cluster, {}, result)
    return plan


@plain_memory()
def _build_cluster(
    job: _Job, engine: Callable[[int], Engine], result: BuildResult, on_progress: Callable[[Progress], object]
) -> None:
    warehouse, cluster, plan = job.warehouse, job.cluster, job.plan
    before = None if plan.is_rebuild else Standing.of(warehouse, cluster)
    try:
        made = _made(_Work.of(job, before), engine, on_progress)
    except OutdatedError as error:
        result.late.setdefault(cluster, []).append(f"{error}: all tables were made anew")
        made = _made(_Work.of(job, None), engine, on_progress)
    for why, count in made.anew.items():
        told = "all tables" if count == warehouse.buckets else f"the tables of {count} of {warehouse.buckets} buckets of groups"
        result.late.setdefault(cluster, []).append(f"{why}: {told} were made anew")
    versions = {name: _commit(made, name, plan) for name in COMMITTED}
    _commit_state(made, plan, versions)
    result.built += 1
    result.decoded += made.records
    result.counts[cluster] = made.counts
    _sum_up(warehouse, cluster, made.files, result)


def _number(what: str, cluster: str) -> str:
    return f"{what}/{cluster}"


def _plan(warehouse: Warehouse, cluster: str, now_ms: int, *, is_rebuild: bool) -> Range | None:
    """What the next build of a cluster reads; None where nothing is new. Its row of ``builds`` is there when this returns."""
    state = warehouse.table("state")
    number = _next(state.number(_number("build", cluster)))
    before = {name: state.number(_number(name, cluster)) for name in ("records", "samples")}
    since = {name: -1 if found is None else found for name, found in before.items()}
    known = _known(warehouse, cluster, number)
    if known is not None:
        return known
    is_rebuild = is_rebuild or _differ(warehouse, cluster, FORGOTTEN, FORGOTTEN)
    is_pruned = _differ(warehouse, cluster, PRUNED, PRUNED_TABLES)
    if not is_rebuild and not is_pruned and not any(_is_new(warehouse, cluster, name, since[name]) for name in since):
        return None
    rows = pa.Table.from_pylist(
        [
            {
                "id": number,
                "bronze_from": since["records"],
                "bronze_to": warehouse.table("records").version,
                "samples_from": since["samples"],
                "samples_to": warehouse.table("samples").version,
                "is_rebuild": is_rebuild,
                "started": now_ms,
                "kgctl_version": __version__,
                "engine": "",
            }
        ]
    )
    files = write_files(warehouse.location, "builds", to_stored("builds", rows, cluster), "")
    warehouse.table("builds").commit(files, once=(_number("build", cluster), number))
    return _known(warehouse, cluster, number)


def begun_range(warehouse: Warehouse, cluster: str) -> Range | None:
    """Return what the build of a cluster reads that was begun and has not ended, whoever does it; None where there is none."""
    return _known(warehouse, cluster, _next(warehouse.table("state").number(_number("build", cluster))))


def _next(number: int | None) -> int:
    return 0 if number is None else number + 1


def _known(warehouse: Warehouse, cluster: str, number: int) -> Range | None:
    """The range of build ``number``, whoever has begun it."""
    builds = warehouse.table("builds")
    found = builds.number(_number("build", cluster))
    if found is None or found < number:
        return None
    files = builds.files(cluster)
    row = next(row for row in builds.rows(reversed(files)).to_pylist() if row["id"] == number and row["cluster"] == cluster)
    return Range(number, *(row[name] for name in ("bronze_from", "bronze_to", "samples_from", "samples_to", "is_rebuild")))


def _differ(warehouse: Warehouse, cluster: str, collected: str, built: str) -> bool:
    """Whether something was taken away from the records that the tables have not followed yet."""
    now, then = (
        warehouse.table("records").number(_number(collected, cluster)),
        warehouse.table("state").number(_number(built, cluster)),
    )
    return now is not None and now != then


def _is_new(warehouse: Warehouse, cluster: str, name: str, since: int) -> bool:
    return bool(warehouse.new_files(name, since, cluster=cluster))


@dataclass(frozen=True)
class _Work:
    """What is to be made: of which files, cut into which slices, going on from where. ``everything``: all slices are to be made,
    also those that no new record is of. ``next`` is where the next build goes on; its ``states`` are still to be made. ``late``:
    what came from below what was built; the slices that it touches are made anew, and the others without it."""

    job: _Job
    before: Standing
    files: Sequence[DataFile]
    samples: pa.Table
    coverage: pa.Table
    settled_coverage: pa.Table
    counts: Counter[str]
    slices: list[Slice]
    everything: bool
    next: Standing
    late: Late | None = None

    @classmethod
    def of(cls, job: _Job, standing: Standing | None) -> _Work:
        """Look at what is new since ``standing``, or at everything. Raises `OutdatedError`, `StorageError`."""
        warehouse, plan = job.warehouse, job.plan
        before = Standing() if standing is None else standing
        since = (-1, -1) if standing is None else (plan.bronze_from, plan.samples_from)
        files = job.new_files("records", since[0], plan.bronze_to)
        fresh = samples_in(warehouse, job.new_files("samples", since[1], plan.samples_to))
        runs, counts = covered(warehouse, files)
        sampling, uncleaned, samples, late = _sampled(job, before, fresh)
        overtaken = before.overtaken(runs)
        if overtaken:
            late = _with_records(job, files, overtaken, late)
        coverage = merge_runs([stored_coverage(warehouse, job.cluster) if overtaken else before.runs, runs])
        collected = coverage if standing is not None else merge_runs([*job.thinned_coverage(), coverage])
        last, others = last_runs(collected)
        newest_ms = max(before.newest_ms, newest_of(runs))
        sampled_ms = pc.max(fresh.column("timestamp_ms")).as_py()
        newest_sample_ms = max(before.newest_sample_ms, BEGIN_MS if sampled_ms is None else sampled_ms)
        horizon_ms = before.next_horizon(newest_ms, newest_sample_ms)
        wanted = len(slices_of(sum(file.rows for file in files), warehouse.buckets))
        count = min(before.slices_for(wanted if late is None else max(wanted, SLICES)), warehouse.buckets)
        sampled = sampling.until(horizon_ms, uncleaned, samples)
        after = Standing(sampled, newest_ms, newest_sample_ms, last, count)
        everything = count != before.slices or fresh.num_rows > 0
        cut_into = slices_into(count, warehouse.buckets)
        return cls(job, before, files, samples, coverage, others, counts, cut_into, everything, after, late)

    @property
    def warehouse(self) -> Warehouse:
        """Return the warehouse of the build."""
        return self.job.warehouse

    @property
    def cluster(self) -> str:
        """Return the cluster whose groups are built."""
        return self.job.cluster

    @property
    def records(self) -> int:
        """Return how many records are new."""
        return sum(file.rows for file in self.files)

    def given(self, raw: pa.Table, each: Slice) -> SliceInput:
        """What a slice is made of, going on from its state."""
        return SliceInput(
            raw,
            self.samples,
            self.coverage,
            each.first == 0,
            samples_from_ms=self.before.horizon_ms,
            horizon_ms=self.next.horizon_ms,
        )

    def with_all_samples(self) -> _Work:
        """Return this work with every sample that was collected."""
        files = self.job.new_files("samples", -1, self.job.plan.samples_to)
        samples = Sampled.nothing().with_more(samples_in(self.warehouse, files))
        before = replace(self.before, sampled=Sampled.nothing())
        return replace(self, samples=samples, before=before, everything=True)

    def from_all_records(self) -> _Work:
        """Return this work with every record and sample that was collected, going on from nothing."""
        files = self.job.new_files("records", -1, self.job.plan.bronze_to)
        runs, _ = covered(self.warehouse, files)
        return replace(self.with_all_samples(), files=files, coverage=runs, before=Standing(), late=None)

    def finer(self) -> _Work:
        """Return this work cut into more slices."""
        cut_into = slices_into(SLICES, self.warehouse.buckets)
        return replace(self, slices=cut_into, everything=True, next=replace(self.next, slices=len(cut_into)))


@dataclass(frozen=True)
class _Made:
    """The files that a build has written. ``slices``: those that were made; ``from_nothing``: those of them
    that were made from all records, ``anew``: for which reasons, how many each."""

    work: _Work
    files: Mapping[str, Sequence[DataFile]]
    counts: Counter[str]
    slices: Sequence[Slice]
    from_nothing: Sequence[Slice]
    anew: Mapping[str, int]
    thinned: Mapping[str, Thinned] = field(default_factory=dict)

    @property
    def is_on_top(self) -> bool:
        """Return whether nothing that was built for good was made anew."""
        return self.work.before.slices > 0 and not self.from_nothing

    @property
    def records(self) -> int:
        """Return how many records were new."""
        return self.work.records


def _made(work: _Work, engine: Callable[[int], Engine], on_progress: Callable[[Progress], object]) -> _Made:
    try:
        worker = engine(work.records)
    except KgctlError as error:
        raise _NoEngineError from error

    def run(asked: _Work, slices: Sequence[Slice]) -> list[SliceResult]:
        return _by_spark(worker, asked, slices) if worker.session is not None else _here(worker, asked, slices, on_progress)

    touched = [each for each in work.slices if work.late is not None and work.late.touches(each)]
    done = run(work, [each for each in work.slices if each not in touched])
    lacking = [each.slice for each in done if each.lacks_samples]
    if lacking:
        done = [each for each in done if not each.lacks_samples] + run(work.with_all_samples(), lacking)
    outdated = {each.slice: each.outdated for each in done if each.outdated}
    if outdated and len(work.slices) < SLICES and work.before.is_even and work.before.slices:
        return _made(work.finer(), lambda _: worker, on_progress)
    outdated.update(dict.fromkeys(touched, work.late.why if work.late else ""))
    if outdated:
        done = [each for each in done if not each.outdated] + run(work.from_all_records(), list(outdated))
    files = _together(done, work.counts)
    files["coverage"] = _write_coverage(work)
    anew: Counter[str] = Counter()
    for each, why in outdated.items():
        anew[why] += each.end - each.first
    from_nothing = work.slices if work.before.slices == 0 else list(outdated)
    made = _Made(
        work, files, work.counts, [each.slice for each in done], from_nothing, anew, _thinned(work) if not from_nothing else {}
    )
    for name in GOLD if work.before.slices else ():
        files[name] += made.thinned[name].kept if name in made.thinned else ()
        files[name] += beside(work.warehouse, name, _files_of(work, name), from_nothing) if from_nothing else ()
    return made


def _thinned(work: _Work) -> dict[str, Thinned]:
    """What is left of the tables where the records were thinned since they followed."""
    state, number = work.warehouse.table("state"), work.job.pruned
    if number is None or number == state.number(_number(PRUNED_TABLES, work.cluster)):
        return {}
    return {name: thinned_rows(work.warehouse, name, work.cluster, pruned_until_ms(number)) for name in GOLD}


def _files_of(work: _Work, name: str) -> list[DataFile]:
    return work.warehouse.table(name).files(work.cluster)


def _sampled(job: _Job, before: Standing, fresh: pa.Table) -> tuple[Sampled, pa.Table, pa.Table, Late | None]:
    """(where cleaning goes on from, the samples that it goes on with, all of them cleaned, what came late of them)."""
    try:
        return before.sampled, fresh, before.sampled.with_more(fresh), None
    except LateSamplesError as error:
        touched = late_samples(job.warehouse, before.states, error.topics)
        every = samples_in(job.warehouse, job.new_files("samples", -1, job.plan.samples_to))
        return Sampled.nothing(), every, Sampled.nothing().with_more(every), Late({}, touched, str(error))


def _with_records(job: _Job, files: Sequence[DataFile], overtaken: Mapping[int, int], late: Late | None) -> Late:
    """What came late of these new files' records, and of samples."""
    every = job.new_files("records", -1, job.plan.bronze_to)
    touched = late_records(job.warehouse, overtaken, files, every)
    why = f"records came late, as of __consumer_offsets-{min(overtaken)}"
    return Late(overtaken, touched, why) if late is None else Late(overtaken, touched | late.touched, f"{late.why}, and {why}")


def _here(engine: Engine, work: _Work, slices: Sequence[Slice], on_progress: Callable[[Progress], object]) -> list[SliceResult]:
    """Read and cut the records in this process, and have these slices made."""
    warehouse, tasks = work.warehouse, []
    found = records_in(warehouse, work.files)
    raw = found if work.late is None else map(work.late.in_time, found)
    for each, part in zip(work.slices, sliced(raw, work.slices, warehouse.buckets), strict=True):
        if each in slices and (part.num_rows or work.everything):
            states = [file.path for file in work.before.states_of(each)]
            tasks.append(SliceTask(warehouse.location, work.cluster, each, work.given(part, each), warehouse.buckets, states))
    return _spread(engine, tasks, on_progress)


def _by_spark(engine: Engine, work: _Work, slices: Sequence[Slice]) -> list[SliceResult]:
    from kgctl.pipeline.builds.tables_of import SparkWork, build_slices
    from kgctl.pipeline.engines import spark_errors

    location, buckets = work.warehouse.location, work.warehouse.buckets
    given = work.given(RAW.empty_table(), Slice(0, 0))
    wanted = [number for number, each in enumerate(work.slices) if each in slices]
    condition = "true" if work.late is None else work.late.condition()
    common = SparkWork(location, work.cluster, work.slices, buckets, given, work.everything, wanted, condition)
    states = [
        (file, [number for number in wanted if file in work.before.states_of(work.slices[number])]) for file in work.before.states
    ]
    with spark_errors():
        return build_slices(engine.session, common, work.files, states)


def _write_coverage(work: _Work) -> list[DataFile]:
    """The runs that may still grow, as provisional rows, and those that came to an end."""
    found = []
    for runs, is_provisional in ((work.next.runs, True), (work.settled_coverage, False)):
        timed = runs.append_column("time", runs.column("first_ms"))
        prefix = prefix_of(0, work.warehouse.buckets - 1, is_provisional=is_provisional)
        found += write_files(work.warehouse.location, "coverage", to_stored("coverage", timed, work.cluster), prefix)
    return found


def _spread(engine: Engine, tasks: Sequence[SliceTask], on_progress: Callable[[Progress], object]) -> list[SliceResult]:
    finished, of_records = 0, sum(task.records for task in tasks)

    def on_done(done: Done[SliceResult]) -> None:
        nonlocal finished
        finished += tasks[done.index].records
        on_progress(Progress(finished, of_records))

    return [done.get() for done in engine.map(build_slice, tasks, on_done=on_done)]


def _together(done: Sequence[SliceResult], counts: Counter[str]) -> dict[str, list[DataFile]]:
    files: dict[str, list[DataFile]] = {name: [] for name in (*GOLD, "state")}
    for each in done:
        counts.update(each.counts)
        for name, found in each.files.items():
            files[name] += found
    return files


def _taken_away(made: _Made, name: str) -> list[DataFile]:
    """The files of a table that this build puts others in the place of."""
    work = made.work
    if made.is_on_top and name != "coverage":
        files = work.warehouse.table(name).files(work.cluster, named=PROVISIONAL)
    else:
        files = _files_of(work, name)
    if work.before.slices == 0 or (name == "coverage" and work.late is not None and work.late.known):
        return files
    slices = [Slice(0, work.warehouse.buckets)] if name == "coverage" else made.slices
    found = replaced(files, slices, () if name == "coverage" else made.from_nothing)
    return [*found, *(made.thinned[name].gone if name in made.thinned else ())]


def _commit(made: _Made, name: str, plan: Range) -> int:
    """Put these files in the place of those before, once; the table's version."""
    table = made.work.warehouse.table(name).reload()
    before = _taken_away(made, name)
    if made.files[name] or before:
        table.commit(made.files[name], before, once=(_number("build", made.work.cluster), plan.number))
    return table.version


def _commit_state(made: _Made, plan: Range, versions: Mapping[str, int]) -> None:
    """The last commit of a build: from now on it counts."""
    work, cluster = made.work, made.work.cluster
    forgotten = work.warehouse.table("records", plan.bronze_to).number(_number(FORGOTTEN, cluster))
    numbers: dict[str, int | None] = {
        _number("records", cluster): plan.bronze_to,
        _number("samples", cluster): plan.samples_to,
        _number("tables", cluster): TABLES_VERSION,
        _number(FORGOTTEN, cluster): forgotten,
        _number(PRUNED, cluster): work.job.pruned,
        _number(PRUNED_TABLES, cluster): work.job.pruned if made.thinned or not work.before.slices else None,
    }
    numbers.update({version_number(name): version for name, version in versions.items()})
    told = {name: number for name, number in numbers.items() if number is not None and number >= 0}
    state = work.warehouse.table("state").reload()
    old = state.files(cluster)
    if work.before.slices:
        remade = [file.path for each in made.slices for file in work.before.states_of(each)]
        old = [file for file in old if file.path in remade or file not in work.before.states]
    is_still_even = work.before.is_even and work.next.horizon_ms == work.before.horizon_ms
    after = replace(work.next, is_even=len(made.slices) == len(work.slices) or is_still_even)
    files = [*made.files["state"], *after.write(work.warehouse, cluster)]
    state.commit(files, old, once=(_number("build", cluster), plan.number), numbers=told)


def _sum_up(warehouse: Warehouse, cluster: str, files: Mapping[str, Sequence[DataFile]], result: BuildResult) -> None:
    before = {each.table: each.written for each in result.tables if each.cluster == cluster}
    result.tables = [each for each in result.tables if each.cluster != cluster]
    for name in COMMITTED:
        written = before.get(name, 0) + sum(file.rows for file in files.get(name, ()))
        result.tables.append(TableSummary(cluster, name, warehouse.table(name).count(cluster), written, written > 0))
    damaged = warehouse.table("damaged").files(cluster)
    result.counts.setdefault(cluster, Counter())["damaged"] = sum(file.rows for file in damaged)


def _refuse_newer(warehouse: Warehouse, clusters: Sequence[str]) -> None:
    for cluster in clusters:
        if (warehouse.built_version(cluster) or 0) > TABLES_VERSION:
            raise RefusedError(
                f"{warehouse.location}: a newer kgctl built the tables of cluster '{cluster}'. "
                "Use that one, or --rebuild to build everything as this one does"
            )
