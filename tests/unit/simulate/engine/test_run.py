"""Whole runs, small enough to be worked out by hand.

Members of the librdkafka profile answer at once; without drift a run has no randomness: one way takes 1 ms, a commit's or join's
answer 2 ms more for its replication.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from kgctl.errors import UsageError
from kgctl.simulate.engine.context import LEAD_US
from kgctl.simulate.engine.run import RunLimits
from kgctl.simulate.metrics.result import LaneSegment, RunResult, run
from kgctl.simulate.recording.trace import TraceEvent
from kgctl.simulate.scenario.fields import changed
from kgctl.simulate.scenario.load import load
from kgctl.simulate.scenario.model import Network, Scenario
from kgctl.simulate.scenario.quantities import Constant
from kgctl.yaml_files import read_yaml
from tests.support.simulated import CONSUMER, COOPERATIVE, RANGE, S, event, scenario

EXACT: dict[str, Any] = {"client": "librdkafka", "heartbeat_drift_us": 0, "count": 2, "partitions": 2}
QUICK = {"session.timeout.ms": "10000", "heartbeat.interval.ms": "3000"}
SUMMARY = ("unavailable", "max_gap", "rebalances", "generations", "moves", "duplicates", "lost", "time_to_stable", "errors")


def summary(result: RunResult) -> dict[str, float | str | None]:
    return {name: result.metric(name) for name in SUMMARY}


def test_a_cold_start_takes_two_initial_delays() -> None:
    result = run(scenario(warmup_s=0, duration_s=20, boot_s=1, **EXACT), 1)
    # Subscribed at 1 s; coordinator known at 1.002, JoinGroup there at 1.003, again with its id at 1.005, which starts the delay:
    # 3 s, and 3 s more because members came. Then answers, the leader's assignor (5 ms base), sync, offsets.
    lanes = result.lanes()
    assert sorted(lane[-1].owner or "" for lane in lanes.values()) == ["app-0", "app-1"]
    assert all(7_000_000 < lane[-1].from_us < 7_050_000 for lane in lanes.values())
    assert [segment.cause for segment in lanes["t-0"]] == ["boot", "rebalance", "fetch", None]
    assert (result.metric("generations"), result.metric("rebalances"), result.metric("state")) == (1, 1, "Stable")


def test_a_crash_is_noticed_when_the_session_is_over() -> None:
    result = run(scenario(event("crash", "app/1", at_s=0), config={**RANGE, **QUICK}, **EXACT), 1)
    detection = result.metric("detection_time")
    assert isinstance(detection, float)
    # The last beat left up to 3 s before.
    assert 7 <= detection <= 10
    # The other member learns of it by its next beat.
    assert detection <= (result.metric("max_gap") or 0) <= detection + 3.1  # type: ignore[operator]
    by_cause = {
        cause: result.metric("unavailable", (f"cause {cause}",)) for cause in ("detection", "handover", "rebalance", "fetch")
    }
    assert sum(by_cause.values()) == pytest.approx(result.metric("unavailable"))  # type: ignore[arg-type]
    assert by_cause["detection"] == detection
    assert (result.metric("kicked"), result.metric("moves")) == (0, 1)


def test_a_static_member_that_comes_back_in_time_costs_only_its_own_downtime() -> None:
    config = {**COOPERATIVE, "session.timeout.ms": "45000"}
    result = run(scenario(event("restart", "app/1"), config=config, instance_id="$name", boot_s=8, **EXACT), 1)
    found = summary(result)
    assert {name: found[name] for name in ("rebalances", "generations", "moves", "errors")} == {
        "rebalances": 0,
        "generations": 0,
        "moves": 0,
        "errors": 0,
    }
    assert 8.0 <= result.metric("max_gap") <= 8.1  # type: ignore[operator]
    assert result.metric("unavailable") == result.metric("max_gap")
    assert result.metric("unavailable", ("cause static_wait",)) == pytest.approx(
        result.metric("unavailable") - result.metric("unavailable", ("cause fetch",))  # type: ignore[operator]
    )


@pytest.mark.parametrize("config", [RANGE, COOPERATIVE, CONSUMER], ids=["range", "cooperative", "consumer"])
def test_quiet_times_cost_nothing_and_change_nothing(config: dict[str, str]) -> None:
    """A link that might lose a packet is never taken as quiet: every heartbeat is an event there."""
    events = (event("crash", "app/1", at_s=600, for_us=30 * S), event("scale", "app", at_s=1200, by=1))
    quiet = scenario(*events, config=config, rate=100, **EXACT)
    loud = changed(quiet, cluster=changed(quiet.cluster, network=Network(loss_ppm=1)))
    first, second = run(quiet, 1), run(loud, 1)
    assert summary(first) == summary(second)
    assert first.lanes() == second.lanes()
    assert first.tasks * 3 < second.tasks


def test_an_idle_day_of_many_members_is_few_events() -> None:
    result = run(scenario(count=200, partitions=400, config=CONSUMER, warmup_s=120, duration_s=24 * 3600), 1)
    assert (result.metric("unavailable"), result.metric("members"), result.metric("spread")) == (0, 200, 0)
    assert (result.metric("requests", ("ConsumerGroupHeartbeat",)) or 0) > 200 * 24 * 720  # type: ignore[operator]
    assert result.tasks < 12_000


class Watcher:
    """Keeps what it is shown."""

    def __init__(self) -> None:
        self.events: list[TraceEvent] = []
        self.steps: list[tuple[int, object]] = []

    def on_trace(self, event: TraceEvent) -> None:
        self.events.append(event)

    def on_step(self, at_us: int, metrics: Any) -> None:
        self.steps.append((at_us, metrics.metric("owners")))


def test_observers_see_the_log_that_the_digest_is_of() -> None:
    from hashlib import sha256

    watcher = Watcher()
    result = run(scenario(event("restart", "app/0"), rate=10), 3, observers=[watcher])
    lines = [event.line() for event in watcher.events]
    assert result.digest == sha256("".join(line + "\n" for line in lines).encode()).hexdigest()
    assert result.events == len(lines)
    assert {json.loads(line)["kind"] for line in lines} == {
        "pod",
        "request",
        "reply",
        "group",
        "removed",
        "own",
        "disown",
        "commit",
        "event",
    }
    assert [at_us for at_us, _ in watcher.steps] == sorted(at_us for at_us, _ in watcher.steps)
    assert {owners for _, owners in watcher.steps} == {0, 1}


@pytest.mark.usefixtures("exact_warmup")
def test_a_run_without_duration_ends_a_minute_after_it_is_stable() -> None:
    result = run(scenario(event("restart", "app/0")), 1)
    stable = result.metric("time_to_stable")
    last = max(at_us for at_us in result.recording.history.disturbances) - 20 * S
    assert isinstance(stable, float)
    assert result.end_us == last + round(stable * S) + 60 * S
    assert result.stopped == ""


def test_a_run_that_never_gets_stable_says_so() -> None:
    never = scenario(event("crash", "app"), rate=10)
    result = run(never, 1, limits=RunLimits(tail_us=120 * S))
    assert (result.stopped, result.end_us, result.metric("time_to_stable")) == (
        "not stable after its last event",
        120 * S,
        float("inf"),
    )
    assert result.metric("unavailable", ("cause boot",)) == 8 * 120


def test_of_several_groups_those_are_not_stable_that_are_not() -> None:
    text = """\
