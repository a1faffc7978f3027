"""The build as a whole: what is new, cut into slices, folded by an engine, committed table by table, the state last.

The row of ``builds`` comes first and fixes what a build reads: whoever finds it there, because its writer has died or is at
work, builds the same. Each table takes each build once, and readers go by the versions that the commit of ``state`` names. A
build of much keeps what it has made every so many records, so that one that was killed goes on from there.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from kgctl import __version__
from kgctl.errors import KgctlError, RefusedError, StorageError
from kgctl.model.values import frozen_in_order
from kgctl.pipeline.builds.carry import Slice
from kgctl.pipeline.builds.cut import Extent, extents_of, later_times, portions_of, slices_of
from kgctl.pipeline.builds.fold import Folded, Portion, SampleFiles, fold
from kgctl.pipeline.builds.state import Earlier, Standing, beside, last_runs, new_files, overlaps, replaced, stored_coverage
from kgctl.pipeline.builds.thin import Replacement, pruned_until_ms, thinned_rows
from kgctl.pipeline.decode.schemas import merge_runs
from kgctl.pipeline.store.files import PROVISIONAL, DataFile, prefix_of, read_file, write_files
from kgctl.pipeline.store.states import PROGRESS, SLICE, named, read_state, write_state
from kgctl.pipeline.store.tables import BUILT, GOLD, to_stored
from kgctl.pipeline.store.warehouse import (
    FORGOTTEN,
    PRUNED,
    PRUNED_TABLES,
    TABLES_VERSION,
    next_number,
    version_number,
)
from kgctl.pipeline.tables.registry import BEGIN_MS, EVER_MS, OutdatedError

if TYPE_CHECKING:
    from kgctl.pipeline.engines import Engine
    from kgctl.pipeline.store.warehouse import Warehouse

STEP_RECORDS = 1_000_000
"""A build keeps what it has made of so many records."""


@frozen_in_order
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


@frozen_in_order
class Progress:
    """How far it is: records of the slices that are done, and of all."""

    records: int
    of_records: int


@frozen_in_order
class BuildRange:
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
    step_records: int = STEP_RECORDS,
) -> BuildResult:
    """Bring the tables of these clusters up to date. ``engine`` is asked for, with the number of records, when there is something
    to do. ``skips_damaged``: files of records and samples that cannot be read are left out, for good or until a rebuild.
    A build that somebody has begun, and may have died of, is ended first: it reads what was there when it began, and goes on from
    what was kept of it, every ``step_records`` records.

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
                    _build_cluster(_ClusterBuild(held, cluster, plan, readable, on_progress, step_records), engine, result)
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


def _begun(warehouse: Warehouse, cluster: str, result: BuildResult, now_ms: int, *, is_rebuild: bool) -> BuildRange | None:
    """Return the range to build, or None where nothing is new."""
    is_older = warehouse.table("state").number(_number("tables", cluster)) not in (None, TABLES_VERSION)
    if is_older:
        result.rebuilt.append(cluster)
    plan = _plan(warehouse, cluster, now_ms, is_rebuild=is_rebuild or is_older)
    if plan is None:
        result.unchanged += not any(each.cluster == cluster for each in result.tables)
        _sum_up(warehouse, cluster, {}, result)
    return plan


def _build_cluster(work: _ClusterBuild, engine: Callable[[int], Engine], result: BuildResult) -> None:
    try:
        work.look(None if work.plan.is_rebuild else Standing.of(work.warehouse, work.cluster))
    except OutdatedError as error:
        result.late.setdefault(work.cluster, []).append(f"{error}: all tables were made anew")
        work.look(None)
    try:
        worker = engine(work.records)
    except KgctlError as error:
        raise _NoEngineError from error
    work.run(worker)
    for why, count in work.anew().items():
        told = f"{count} partition{'s' if count != 1 else ''} of __consumer_offsets"
        result.late.setdefault(work.cluster, []).append(f"{why}: the tables of {told} were made anew")
    files = _committed_files(work)
    versions = {name: _commit(work, name, files[name]) for name in BUILT}
    _commit_state(work, versions)
    result.built += 1
    result.decoded += work.records
    result.counts[work.cluster] = work.counts
    _sum_up(work.warehouse, work.cluster, {name: each.kept for name, each in files.items()}, result)


