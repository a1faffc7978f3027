"""What two variants are beside each other."""

from __future__ import annotations

from kgctl.simulate.batch.judge import RunValues
from kgctl.simulate.batch.outcome import Comparison, differences, verdict_text


def runs(**metrics: list[float]) -> dict[int, RunValues]:
    count = len(next(iter(metrics.values())))
    return {
        seed: RunValues(variant="x", seed=seed, digest="", metrics={name: values[seed] for name, values in metrics.items()})
        for seed in range(count)
    }


def test_a_difference_that_the_seeds_agree_on_is_better_or_worse() -> None:
    a = runs(unavailable=[10.0, 11.0, 12.0], max_gap=[3.0, 3.0, 3.0], moves=[4, 4, 4], availability=[0.5, 0.5, 0.5])
    b = runs(unavailable=[5.0, 6.0, 7.0], max_gap=[4.0, 4.5, 4.0], moves=[4, 4, 4], availability=[0.9, 0.9, 0.9])
    found = differences(a, b)
    assert {each.metric: each.verdict for each in found} == {
        "unavailable": Comparison.BETTER,
        "max_gap": Comparison.WORSE,
        "moves": Comparison.EQUAL,
        "availability": Comparison.BETTER,
    }
    assert verdict_text("old", "new", found) == "new is better than old in unavailable 11 -> 6, and worse in max_gap 3s -> 4.2s"
    assert verdict_text("new", "old", differences(b, a)).startswith("old is better than new in max_gap")


def test_seeds_that_disagree_leave_it_unclear() -> None:
    found = differences(runs(unavailable=[10.0, 10.0, 10.0]), runs(unavailable=[5.0, 15.0, 10.5]))
    assert found[0].verdict is Comparison.UNCLEAR
    assert verdict_text("a", "b", found) == "b is neither better nor worse than a: the seeds disagree about unavailable"
