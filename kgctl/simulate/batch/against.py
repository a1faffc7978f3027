"""A scenario beside the real thing: played with real clients, or made of a recorded group and held against its record.

A recorded group's scenario has the members that came and went, at the times at which they did. What the records do not tell (how
long the application pauses between polls, its heartbeats, the network) is searched: one setting after the other, each over a few
values, with the same seeds, until no change of one of them comes nearer.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from kgctl.model.coordinator_records import CoordinatorRecord
from kgctl.model.values import frozen, frozen_in_order
from kgctl.simulate.against.fleet import ClientKind
from kgctl.simulate.against.play import ClusterPort, play
from kgctl.simulate.against.playable import is_measured, obstacles, unknown_to
from kgctl.simulate.batch.judge import RunValues, watchers_for
from kgctl.simulate.batch.outcome import outcome_of
from kgctl.simulate.batch.plan import Task, task_of, values_of
from kgctl.simulate.metrics.result import RunResult, run
from kgctl.simulate.report import outcome as shown
from kgctl.simulate.report.outcome import Outcome
from kgctl.simulate.scenario.fields import UNTIL_STABLE, changed
from kgctl.simulate.scenario.kinds.pods import Crash, Start, Stop
from kgctl.simulate.scenario.load import DEFAULT, LoadedFile, Variant, load
from kgctl.simulate.scenario.metric import metric_kinds
from kgctl.simulate.scenario.model import Scenario
from kgctl.simulate.scenario.observed import profile_of, stem_of
from kgctl.simulate.scenario.quantities import format_duration
from kgctl.simulate.scenario.sources import read_source
from kgctl.yaml_files import Problem

TAIL_US = 120_000_000
"""About how long a play without a duration goes on after its last event, for what is told before it begins."""


@frozen_in_order
class PlayStage:
    """Where a scenario is played, and with what. ``label``: the cluster, as the user knows it. ``plays``: of each variant."""

    kind: ClientKind
    connection: Mapping[str, str]
    cluster: ClusterPort
    label: str
    plays: int = 1


def as_played(loaded: LoadedFile, profile: str) -> LoadedFile:
    """The file with every member a client of this family, so that what is simulated is what is played."""
    return replace(loaded, variants=tuple(_as_played(variant, profile) for variant in loaded.variants))


def _as_played(variant: Variant, profile: str) -> Variant:
    scenario = variant.scenario
    members = tuple(changed(each, client=profile) for each in scenario.members)
    warmup_us = _WARMUP_US if scenario.warmup_us == UNTIL_STABLE else scenario.warmup_us
    return replace(variant, scenario=changed(scenario, members=members, warmup_us=warmup_us))


def problems_of(loaded: LoadedFile, profile: str) -> list[Problem]:
    """What keeps the file from being played with a client of this family, variant by variant."""
    found: list[Problem] = []
    for variant in loaded.variants:
        name = "" if loaded.variant_names == (DEFAULT,) else f"variant {variant.name}: "
        why = (*obstacles(variant.scenario), *unknown_to(profile, variant.scenario))
        found += [Problem(variant.tree.location(()), (), f"{name}{each}") for each in why]
    return found


def length_us(loaded: LoadedFile, plays: int) -> int:
    """About how long all plays take, one after the other."""
    total = 0
    for variant in loaded.variants:
        scenario = variant.scenario
        last_us = max((event.at_us + event.every_us * (event.times - 1) for event in scenario.events), default=0)
        total += scenario.warmup_us + (last_us + TAIL_US if scenario.duration_us is None else scenario.duration_us)
    return total * plays


def play_all(
    loaded: LoadedFile, stage: PlayStage, *, draws: bool, notice: Callable[[str], None], on_done: Callable[[RunValues], None]
) -> list[RunValues]:
    """Play every variant, ``plays`` times. Raises as `kgctl.simulate.against.play.play`."""
    checks = tuple(check for check in loaded.checks if is_measured(check))
    found = []
    for number in range(1, stage.plays + 1):
        for variant in loaded.variants:
            task = replace(task_of(loaded, variant, number), checks=checks, draws=draws and number == 1)
            found.append(_play(task, stage, notice))
            on_done(found[-1])
    return found


def _play(task: Task, stage: PlayStage, notice: Callable[[str], None]) -> RunValues:
    watchers = watchers_for(task.checks, task.variant, task.settings)
    recording = play(
        task.scenario,
        task.seed,
        kinds=(stage.kind,),
        connection=stage.connection,
        cluster=stage.cluster,
        observers=tuple(watchers.values()),
        notice=notice,
    )
    values = values_of(RunResult(recording), task, watchers)
    playable = {name for name, kind in metric_kinds().items() if kind.is_playable}
    return replace(values, metrics={name: value for name, value in values.metrics.items() if name in playable})


def with_measured(outcome: Outcome, loaded: LoadedFile, stage: PlayStage, values: Sequence[RunValues]) -> Outcome:
    """The outcome of the simulation with what was measured beside it."""
    asked = replace(loaded, checks=tuple(check for check in loaded.checks if is_measured(check)))
    left_out = [check.shown for check in loaded.checks if not is_measured(check)]
    real = outcome_of(asked, list(range(1, stage.plays + 1)), values)
    of_groups = {name: kind for name, kind in metric_kinds().items() if kind.is_summary and kind.about.is_playable}
    unsaid = [name for name, kind in of_groups.items() if not kind.is_playable]
    told = f"not measured, as real clients cannot say it: {', '.join(unsaid)}"
    notes = (
        *real.notes,
        told,
        *([f"not asked of the play, which does not measure it: {'; '.join(left_out)}"] if left_out else []),
    )
    measured = shown.Measured(
        cluster=stage.label,
        client=stage.kind.profile,
        runs=stage.plays,
        variants={name: replace(variant, assumptions={}) for name, variant in real.variants.items()},
        expectations=tuple(replace(each, replay="") for each in real.expectations),
        notes=notes,
    )
    return replace(outcome, measured=measured)


Values = Mapping[str, float | None]
Measure = Callable[[Sequence[tuple[int, CoordinatorRecord]], int, int], Values]
"""What to make of a log: (time in ms, record), from when, before when."""

SEARCH_SEEDS = (1, 2, 3)
_ROUNDS = 2
_BETTER = 0.005
"""So much nearer on the scale of `distance` is nearer; less is chance."""
_WARMUP_US = 60_000_000
_NOTICED_US = 1_500_000
"""Before the end of a classic group's join phase its cause lies so long: half a heartbeat's period, in which members notice."""
_EPOCH_US = 100_000
MOST_EVENTS = 500
_SESSION_MS, _HEARTBEAT_MS = 45_000, 3_000


@frozen_in_order
class PodStay:
    """Of a pod, from the window's begin. ``begin_us`` None: it was there. ``end_us`` None: it stays."""

    begin_us: int | None
    end_us: int | None
    is_crash: bool = False