def _number(what: str, cluster: str) -> str:
    return f"{what}/{cluster}"


def _plan(warehouse: Warehouse, cluster: str, now_ms: int, *, is_rebuild: bool) -> BuildRange | None:
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
    if not is_rebuild and not is_pruned and not any(warehouse.new_files(name, since[name], cluster=cluster) for name in since):
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


def begun_range(warehouse: Warehouse, cluster: str) -> BuildRange | None:
    """Return what the build of a cluster reads that was begun and has not ended, whoever does it; None where there is none."""
    return _known(warehouse, cluster, _next(warehouse.table("state").number(_number("build", cluster))))


def _next(number: int | None) -> int:
    return 0 if number is None else number + 1


def _known(warehouse: Warehouse, cluster: str, number: int) -> BuildRange | None:
    """The range of build ``number``, whoever has begun it."""
    builds = warehouse.table("builds")
    found = builds.number(_number("build", cluster))
    if found is None or found < number:
        return None
    files = builds.files(cluster)
    row = next(row for row in builds.rows(reversed(files)).to_pylist() if row["id"] == number and row["cluster"] == cluster)
    return BuildRange(number, *(row[name] for name in ("bronze_from", "bronze_to", "samples_from", "samples_to", "is_rebuild")))


def _differ(warehouse: Warehouse, cluster: str, collected: str, built: str) -> bool:
    """Whether something was taken away from the records that the tables have not followed yet."""
    now, then = (
        warehouse.table("records").number(_number(collected, cluster)),
        warehouse.table("state").number(_number(built, cluster)),
    )
    return now is not None and now != then


@dataclass
class _Queue:
    """A slice and its portions. ``why``: it is made anew from all records, for this reason; ``since``: or of what came since this
    version of table ``state``, where ``kept``, by table, are the files that stay."""

    slice: Slice
    portions: Sequence[Sequence[Extent]]
    states: Sequence[str]
    samples: SampleFiles
    why: str = ""
    since: int | None = None
    kept: Mapping[str, Collection[str]] = field(default_factory=dict)
    done: list[Folded] = field(default_factory=list)
    later: Sequence[int] = ()

    @property
    def is_over(self) -> bool:
        """Return whether all is made, or has to be in another way."""
        return len(self.done) == len(self.portions) or self.outdated != ""

    @property
    def outdated(self) -> str:
        """Return why nothing was made, but has to be from all records or from an earlier state."""
        return self.done[-1].outdated if self.done else ""

    @property
    def key(self) -> list[int]:
        """Return what tells it from another one that is cut in another way."""
        return [*self.slice, len(self.portions), bool(self.why), -1 if self.since is None else self.since]


