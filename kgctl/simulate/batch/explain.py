"""Why a run came out as it did: its longest gap told as a story, and what each of its causes was worth.

The story is read from the recording and the event log. What a cause was worth is measured: the same seed once more without it.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace

from kgctl.model.values import frozen_in_order
from kgctl.simulate.batch.details import details
from kgctl.simulate.batch.reasons import RULES, Origin, ReasonContext, meanwhile, origin_of, under_way
from kgctl.simulate.batch.variations import FEW_PODS, name_of, variations, without_drawn
from kgctl.simulate.metrics.result import RunResult, run
from kgctl.simulate.metrics.troubles import troubles_of
from kgctl.simulate.recording.owners import NOBODY
from kgctl.simulate.recording.trace import GroupChanged, Happened, PodChanged, Removed, TraceEvent
from kgctl.simulate.report.outcome import duration, show
from kgctl.simulate.scenario.checks import NO_FILTERS, Check, CheckKind, Filters, RunSource
from kgctl.simulate.scenario.expressions import Metric, evaluate, key_of, metrics_of
from kgctl.simulate.scenario.group_types import type_of_group
from kgctl.simulate.scenario.load import LoadedFile
from kgctl.simulate.scenario.model import Scenario
from kgctl.simulate.scenario.vocabulary import EventStage, GapCause, PodChange

_BEFORE_US = 600_000_000
_MOST_LINES = 10
_SHOWN_SHARE = 50  # a piece is told that takes at least the 50th part of the gap


@frozen_in_order
class Piece:
    """A part of a gap with one cause. Times are from the end of the warm-up. ``rule``: what it waited for, "" if nothing says."""

    from_us: int
    to_us: int
    cause: str
    meaning: str
    rule: str


@frozen_in_order
class Story:
    """The longest gap of a run. ``before``, ``after``: who consumed the partition; None: nobody. ``steps``: (time, what).

    ``main_cause``: what most of the gap is due to. ``origin``: what set off the rebalance that it lies in.
    """

    partition: str
    from_us: int
    to_us: int
    before: str | None
    after: str | None
    main_cause: str
    pieces: tuple[Piece, ...]
    steps: tuple[tuple[int, str], ...]
    origin: Origin = field(default_factory=Origin)


@frozen_in_order
class Ablation:
    """The same run with one thing left out; the differences say what that was worth (above 0: it cost so much)."""

    without: str
    max_gap: float
    unavailable: float
    max_gap_worth: float
    unavailable_worth: float
    asked: Mapping[str, tuple[float | None, float | None]] = field(default_factory=dict)
    """Metric that an expectation which fails asks about -> its value in the run, and in this one."""


@frozen_in_order
class Part:
    """The time from the beginning of an event, or of a step of its rollout, to the next one's, with whatever it led to.

    ``event`` "": before the first one. ``step`` 0: all of the event; the steps of an event follow it. ``by_cause``:
    partition-seconds without a consumer.
    """

    event: str
    step: int
    from_us: int
    to_us: int
    unavailable: float
    by_cause: Mapping[str, float]


@frozen_in_order
class Explanation:
    """One run explained. ``by_cause``: partition-seconds without a consumer; ``story`` None: there was no gap.

    ``fails``: the expectations that do not hold in it, each with the values of what it asks about; ``details``: what these
    come from where that is no gap (who is given more than it processes, what set each rebalance off), in lines.
    ``by_part``: the same by event and by step, in the order of time. ``ablations``: empty where nothing was to be left out.
    ``troubles``: what went wrong in it though nobody asked; ``allowed``: what did so and is let through.
    """

    max_gap: float
    unavailable: float
    by_cause: Mapping[str, float]
    story: Story | None
    ablations: tuple[Ablation, ...]
    by_part: tuple[Part, ...] = ()
    fails: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    details: tuple[str, ...] = ()
    troubles: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()


class _Log:
    """An observer that keeps what a story is made of."""

    def __init__(self) -> None:
        self.events: list[TraceEvent] = []

    def on_trace(self, event: TraceEvent) -> None:
        if isinstance(event, PodChanged | GroupChanged | Removed | Happened):
            self.events.append(event)

    def on_step(self, at_us: int, metrics: object) -> None:
        """Do nothing: the recording says how things stand."""


def explain(
    scenario: Scenario,
    seed: int,
    *,
    ablates: bool = True,
    checks: Sequence[Check] = (),
    settings: Mapping[str, float | str] | None = None,
) -> Explanation:
    """Run a variant with a seed, and (``ablates``) once more for each thing that can be left out.

    ``checks``: expectations of the finished run, about this variant alone, with the ``settings`` that they may name.

    Raises:
        UsageError, InvariantViolation: as `kgctl.simulate.engine.run.run`.
    """
    log = _Log()
    result = run(scenario, seed, observers=(log,))
    max_gap, unavailable = _costs(result)
    source = RunSource(result, settings or {})
    are_asked = [check for check in checks if check.when is None or evaluate(check.when, source)]
    failing = [check for check in are_asked if not evaluate(check.node, source)]
    asked = {key_of(metric): metric for check in failing for metric in metrics_of(check.node)}
    found = troubles_of(result)
    return Explanation(
        max_gap=max_gap,
        unavailable=unavailable,
        by_cause=_by_cause(result),
        story=_story(result, log.events),
        ablations=tuple(_ablations(scenario, seed, result, asked)) if ablates else (),
        by_part=tuple(_parts(result)),
        troubles=tuple(each.text for each in found if not each.is_allowed),
        allowed=tuple(each.text for each in found if each.is_allowed),
        details=tuple(details(result, log.events, {metric.name for metric in asked.values()})),
        fails={check.shown: {key_of(each): _number(result, each) for each in metrics_of(check.node)} for check in failing},
    )


def checks_of(loaded: LoadedFile, variant: str) -> tuple[Check, ...]:
    """Return the file's expectations of a finished run that ask about this variant alone."""
    mine = (None, variant)
    return tuple(
        check
        for check in loaded.checks
        if check.kind is CheckKind.CHECK
        and all(metric.variant in mine for metric in metrics_of(check.node))
        and set(check.named_variants) <= {variant}
        and (check.variants is None or variant in check.variants)
    )