@frozen_in_order
class RecordedPod:
    """``session_ms`` is None where the records do not tell it."""

    client_id: str
    is_static: bool
    session_ms: int | None
    max_poll_ms: int | None
    stays: tuple[PodStay, ...]


@frozen
class RecordedGroup:
    """What was recorded of a group: enough to play it again.

    ``written``: records a second by topic. ``client``: the profile of all members; None: by their client ids.
    """

    group: str
    is_consumer: bool
    assignor: str | None
    topics: Mapping[str, int]
    pods: Sequence[RecordedPod]
    commit_ms: int | None
    written: Mapping[str, float]
    length_us: int
    client: str | None = None


@frozen_in_order
class PlaySettings:
    """In milliseconds. ``pause``: of the poll loop, at most; ``latency``: of one direction. ``session`` is not searched.

    Whether a member crashed can be inferred only where its session time-out is known; where it is not nothing hangs on it.
    """

    pause: int = 0
    heartbeat: int = _HEARTBEAT_MS
    session: int = _SESSION_MS
    latency: int = 1


_CHOICES: Mapping[str, tuple[int, ...]] = {
    "heartbeat": (1_000, 3_000, 5_000, 10_000),
    "pause": (0, 100, 500, 1_000, 3_000, 10_000),
    "latency": (1, 5, 20, 50, 100),
}