kgctl: 1
name: x
warmup: 20s
topics: {orders: 2}
groups: {fine: {}, gone: {}}
members: {app: {group: fine, count: 1}, dead: {group: gone, count: 1}}
events: [{at: 0s, crash: dead}]
"""
    runs = {each.name: run(each.scenario, 1, limits=RunLimits(tail_us=60 * S)) for each in load(read_yaml(text, "f")).variants}
    assert {name: each.stopped for name, each in runs.items()} == {"fine": "", "gone": "not stable after its last event"}


def test_a_rollout_of_no_pod_has_no_effect() -> None:
    text = """\
kgctl: 1
name: x
warmup: 20s
topics: {orders: 2}
members: {app: {count: 2}}
events: [{at: 0s, rollout: app, workload: statefulset, partition: 2}]
"""
    marks = run(load(read_yaml(text, "f")).variants[0].scenario, 1).recording.history.events
    assert [mark.what for mark in marks] == ["begins", "has no effect", "ends"]


def test_a_run_stops_at_its_limits() -> None:
    result = run(scenario(event("rolling_restart", "app", settle=S)), 1, limits=RunLimits(tasks=200))
    assert (result.stopped, result.tasks) == ("200 events", 200)


def test_records_are_kept_on_demand() -> None:
    assert run(scenario(duration_s=1), 1).records() == []
    kept = run(scenario(duration_s=1), 1, keeps_records=True).records()
    assert [type(effect.record).__name__ for _, effect in kept][:1] == ["CoordinatorRecord"]


def test_a_consumer_that_cannot_start_is_told_as_an_error() -> None:
    config = {"partition.assignment.strategy": "range,cooperative-sticky"}
    result = run(scenario(config=config, client="librdkafka", warmup_s=0, duration_s=90), 1)
    assert (result.metric("errors", ("INVALID_CONFIG",)), result.metric("stuck_members"), result.metric("members")) == (4, 4, 0)


def test_a_wrong_setting_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match=r"sesion\.timeout\.ms"):
        run(scenario(config={"sesion.timeout.ms": "1"}), 1)


def test_lanes_are_told_from_the_end_of_the_warm_up() -> None:
    result = run(scenario(event("crash", "app/0", at_s=5), count=1, partitions=1, duration_s=10), 1)
    assert result.lanes() == {
        "t-0": [LaneSegment(0, 5 * S, "app-0", None), LaneSegment(5 * S, 10 * S, None, "boot")],
    }
    assert result.final_assignment() == {"app-0": {}}


def test_the_same_seed_gives_the_same_log_and_another_seed_another() -> None:
    def digest(seed: int) -> str:
        return run(scenario(event("rolling_restart", "app"), rate=100), seed).digest

    assert digest(1) == digest(1) != digest(2)


def test_no_members_at_all_is_a_run_as_well() -> None:
    empty = Scenario(name="empty", duration_us=S)
    assert run(empty, 1).summary()["unavailable"] == 0


@pytest.mark.parametrize(
    ("client", "instance_id", "prefix"),
    [
        ("java", None, "consumer-group-1-"),
        ("java", "$name", "app-0-"),
        ("librdkafka", None, "rdkafka-"),
        ("kafka-go", None, "app@app-0 (github.com/segmentio/kafka-go)-"),
        ("franz-go", None, "kgo-"),
    ],
)
def test_member_ids_begin_with_the_clients_own_id(client: str, instance_id: str | None, prefix: str) -> None:
    ran = run(scenario(client=client, instance_id=instance_id, client_id=None, count=1, duration_s=5), 1)
    assert ran.recording.history.pods[0].member_id.startswith(prefix)


def test_assignors_deal_by_ids_that_say_nothing_of_the_pod() -> None:
    orders = set()
    for seed in range(1, 7):
        given = run(scenario(client_id=None, count=3, partitions=3, duration_s=5), seed).final_assignment()
        orders.add(tuple(topics["t"][0] for _, topics in sorted(given.items())))
    assert len(orders) > 2


@pytest.mark.parametrize("rate", [None, 0])
def test_traffic_of_nothing_is_no_traffic(rate: int | None) -> None:
    result = run(scenario(event("stop", "app/1", 5), rate=rate, duration_s=30), 1)
    assert not result.recording.has_traffic
    assert result.digest == run(scenario(event("stop", "app/1", 5), duration_s=30), 1).digest


def test_an_application_that_pauses_joins_late_though_it_reads_nothing() -> None:
    """A pod that has no partitions is in poll() for a tenth of its time only; the others wait for it in an eager rebalance."""
    scale = event("scale", "app", 10, by=1)
    times = {}
    for timeout_us in (None, 100_000, 900_000):
        given = scenario(scale, poll=Constant(900_000), poll_timeout_us=timeout_us, duration_s=60, rate=10)
        times[timeout_us] = [run(given, seed).metric("rebalance_time") or 0 for seed in range(1, 6)]
    mean = {timeout_us: sum(map(float, found)) / len(found) for timeout_us, found in times.items()}
    assert mean[100_000] > mean[900_000] > mean[None]


def test_the_consumer_protocol_hands_over_when_poll_is_called() -> None:
    scale = event("scale", "app", 10, by=1)
    gaps = []
    for timeout_us in (None, 2 * S):
        given = scenario(scale, config=CONSUMER, poll=Constant(0), poll_timeout_us=timeout_us, duration_s=90)
        gaps.append(max(float(run(given, seed).metric("max_gap") or 0) for seed in range(1, 4)))
    assert gaps[1] > gaps[0]


def test_each_seed_meets_the_group_at_another_point_of_its_beat() -> None:
    """The same for all variants, so that they can be compared; what starts with the first event has no beat yet."""
    given = scenario(event("stop", "app/1", at_s=5), duration_s=30)
    leads = {seed: run(given, seed).recording.start_us - given.warmup_us for seed in range(1, 9)}
    assert len(set(leads.values())) == 8
    assert all(0 <= lead_us <= LEAD_US for lead_us in leads.values())
    assert run(scenario(config=COOPERATIVE, warmup_s=40), 3).recording.start_us == 40 * S + leads[3]
    assert run(scenario(warmup_s=0, duration_s=30), 3).recording.start_us == 0


def test_a_pod_that_starts_behind_the_warmup_starts_as_far_behind_it_as_the_file_says() -> None:
    result = run(scenario(start=Constant(23 * S), warmup_s=20, duration_s=30, boot_s=1), 3)
    assert result.recording.start_us > 20 * S
    first, _ = result.recording.history.pods[0].running.until(result.recording.now_us)[0]
    assert first - result.recording.start_us == 4 * S
