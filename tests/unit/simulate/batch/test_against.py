"""A recorded group as a scenario document, and the search for settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from kgctl.simulate.against.fleet import PythonClient
from kgctl.simulate.batch import against
from kgctl.simulate.batch.against import (
    PlaySettings,
    PlayStage,
    PodStay,
    RecordedGroup,
    RecordedPod,
    Search,
    distance,
    document,
    first,
    scenario_of,
    with_measured,
)
from kgctl.simulate.batch.outcome import outcome_of
from kgctl.simulate.batch.plan import task_of, values_of
from kgctl.simulate.metrics.result import run
from kgctl.simulate.recording.recording import Recording
from kgctl.simulate.scenario.load import load
from kgctl.simulate.scenario.model import Scenario
from kgctl.yaml_files import read_yaml

SECOND = 1_000_000
STORY = RecordedGroup(
    group="payments",
    is_consumer=False,
    assignor="range",
    topics={"orders": 12},
    pods=[
        RecordedPod("pay-0", False, 12_000, 300_000, (PodStay(None, None),)),
        RecordedPod("pay-1", False, 12_000, 300_000, (PodStay(None, 90 * SECOND, is_crash=True),)),
        RecordedPod("pay-2", False, 12_000, 300_000, (PodStay(30 * SECOND, 120 * SECOND),)),
    ],
    commit_ms=2_000,
    written={"orders": 60.0},
    length_us=180 * SECOND,
)
DOCUMENT = {
    "kgctl": 1,
    "name": "payments-as-recorded",
    "question": "Does the simulation of payments come out as its history says?",
    "topics": {"orders": {"partitions": 12}},
    "cluster": {"network": {"latency": "5ms"}},
    "group": {
        "id": "payments",
        "config": {
            "partition.assignment.strategy": ["range"],
            "session.timeout.ms": 12_000,
            "heartbeat.interval.ms": 3_000,
        },
    },
    "members": {
        "pay": {
            "count": 2,
            "start": "0s",
            "boot": "0s",
            "client": "java",
            "config": {"max.poll.interval.ms": 300_000},
            "poll": {"timeout": "100ms", "pause": "0ms..500ms"},
            "commit": "every 2s",
            "rate": "40/s",
        },
        "pay-later": {
            "count": 1,
            "start": "never",
            "boot": "0s",
            "client": "java",
            "config": {"max.poll.interval.ms": 300_000},
            "poll": {"timeout": "100ms", "pause": "0ms..500ms"},
            "commit": "every 2s",
            "rate": "40/s",
        },
    },
    "traffic": {"orders": "60.0/s"},
    "warmup": "1m",
    "duration": "3m",
    "events": [
        {"at": "28s500ms", "start": "pay-later/0"},
        {"at": "1m30s", "crash": "pay/1"},
        {"at": "1m58s500ms", "stop": "pay-later/0"},
    ],
    "runs": 5,
}


def test_a_story_is_a_scenario() -> None:
    settings = PlaySettings(pause=500, heartbeat=3_000, session=12_000, latency=5)
    assert document(STORY, settings) == DOCUMENT
    assert [event.kind for event in scenario_of(DOCUMENT).events] == ["start", "crash", "stop"]


def test_the_time_out_that_the_records_tell_is_where_the_search_begins() -> None:
    brief = replace(STORY, pods=[replace(pod, session_ms=6_000) for pod in STORY.pods])
    nothing = replace(STORY, pods=[replace(pod, session_ms=None) for pod in STORY.pods])
    assert [first(each) for each in (STORY, brief, nothing)] == [
        PlaySettings(session=12_000),
        PlaySettings(session=6_000, heartbeat=2_000),
        PlaySettings(),
    ]


def test_distance_is_the_mean_over_what_both_tell() -> None:
    recorded = {"same": 4.0, "twice": 9.0, "unknown": None, "unsimulated": 1.0}
    ranges = {"same": (4.0, 4.0, 5.0), "twice": (0.0, 0.0, 9.0), "unknown": (1.0, 1.0, 1.0)}
    assert distance(recorded, ranges) == pytest.approx((0 + 9 / 10) / 2)
    assert distance({}, {}) == 1


def test_the_search_finds_the_settings_and_tries_none_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The measure is made of the settings themselves, so that what is to be found is known."""
    tried: list[PlaySettings] = []

    def document_of(_: RecordedGroup, settings: PlaySettings) -> dict[str, Any]:
        tried.append(settings)
        return {}

    class Recorded:
        recording = Recording(Scenario(name="payments", warmup_us=59 * SECOND), 1, lead_us=SECOND)

        def records(self) -> list[Any]:
            return []

    def measure(records: Sequence[Any], begin_ms: int, end_ms: int) -> dict[str, float | None]:
        assert (list(records), begin_ms, end_ms) == ([], 60_000, 240_000)
        now = tried[-1]
        return {"pause": now.pause / 100, "heartbeat": now.heartbeat / 100, "latency": float(now.latency), "nobody": None}

    monkeypatch.setattr(against, "document", document_of)
    monkeypatch.setattr(against, "scenario_of", lambda _: Recorded.recording.scenario)
    monkeypatch.setattr(against, "run", lambda *_, **__: Recorded())

    found = Search(replace(STORY, pods=()), {"pause": 10.0, "heartbeat": 100.0, "latency": 50.0, "nobody": 1.0}, measure)
    best = found.best()

    assert best.settings == PlaySettings(pause=1_000, heartbeat=10_000, session=45_000, latency=50)
    assert best.distance == 0
    assert best.ranges == {"pause": (10, 10, 10), "heartbeat": (100, 100, 100), "latency": (50, 50, 50)}
    assert len(tried) == len(set(tried))
    assert found.runs == len(tried) * len(against.SEARCH_SEEDS)


def test_a_play_says_which_metrics_of_its_group_it_does_not_know() -> None:
    """Not those of groups that nobody plays: of share groups, of an application's tasks."""
    text = "kgctl: 1\nname: tiny\ntopics: {orders: 2}\nmembers: {app: {count: 1}}\nduration: 5s\n"
    loaded, nowhere = load(read_yaml(text, "tiny.yaml")), cast("Any", None)
    values = [values_of(run(each.scenario, 1), task_of(loaded, each, 1), {}) for each in loaded.variants]
    stage = PlayStage(kind=PythonClient(), connection={}, cluster=nowhere, label="here")
    measured = with_measured(outcome_of(loaded, [1], values), loaded, stage, values).measured
    assert measured is not None
    unsaid = "cross_rack, aborted, heartbeat_time, fenced, requests, record_bytes, drain_time"
    assert measured.notes == (f"not measured, as real clients cannot say it: {unsaid}",)