@frozen_in_order
class Trial:
    """What some seeds gave: by name the lowest, the median and the highest; ``distance`` from what was recorded."""

    settings: PlaySettings
    ranges: Mapping[str, tuple[float, float, float]]
    distance: float


@dataclass
class Search:
    """Trials of a story, each settings once. ``runs`` counts simulations."""

    story: RecordedGroup
    recorded: Values
    measure: Measure
    runs: int = 0
    _known: dict[tuple[PlaySettings, tuple[int, ...]], Trial] = field(default_factory=dict)

    def tried(self, settings: PlaySettings, seeds: Sequence[int]) -> Trial:
        """Run the story with these settings and seeds, once for all who ask."""
        key = settings, tuple(seeds)
        if key not in self._known:
            scenario = scenario_of(document(self.story, settings))
            values = [self._run(scenario, seed) for seed in seeds]
            ranges = _ranges(values)
            self._known[key] = Trial(settings, ranges, distance(self.recorded, ranges))
        return self._known[key]

    def best(self, on_trial: Callable[[Trial], object] = lambda _: None) -> Trial:
        """The nearest that the search finds; as `first` where nothing is nearer."""
        now = self.tried(first(self.story), SEARCH_SEEDS)
        for _ in range(_ROUNDS):
            before = now.settings
            for name, values in _CHOICES.items():
                for value in values:
                    settings = replace(now.settings, **{name: value})
                    if settings.heartbeat * 3 > settings.session:
                        continue
                    trial = self.tried(settings, SEARCH_SEEDS)
                    on_trial(trial)
                    now = trial if trial.distance < now.distance - _BETTER else now
            if now.settings == before:
                break
        return now

    def _run(self, scenario: Scenario, seed: int) -> Values:
        self.runs += 1
        found = run(scenario, seed, keeps_records=True, keeps_all_commits=True)
        timed = [(at_us // 1000, each.record) for at_us, each in found.records() if isinstance(each.record, CoordinatorRecord)]
        begin_ms = found.recording.start_us // 1000
        return self.measure(timed, begin_ms, begin_ms + self.story.length_us // 1000)


def first(story: RecordedGroup) -> PlaySettings:
    """Where the search begins: what the records tell, and else the defaults."""
    session = _known_session(story) or _SESSION_MS
    return PlaySettings(session=session, heartbeat=min(_HEARTBEAT_MS, session // 3))


def _known_session(story: RecordedGroup) -> int | None:
    return max((pod.session_ms for pod in story.pods if pod.session_ms is not None), default=None)


def distance(recorded: Values, ranges: Mapping[str, tuple[float, float, float]]) -> float:
    """How far medians are from what was recorded: the mean over what both tell, 0 for the same and 1 for nothing like it."""
    both = [(value, ranges[name][1]) for name, value in recorded.items() if value is not None and name in ranges]
    parts = [abs(a - b) / (abs(a) + abs(b) + 1) for a, b in both]  # 1: a second, or one of them, more or less is little
    return sum(parts) / len(parts) if parts else 1.0


def _ranges(values: Sequence[Values]) -> dict[str, tuple[float, float, float]]:
    found = {}
    for name in values[0]:
        known = [value for each in values if (value := each[name]) is not None]
        if known:
            found[name] = (min(known), float(median(known)), max(known))
    return found


def scenario_of(found: Mapping[str, Any]) -> Scenario:
    """The one variant of a scenario document. Raises as `kgctl.simulate.scenario.load.load`."""
    return load(read_source("-", io.StringIO(json.dumps(found)))).variants[0].scenario


def document(story: RecordedGroup, settings: PlaySettings) -> dict[str, Any]:
    """The scenario file's content."""
    sets = _sets(story.pods)
    cluster: dict[str, Any] = {"network": {"latency": _ms(settings.latency)}}
    if story.is_consumer:
        names = {"session.timeout.ms": settings.session, "heartbeat.interval.ms": settings.heartbeat}
        limits = ("", "min.", "max.")
        cluster["config"] = {f"group.consumer.{limit}{name}": value for name, value in names.items() for limit in limits}
    rate = sum(story.written.values()) * 2 / max(len(story.pods), 1)
    return {
        "kgctl": 1,
        "name": f"{story.group}-as-recorded",
        "question": f"Does the simulation of {story.group} come out as its history says?",
        "topics": {name: {"partitions": count} for name, count in story.topics.items()},
        "cluster": cluster,
        "group": {"id": story.group, "config": _config(story, settings)},
        "members": {
            name: _member_set(pods, is_there=is_there, settings=settings, story=story, rate=rate)
            for name, (is_there, pods) in sets.items()
        },
        **({"traffic": {name: f"{max(rate, 0.1):.1f}/s" for name, rate in story.written.items()}} if story.written else {}),
        "warmup": format_duration(_WARMUP_US),
        "duration": format_duration(story.length_us),
        "events": _events(story, sets),
        "runs": 5,
    }


def _config(story: RecordedGroup, settings: PlaySettings) -> dict[str, Any]:
    if story.is_consumer:
        assignor = {"group.remote.assignor": story.assignor} if story.assignor in ("uniform", "range") else {}
        return {"group.protocol": "consumer", **assignor}
    strategy: dict[str, Any] = {"partition.assignment.strategy": [story.assignor]} if story.assignor else {}
    return {**strategy, "session.timeout.ms": settings.session, "heartbeat.interval.ms": settings.heartbeat}


def _sets(pods: Sequence[RecordedPod]) -> dict[str, tuple[bool, list[RecordedPod]]]:
    """Pods that are alike: by client id, and by whether they were there when the window began."""
    found: dict[str, tuple[bool, list[RecordedPod]]] = {}
    for pod in pods:
        is_there = pod.stays[0].begin_us is None
        name = stem_of(pod.client_id) + ("-static" if pod.is_static else "") + ("" if is_there else "-later")
        found.setdefault(name, (is_there, []))[1].append(pod)
    return found


def _member_set(
    pods: Sequence[RecordedPod], *, is_there: bool, settings: PlaySettings, story: RecordedGroup, rate: float
) -> dict[str, Any]:
    config = {}
    sessions = {pod.session_ms for pod in pods} - {None, settings.session}
    if not story.is_consumer and len(sessions) == 1:
        config["session.timeout.ms"] = sessions.pop()
    longest = max((pod.max_poll_ms for pod in pods if pod.max_poll_ms is not None), default=None)
    if longest is not None:
        config["max.poll.interval.ms"] = max(longest, config.get("session.timeout.ms") or settings.session)
    return {
        "count": len(pods),
        "start": "0s" if is_there else "never",
        "boot": "0s",
        "client": story.client or profile_of(pods[0].client_id) or "java",
        **({"instance_id": "$name"} if pods[0].is_static else {}),
        **({"config": config} if config else {}),
        "poll": {"timeout": "100ms", "pause": f"0ms..{_ms(settings.pause)}"},
        **({"commit": f"every {_ms(story.commit_ms)}"} if story.commit_ms else {}),
        **({"rate": f"{max(round(rate), 1)}/s"} if story.written else {}),
    }


def _events(story: RecordedGroup, sets: Mapping[str, tuple[bool, list[RecordedPod]]]) -> list[dict[str, Any]]:
    lead_us = _EPOCH_US if story.is_consumer else _NOTICED_US
    found: list[tuple[int, dict[str, Any]]] = []
    for name, (_, pods) in sets.items():
        for number, pod in enumerate(pods):
            for stay in pod.stays:
                if stay.begin_us is not None:
                    found.append((max(stay.begin_us - lead_us, 0), {Start.kind: f"{name}/{number}"}))
                if stay.end_us is not None and stay.is_crash:
                    found.append((max(stay.end_us, 0), {Crash.kind: f"{name}/{number}"}))
                elif stay.end_us is not None:
                    found.append((max(stay.end_us - lead_us, 0), {Stop.kind: f"{name}/{number}"}))
    found.sort(key=lambda each: each[0])
    return [{"at": format_duration(at_us), **event} for at_us, event in found]


def _ms(value: int) -> str:
    return format_duration(value * 1000)
