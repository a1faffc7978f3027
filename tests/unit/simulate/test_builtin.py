"""Every built-in scenario is without a doubt, and what it expects holds."""

from __future__ import annotations

import pytest

from kgctl.simulate.batch.outcome import outcome_of
from kgctl.simulate.batch.plan import BatchOptions, run_all, tasks_of
from kgctl.simulate.lint.rules import lint
from kgctl.simulate.scenario.load import load
from kgctl.simulate.scenario.sources import builtin_names, read_source

MEANT = {
    "static-misconfigured": {"session-below-boot"},
    "static-surge": {"static-rollout"},
    "assignor-migration": {"client-refuses"},
}
"""What the linter rightly says of scenarios that show just that."""

DEAR = {
    "assignor-migration",
    "chaos",
    "classic-vs-848",
    "coordinator-failover",
    "hpa-flapping",
    "rolling-restart",
    "share-crash",
    "share-poison",
    "share-slow",
    "slow-consumer",
    "static-misconfigured",
}
"""Several times as long to run as all the others together."""


@pytest.mark.parametrize("name", [name for name in builtin_names() if name not in DEAR])
def test_builtin_holds_what_it_expects(name: str) -> None:
    _check(name, runs=1)


@pytest.mark.deep
@pytest.mark.parametrize("name", builtin_names())
def test_builtin_holds_what_it_expects_in_each_of_its_runs(name: str) -> None:
    _check(name, runs=None)


def _check(name: str, runs: int | None) -> None:
    """With so many seeds; None: with those of the file, as ``simulate run`` does."""
    loaded = load(read_source(f"builtin:{name}"))
    seeds = [*range(loaded.seed, loaded.seed + (runs or loaded.runs))]
    outcome = outcome_of(loaded, seeds, run_all(tasks_of(loaded, seeds, BatchOptions(), None), 1, lambda _: None))
    assert [(each.check, each.variant, each.observed) for each in outcome.failures] == []
    assert outcome.expectations


@pytest.mark.parametrize("name", builtin_names())
def test_builtin_says_nothing_that_is_not_meant(name: str) -> None:
    loaded = load(read_source(f"builtin:{name}"))
    assert (loaded.name, loaded.question[-1:]) == (name, "?")
    assert {problem.rule for problem in lint(loaded)} <= MEANT.get(name, set())