def _number(result: RunResult, metric: Metric) -> float | None:
    value = result.metrics.metric(metric.name, metric.filters)
    return value if isinstance(value, int | float) else None


def _costs(result: RunResult) -> tuple[float, float]:
    return tuple(float(result.metric(name) or 0) for name in ("max_gap", "unavailable"))  # type: ignore[return-value]


def _by_cause(result: RunResult) -> dict[str, float]:
    found = {cause.label: float(result.metric("unavailable", (f"cause {cause.label}",)) or 0) for cause in GapCause}
    return {label: value for label, value in sorted(found.items(), key=lambda entry: -entry[1]) if value}


def _parts(result: RunResult) -> Iterator[Part]:
    """Give what each event and each step of it came to. Beginnings of one event that follow one another are one part."""
    recording = result.recording
    begun = [mark for mark in recording.history.events if mark.what is EventStage.BEGINS and mark.at_us >= recording.start_us]
    firsts = begun[:1] + [mark for before, mark in itertools.pairwise(begun) if mark.event != before.event]
    names = ["", *(mark.event for mark in firsts)]
    times = [recording.start_us, *(mark.at_us for mark in firsts), recording.end_us]
    for name, (first, last) in zip(names, itertools.pairwise(times), strict=True):
        yield _part(result, name, 0, first, last)
        steps = [mark.at_us for mark in recording.history.steps if mark.event == name and first <= mark.at_us < last]
        if len(steps) > 1:
            for step, (begins, ends) in enumerate(itertools.pairwise([first, *steps[1:], last]), 1):
                yield _part(result, name, step, begins, ends)


