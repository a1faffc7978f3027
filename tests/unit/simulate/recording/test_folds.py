"""What a recording tells of a run is what its log says, and nobody else writes it."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from kgctl.simulate.metrics.result import run
from kgctl.simulate.recording.folds import Histories
from kgctl.simulate.recording.log import EventLog
from kgctl.simulate.recording.recording import Intervals, Recording
from kgctl.simulate.recording.trace import TraceEvent
from kgctl.simulate.scenario.model import Scenario
from tests.repo.project import ROOT
from tests.support.simulated import S, event, scenario

OF_THE_LOG = (
    *("applied_us", "callbacks", "detections", "discoveries", "disturbances", "drawn", "duplicates", "events", "failed"),
    *("fenced_commits", "group", "kicked", "lost", "overtaken", "scalings", "steps", "triggers", "waits"),
)
OF_PODS = {"running": Intervals, "in_group": Intervals, "wanted": Intervals, "lives_us": list, "member_id": str}
CRASH, STALL = event("crash", "app/1", 5, for_us=10 * S), event("stall", "app/0", 30, for_us=400 * S)


@pytest.mark.parametrize("given", [scenario(CRASH, rate=100), scenario(STALL, rate=100), scenario(CRASH, STALL)])
def test_histories_are_a_fold_over_the_log(given: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[TraceEvent] = []
    emit = EventLog.emit

    def kept(own: EventLog, event: TraceEvent) -> None:
        log.append(event)
        emit(own, event)

    monkeypatch.setattr(EventLog, "emit", kept)
    told = run(given, 1).recording
    again = Recording(given, 1, lead_us=told.start_us - given.warmup_us)
    again.history.pods += [replace(pod, **{name: make() for name, make in OF_PODS.items()}) for pod in told.history.pods]

    other = EventLog(Histories(again), ())
    for each in log:
        emit(other, each)

    assert {name: getattr(again.history, name) for name in OF_THE_LOG} == {
        name: getattr(told.history, name) for name in OF_THE_LOG
    }
    assert [[getattr(pod, name) for name in OF_PODS] for pod in again.history.pods] == [
        [getattr(pod, name) for name in OF_PODS] for pod in told.history.pods
    ]
    assert told.history.group
    assert told.history.disturbances


def test_only_what_begins_a_rebalance_has_set_it_off() -> None:
    history = run(scenario(event("stop", "app/1", 10), duration_s=40), 1).recording.history
    begun = [(each.at_us, each.trigger) for each in history.group if each.begins]
    assert history.triggers == begun
    assert len(begun) < len(history.group)


def test_no_actor_of_the_engine_writes_a_history_itself() -> None:
    folder = ROOT / "kgctl" / "simulate" / "engine"
    wrong = re.compile(r"context\.history\.\w+(\.append|\.set| \+=)|history\.pods\[.*\]\.\w+\.(set|append|came)")
    found = [(path.name, line) for path in folder.rglob("*.py") for line in path.read_text().splitlines() if wrong.search(line)]
    assert found == []
