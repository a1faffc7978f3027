"""Of many seeds the one to look at: where an expectation failed, else where partitions were without a consumer for longest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from kgctl.simulate.batch.explain import explain, explanation_lines
from kgctl.simulate.batch.plan import run_all
from kgctl.simulate.batch.task import Task
from kgctl.simulate.batch.values import RunValues
from kgctl.simulate.recording.history import Identity
from kgctl.simulate.report.outcome import Outcome
from kgctl.simulate.scenario.load import LoadedFile


def worst_seed(outcome: Outcome, variant: str) -> tuple[int, str]:
    """Return the seed of a variant to look at, and why that one; "" where it is the only one."""
    if len(outcome.seeds) == 1:
        return outcome.seeds[0], ""
    broken = [each for each in outcome.expectations if each.variant == variant and not each.passed]
    if broken:
        first = min(broken, key=lambda each: each.severity != "fail")
        return first.seed, f"fails: {first.check}"
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
        missing = [name for name, variant in outcome.variants.items() if variant.picture is None]
        for values in run_all(_tasks(loaded, missing, {name: chosen[name][0] for name in missing}, identity), jobs, on_done):
            assert values.picture is not None
            picture = replace(values.picture, chosen=chosen[values.variant][1])
            found[values.variant] = replace(found[values.variant], picture=picture)
    if stories:
        failed = {each.variant for each in outcome.failures if each in outcome.expectations}
        for name in failed or in_order_of_interest(outcome)[:1]:
            scenario = next(variant.scenario for variant in loaded.variants if variant.name == name)
            seed, why = chosen[name]
            lines = explanation_lines(explain(scenario, seed, ablates=ablations), ablates=ablations)
            title = f"{name}, seed {seed}" if name != "default" else f"seed {seed}"
            found[name] = replace(
                found[name], why=(f"{title} ({why}): {lines[0]}" if why else f"{title}: {lines[0]}", *lines[1:])
            )
    return replace(outcome, variants=found)


def _tasks(loaded: LoadedFile, names: Sequence[str], seeds: dict[str, int], identity: Identity) -> list[Task]:
    return [
        Task(
            variant=variant.name,
            scenario=variant.scenario,
            settings=variant.settings,
            checks=(),
            seed=seeds[variant.name],
            draws=True,
            is_lone=len(loaded.variant_names) == 1,
            identity=identity,
        )
        for variant in loaded.variants
        if variant.name in names
    ]