def _part(result: RunResult, event: str, step: int, first: int, last: int) -> Part:
    start_us = result.recording.start_us
    gaps = result.metrics.measured.gaps(Filters(after_us=first - start_us, before_us=last - start_us))
    lengths: Counter[str] = Counter()
    for gap in gaps:
        for cause, length_us in gap.causes:
            lengths[cause.label] += length_us
    by_cause = {label: length_us / 1e6 for label, length_us in lengths.most_common() if length_us}
    return Part(event, step, first - start_us, last - start_us, sum(by_cause.values()), by_cause)


# --- the story


def _story(result: RunResult, events: Sequence[TraceEvent]) -> Story | None:
    gaps = result.metrics.measured.gaps(NO_FILTERS)
    if not gaps:
        return None
    gap = max(gaps, key=lambda each: (each.length_us, -each.from_us))
    recording = result.recording
    start_us = recording.start_us
    pods = recording.history.pods
    pieces, at_us = [], gap.from_us
    for cause, length_us in gap.causes:
        first, last = at_us - start_us, at_us + length_us - start_us
        look = ReasonContext(result, gap, first, last, events)
        rule = (RULES[cause](look) if cause in RULES else "") or meanwhile(look)
        pieces.append(Piece(first, last, cause.label, cause.meaning, rule))
        at_us += length_us
    before = None if gap.before == NOBODY else pods[gap.before].name
    after = None if gap.after == NOBODY else pods[gap.after].name
    from_us, to_us = gap.from_us - start_us, gap.to_us - start_us
    origin = origin_of(ReasonContext(result, gap, from_us, to_us, events))
    partition = str(recording.partitions.names[gap.partition])
    story = Story(partition, from_us, to_us, before, after, _main_cause(pieces), tuple(pieces), (), origin)
    steps = _steps(events, from_us, to_us, frozenset(filter(None, (before, after, origin.pod))))
    return replace(story, steps=tuple(_most_telling(steps, _MOST_LINES - len(_story_lines(story)))))


def _main_cause(pieces: Sequence[Piece]) -> str:
    lengths: Counter[str] = Counter()
    for piece in pieces:
        lengths[piece.cause] += piece.to_us - piece.from_us
    return max(lengths, key=lambda cause: lengths[cause])


def _steps(events: Sequence[TraceEvent], from_us: int, to_us: int, pods: frozenset[str]) -> list[tuple[int, int, str]]:
    """What led there: the scenario's events and the group's states before and in the gap, and what became of its owners.

    (rank, time, what): what goes on or has happened to the owners in the gap tells most, what was before it least.
    """
    going = {(each.at_us, each.event, each.target) for each in under_way(events, from_us)}
    found: list[tuple[int, int, str]] = []
    for event in events:
        at_us = event.at_us
        if not from_us - _BEFORE_US <= at_us <= to_us:
            continue
        is_late = at_us >= from_us
        if isinstance(event, Happened):
            is_on = event.what is EventStage.BEGINS and (is_late or (at_us, event.event, event.target) in going)
            rank = -1 if at_us == from_us else 0 if is_on else 2
            found.append((rank, at_us, f"event {event.event} {event.target} {event.what}"))
        elif isinstance(event, PodChanged) and event.pod in pods:
            what = f"{event.pod}: {event.what}{f' ({event.detail})' if event.detail else ''}"
            found.append((1 if event.what not in (PodChange.BOOT, PodChange.START) else 3 if at_us >= 0 else 6, at_us, what))
        elif isinstance(event, Removed) and (is_late or event.pod in pods):
            found.append((1, at_us, f"the coordinator takes {event.pod} out: {event.why}"))
        elif isinstance(event, GroupChanged) and is_late:
            what = f"the group is {event.state}, generation {event.generation}, {event.members} members"
            found.append((4 if event.state == "Stable" else 5, at_us, what))
    return found


def _most_telling(steps: list[tuple[int, int, str]], lines: int) -> list[tuple[int, str]]:
    """Return the steps of so many times that tell most, in the order of time; of those that tell as much, the last."""
    ranks: dict[int, int] = {}
    for rank, at_us, _ in steps:
        ranks[at_us] = min(rank, ranks.get(at_us, rank))
    kept = sorted(ranks, key=lambda at_us: (ranks[at_us], -at_us))[:lines]
    return [(at_us, what) for _, at_us, what in steps if at_us in kept]


