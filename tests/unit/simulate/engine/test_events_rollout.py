"""Rollouts as Kubernetes does them."""

from __future__ import annotations

from typing import Any

import pytest

from kgctl.simulate.metrics.result import RunResult, run
from kgctl.simulate.recording.trace import PodChanged, TraceEvent
from kgctl.simulate.scenario.event import Share
from kgctl.simulate.scenario.quantities import Constant, Uniform
from tests.support.simulated import COOPERATIVE, S, event, scenario

pytestmark = pytest.mark.usefixtures("exact_warmup")


def rolled(count: int = 4, **parameters: Any) -> RunResult:
    """A rollout 10 s after the warm-up; pods boot in 5 s and are ready 4 s later."""
    given = event("rollout", "app", 10, **{"ready": Constant(4 * S), **parameters})
    return run(scenario(given, count=count, config=COOPERATIVE, boot_s=5, duration_s=240), 1)


def running(result: RunResult) -> list[tuple[float, int]]:
    """(seconds after the warm-up, how many consumers run from then on)."""
    changes: dict[int, int] = {}
    for pod in result.recording.history.pods:
        for first, last in pod.running.until(result.recording.now_us + 1):
            changes[first] = changes.get(first, 0) + 1
            changes[last] = changes.get(last, 0) - 1
    number, found = 0, []
    for at_us in sorted(changes):
        number += changes[at_us]
        found.append(((at_us - result.recording.start_us) / S, number))
    return [entry for entry in found if 0 < entry[0] < 230]


def over_s(result: RunResult) -> float:
    return next((mark.at_us - 20 * S) / S for mark in result.recording.history.events if mark.what == "ends")


@pytest.mark.parametrize(
    ("surge", "unavailable", "most", "fewest"),
    [(1, 0, 5, 4), (0, 1, 4, 3), (Share(250_000), Share(250_000), 5, 3), (4, 0, 8, 4), (0, 0, 4, 3), (2, 4, 4, 0)],
)
def test_a_deployment_keeps_to_its_surge_and_to_what_may_be_missing(
    surge: int | Share, unavailable: int | Share, most: int, fewest: int
) -> None:
    result = rolled(max_surge=surge, max_unavailable=unavailable)

    numbers = [number for _, number in running(result)]
    assert (max(numbers), min(numbers)) == (most, max(fewest, min(numbers)))
    assert min(numbers) >= fewest
    assert numbers[-1] == 4
    assert set(result.final_assignment()) == {"app-4", "app-5", "app-6", "app-7"}
    assert result.metric("members") == 4


def test_pods_follow_one_another_when_the_one_before_is_available() -> None:
    quick, slow = rolled(max_surge=1, max_unavailable=0), rolled(max_surge=1, max_unavailable=0, min_ready=10 * S)

    assert over_s(quick) == pytest.approx(10 + 4 * 9, abs=1)
    assert over_s(slow) == pytest.approx(10 + 4 * 19, abs=1)


def test_a_statefulset_goes_from_the_highest_number_down_to_its_partition() -> None:
    result = rolled(workload="statefulset", partition=1)

    starts = {
        pod.name: [first for first, _ in pod.running.until(result.recording.now_us)] for pod in result.recording.history.pods
    }
    again = {name: found[1] for name, found in starts.items() if len(found) > 1}
    assert sorted(again, key=lambda name: again[name]) == ["app-3", "app-2", "app-1"]
    assert set(result.final_assignment()) == {"app-0", "app-1", "app-2", "app-3"}
    assert min(number for _, number in running(result)) == 3


def test_several_pods_of_a_statefulset_at_a_time() -> None:
    assert over_s(rolled(workload="statefulset", max_unavailable=2)) < over_s(rolled(workload="statefulset")) - 8


def test_recreate_has_nobody_in_between() -> None:
    result = rolled(strategy="recreate")

    assert min(number for _, number in running(result)) == 0
    assert set(result.final_assignment()) == {"app-4", "app-5", "app-6", "app-7"}
    assert float(result.metric("stop_the_world") or 0) + float(result.metric("unavailable", ("cause boot",)) or 0) > 1


def test_a_version_that_never_gets_ready_stops_at_the_surge() -> None:
    result = rolled(max_surge=1, max_unavailable=0, never_ready=True, deadline=60 * S)

    assert (over_s(result), result.metric("members")) == (70, 5)
    assert [mark.what for mark in result.recording.history.events] == ["begins", "is aborted", "ends"]


@pytest.mark.parametrize(("sigterm", "gone_s"), [("close", 0), ("exit", 0), ("ignored", 7)])
def test_what_the_application_makes_of_sigterm(sigterm: str, gone_s: float) -> None:
    result = rolled(max_surge=0, max_unavailable=1, sigterm=sigterm, grace=7 * S)

    first = min(last for pod in result.recording.history.pods for _, last in pod.running.until(result.recording.now_us))
    assert (first - 30 * S) / S == pytest.approx(gone_s, abs=0.5)
    left = result.metric("detection_time")
    assert (left is None) == (sigterm == "close")


class Stops:
    """When pods were told to end."""

    def __init__(self) -> None:
        self.at_us: list[int] = []

    def on_trace(self, event: TraceEvent) -> None:
        if isinstance(event, PodChanged) and event.what == "stop":
            self.at_us.append(event.at_us)

    def on_step(self, at_us: int, metrics: object) -> None:
        """Do nothing."""


def test_who_waits_for_a_pod_goes_on_when_that_has_made_its_consumer() -> None:
    """Of Java it took 5 to 17 ms. Where steps are as long as a session, milliseconds decide who is still there: surge:eager."""
    stops = Stops()
    rollout = event("rollout", "app", 10, ready=Constant(4 * S), max_surge=1, max_unavailable=0)
    run(scenario(rollout, boot_s=5, duration_s=240, client_start=Uniform(36_000, 114_000)), 1, observers=(stops,))
    late_us = [at_us - (10 + 9 * step) * S for step, at_us in enumerate(stops.at_us, start=1)]

    assert [5_000 * step <= late <= 17_000 * step for step, late in enumerate(late_us, start=1)] == [True] * 4, late_us
