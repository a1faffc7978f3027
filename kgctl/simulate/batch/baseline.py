"""A stored result, of the main branch say, held beside a run: the same seeds, variant by variant.

What is worse is an expectation that does not hold, so that every report, annotation and exit code has it.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kgctl import __version__
from kgctl.errors import UsageError
from kgctl.model.values import frozen_in_order
from kgctl.simulate.batch.comparison import (
    SAME_NAME,
    Comparison,
    MetricDifference,
    decided_by,
    differences,
    no_verdict,
    unlike,
    verdict_text,
)
from kgctl.simulate.batch.comparison import with_size as sized
from kgctl.simulate.batch.judge import RunValues
from kgctl.simulate.batch.outcome import is_better_higher, result_of
from kgctl.simulate.report.outcome import Expectation, Outcome
from kgctl.simulate.scenario.load import DEFAULT

Runs = Mapping[str, Mapping[int, RunValues]]
ANY = "any"


@frozen_in_order
class Baseline:
    """What was stored. ``asked``: the metrics that must not be worse, or ``any``.

    ``rehearsed``: variant -> what was made to happen in it; None: the file does not say.
    """

    file: str
    kgctl: str
    runs: Runs
    asked: tuple[str, ...]
    rehearsed: Mapping[str, Sequence[str] | None]

    def require_common(self, variants: Sequence[str], seeds: Sequence[int]) -> None:
        """Raise `UsageError` where there is nothing to hold the run against: before minutes of work."""
        common = [name for name in variants if name in self.runs]
        if not common:
            raise UsageError(f"--baseline {self.file} has no variant of this run; it has {', '.join(self.runs) or 'none'}")
        if not any(seed in self.runs[name] for name in common for seed in seeds):
            raise UsageError(
                f"--baseline {self.file} has none of the seeds {seeds[0]} to {seeds[-1]}: say --seed and --runs as there"
            )


def read_baseline(path: Path, scenario: str, asked: Sequence[str]) -> Baseline:
    """Read what ``--metrics`` has written, or ``-o json``.

    Raises:
        UsageError: it is no such file, or the result of another scenario; or a metric that is asked about is none.
    """
    decided_by(asked, "--fail-if-worse")
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        data = data.get("data", data)
        found = Baseline(str(path), data["kgctl"], runs_of(data), tuple(asked), _rehearsed(data))
        name = data["scenario"]
    except OSError as error:
        raise UsageError(f"--baseline {path}: {error.strerror}") from None
    except (ValueError, LookupError, TypeError, AttributeError):
        raise UsageError(f"--baseline {path} is no result of kgctl simulate run --metrics FILE") from None
    if name != scenario:
        raise UsageError(f"--baseline {path} is a result of {name!r}, and this is {scenario!r}")
    return found


def runs_of(data: Mapping[str, Any]) -> Runs:
    """The values of a result's seeds: infinite where it never ended, None where there was nothing to measure."""
    return {
        variant: {
            seed: RunValues(variant=variant, seed=seed, digest="", metrics=_values(told["metrics"], place, seed))
            for place, seed in enumerate(data["seeds"])
        }
        for variant, told in data["variants"].items()
    }


def _rehearsed(data: Mapping[str, Any]) -> dict[str, Sequence[str] | None]:
    return {variant: told.get("rehearsed") for variant, told in data["variants"].items()}


def _values(metrics: Mapping[str, Any], place: int, seed: int) -> dict[str, float | None]:
    return {name: math.inf if seed in each.get("never", ()) else each["per_seed"][place] for name, each in metrics.items()}


def held_beside(outcome: Outcome, baseline: Baseline, words: Sequence[str]) -> Outcome:
    """The outcome with what is worse than the baseline as expectations that failed, and a sentence for each variant.

    ``words``: how a replay's command begins.
    """
    now = runs_of(result_of(outcome))
    found = {name: _differences(baseline.runs[name], runs) for name, runs in now.items() if name in baseline.runs}
    others = {name: _unlike(outcome, baseline, name) for name in found}
    expectations = [each for name, some in found.items() for each in _expectations(name, some, now[name], baseline, words)]
    asked = [_two_questions(name, other, now[name]) for name, other in others.items() if other and baseline.asked]
    kept = [each for each in expectations if not (each.passed and others[each.variant])]
    return replace(
        outcome,
        expectations=(*outcome.expectations, *asked, *kept),
        notes=(*outcome.notes, *_notes(outcome, baseline, found, others)),
    )