# --- what each cause was worth


def _ablations(scenario: Scenario, seed: int, result: RunResult, asked: Mapping[str, Metric]) -> Iterator[Ablation]:
    max_gap, unavailable = _costs(result)
    others = {name: metric for name, metric in asked.items() if metric.name not in ("max_gap", "unavailable")}
    found = []
    recording = result.recording
    was_empty = any(point.state == "Empty" and point.at_us >= recording.start_us for point in recording.history.group)
    names = {metric.name for metric in asked.values()}
    for name, variation in itertools.chain(variations(scenario, asked=names, was_empty=was_empty), without_drawn(result)):
        if not type_of_group(variation).may_have(variation):
            continue
        without = run(variation, seed)
        gap, total = _costs(without)
        values = {each: (_number(result, metric), _number(without, metric)) for each, metric in others.items()}
        found.append(Ablation(name, gap, total, max_gap - gap, unavailable - total, values))
    planned = {FEW_PODS, *(name_of(index, event) for index, event in enumerate(scenario.events) if event.is_planned)}
    return iter(sorted(found, key=_ranks(found, planned)))


_NEARLY = 0.8
_CHANCE = 0.05
"""What is worth less than this part of the most is taken for chance, and ranked by the unavailable time."""


def _ranks(found: Sequence[Ablation], planned: Collection[str]) -> Callable[[Ablation], tuple[float, ...]]:
    """By what the failing expectations ask about, where that is no gap; then by the gap. What would make it worse comes last."""

    def worth(each: Ablation) -> float:
        changes = (abs(was - now) for was, now in each.asked.values() if was is not None and now is not None)
        return next(changes, each.max_gap_worth)

    most = max(map(worth, found), default=0.0)
    longest = max((each.max_gap + each.max_gap_worth for each in found), default=0.0)

    def rank(each: Ablation) -> tuple[float, ...]:
        own = worth(each)
        own = own if abs(own) >= _CHANCE * most else 0
        is_top = own >= _NEARLY * most
        gap = each.max_gap_worth if abs(each.max_gap_worth) >= _CHANCE * longest else 0
        return -is_top, is_top and each.without in planned, -own, -gap, -each.unavailable_worth

    return rank


# --- in words


def explanation_lines(found: Explanation, *, ablates: bool = True, lists_parts: bool = True) -> list[str]:
    """The whole explanation as people read it, its figures first; ``ablates``: with what each cause was worth.

    ``lists_parts``: with a line for each event and step; without, only the one that cost most.
    """
    lines = [
        f"longest gap {show('max_gap', found.max_gap)}, unavailable {show('unavailable', found.unavailable)} partition-seconds"
    ]
    for text, values in found.fails.items():
        told = ", ".join(f"{name} is {'unknown' if value is None else _shown(name, value)}" for name, value in values.items())
        lines.append(f"fails: {text}: {told}" if told else f"fails: {text}")
    lines += found.details
    lines += [] if found.story is None else _story_lines(found.story)
    if found.by_cause:
        parts = (f"{cause} {show('unavailable', value)}" for cause, value in found.by_cause.items())
        lines.append(f"unavailable by cause, in partition-seconds: {', '.join(parts)}")
        lines += _part_lines(found) if lists_parts else _costliest_part(found)
    return lines + _worth_lines(found.ablations) if ablates else lines


def _costliest_part(found: Explanation) -> list[str]:
    parts = [part for part in found.by_part if part.step] or [part for part in found.by_part if part.event]
    if len(parts) < 2:
        return []
    most = max(parts, key=lambda part: part.unavailable)
    name = f"{most.event}, step {most.step}" if most.step else most.event
    share = f"{show('unavailable', most.unavailable)} of {show('unavailable', found.unavailable)}"
    return [f"most of it in one of {len(parts)} parts: {name}, from {duration(most.from_us)}: {share}"]


