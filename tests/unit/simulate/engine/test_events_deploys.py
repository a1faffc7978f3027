"""Deploys beyond a rolling one: canary and blue-green, drained nodes, machines that are taken away."""

from __future__ import annotations

from typing import Any

import pytest

from kgctl.simulate.metrics.result import RunResult, run
from kgctl.simulate.scenario.event import Share
from kgctl.simulate.scenario.expressions import MetricSource
from kgctl.simulate.scenario.fields import changed
from kgctl.simulate.scenario.quantities import Constant
from tests.support.simulated import CONSUMER, COOPERATIVE, S, event, scenario


class When:
    """A condition that a test makes up."""

    def __init__(self, metric: str, above: float) -> None:
        self.text = f"{metric} > {above}"
        self._metric, self._above = metric, above

    def holds(self, metrics: MetricSource) -> bool:
        value = metrics.metric(self._metric)
        return isinstance(value, float | int) and value > self._above


NEVER, ALWAYS = When("members", 1_000), When("members", 0)


def deployed(kind: str, target: str, count: int = 4, nodes: int = 0, **parameters: Any) -> RunResult:
    """An event 10 s after the warm-up in a group of pods that boot in 5 s."""
    given = scenario(event(kind, target, 10, **parameters), count=count, config=COOPERATIVE, boot_s=5, duration_s=300)
    return run(changed(given, cluster=changed(given.cluster, nodes=nodes)), 1)


def pods(result: RunResult) -> dict[str, list[tuple[float, float]]]:
    """Pod -> when its consumer ran, in seconds after the warm-up."""
    start_us, end_us = result.recording.start_us, result.recording.now_us
    return {
        pod.name: [((first - start_us) / S, (last - start_us) / S) for first, last in pod.running.until(end_us)]
        for pod in result.recording.history.pods
    }


def at_s(result: RunResult, name: str) -> float:
    """When the consumer of a pod began to run, for the last time."""
    return pods(result)[name][-1][0]


def marks(result: RunResult) -> list[str]:
    return [mark.what for mark in result.recording.history.events]


def running_at(result: RunResult, at: float) -> set[str]:
    return {name for name, spans in pods(result).items() if any(first <= at < last for first, last in spans)}


def test_a_canary_grows_by_its_steps_with_a_pause_after_each() -> None:
    result = deployed(
        "rollout", "app", strategy="canary", steps=(1, Share(500_000)), pause=60 * S, max_surge=1, max_unavailable=0
    )

    assert running_at(result, 60) == {"app-0", "app-1", "app-2", "app-4"}
    assert running_at(result, 120) == {"app-0", "app-1", "app-4", "app-5"}
    assert running_at(result, 290) == {"app-4", "app-5", "app-6", "app-7"}
    assert marks(result) == ["begins", "ends"]


@pytest.mark.parametrize("steps", [(1,), (Share(500_000),)])
def test_a_canary_that_is_called_off_leaves_as_many_pods_of_the_old_version(steps: Any) -> None:
    result = deployed("rollout", "app", strategy="canary", steps=steps, pause=30 * S, abort_if=ALWAYS, set_=CONSUMER)

    assert len(running_at(result, 290)) == 4
    assert marks(result) == ["begins", "is aborted", "ends"]
    left = [pod for pod in result.recording.history.pods if pod.name in running_at(result, 290)]
    assert [pod.settings for pod in left] == [COOPERATIVE] * 4


def test_a_canary_whose_pods_never_get_ready_stays_at_its_first_step_until_the_deadline() -> None:
    result = deployed("rollout", "app", strategy="canary", never_ready=True, deadline=100 * S, max_surge=1, max_unavailable=0)

    assert running_at(result, 290) == {"app-0", "app-1", "app-2", "app-3", "app-4"}
    assert marks(result) == ["begins", "is aborted", "ends"]


def test_blue_green_has_both_versions_beside_each_other_and_then_the_new_one() -> None:
    result = deployed("rollout", "app", strategy="blue-green", pause=30 * S, abort_if=NEVER)

    assert len(running_at(result, 30)) == 8
    assert running_at(result, 290) == {"app-4", "app-5", "app-6", "app-7"}
    assert result.metric("rebalances") in (2, 3)


def test_blue_green_that_is_called_off_keeps_the_old_version() -> None:
    result = deployed("rollout", "app", strategy="blue-green", pause=30 * S, abort_if=ALWAYS)

    assert running_at(result, 290) == {"app-0", "app-1", "app-2", "app-3"}


def test_pods_that_come_after_a_rollout_have_its_settings() -> None:
    given = (event("rollout", "app", 10, set_={"heartbeat.interval.ms": "1000"}), event("scale", "app", 100, to=5))
    result = run(scenario(*given, config=COOPERATIVE, duration_s=150), 1)

    assert result.recording.history.pods[-1].settings["heartbeat.interval.ms"] == "1000"


def test_a_drain_evicts_what_the_budget_allows_and_asks_again_after_five_seconds() -> None:
    result = deployed("drain", "node/2", count=6, nodes=2, ready=Constant(3 * S))

    gone = {name: spans[-1][1] for name, spans in pods(result).items() if spans[-1][1] < 200}
    assert {name: round(at) for name, at in gone.items()} == {"app-1": 10, "app-3": 20, "app-5": 30}
    assert len(running_at(result, 290)) == 6
    assert marks(result) == ["begins", "ends"]


@pytest.mark.parametrize("budget", [3, Share(500_000)])
def test_a_drain_with_room_in_its_budget_evicts_all_pods_at_once(budget: int | Share) -> None:
    result = deployed("drain", "node/2", count=6, nodes=2, budget=budget)

    assert {round(spans[-1][1]) for spans in pods(result).values() if spans[-1][1] < 200} == {10}


def test_a_drain_without_any_budget_is_given_up_at_its_deadline() -> None:
    result = deployed("drain", "node/2", nodes=2, budget=0, deadline=60 * S)

    assert len(running_at(result, 290)) == 4
    assert marks(result) == ["begins", "is aborted", "ends"]


def test_pods_of_a_statefulset_come_back_with_their_names_on_another_node() -> None:
    result = deployed("drain", "node/2", nodes=2, workload="statefulset")

    assert running_at(result, 290) == {"app-0", "app-1", "app-2", "app-3"}
    assert [len(spans) for spans in pods(result).values()] == [1, 2, 1, 2]


def test_machines_that_are_lost_without_notice_are_noticed_by_their_sessions() -> None:
    warned = deployed("spot_loss", "node/1", nodes=2, notice=30 * S, replacement=Constant(100 * S))
    sudden = deployed("spot_loss", "node/1", nodes=2, notice=0, replacement=Constant(100 * S))

    for result in (warned, sudden):
        assert len(running_at(result, 100)) == 2
        assert {round(at_s(result, name)) for name in ("app-4", "app-5")} == {115}
        assert len(running_at(result, 290)) == 4
    gaps = [result.metric("max_gap") for result in (warned, sudden)]
    assert isinstance(gaps[0], float)
    assert isinstance(gaps[1], float)
    assert gaps[0] < 5
    assert 38 < gaps[1] < 50
