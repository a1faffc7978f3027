"""What two variants are beside each other."""

from __future__ import annotations

import pytest

from kgctl.simulate.batch.comparison import Comparison, differences, no_verdict, unlike, verdict_text
from kgctl.simulate.batch.judge import RunValues


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


def test_means_that_look_alike_are_told_as_they_are() -> None:
    found = differences(runs(unavailable=[22.91] * 3, members=[3, 3, 3]), runs(unavailable=[22.87] * 3, members=[4, 4, 4]))
    assert verdict_text("a", "b", found) == "b is better than a: unavailable 22.91 -> 22.87"
    assert {each.metric: each.verdict for each in found}["members"] is Comparison.BETTER


NEVER = float("inf")


def test_what_never_ends_is_worse_than_any_time() -> None:
    settles, does_not = runs(time_to_stable=[3.0, 4.0, 5.0]), runs(time_to_stable=[NEVER] * 3)
    (worse,), (better,) = differences(settles, does_not), differences(does_not, settles)
    assert (worse.verdict, worse.b, worse.low, worse.high) == (Comparison.WORSE, NEVER, NEVER, NEVER)
    assert (better.verdict, better.difference) == (Comparison.BETTER, -NEVER)
    assert verdict_text("a", "b", [worse]) == "b is worse than a: time_to_stable 4s -> never"
    assert differences(does_not, does_not)[0].verdict is Comparison.EQUAL


def test_one_seed_of_many_that_never_ends_leaves_it_unclear_and_most_do_not() -> None:
    ends = runs(time_to_stable=[3.0] * 10)
    assert differences(ends, runs(time_to_stable=[NEVER] + [3.0] * 9))[0].verdict is Comparison.UNCLEAR
    assert differences(ends, runs(time_to_stable=[NEVER] * 8 + [3.0] * 2))[0].verdict is Comparison.WORSE
    (mixed,) = differences(runs(time_to_stable=[NEVER, 3.0]), runs(time_to_stable=[3.0, NEVER]))
    assert (mixed.verdict, mixed.difference) == (Comparison.UNCLEAR, 0.0)


@pytest.mark.parametrize(
    ("in_a", "in_b", "told"),
    [
        (["x", "y"], ["y", "x"], ""),
        (["x", "y"], ["y"], "only a has x"),
        (["x", "y"], ["z"], "only a has x, y; only b has z"),
        (None, ["z"], "what happened in a is not known"),
        ([], None, "what happened in b is not known"),
    ],
)
def test_what_only_one_of_two_has_is_told(in_a: list[str] | None, in_b: list[str] | None, told: str) -> None:
    assert unlike("a", "b", in_a, in_b) == told


def test_two_questions_have_no_verdict() -> None:
    assert no_verdict("a", "b", "only a has x") == (
        "b is called neither better nor worse than a, as they are not the same question: only a has x"
    )


def test_records_that_wait_for_longer_make_it_worse() -> None:
    a = runs(unavailable=[10.0] * 3, latency_p99=[3.0, 3.5, 3.2], drain_time=[9.0] * 3)
    b = runs(unavailable=[5.0] * 3, latency_p99=[120.0] * 3, drain_time=[NEVER] * 3)
    told = "b is better than a in unavailable 10 -> 5, and worse in latency_p99 3.2s -> 120s, drain_time 9s -> never"
    assert verdict_text("a", "b", differences(a, b)) == told