_MOST_PARTS = 16


def _part_lines(found: Explanation) -> list[str]:
    """The table by event and step; nothing where there is one event at most. Of many parts those that cost most."""
    told = [part for part in found.by_part if part.unavailable]
    if len({part.event for part in found.by_part if part.event}) + sum(bool(part.step) for part in found.by_part) < 2:
        return []
    costly = sorted(told, key=lambda part: -part.unavailable)[:_MOST_PARTS]
    shown = [part for part in told if part in costly]
    heads = ["by event and step", "from", "all", *found.by_cause]
    rows = [
        [
            f"  step {part.step}" if part.step else part.event or "before the first event",
            duration(part.from_us),
            show("unavailable", part.unavailable),
            *(show("unavailable", part.by_cause.get(cause, 0)) for cause in found.by_cause),
        ]
        for part in shown
    ]
    first, *others = ([len(cell) for cell in column] for column in zip(heads, *rows, strict=True))
    form = "  ".join([f"{{:<{max(first)}}}", *(f"{{:>{max(lengths)}}}" for lengths in others)])
    lines = [form.format(*row) for row in (heads, *rows)]
    left = len(told) - len(shown)
    return lines + ([f"and {left} parts that cost less"] if left else [])


def _story_lines(story: Story) -> list[str]:
    before = f"after {story.before}" if story.before else "from its beginning"
    after = f"then {story.after} took it" if story.after else "to the end of the run"
    length = duration(story.to_us - story.from_us)
    lines = [
        f"{story.partition} had no consumer for {length}, {duration(story.from_us)} to {duration(story.to_us)}, {before}; {after}"
    ]
    longest = max(story.pieces, key=lambda piece: (piece.cause == story.main_cause, piece.to_us - piece.from_us))
    length_us = sum(piece.to_us - piece.from_us for piece in story.pieces if piece.cause == story.main_cause)
    lines.append(f"mainly {story.main_cause}, {duration(length_us)} of it: {longest.rule or longest.meaning}")
    told = [piece for piece in story.pieces if (piece.to_us - piece.from_us) * _SHOWN_SHARE >= story.to_us - story.from_us]
    for piece in told if len(told) > 1 else ():
        rule = f"; {piece.rule}" if piece.rule and piece is not longest else ""
        lines.append(f"  {duration(piece.from_us)} to {duration(piece.to_us)}: {piece.cause}: {piece.meaning}{rule}")
    if story.origin.text:
        lines.append(story.origin.text)
    lines.append("what led there:")
    for at_us, steps in itertools.groupby(story.steps, key=lambda step: step[0]):
        lines.append(f"  {duration(at_us)}: {'; '.join(what for _, what in steps)}")
    return lines


def _worth_lines(ablations: tuple[Ablation, ...]) -> list[str]:
    told = [
        each for each in ablations if each.max_gap_worth or each.unavailable_worth or any(a != b for a, b in each.asked.values())
    ]
    if not told:
        return ["nothing that can be left out alone changes the longest gap or the unavailable time"]
    lines = ["the same seed without one thing (what it was worth in brackets; heartbeats fall otherwise then, which is chance):"]
    width = max(len(each.without) for each in told)
    for each in told:
        gap = f"longest gap {show('max_gap', each.max_gap)} ({_signed('max_gap', each.max_gap_worth)})"
        total = f"unavailable {show('unavailable', each.unavailable)} ({_signed('unavailable', each.unavailable_worth)})"
        others = "".join(f"{name} {'unknown' if now is None else _shown(name, now)}, " for name, (_, now) in each.asked.items())
        lines.append(f"  {each.without:<{width}}  {others}{gap}, {total}")
    return lines


def _shown(name: str, value: float) -> str:
    return show(name.partition("(")[0], value)


def _signed(metric: str, worth: float) -> str:
    return f"-{show(metric, worth)}" if worth > 0 else f"+{show(metric, -worth)}" if worth < 0 else "the same"
