"""The arithmetic of Kubernetes' HPA, against tables worked out by hand from its source."""

from __future__ import annotations

import pytest

from kgctl.simulate.engine.autoscale import Autoscaler, Decision, ScaleChange, Why, by_average, by_utilization, by_value, limit_of
from kgctl.simulate.scenario.autoscale import Autoscale, ScalingPolicy, ScalingRules, Select

S = 1_000_000
TENTH = 100_000


def percent(amount: int, period_s: int) -> ScalingPolicy:
    return ScalingPolicy(amount, is_percent=True, period_us=period_s * S)


def pods(amount: int, period_s: int) -> ScalingPolicy:
    return ScalingPolicy(amount, is_percent=False, period_us=period_s * S)


def rules(*policies: ScalingPolicy, window_s: int = 0, select: Select = Select.MAX) -> ScalingRules:
    return ScalingRules(stabilize_us=window_s * S, policies=policies, select=select)


ANY = rules(percent(10_000, 1), pods(10_000, 1))
DOWN = rules(percent(100, 15))


def autoscaler(up: ScalingRules = ANY, down: ScalingRules = DOWN, minimum: int = 1, maximum: int = 1_000) -> Autoscaler:
    return Autoscaler(Autoscale(members="app", target=1, minimum=minimum, maximum=maximum, up=up, down=down))


def replay(one: Autoscaler, start: int, desired: list[tuple[int, int]]) -> list[tuple[int, str]]:
    """What it makes of (second, what the metric asks for), each decision being followed."""
    replicas, found = start, []
    for at_s, wanted in desired:
        decision = one.decide(at_s * S, replicas, wanted)
        if decision.replicas != replicas:
            one.changed(at_s * S, decision.replicas - replicas)
        replicas = decision.replicas
        found.append((replicas, str(decision.why)))
    return found


@pytest.mark.parametrize(
    ("total", "target", "replicas", "wanted"),
    [
        (60_000, 1_000, 8, 60),
        (8_800, 1_000, 8, 8),  # 1.1 of the target: within the tolerance
        (8_801, 1_000, 8, 9),
        (7_200, 1_000, 8, 8),
        (7_000, 1_000, 8, 7),
        (7_001, 1_000, 9, 8),
        (0, 1_000, 8, 0),
        (1, 1_000, 0, 1),
        (32_000, 1_000, 30, 30),  # KEDA's cap at 32 partitions: the tolerance keeps it at 30
        (32_000, 1_000, 29, 32),
    ],
)
def test_an_average_value_is_the_total_over_the_target_unless_it_is_near(
    total: int, target: int, replicas: int, wanted: int
) -> None:
    assert by_average(total, target, replicas, TENTH) == wanted


@pytest.mark.parametrize(
    ("value", "replicas", "ready", "wanted"),
    [(20, 4, 4, 8), (20, 4, 2, 4), (11, 4, 4, 4), (12, 4, 4, 5), (5, 4, 4, 2), (0, 4, 4, 0)],
)
def test_a_value_scales_the_pods_that_are_ready(value: int, replicas: int, ready: int, wanted: int) -> None:
    assert by_value(value, 10, replicas, ready, TENTH) == wanted


@pytest.mark.parametrize(
    ("used", "replicas", "wanted"),
    [
        ([90] * 4, 4, 6),  # 90/70 of 4 pods: 5.14
        ([77] * 4, 4, 4),  # 1.1
        ([90] * 4, 6, 6),  # with two that boot, as idle: 60 %, below the target, so nothing is done
        ([100] * 4, 5, 6),  # with one that boots: 80 %; 80/70 of 5: 5.71
        ([20] * 4, 4, 2),
        ([20] * 4, 6, 2),  # before pods are stopped, those that boot do not count
        ([], 3, None),
    ],
)
def test_utilization_counts_booting_pods_as_idle_on_the_way_up(used: list[int], replicas: int, wanted: int | None) -> None:
    assert by_utilization([each * 10_000 for each in used], 70, replicas, TENTH) == wanted


def test_default_policies_double_or_add_four_in_fifteen_seconds() -> None:
    up = Autoscale(members="app", target=1).up
    assert replay(autoscaler(up), 1, [(0, 90), (15, 90), (30, 90), (45, 90)]) == [
        (5, "ScaleUpLimit"),
        (10, "ScaleUpLimit"),
        (20, "ScaleUpLimit"),
        (40, "ScaleUpLimit"),
    ]