@dataclass
class _ClusterBuild:
    """A build of a cluster that has begun: what is to be made, and what was made so far. ``readable`` says which of a table's
    files are read; the fields behind ``step_records`` are there once `look` was called."""

    warehouse: Warehouse
    cluster: str
    plan: BuildRange
    readable: Readable
    on_progress: Callable[[Progress], object]
    step_records: int
    is_on_top: bool = False
    standing: Standing = field(default_factory=Standing)
    samples: SampleFiles = field(default_factory=SampleFiles)
    records: int = 0
    queues: list[_Queue] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def look(self, before: Standing | None) -> None:
        """Look at what is new since ``before``, or at everything. Raises `OutdatedError`, `StorageError`."""
        plan = self.plan
        since = (-1, -1) if before is None else (plan.bronze_from, plan.samples_from)
        files = self._new_files("records", since[0], plan.bronze_to)
        every = self._new_files("samples", -1, plan.samples_to)
        fresh = every if before is None else self._new_files("samples", since[1], plan.samples_to)
        standing = (before or Standing()).sampled(self.warehouse, fresh, self._collected_to)
        self.is_on_top, self.standing, self.samples = before is not None, standing, SampleFiles(fresh, every)
        self.records = sum(file.rows for file in files)
        extents = list(extents_of(self.warehouse.location, files))
        partitions = max([standing.partitions, *(each.partition + 1 for each in extents)])
        slices = slices_of(extents, partitions, sum(file.size for file in standing.states))
        new = {each.partition for each in extents}
        touched = {
            number for number, each in enumerate(slices) if new & set(range(*each)) or (fresh and standing.states_of(each))
        }
        made = [slices[number] for number in _with_neighbours(slices, touched, standing)]
        states = [[file.path for file in standing.states_of(each)] for each in made]
        self.queues = [
            _Queue(each, portions_of(extents, each) or [[]], own, self.samples) for each, own in zip(made, states, strict=True)
        ]

    @property
    def pruned(self) -> int | None:
        """Return the last thinning of the records that are built."""
        return self.warehouse.table("records", self.plan.bronze_to).number(_number(PRUNED, self.cluster))

    def _collected_to(self, partition: int) -> int | None:
        """Where the live collection of a partition goes on, by the records that are built."""
        return self.warehouse.table("records", self.plan.bronze_to).number(next_number(self.cluster, partition))

    def thinned_coverage(self) -> list[pa.Table]:
        """What was collected and thinned since (``COVERAGE``), for a build that makes everything anew of less."""
        is_known = self.pruned is not None and not _differ(self.warehouse, self.cluster, FORGOTTEN, FORGOTTEN)
        with suppress(StorageError):
            return [stored_coverage(self.warehouse, self.cluster)] if is_known else []
        return []

    def _new_files(self, name: str, since: int, until: int) -> Sequence[DataFile]:
        """The files of ``records`` or ``samples`` that came after a version, up to another one."""
        return self.readable(name, new_files(self.warehouse, name, self.cluster, since, until))

    def run(self, engine: Engine) -> None:
        """Fold all slices, a portion of each at a time; what was made is kept now and then."""
        kept = self._resume()
        total = sum(each.rows for queue in self.queues for portion in queue.portions for each in portion)
        finished = sum(_rows(queue.portions[: len(queue.done)]) for queue in self.queues)

        def on_done(queue: _Queue, folded: Folded) -> None:
            nonlocal finished, kept
            finished += _rows([queue.portions[len(queue.done)]])
            queue.done.append(folded)
            self.on_progress(Progress(finished, total))
            if finished - kept >= self.step_records and finished < total:
                self._keep()
                kept = finished

        while todo := [queue for queue in self.queues if not queue.is_over]:
            for number, folded in _fold_all(engine, [self._next(queue) for queue in todo]):
                on_done(todo[number], folded)
            for queue in [queue for queue in self.queues if queue.outdated]:
                self.queues[self.queues.index(queue)] = self._from_earlier(queue) or self._from_all_records(queue)
        for queue in self.queues:
            for each in queue.done:
                self.counts.update(each.counts)

    def anew(self) -> Counter[str]:
        """Return how many partitions of the log were made anew, by reason."""
        found: Counter[str] = Counter()
        for queue in self.queues:
            if queue.why:
                found[queue.why] += queue.slice.end - queue.slice.first
        return found

    def _next(self, queue: _Queue) -> Portion:
        last = queue.done[-1] if queue.done else None
        is_last = len(queue.done) + 1 == len(queue.portions)
        if not queue.later:
            queue.later = [EVER_MS] if len(queue.portions) == 1 else later_times(self.warehouse.location, queue.portions)
        return Portion(
            self.warehouse.location,
            self.cluster,
            queue.slice,
            queue.portions[len(queue.done)],
            queue.samples,
            self.standing.rounds,
            self.standing.watermarks() if is_last else {},
            queue.states if last is None or last.state is None else [last.state.path],
            BEGIN_MS if last is None else last.sampled_to_ms,
            is_last,
            queue.later[len(queue.done)],
            BEGIN_MS if queue.since is None else self.standing.sure_ms(queue.slice),
        )

    def _from_earlier(self, queue: _Queue) -> _Queue | None:
        """The slice once more from the state that it had before what came late; None where that cannot be."""
        since_ms = queue.done[-1].since_ms
        if since_ms is None or queue.why or queue.since is not None:
            return None
        version = self.standing.version_before(queue.slice, since_ms)
        if version is None:
            return None
        until = {"records": self.plan.bronze_to, "samples": self.plan.samples_to}
        earlier = Earlier.of(self.warehouse, self.cluster, version, queue.slice, until)
        if earlier is None:
            return None
        own = [file for file in earlier.records if file.may_hold("log_partition", queue.slice.first, queue.slice.end - 1)]
        portions = portions_of(list(extents_of(self.warehouse.location, self.readable("records", own))), queue.slice) or [[]]
        samples = replace(self.samples, new=self.readable("samples", earlier.samples))
        states = [file.path for file in earlier.states]
        return _Queue(queue.slice, portions, states, samples, since=version, kept=earlier.files)

    def _from_all_records(self, queue: _Queue) -> _Queue:
        """The slice once more, from every record and sample that was collected."""
        first, end = queue.slice
        every = self._new_files("records", -1, self.plan.bronze_to)
        own = [file for file in every if file.may_hold("log_partition", first, end - 1)]
        extents = list(extents_of(self.warehouse.location, own))
        portions = portions_of(extents, queue.slice) or [[]]
        samples = replace(self.samples, new=self.samples.every)
        return _Queue(queue.slice, portions, (), samples, queue.outdated)

    def _keep(self) -> None:
        """Keep what was made, so that whoever goes on with this build begins there."""
        state = self.warehouse.table("state").reload()
        told = [
            {"key": queue.key, "done": [each.text() for each in queue.done]}
            for queue in self.queues
            if queue.done and not queue.outdated
        ]
        data = json.dumps({"number": self.plan.number, "queues": told}).encode()
        file = write_state(self.warehouse.location, self.cluster, PROGRESS, data)
        state.commit([file], named(state.files(self.cluster), PROGRESS))

    def _resume(self) -> int:
        """Take up what a build of this range has kept, if it was cut likewise; the records of it."""
        state = self.warehouse.table("state")
        for file in named(state.files(self.cluster), PROGRESS):
            told = json.loads(read_state(state.location, file.path))
            if told["number"] != self.plan.number:
                continue
            kept = {tuple(each["key"]): [Folded.of_text(text) for text in each["done"]] for each in told["queues"]}
            for queue in self.queues:
                queue.done = kept.get(tuple(queue.key), [])
        return sum(_rows(queue.portions[: len(queue.done)]) for queue in self.queues)


