"""A scenario simulated and played with real clients: the same metrics, the same expectations, side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from kgctl.simulate.against.fleet import ClientKind
from kgctl.simulate.against.play import ClusterPort, play
from kgctl.simulate.against.playable import MEASURED, is_measured, obstacles
from kgctl.simulate.against.settings import unknown_to
from kgctl.simulate.batch.judge import RunValues, watchers_for
from kgctl.simulate.batch.outcome import outcome_of
from kgctl.simulate.batch.plan import Task, values_of
from kgctl.simulate.metrics.result import RunResult
from kgctl.simulate.report import outcome as shown
from kgctl.simulate.report.outcome import Outcome
from kgctl.simulate.scenario.fields import changed
from kgctl.simulate.scenario.load import LoadedFile, Variant
from kgctl.yaml_files import Problem

TAIL_US = 120_000_000
"""About how long a play without a duration goes on after its last event, for what is told before it begins."""


@dataclass(frozen=True, slots=True)
class Stage:
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
    return replace(variant, scenario=changed(scenario, members=members))


def problems_of(loaded: LoadedFile, profile: str) -> list[Problem]:
    """What keeps the file from being played with a client of this family, variant by variant."""
    found: list[Problem] = []
    for variant in loaded.variants:
        name = "" if variant.name == "default" else f"variant {variant.name}: "
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
    loaded: LoadedFile, stage: Stage, *, draws: bool, notice: Callable[[str], None], on_done: Callable[[RunValues], None]
) -> list[RunValues]:
    """Play every variant, ``plays`` times. Raises as `kgctl.simulate.against.play.play`."""
    checks = tuple(check for check in loaded.checks if is_measured(check))
    found = []
    for number in range(1, stage.plays + 1):
        for variant in loaded.variants:
            task = Task(
                variant=variant.name,
                scenario=variant.scenario,
                settings=variant.settings,
                checks=checks,
                seed=number,
                draws=draws and number == 1,
            )
            found.append(_play(task, stage, notice))
            on_done(found[-1])
    return found


def _play(task: Task, stage: Stage, notice: Callable[[str], None]) -> RunValues:
    watchers = watchers_for(task.checks, task.variant, task.settings)
    recording = play(
        task.scenario,
        task.seed,
        kind=stage.kind,
        connection=dict(stage.connection),
        cluster=stage.cluster,
        observers=tuple(watchers.values()),
        notice=notice,
    )
    values = values_of(RunResult(recording), task, watchers)
    return replace(values, metrics={name: value for name, value in values.metrics.items() if name in MEASURED})


def with_measured(outcome: Outcome, loaded: LoadedFile, stage: Stage, values: Sequence[RunValues]) -> Outcome:
    """The outcome of the simulation with what was measured beside it."""
    asked = replace(loaded, checks=tuple(check for check in loaded.checks if is_measured(check)))
    left_out = [check.shown for check in loaded.checks if not is_measured(check)]
    real = outcome_of(asked, list(range(1, stage.plays + 1)), values)
    notes = (*real.notes, *([f"not asked of the play, which does not measure it: {'; '.join(left_out)}"] if left_out else []))
    measured = shown.Measured(
        cluster=stage.label,
        client=stage.kind.profile,
        runs=stage.plays,
        variants={name: replace(variant, assumptions={}) for name, variant in real.variants.items()},
        expectations=tuple(replace(each, replay="") for each in real.expectations),
        notes=notes,
    )
    return replace(outcome, measured=measured)
