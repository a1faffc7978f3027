"""An autoscaler in a run: what it sees, which pods come and go, what is logged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kgctl.simulate.engine.run import complete
from kgctl.simulate.engine.simulation import Simulation
from kgctl.simulate.metrics.result import MetricView, RunResult, run
from kgctl.simulate.recording.trace import Scaled, TraceEvent
from kgctl.simulate.scenario.autoscale import Autoscale, ScaleMetric, ScalingRules
from kgctl.simulate.scenario.fields import Commit, CommitMode, changed
from kgctl.simulate.scenario.model import ONE_PER_SECOND_UHZ, Scenario, Traffic
from kgctl.simulate.scenario.quantities import Constant
from tests.support.simulated import CONSUMER, COOPERATIVE, RANGE, S, event, scenario

QUICK = ScalingRules(stabilize_us=30 * S, policies=Autoscale(members="app", target=1).down.policies)


class Watch:
    """Keeps the decisions, and does something at a time."""

    def __init__(self, at_s: int = 0, act: Callable[[Any], None] | None = None) -> None:
        self.scaled: list[Scaled] = []
        self._at_us, self._act = at_s * S, act
        self.simulation: Simulation | None = None

    def on_trace(self, event: TraceEvent) -> None:
        if isinstance(event, Scaled):
            self.scaled.append(event)

    def on_step(self, at_us: int, metrics: Any) -> None:
        if self._act is not None and at_us >= self._at_us:
            act, self._act = self._act, None
            act(self.simulation)


def scaled(
    steps: tuple[tuple[int, int], ...], *, count: int = 4, duration_s: int = 600, config: Any = COOPERATIVE, **keys: Any
) -> Scenario:
    """8 partitions, members that process 100 records a second; ``steps``: (second, records a second)."""
    plain = scenario(count=count, config=config, duration_s=duration_s, rate_uhz=100 * ONE_PER_SECOND_UHZ, warmup_s=60)
    traffic = (Traffic(topic="t", rate=tuple((at_s * S, rate * ONE_PER_SECOND_UHZ) for at_s, rate in steps)),)
    spec = Autoscale(**{"members": "app", "target": 300, "down": QUICK, "minimum": 2, "maximum": 8, **keys})
    return changed(plain, traffic=traffic, autoscale=spec)


def watched(given: Scenario, seed: int = 1) -> tuple[RunResult, list[Scaled]]:
    watch = Watch()
    return run(given, seed, observers=[watch]), watch.scaled


@pytest.mark.parametrize("config", [RANGE, COOPERATIVE, CONSUMER])
def test_a_step_of_the_traffic_brings_pods_that_boot_and_are_given_partitions(config: Any) -> None:
    result, decisions = watched(scaled(((0, 100), (120, 700)), config=config, count=2))
    assert result.metric("replicas", ("at 110s",)) == 2
    assert result.metric("replicas", ("max",)) == 8
    assert result.metric("backlog_peak") > 300 * 8  # type: ignore[operator]  # a pod is not there at once
    assert len([pods for pods in result.final_assignment().values() if pods]) == result.metric("members")
    first = next(each for each in decisions if each.replicas != each.before)
    assert (first.before, first.replicas > 2, first.metric) == (2, True, "lag")
    assert result.recording.history.scalings[0].replicas == first.replicas


def test_the_newest_pods_go_first_and_come_back_under_their_names() -> None:
    result, _ = watched(scaled(((0, 100), (60, 700), (180, 50), (400, 700))))
    pods, now_us = result.recording.history.pods, result.recording.now_us
    changes = result.recording.history.scalings
    assert {change.replicas > change.before for change in changes} == {True, False}
    assert [pod.name for pod in pods] == [f"app-{index}" for index in range(8)]
    for change in changes:
        there = [pod.index for pod in pods if any(first <= change.at_us < last for first, last in pod.wanted.until(now_us + 1))]
        assert there == list(range(change.replicas))


@pytest.mark.usefixtures("exact_warmup")
def test_the_same_seed_gives_the_same_bytes_and_another_one_another_phase() -> None:
    given = scaled(((0, 100), (120, 700)))
    assert run(given, 3).digest == run(given, 3).digest
    first = [watched(given, seed)[1][0].at_us for seed in (1, 2, 3)]
    assert len(set(first)) == 3
    assert all(-60 * S <= at_us < -45 * S for at_us in first)


@pytest.mark.parametrize("commit", [Commit(), Commit(mode=CommitMode.EVERY, interval_us=7 * S)])
def test_an_autoscaler_that_changes_nothing_disturbs_nothing(commit: Commit) -> None:
    """It looks at what is committed every 15 s: members stay at rest, and all is as without it."""
    steady = scaled(((0, 100),), minimum=4, maximum=4)
    steady = changed(steady, members=(changed(steady.members[0], commit=commit),))
    with_it, without = run(steady, 1), run(changed(steady, autoscale=None), 1)
    for metric in ("rebalances", "unavailable", "requests", "duplicates", "processed", "errors"):
        assert with_it.metric(metric) == without.metric(metric), metric
    assert with_it.tasks <= without.tasks + 2 * 660 // 15
    assert with_it.metric("lag") == pytest.approx(without.metric("lag"), abs=1)


def test_it_sees_what_is_not_committed_though_everything_is_read() -> None:
    """400 records a second, committed every 5 s by 4 members out of step: some 1,000 in the mean, at most 2,000."""
    seen: list[int] = []
    for seed in range(12):
        steady = scaled(((0, 400),), minimum=1, maximum=4, target=1, allow_idle_consumers=True)
        _, decisions = watched(changed(steady, members=(changed(steady.members[0], rate_uhz=None),)), seed)
        seen.append(decisions[-1].value)  # commits and looks keep their distance: the later ones are the same
    assert max(seen) <= 2_000
    assert 700 <= sum(seen) / len(seen) <= 1_300


def test_the_last_pod_goes_after_the_cooldown_and_the_first_one_comes_with_lag() -> None:
    given = scaled(((0, 100), (60, 0), (400, 100)), minimum=0, cooldown_us=120 * S, duration_s=500)
    result, decisions = watched(given)
    whys = [each.why for each in decisions if each.replicas != each.before and 0 in (each.replicas, each.before)]
    assert whys == ["KEDAScaleTargetDeactivated", "KEDAScaleTargetActivated"]
    assert result.metric("replicas", ("at 350s",)) == 0
    assert result.metric("replicas", ("at 440s",)) >= 1  # type: ignore[operator]
    assert result.metric("members") >= 1  # type: ignore[operator]


def test_a_group_without_pods_is_brought_to_its_minimum() -> None:
    """The HPA does nothing for a target of 0 pods; KEDA does."""
    given = scaled(((0, 100),), minimum=2, duration_s=60)
    given = changed(given, members=(changed(given.members[0], start=None),))
    _, decisions = watched(given)
    assert [each.replicas for each in decisions if each.replicas != each.before] == [2]
    assert "KEDAScaleTargetActivated" in {each.why for each in decisions}


def test_a_cached_value_is_as_old_as_the_last_poll() -> None:
    steps = ((0, 100), (120, 700))
    delays = [
        min(
            each.at_us for each in watched(scaled(steps, **keys), seed)[1] if each.at_us > 120 * S and each.replicas > each.before
        )
        for keys in ({}, {"use_cached_metrics": True, "poll_us": 120 * S})
        for seed in (1, 2, 3)
    ]
    assert max(delays[:3]) <= 150 * S < max(delays[3:]) <= 270 * S


def test_by_the_work_of_its_pods_a_group_has_as_many_as_its_traffic_needs() -> None:
    config = {**COOPERATIVE, "max.poll.records": "10"}  # with long batches rebalances take long, and what waits is work
    result, decisions = watched(scaled(((0, 200), (120, 560)), config=config, metric=ScaleMetric.CPU, target=70))
    assert result.metric("replicas", ("at 590s",)) == 8  # 560 of 700
    assert result.metric("flaps") == 0
    assert {each.metric for each in decisions} == {"cpu"}
    assert all(0 <= each.value <= 1_000_000 for each in decisions)


def test_by_age_pods_come_when_records_wait_too_long() -> None:
    result, decisions = watched(scaled(((0, 100), (120, 700)), metric=ScaleMetric.LAG_AGE, target=20 * S))
    assert result.metric("replicas", ("max",)) == 8
    assert max(each.value for each in decisions if each.at_us < 120 * S and each.before == each.replicas) < 20 * S


def test_a_pod_that_is_wanted_again_while_it_stops_starts_when_it_is_gone() -> None:
    def down_and_up(simulation: Any) -> None:
        simulation.resize("app", 2)
        simulation.resize("app", 4)

    watch = Watch(100, down_and_up)
    nothing = event("start", "app", at_s=100)
    given = scenario(nothing, count=4, config=RANGE, duration_s=300, poll=Constant(10 * S))
    watch.simulation = Simulation(given, 1, [watch], read=MetricView)
    result = RunResult(complete([watch.simulation]))
    lives = [len(pod.running.until(result.recording.now_us)) for pod in result.recording.history.pods]
    assert lives == [1, 1, 2, 2]
    assert result.metric("members") == 4