def _rows(portions: Sequence[Sequence[Extent]]) -> int:
    return sum(each.rows for portion in portions for each in portion)


def _with_neighbours(slices: Sequence[Slice], touched: set[int], standing: Standing) -> list[int]:
    """The slices to be made: those that are touched, and those that share a file of states with one that is made."""
    found = set(touched)
    while True:
        shared = [file for number in found for file in standing.states_of(slices[number])]
        more = {number for number, each in enumerate(slices) if any(overlaps(file, each) for file in shared)} - found
        if not more:
            return sorted(found)
        found |= more


def _fold_all(engine: Engine, portions: Sequence[Portion]) -> Iterator[tuple[int, Folded]]:
    """Each portion's number with what came of it, as they come."""
    if engine.session is None:
        yield from ((done.index, done.get()) for done in engine.stream(fold, portions))
    else:
        from kgctl.pipeline.builds.spark import fold_all

        yield from fold_all(engine.session, portions)


def _committed_files(work: _ClusterBuild) -> dict[str, Replacement]:
    """By table the files that a build puts in the place of others, and these."""
    made = [queue.slice for queue in work.queues]
    again = [queue for queue in work.queues if queue.why or queue.since is not None or not work.is_on_top]
    homes = _homes(work)
    found: dict[str, Replacement] = {}
    thinned = _thinned(work) if not again else {}
    for name in GOLD:
        table = work.warehouse.table(name)
        fresh = [file for queue in work.queues for each in queue.done for file in each.files.get(name, ())]
        if not work.is_on_top:
            found[name] = Replacement(table.files(work.cluster), fresh)
            continue
        files = table.files(work.cluster) if again else table.files(work.cluster, named=PROVISIONAL)
        anew = {queue.slice: queue.kept.get(name, ()) for queue in again}
        others = beside(work.warehouse, name, files, anew, homes)
        less = thinned.get(name, Replacement())
        found[name] = Replacement([*replaced(files, made, anew), *less.gone], [*fresh, *others, *less.kept])
    found["coverage"] = _coverage(work, is_whole=bool(again))
    return found


