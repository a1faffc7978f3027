"""`kgctl.simulate`: a scenario, run over its variants and seeds, with what its expectations say."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kgctl.arguments import checked
from kgctl.errors import UsageError
from kgctl.simulate.batch.outcome import outcome_of
from kgctl.simulate.batch.plan import Options, run_all, tasks_of, with_worst
from kgctl.simulate.report.outcome import Outcome
from kgctl.simulate.scenario.load import load
from kgctl.simulate.scenario.sources import read_source
from kgctl.yaml_files import FileError, Problem, path_text


@checked(not_empty=("scenario",))
def simulate(
    scenario: str | Path | Mapping[str, Any],
    *,
    seed: int | None = None,
    runs: int | None = None,
    variants: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
    jobs: int = 1,
) -> Outcome:
    """Run a scenario and return its metrics, expectations and timelines; ``passed`` says whether all expectations hold.

    ``scenario``: a file's path, the name of a built-in, or the document itself. ``seed`` alone runs that one; ``runs`` seeds are
    run from ``seed`` (or the file's) on. ``settings`` change values by their path (``{"members.app.count": 8}``), as ``--set``
    does. The same arguments give the same result on every machine, for any number of ``jobs`` (processes).

    Raises:
        UsageError: the scenario is wrong; the message has every mistake with its place.
        NotFoundError: no such file, built-in or variant.
    """
    for name, value, least in (("seed", seed, 0), ("runs", runs, 1), ("jobs", jobs, 1)):
        if value is not None and value < least:
            raise UsageError(f"{name} must be {least} or more, not {value}")
    try:
        tree = read_source("-", io.StringIO(json.dumps(scenario))) if isinstance(scenario, Mapping) else _tree(str(scenario))
        loaded = load(tree, settings=[f"{path}={value}" for path, value in (settings or {}).items()], variants=variants)
    except FileError as error:
        shown = (_without_place(problem) if isinstance(scenario, Mapping) else str(problem) for problem in error.problems)
        raise UsageError("\n".join(shown)) from None
    first = loaded.seed if seed is None else seed
    count = runs if runs is not None else 1 if seed is not None else loaded.runs
    seeds = list(range(first, first + count))
    values = run_all(tasks_of(loaded, seeds, Options(pictures=True), None), jobs, lambda _: None)
    return with_worst(outcome_of(loaded, seeds, values), loaded, pictures=True, stories=False, jobs=jobs)


def _tree(name: str) -> Any:
    return read_source(name, io.StringIO())


def _without_place(problem: Problem) -> str:
    """A document that was handed in has paths, but no lines."""
    return f"{path_text(problem.path)}: {problem.message}" if problem.path else problem.message