def _unlike(outcome: Outcome, baseline: Baseline, variant: str) -> str:
    """What only the baseline or only this run rehearses; "" where it is the same."""
    now = _called(outcome, variant)
    return unlike("the baseline", now, baseline.rehearsed[variant], outcome.variants[variant].rehearsed)


def _called(outcome: Outcome, variant: str) -> str:
    return "this run" if list(outcome.variants) == [DEFAULT] else variant


def _differences(before: Mapping[int, RunValues], now: Mapping[int, RunValues]) -> list[MetricDifference]:
    """Of metrics that only one result tells of, too: a cause that there was not was worth 0, others have no value."""
    names = dict.fromkeys(name for runs in (before, now) for values in runs.values() for name in values.metrics)
    nothing = {name: 0.0 if name.startswith("unavailable(") else None for name in names}
    whole = [{seed: replace(one, metrics={**nothing, **one.metrics}) for seed, one in runs.items()} for runs in (before, now)]
    return differences(*whole)


def _expectations(
    variant: str, found: Sequence[MetricDifference], now: Mapping[int, RunValues], baseline: Baseline, words: Sequence[str]
) -> Iterator[Expectation]:
    if not baseline.asked:
        return
    asked = decided_by(baseline.asked, "--fail-if-worse")
    known = {each.metric: each for each in found}
    worse = [each for each in found if each.metric in asked and each.verdict is Comparison.WORSE]
    unknown = [name for name in baseline.asked if name != ANY and name not in known]
    for name, note in (
        *((each.metric, _note(each)) for each in worse),
        *((name, "no seed in which both know it") for name in unknown),
    ):
        seed = _worst_seed(name, baseline.runs[variant], now)
        check = f"{name} {'>=' if is_better_higher(name) else '<='} baseline"
        named = () if variant == DEFAULT else ("--variant", variant)
        command = (*words, *named, "--seed", str(seed), "--baseline", baseline.file, "--fail-if-worse", name)
        replay = f"{' '.join(map(shlex.quote, command))}   # kgctl {__version__}"
        yield Expectation(check, variant, False, now[seed].metrics.get(name), seed, "fail", replay, note)  # noqa: FBT003
    if not worse and not unknown:
        yield Expectation("no worse than the baseline", variant, True, None, next(iter(now)))  # noqa: FBT003


def _two_questions(variant: str, other: str, now: Mapping[int, RunValues]) -> Expectation:
    return Expectation("the same question as the baseline", variant, False, None, next(iter(now)), note=f"{other}; {SAME_NAME}")  # noqa: FBT003


def _note(each: MetricDifference) -> str:
    return f"{sized(each)} on average, worse with {each.a_better} of {each.seeds} seeds"


def _worst_seed(name: str, before: Mapping[int, RunValues], now: Mapping[int, RunValues]) -> int:
    sign = -1 if is_better_higher(name) else 1

    def by(seed: int) -> float:
        old, new = before[seed].metrics.get(name), now[seed].metrics.get(name)
        return -math.inf if old is None or new is None or old == new else sign * (new - old)

    return max((seed for seed in now if seed in before), key=by)


def _notes(
    outcome: Outcome, baseline: Baseline, found: Mapping[str, Sequence[MetricDifference]], others: Mapping[str, str]
) -> Iterator[str]:
    for name, some in found.items():
        seeds = max((each.seeds for each in some), default=0)
        sides = "the baseline", _called(outcome, name)
        verdict = no_verdict(*sides, others[name]) if others[name] else verdict_text(*sides, some)
        yield f"{verdict} ({seeds} seeds in both)"
    yield from (f"{name} is not in the baseline" for name in outcome.variants if name not in baseline.runs)
    yield from (f"{name} is in the baseline only" for name in baseline.runs if name not in outcome.variants)
    if baseline.kgctl != outcome.kgctl:
        yield f"the baseline was made by kgctl {baseline.kgctl}, this run by {outcome.kgctl}: differences may be kgctl's"