def _homes(work: _ClusterBuild) -> dict[str, int]:
    found = dict(work.standing.homes)
    for queue in work.queues:
        for each in queue.done:
            found.update(each.homes)
    return found


def _runs(work: _ClusterBuild, *, is_whole: bool) -> tuple[pa.Table, pa.Table]:
    fresh = [each.coverage for queue in work.queues for each in queue.done]
    if not work.is_on_top:
        known = work.thinned_coverage()
    else:
        known = [stored_coverage(work.warehouse, work.cluster) if is_whole else work.standing.runs]
    return last_runs(merge_runs([*known, *fresh]))


def _coverage(work: _ClusterBuild, *, is_whole: bool) -> Replacement:
    """The runs that may still grow, as provisional rows, and those that came to an end."""
    location, table = work.warehouse.location, work.warehouse.table("coverage")
    last, others = _runs(work, is_whole=is_whole)
    found = []
    for runs, is_provisional in ((last, True), (others, False)):
        timed = runs.append_column("time", runs.column("first_ms"))
        prefix = prefix_of(0, 1 << 16, is_provisional=is_provisional)
        found += write_files(location, "coverage", to_stored("coverage", timed, work.cluster), prefix)
    return Replacement(table.files(work.cluster) if is_whole else table.files(work.cluster, named=PROVISIONAL), found)


def _thinned(work: _ClusterBuild) -> dict[str, Replacement]:
    """What is left of the tables where the records were thinned since they followed."""
    state, number = work.warehouse.table("state"), work.pruned
    if number is None or number == state.number(_number(PRUNED_TABLES, work.cluster)):
        return {}
    return {name: thinned_rows(work.warehouse, name, work.cluster, pruned_until_ms(number)) for name in GOLD}


def _commit(work: _ClusterBuild, name: str, files: Replacement) -> int:
    """Put these files in the place of those before, once; the table's version."""
    table = work.warehouse.table(name).reload()
    if files.gone or files.kept:
        table.commit(files.kept, files.gone, once=(_number("build", work.cluster), work.plan.number))
    return table.version


def _commit_state(work: _ClusterBuild, versions: Mapping[str, int]) -> None:
    """The last commit of a build: from now on it counts."""
    cluster, plan, warehouse = work.cluster, work.plan, work.warehouse
    forgotten = warehouse.table("records", plan.bronze_to).number(_number(FORGOTTEN, cluster))
    has_thinned = not any(queue.why or queue.since is not None for queue in work.queues) or not work.is_on_top
    numbers: dict[str, int | None] = {
        _number("records", cluster): plan.bronze_to,
        _number("samples", cluster): plan.samples_to,
        _number("tables", cluster): TABLES_VERSION,
        _number(FORGOTTEN, cluster): forgotten,
        _number(PRUNED, cluster): work.pruned,
        _number(PRUNED_TABLES, cluster): work.pruned if has_thinned else None,
    }
    numbers.update({version_number(name): version for name, version in versions.items()})
    told = {name: number for name, number in numbers.items() if number is not None and number >= 0}
    state = warehouse.table("state").reload()
    made = {file.path for queue in work.queues for file in work.standing.states_of(queue.slice)}
    old = [file for file in state.files(cluster) if not work.is_on_top or file.path in made or not named([file], SLICE)]
    last, _ = _runs(work, is_whole=False)
    after = replace(work.standing, runs=last, homes=_homes(work))
    for queue in work.queues:
        if queue.done:
            after = after.stood(queue.done[-1].horizons, -1 if queue.why else queue.since)
    kept_state = after.write(warehouse, cluster)
    files = [queue.done[-1].state for queue in work.queues if queue.done]
    state.commit([kept_state, *filter(None, files)], old, once=(_number("build", cluster), plan.number), numbers=told)


def _sum_up(warehouse: Warehouse, cluster: str, files: Mapping[str, Sequence[DataFile]], result: BuildResult) -> None:
    before = {each.table: each.written for each in result.tables if each.cluster == cluster}
    result.tables = [each for each in result.tables if each.cluster != cluster]
    for name in BUILT:
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
