"""Partitions, callbacks and heartbeats, on histories that are written down by hand, and the parts of a run that filters name."""

from __future__ import annotations

import pytest

from kgctl.simulate.metrics.result import MetricView, run
from kgctl.simulate.recording.recording import Counted, Recording
from kgctl.simulate.recording.trace import Happened, Stepped
from kgctl.simulate.scenario.load import load
from kgctl.simulate.scenario.vocabulary import EventStage
from kgctl.yaml_files import FileError, read_yaml
from tests.unit.simulate.metrics.test_metrics import S, at, consumed, gap, recorded


def test_each_partition_has_its_longest_gap() -> None:
    made = recorded()
    consumed(made)
    gap(made, 0, 10, 12, by=0, then=1)
    gap(made, 0, 20, 21, by=1, then=0)
    gap(made, 1, 10, 17, by=0, then=2)
    at(made, 100)
    view = MetricView(made)
    found = [view.metric("partition_gap", part) for part in ((), ("max",), ("min",), ("mean",), ("p75",), ("p90",))]
    assert found == [0, 7, 0, 2.25, 2, 7]


@pytest.mark.parametrize(
    ("part", "number"), [((), 4), (("assigned",), 2), (("lost",), 1), (("empty",), 2), (("assigned", "empty"), 1)]
)
def test_callbacks_are_counted_by_kind(part: tuple[str, ...], number: int) -> None:
    made = recorded()
    made.history.callbacks += [
        Counted(10 * S, 3, 0, "assigned"),
        Counted(11 * S, 0, 1, "assigned"),
        Counted(12 * S, 0, 1, "revoked"),
        Counted(13 * S, 1, 2, "lost"),
    ]
    at(made, 100)
    view = MetricView(made)
    assert view.metric("callbacks", part) == number
    assert (view.metric("callbacks", ("a/1",)), view.metric("callbacks", ("after 12s",))) == (2, 2)


def test_heartbeats_are_counted_from_the_sign_before_them() -> None:
    made = recorded()
    made.history.requests += [
        Counted(at_s * S, 1, pod, api)
        for at_s, pod, api in (
            (1, 0, "SyncGroup"),
            (4, 0, "Heartbeat"),
            (8, 0, "Heartbeat"),
            (9, 0, "OffsetCommit"),
            (40, 0, "JoinGroup"),
            (2, 1, "ConsumerGroupHeartbeat"),
            (7, 1, "ConsumerGroupHeartbeat"),
        )
    ]
    made.history.skipped_beats.append(Counted(38 * S, 10, 0))
    at(made, 100)
    view = MetricView(made)
    assert [view.metric("heartbeat_time", part) for part in ((), ("min",), ("max",), ("a/1",))] == [3, 3, 5, 5]
    assert MetricView(recorded()).metric("heartbeat_time") is None


def rolled() -> Recording:
    made = recorded()
    consumed(made)
    history = made.history
    history.events += [Happened(at_s * S, name, EventStage.BEGINS, "a", name) for at_s, name in ((10, "deploy"), (60, "crash"))]
    history.steps += [Stepped(at_s * S, "deploy", "a") for at_s in (10, 30)]
    gap(made, 0, 12, 14, by=0, then=1)
    gap(made, 1, 40, 43, by=0, then=1)
    gap(made, 2, 70, 75, by=1, then=0)
    at(made, 100)
    return made


def test_a_part_of_the_run_is_an_event_or_a_step_of_it() -> None:
    view = MetricView(rolled())
    parts = (
        ("during deploy",),
        ("during crash",),
        ("step 1",),
        ("during deploy", "step 2"),
        ("step 2", "max"),
        ("step 2", "before 42s"),
    )
    assert [view.metric("unavailable", part) for part in parts] == [5, 5, 2, 3, 3, 2]
    assert [view.metric("moves", ("step 3",)), view.metric("moves", ("during lunch",))] == [None, None]


FILE = """\
kgctl: 1
name: x
topics: {t: 4}
members: {app: {count: 2, boot: 1s}}
group: {config: {partition.assignment.strategy: [range]}}
warmup: 30s
events: [{at: 1s, rolling_restart: app, name: deploy, settle: 20s}]
"""