def test_a_policy_looks_at_what_was_done_within_its_period() -> None:
    assert replay(autoscaler(rules(percent(100, 15))), 8, [(0, 99), (10, 99), (15, 99)]) == [
        (16, "ScaleUpLimit"),
        (16, "ScaleUpLimit"),  # since 8 pods, 5 s ago: no more than 16
        (32, "ScaleUpLimit"),
    ]


def test_one_pod_in_two_minutes() -> None:
    steps = [(second, 1) for second in (0, 15, 105, 120, 240)]
    found = replay(autoscaler(down=rules(pods(1, 120))), 10, steps)
    assert [replicas for replicas, _ in found] == [9, 9, 9, 8, 7]
    assert {why for _, why in found} == {"ScaleDownLimit"}


@pytest.mark.parametrize(("select", "up", "down"), [(Select.MAX, 14, 5), (Select.MIN, 12, 8), (Select.DISABLED, 10, 10)])
def test_the_selected_policy_counts(select: Select, up: int, down: int) -> None:
    both = rules(pods(2, 60), percent(40, 60), select=select)
    assert limit_of(both, 10, [], 0, direction=1) == up
    both = rules(pods(2, 60), percent(50, 60), select=select)
    assert limit_of(both, 10, [], 0, direction=-1) == down


def test_shares_are_rounded_so_that_something_happens() -> None:
    assert limit_of(rules(percent(10, 60)), 5, [], 0, direction=1) == 6
    assert limit_of(rules(percent(50, 60)), 9, [], 0, direction=-1) == 4


def test_what_was_stopped_in_a_period_may_be_started_again() -> None:
    assert limit_of(rules(pods(2, 60)), 6, [ScaleChange(10 * S, -4)], 20 * S, direction=1) == 12
    assert limit_of(rules(pods(2, 60)), 6, [ScaleChange(10 * S, -4)], 70 * S, direction=1) == 8


def test_fewer_pods_wait_until_the_highest_recommendation_is_out_of_the_window() -> None:
    one = autoscaler(down=rules(percent(100, 15), window_s=300))
    assert replay(one, 10, [(0, 10), (15, 3), (285, 3), (300, 4), (314, 2)]) == [
        (10, "DesiredWithinRange"),
        (10, "ScaleDownStabilized"),
        (10, "ScaleDownStabilized"),
        (4, "DesiredWithinRange"),
        (4, "ScaleDownStabilized"),
    ]


def test_the_number_at_the_first_look_is_a_recommendation() -> None:
    one = autoscaler(down=rules(percent(100, 15), window_s=60))
    assert replay(one, 8, [(0, 2), (59, 2), (60, 2)]) == [
        (8, "ScaleDownStabilized"),
        (8, "ScaleDownStabilized"),
        (2, "DesiredWithinRange"),
    ]


def test_more_pods_wait_for_the_lowest_recommendation_of_their_window() -> None:
    one = autoscaler(up=rules(pods(100, 15), window_s=60))
    assert replay(one, 4, [(0, 4), (30, 9), (60, 12), (89, 12), (90, 12)]) == [
        (4, "DesiredWithinRange"),
        (4, "ScaleUpStabilized"),
        (9, "ScaleUpStabilized"),
        (9, "ScaleUpStabilized"),
        (12, "DesiredWithinRange"),
    ]


def test_bounds_hold_at_once_and_nothing_is_done_without_pods() -> None:
    one = autoscaler(minimum=2, maximum=4)
    assert one.decide(0, 9, 9) == Decision(4, 9, Why.TOO_MANY)
    assert one.decide(S, 1, 9) == Decision(2, 9, Why.TOO_FEW)
    assert one.decide(2 * S, 3, 9) == Decision(4, 9, Why.TOO_MANY)
    assert one.decide(3 * S, 3, 0) == Decision(2, 0, Why.TOO_FEW)
    assert one.decide(4 * S, 0, 9) == Decision(0, 9, Why.DISABLED)


def test_a_forbidden_direction_is_never_taken() -> None:
    one = autoscaler(down=rules(percent(100, 15), select=Select.DISABLED))
    assert replay(one, 5, [(0, 1), (600, 1), (615, 7)]) == [
        (5, "ScaleDownLimit"),
        (5, "ScaleDownLimit"),
        (7, "DesiredWithinRange"),
    ]
