"""What is to be run, the runs themselves (here, or spread over processes), what is kept of each, and which seed to look at."""

from __future__ import annotations

import gc
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from typing import ClassVar

from kgctl.errors import InvariantViolation, KgctlError
from kgctl.model.groups import TopicPartition
from kgctl.model.values import frozen
from kgctl.simulate.batch.judge import RunValues, Watcher, metric_keys, watchers_for
from kgctl.simulate.engine.run import TIME_LIMIT, RunLimits, rare_collections
from kgctl.simulate.metrics.result import LaneSegment, RunResult, run
from kgctl.simulate.metrics.troubles import troubles_of
from kgctl.simulate.recording.recording import Recording
from kgctl.simulate.recording.trace import Scaled
from kgctl.simulate.report.outcome import LagSeries, Lane, Mark, Outcome, Replicas, RunPicture, Segment, duration, show
from kgctl.simulate.scenario.checks import Check
from kgctl.simulate.scenario.expressions import Metric, key_of
from kgctl.simulate.scenario.load import LoadedFile, Variant
from kgctl.simulate.scenario.model import Scenario
from kgctl.simulate.scenario.quantities import UNIT_PR
from kgctl.simulate.scenario.vocabulary import EventStage, GapCause, Identity


def replicas_of(result: RunResult) -> tuple[Replicas, ...]:
    """The set that is autoscaled, if there is one, from the end of the warm-up on."""
    spec = result.recording.scenario.autoscale
    if spec is None:
        return ()
    measured = result.metrics.measured
    window = (measured.start_us, measured.end_us)
    pods = [pod for pod in result.recording.history.pods if pod.member_set == spec.members]
    wanted = _counts((each for pod in pods for each in measured.clip(pod.wanted.until(window[1]), window)), window)
    running = _counts((each for pod in pods for each in measured.clip(pod.running.until(window[1]), window)), window)
    return (Replicas(spec.members, wanted, running),)