def test_a_run_knows_its_steps_callbacks_and_beats() -> None:
    loaded = load(read_yaml(FILE + "expect: ['moves(during deploy, step 2) < 9', 'callbacks(revoked, app/0) > 0']\n", "f"))
    result = run(loaded.variants[0].scenario, 1)
    by_step = [float(result.metric("unavailable", (f"step {number}",)) or 0) for number in (1, 2)]
    assert len(result.recording.history.steps) == 2
    assert min(by_step) > 0
    assert sum(by_step) == pytest.approx(result.metric("unavailable"))
    assert result.metric("heartbeat_time") == pytest.approx(3.005, abs=0.01)
    assert (result.metric("callbacks", ("assigned",)), result.metric("callbacks", ("lost",))) == (6, 0)
    assert max(result.longest_gaps().values()) == result.metric("max_gap")


@pytest.mark.parametrize(
    ("check", "why"),
    [
        ("moves(during deploi) < 1", "moves: there is no event 'deploi'; did you mean 'deploy'?"),
        ("moves(step zero) < 1", "moves: a step is a number from 1 on, not 'zero'"),
        ("lag_age(during deploy) < 1s", "lag_age: it is not told by event or step"),
        ("callbacks(asigned) < 1", "callbacks: 'asigned' is no kind of callback; did you mean 'assigned'?"),
        ("errors(UNKNOWN_MEMBERID) < 1", "errors: 'UNKNOWN_MEMBERID' is no error; did you mean 'UNKNOWN_MEMBER_ID'?"),
        ("requests(JoinGruop) < 1", "requests: 'JoinGruop' is no request; did you mean 'JoinGroup'?"),
        ("thrash(lags) < 1", "thrash: 'lags' is no series; did you mean 'lag'?"),
        ("max_gap(app/0, app/1) < 1s", "max_gap: 'app/1' is the second filter of its kind, and takes the place of the first"),
        (
            "max_gap(app/oldest) < 1s",
            "max_gap: 'app/oldest' is not the same pods at all times; write app, app/3, app/0..9 or not app/3",
        ),
        ("max_gap(mean) < 1s", "max_gap: it does not take 'mean'; it takes: topic, selector, after, before, during, step"),
        ("lag_age(at 5m) < 1s", "lag_age: it does not take `at`; it takes: topic"),
        ("rebalances(app/1) < 1", "rebalances: it does not take pods; it takes: cause, after, before, during, step"),
        ("lag(cause boot) < 1", "lag: it does not take a cause; it takes: topic, at, mean, peak, after, before, during, step"),
    ],
)
def test_a_part_that_is_not_there_is_told(check: str, why: str) -> None:
    with pytest.raises(FileError) as caught:
        load(read_yaml(f"{FILE}expect: ['{check}']\n", "f"))
    assert [problem.message for problem in caught.value.problems] == [why]


@pytest.mark.parametrize(
    ("text", "counted"),
    [
        ("members: {a: {config: {group.protocol: consumer}}}\n", "ConsumerGroupHeartbeat"),
        ("members: {a: {streams: {}, config: {group.protocol: streams}}}\n", "StreamsGroupHeartbeat"),
        ("group: {type: share}\nmembers: {a: {}}\n", "ShareGroupHeartbeat"),
    ],
)
def test_requests_of_every_protocol_are_asked_for_by_their_names(text: str, counted: str) -> None:
    head = "kgctl: 1\nname: x\ntopics: {t: 4}\nwarmup: 20s\nduration: 60s\n"
    loaded = load(read_yaml(f"{head}{text}expect: ['requests({counted}) > 9']\n", "f.yaml"))
    result = run(loaded.variants[0].scenario, 1)
    assert result.metric("requests", (counted,)) == pytest.approx(13.5, abs=1.5)
    between = None if counted == "ShareGroupHeartbeat" else pytest.approx(5, abs=0.02)
    assert result.metric("heartbeat_time") == between


@pytest.mark.parametrize(
    ("text", "protocol"),
    [
        ("members: {a: {config: {group.protocol: consumer}}}\n", "consumer"),
        ("members: {a: {streams: {}, config: {group.protocol: streams}}}\n", "streams"),
        ("group: {type: share}\nmembers: {a: {}}\n", "share"),
    ],
)
def test_a_group_is_calm_by_the_heartbeats_of_its_protocol(text: str, protocol: str) -> None:
    cluster = f"cluster: {{config: {{group.{protocol}.heartbeat.interval.ms: 7s}}}}\n"
    head = f"kgctl: 1\nname: x\ntopics: {{t: 4}}\nwarmup: 20s\nduration: 10s\n{cluster}"
    assert run(load(read_yaml(head + text, "f.yaml")).variants[0].scenario, 1).recording.server_heartbeat_ms == 7_000