def _counts(intervals: Iterable[tuple[int, int]], window: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    """(time, how many from then on); times from the end of the warm-up."""
    changes = Counter({window[0]: 0})
    for first, last in intervals:
        changes[first] += 1
        changes[last] -= 1
    found: list[tuple[int, int]] = []
    number = 0
    for at_us in sorted(changes):
        number += changes[at_us]
        if at_us < window[1] and (not found or found[-1][1] != number):
            found.append((at_us - window[0], number))
    return tuple(found)


def scaling_marks(result: RunResult) -> list[Mark]:
    """Return a mark for each change of replicas: ``worker 8 to 16 (lag 14,200)``."""
    offset = result.metrics.measured.start_us
    return [
        Mark(each.at_us - offset, f"{each.members} {each.before} to {each.replicas} ({each.metric} {_value(each)})")
        for each in result.recording.history.scalings
    ]


def _value(each: Scaled) -> str:
    if each.metric == "lag-age":
        return duration(each.value)
    return f"{each.value / 10_000:.0f}%" if each.metric == "cpu" else show("lag", each.value)


_MOST_POINTS = 4_000


def picture_of(result: RunResult) -> RunPicture:
    """From the end of the warm-up to the end of the run."""
    doubles = _doubles(result)
    lanes = tuple(
        Lane(topic, number, tuple(_with_doubles([*map(_segment, segments)], doubles.get(TopicPartition(topic, number), ()))))
        for (topic, number), segments in ((_split(name), segments) for name, segments in result.lanes().items())
    )
    return RunPicture(
        result.seed,
        0,
        result.end_us,
        lanes,
        tuple(_marks(result)),
        tuple(_lag(result)),
        replicas_of(result),
        tuple(_generations(result)),
        tuple(_step_marks(result)),
    )


def _generations(result: RunResult) -> Iterator[tuple[int, int]]:
    """Yield (time, generation from then on), from the end of the warm-up."""
    start_us = result.metrics.measured.start_us
    last = -1
    before = [point for point in result.recording.history.group if point.at_us <= start_us][-1:]
    for point in (*before, *(each for each in result.recording.history.group if each.at_us > start_us)):
        if point.generation != last:
            yield max(point.at_us - start_us, 0), point.generation
        last = point.generation


def _step_marks(result: RunResult) -> Iterator[Mark]:
    """Yield the beginning of each step of a rollout, numbered, and what ends the last one: the rollout's end, another event."""
    history, start_us = result.recording.history, result.metrics.measured.start_us
    stepped = {each.event for each in history.steps}
    others = [mark for mark in history.events if stepped and (mark.what is EventStage.BEGINS) != (mark.event in stepped)]
    number = Counter[str]()
    marks = [(each.at_us, True, each.event) for each in history.steps] + [(each.at_us, False, each.event) for each in others]
    for at_us, is_step, name in sorted(marks):
        number[name] += is_step
        yield Mark(at_us - start_us, f"{name}, step {number[name]}" if is_step else f"after {name}" if name in stepped else name)


def _split(name: str) -> tuple[str, int]:
    topic, _, number = name.rpartition("-")
    return topic, int(number)


def _segment(segment: LaneSegment) -> Segment:
    owners = () if segment.owner is None else (segment.owner,)
    return Segment(segment.from_us, segment.to_us, owners, segment.cause or "")


def _doubles(result: RunResult) -> dict[TopicPartition, list[tuple[int, int, str]]]:
    """Partition -> (from, to, older owner) of the times in which it had two consumers."""
    recording, offset = result.recording, result.recording.start_us
    end_us = result.metrics.measured.end_us
    still = [(number, since_us, end_us, pod) for number, pod, since_us in recording.owners.older_consumers()]
    found: dict[TopicPartition, list[tuple[int, int, str]]] = {}
    for number, from_us, to_us, pod in (*recording.owners.double_owned, *still):
        entry = (max(from_us - offset, 0), to_us - offset, recording.history.pods[pod].name)
        if entry[0] < entry[1]:
            found.setdefault(recording.partitions.names[number], []).append(entry)
    return found


def _with_doubles(segments: list[Segment], doubles: Iterable[tuple[int, int, str]]) -> list[Segment]:
    """The lane with the older consumers put beside the newer ones."""
    for from_us, to_us, older in doubles:
        segments = [piece for segment in segments for piece in _beside(segment, from_us, to_us, older)]
    return segments


def _beside(segment: Segment, from_us: int, to_us: int, older: str) -> list[Segment]:
    first, last = max(segment.from_us, from_us), min(segment.to_us, to_us)
    if first >= last or not segment.owners or older in segment.owners:
        return [segment]
    pieces = [
        Segment(segment.from_us, first, segment.owners, segment.cause),
        Segment(first, last, (older, *segment.owners), segment.cause),
        Segment(last, segment.to_us, segment.owners, segment.cause),
    ]
    return [piece for piece in pieces if piece.from_us < piece.to_us]


def _marks(result: RunResult) -> list[Mark]:
    """The scenario's events, and each process that was started or went away after the warm-up, in order of time."""
    events = [
        Mark(at_us, f"{event} {target}" if what is EventStage.BEGINS else f"{event} {target} {what}")
        for at_us, event, what, target in result.events_marks()
    ]
    begun = {(mark.at_us, mark.text) for mark in events}
    events = [
        mark for mark in events if (mark.at_us, mark.text.removesuffix(" ends")) not in begun or not mark.text.endswith(" ends")
    ]
    marks = [*events, *scaling_marks(result), *_process_marks(result)]
    return sorted((mark for mark in marks if 0 <= mark.at_us <= result.end_us), key=lambda mark: mark.at_us)


def _process_marks(result: RunResult) -> list[Mark]:
    offset, end_us = result.metrics.measured.start_us, result.metrics.measured.end_us
    marks = []
    for pod in result.recording.history.pods:
        for first, last in pod.running.until(end_us):
            marks += [Mark(first - offset, f"{pod.name} starts")] * (first > offset)
            marks += [Mark(last - offset, f"{pod.name} goes")] * (last < end_us)
    return marks


def _lag(result: RunResult) -> list[LagSeries]:
    """What was written and not yet read, by topic of the group: the lag without the teeth that periodic commits give it."""
    measured, table = result.metrics.measured, result.recording.partitions
    found = []
    for topic, series in result.recording.ledger.backlog.items():
        if not any(table.counted[number] for number in table.by_topic.get(topic, ())):
            continue
        points = _thinned(series.points(measured.start_us, measured.end_us))
        if any(amount for _, amount in points):
            found.append(
                LagSeries(topic, tuple((at_us - measured.start_us, max(amount, 0) / UNIT_PR) for at_us, amount in points))
            )
    return found


def _thinned(points: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
    """Of very many points, the lowest and the highest of each small stretch: the line looks the same."""
    if len(points) <= _MOST_POINTS:
        return points
    size = -(-len(points) * 2 // _MOST_POINTS)
    kept: list[tuple[int, int]] = [points[0]]
    for start in range(0, len(points), size):
        stretch = points[start : start + size]
        ends = {min(stretch, key=lambda point: point[1]), max(stretch, key=lambda point: point[1])}
        kept += sorted(ends)
    return [*kept, points[-1]]


_COLLECT_AFTER = 5_000
"""A finished run is a cycle of objects, of some megabytes, which goes at once where its log has so many lines."""


@frozen
class Task:
    """``settings``: Kafka's, for expressions. ``twice``: run it again and compare. ``draws``: keep who consumed what when.

    ``deadline_s``: by the clock of ``time.monotonic``. ``is_lone``: the scenario has no variants. ``metrics``: wanted beside
    those that the checks name.
    """

    variant: str
    scenario: Scenario
    settings: Mapping[str, float | str]
    checks: tuple[Check, ...]
    seed: int
    twice: bool = False
    draws: bool = False
    deadline_s: float | None = None
    is_lone: bool = True
    identity: Identity = Identity.POD
    metrics: tuple[Metric, ...] = ()


def run_task(task: Task) -> RunValues | None:
    """Run it; None if there was no time left to end: of a part of a run nothing is known.

    Raises:
        InvariantViolation: something that must always hold did not, or the second run differs from the first.
    """
    if _is_late(task):
        return None
    begin_s = time.perf_counter()
    try:
        with rare_collections():
            values = _run(task)
            again = _run(task) if task.twice else None
        if again is not None and not (values.stopped or again.stopped) and again.digest != values.digest:
            raise InvariantViolation(f"two runs differ: digests {values.digest[:12]} and {again.digest[:12]}")
    except InvariantViolation as error:
        where = f"seed {task.seed}" if task.is_lone else f"variant {task.variant}, seed {task.seed}"
        raise type(error)(f"{where}: {error.message}", group=error.group, story=error.story) from error.__cause__
    if values.events >= _COLLECT_AFTER:
        gc.collect()
    if values.stopped == TIME_LIMIT:
        return None
    return replace(values, took_s=time.perf_counter() - begin_s)


def _is_late(task: Task) -> bool:
    return task.deadline_s is not None and time.monotonic() > task.deadline_s


def _run(task: Task) -> RunValues:
    watchers = watchers_for(task.checks, task.variant, task.settings)
    limits = RunLimits() if task.deadline_s is None else RunLimits(is_over=lambda: _is_late(task))
    return values_of(_result(task, watchers, limits), task, watchers)


class _Together:
    """The groups that ran together with the last one that was measured: each is measured too where a task asks for it.

    A run that nobody watches and whose length is given goes the same way whichever of its groups is measured.
    """

    of: tuple[int, Identity, tuple[Scenario, ...]] | None = None
    recordings: ClassVar[dict[str, Recording]] = {}


def _result(task: Task, watchers: Mapping[int, Watcher], limits: RunLimits) -> RunResult:
    scenario = task.scenario
    if not scenario.together or scenario.duration_us is None or task.deadline_s is not None or task.twice or watchers:
        return run(scenario, task.seed, observers=tuple(watchers.values()), limits=limits, identity=task.identity)
    of = (task.seed, task.identity, scenario.together)
    if _Together.of == of and (found := _Together.recordings.pop(scenario.group_id, None)) is not None:
        return RunResult(found)
    _Together.of, _Together.recordings = of, {}
    return run(scenario, task.seed, limits=limits, identity=task.identity, others=_Together.recordings)


def _summary(result: RunResult) -> dict[str, float | None]:
    return {name: value for name, value in result.summary().items() if not isinstance(value, str)}


def by_cause(result: RunResult) -> dict[str, float]:
    """Return the unavailable time of each cause, under the names that expectations have for it."""
    parts = {f"unavailable(cause {cause.label})": (f"cause {cause.label}",) for cause in GapCause}
    return {name: float(result.metric("unavailable", filters) or 0) for name, filters in parts.items()}


def values_of(result: RunResult, task: Task, watchers: Mapping[int, Watcher]) -> RunValues:
    """Return what is kept of a run that is over and that these watched."""
    asked = dict.fromkeys([*metric_keys(task.checks, task.variant), *((each.name, each.filters) for each in task.metrics)])
    named = {key_of(Metric(name, filters)): result.metric(name, filters) for name, filters in asked}
    troubles = () if result.recording.is_played else troubles_of(result)
    return RunValues(
        variant=task.variant,
        seed=task.seed,
        digest=result.digest,
        metrics={**_summary(result), **by_cause(result)},
        named=named,
        watched={number: watcher.result(result.end_us, result) for number, watcher in watchers.items()},
        final_assignment=result.final_assignment(),
        longest_gaps=result.longest_gaps(),
        picture=picture_of(result) if task.draws else None,
        stopped=result.stopped,
        events=result.events,
        odd_events=tuple(f"{name} {target} {what}" for _, name, what, target in result.events_marks() if what == "is aborted"),
        left_out=tuple(_left_out(result)),
        writes=result.recording.has_traffic or result.recording.is_played,
        troubles=tuple(each for each in troubles if not each.is_allowed),
        allowed=tuple(each for each in troubles if each.is_allowed),
    )


def _left_out(result: RunResult) -> Iterator[tuple[str, str]]:
    """What never began, each with why: events whose ``when`` held at none of their times, and a nemesis that drew nothing."""
    history = result.recording.history
    marks = history.events
    begun = {mark.of for mark in marks if mark.what is EventStage.BEGINS}
    out = dict.fromkeys(mark.of for mark in marks if mark.what is EventStage.LEFT_OUT)
    never = (f"event {name} {target} happens" for of, name, target in out if (of, name, target) not in begun)
    yield from ((check, "its `when` held in no seed") for check in dict.fromkeys(never))
    if result.recording.scenario.nemesis is not None and not history.drawn:
        yield "the nemesis strikes", "it drew no fault with any seed"


_WAITING_PER_PROCESS = 2
_KILLED = (
    "a process that runs scenarios was killed, as it happens where memory runs out; with a smaller --jobs less of it is needed"
)


@frozen
class BatchOptions:
    """How to run. ``twice``: each run once more, to compare; ``pictures``: draw each variant, where it is run with one
    seed only; of several, `kgctl.simulate.batch.plan` draws the worst."""

    twice: bool = False
    pictures: bool = False
    identity: Identity = Identity.POD


def tasks_of(loaded: LoadedFile, seeds: Sequence[int], options: BatchOptions, deadline_s: float | None) -> list[Task]:
    """A task for each seed of each variant: all variants of the first seed first, so that a stopped run has seen each."""
    draws = options.pictures and len(seeds) == 1
    return [
        replace(task_of(loaded, variant, seed, options.identity), twice=options.twice, draws=draws, deadline_s=deadline_s)
        for seed in seeds
        for variant in loaded.variants
    ]


def task_of(loaded: LoadedFile, variant: Variant, seed: int, identity: Identity = Identity.POD) -> Task:
    """A run of one variant of a file that is held against all that the file expects."""
    return Task(
        variant=variant.name,
        scenario=variant.scenario,
        settings=variant.settings,
        checks=loaded.checks,
        seed=seed,
        is_lone=len(loaded.variant_names) == 1,
        identity=identity,
    )


def run_all(tasks: Sequence[Task], jobs: int, on_done: Callable[[RunValues | None], None]) -> list[RunValues]:
    """Run them all; the results are in the order of the tasks, whatever the number of processes.

    Raises:
        InvariantViolation: a run broke one, or two runs of one seed differ.
        KgctlError: one of the processes was killed.
    """
    if jobs <= 1 or len(tasks) <= 1:
        found = []
        with _what_is_there_stays():
            for task in tasks:
                values = run_task(task)
                on_done(values)
                found.append(values)
        return [values for values in found if values is not None]
    try:
        with _pool(min(jobs, len(tasks))) as pool:
            return _spread(tasks, pool, jobs, on_done)
    except BrokenProcessPool:
        raise KgctlError(_KILLED, code="WORKER_KILLED") from None


@contextmanager
def _what_is_there_stays() -> Iterator[None]:
    """The search for finished runs leaves out what was there before the first, which is all of kgctl."""
    is_outermost = not gc.get_freeze_count()
    if is_outermost:
        gc.freeze()
    try:
        yield
    finally:
        if is_outermost:
            gc.unfreeze()


def _begin_work() -> None:
    from kgctl.workers import become_worker

    become_worker()
    gc.freeze()


@contextmanager
def _pool(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that are not waited for when something goes wrong."""
    from kgctl.workers import WorkerPool

    pool = WorkerPool(jobs, initializer=_begin_work)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()


def _spread(
    tasks: Sequence[Task], pool: ProcessPoolExecutor, jobs: int, on_done: Callable[[RunValues | None], None]
) -> list[RunValues]:
    """Hands out a few tasks at a time: a thousand scenarios need not be on their way at once."""
    found: list[RunValues | None] = [None] * len(tasks)
    waiting: dict[Future[RunValues | None], int] = {}
    following = 0
    while following < len(tasks) or waiting:
        while following < len(tasks) and len(waiting) < jobs * _WAITING_PER_PROCESS:
            waiting[pool.submit(run_task, tasks[following])] = following
            following += 1
        done, _ = wait(waiting, return_when=FIRST_COMPLETED)
        for future in sorted(done, key=lambda each: waiting[each]):
            number = waiting.pop(future)
            found[number] = values = future.result()
            on_done(values)
    return [values for values in found if values is not None]


def worst_seed(outcome: Outcome, variant: str) -> tuple[int, str]:
    """Return the seed of a variant to look at, and why that one; "" where it is the only one."""
    if len(outcome.seeds) == 1:
        return outcome.seeds[0], ""
    broken = [each for each in outcome.expectations if each.variant == variant and not each.passed]
    if broken:
        first = min(broken, key=lambda each: each.severity != "fail")
        return first.seed, f"{'fails' if first.severity == 'fail' else 'warns'}: {first.check}"
    spread = outcome.variants[variant].metrics.get("unavailable")
    if spread is None:
        return outcome.seeds[0], "the first"
    return outcome.seeds[spread.per_seed.index(spread.maximum)], f"most unavailable of {len(outcome.seeds)} seeds"


def in_order_of_interest(outcome: Outcome) -> list[str]:
    """The variants, those first of which an expectation failed."""
    failed = {each.variant for each in outcome.failures}
    return sorted(outcome.variants, key=lambda name: name not in failed)


def with_worst(
    outcome: Outcome,
    loaded: LoadedFile,
    *,
    pictures: bool,
    stories: bool,
    ablations: bool = False,
    identity: Identity = Identity.POD,
    jobs: int = 1,
    on_done: Callable[[RunValues | None], None] = lambda _: None,
) -> Outcome:
    """The outcome with what is worth looking at: for each variant the picture of its worst seed, and the story of the worst
    moment in it, where an expectation failed, or of the first variant where none did.

    ``ablations``: with what each cause was worth, which takes as many runs as there are causes.
    """
    if not outcome.seeds:
        return outcome
    chosen = {name: worst_seed(outcome, name) for name in outcome.variants}
    found = dict(outcome.variants)
    if pictures:
        without = [each for each in loaded.variants if each.name in found and found[each.name].picture is None]
        tasks = [replace(task_of(loaded, each, chosen[each.name][0], identity), checks=(), draws=True) for each in without]
        for values in run_all(tasks, jobs, on_done):
            assert values.picture is not None
            picture = replace(values.picture, chosen=chosen[values.variant][1])
            found[values.variant] = replace(found[values.variant], picture=picture)
    if stories:
        from kgctl.simulate.batch.explain import checks_of, explain, explanation_lines

        failed = {each.variant for each in outcome.failures if each in outcome.expectations}
        for name in failed or in_order_of_interest(outcome)[:1]:
            variant = next(variant for variant in loaded.variants if variant.name == name)
            seed, why = chosen[name]
            asked = checks_of(loaded, name)
            found_out = explain(variant.scenario, seed, ablates=ablations, checks=asked, settings=variant.settings)
            lines = explanation_lines(found_out, ablates=ablations, lists_parts=False)
            title = f"seed {seed}" if [*outcome.variants] == ["default"] else f"{name}, seed {seed}"
            found[name] = replace(
                found[name], why=(f"{title} ({why}): {lines[0]}" if why else f"{title}: {lines[0]}", *lines[1:])
            )
    return replace(outcome, variants=found)
