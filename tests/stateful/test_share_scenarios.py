"""Share groups under pairs of events: no record is lost, none is delivered beyond the limit, the pods are as wanted.

Each run holds the invariants by itself (`kgctl.simulate.engine.share.accounts`): a record is done, or with a member, or came
back, or was never delivered.
"""

from __future__ import annotations

from random import Random

import pytest

from kgctl.simulate.metrics.result import run
from tests.support.simulate.shared import SharedRun, scenario_of

EVENTS = (
    "crash: app/0, for: 8s", "crash: app, for: 3s", "stop: app/1, for: 5s", "restart: app", "stall: app/0, for: 25s",
    "slow: app, factor: 5, for: 20s", "pause_process: app/1, for: 30s", "network: app/0, partition: true, for: 35s",
    "network: app, latency: 200ms, for: 10s", "scale: app, to: 1", "scale: app, to: 6", "rolling_restart: app, settle: 2s",
    "rollout: app, set: {max.poll.records: 5}", "poison: orders, records: 4", "add_partitions: orders, to: 9",
    "broker_down: 1, for: 15s", "coordinator_move: coordinator", "node_down: app/1, broker: 2, for: 20s",
    "set_traffic: orders, rate: 0/s", "set_traffic: orders, rate: 90/s", "delete_topic: orders",
)  # fmt: skip
MODES = ("implicit", "explicit")


def drawn(seed: int) -> str:
    """A scenario of a share group, by chance."""
    rng = Random(seed)
    mode = rng.choice(MODES)
    poison = rng.choice(("release", "reject", "crash")) if mode == "explicit" else "crash"
    group = f"share.delivery.count.limit: {rng.randint(2, 6)}, share.record.lock.duration.ms: 15s"
    config = f"share.acknowledgement.mode: {mode}, max.poll.records: {rng.choice((1, 7, 60))}"
    config += (
        f", share.acquire.mode: {rng.choice(('batch_optimized', 'record_limit'))}, max.poll.interval.ms: {rng.choice((10, 300))}s"
    )
    commit = rng.choice(("auto", "after-batch"))
    first, second = rng.sample(EVENTS, 2)
    return (
        f"cluster: {{brokers: 3}}\n"
        f"group: {{type: share, config: {{{group}, share.auto.offset.reset: {rng.choice(('earliest', 'latest'))}}}}}\n"
        f"members: {{app: {{count: {rng.randint(2, 5)}, process_time: {rng.choice((1, 40, 300))}ms, on_poison: {poison}, "
        f"commit: {commit}, boot: 1s, on_failure: restart, config: {{{config}}}}}}}\n"
        f"traffic: {{orders: {rng.choice((3, 25))}/s}}\nduration: 90s\n"
        f"events: [{{at: {rng.randint(1, 30)}s, {first}}}, {{at: {rng.randint(1, 40)}s, {second}}}]\n"
    )


def held(seed: int) -> None:
    """Raises `AssertionError`, with the scenario; an `InvariantViolation` where a record is lost."""
    text = drawn(seed)
    scenario = scenario_of(text)
    result = SharedRun(run(scenario, seed).recording)
    limit = int(scenario.group.settings["share.delivery.count.limit"])
    assert result.metric("most_deliveries") <= limit, text
    assert all(each.deliveries <= limit for each in result.share.archived), text
    running = [pod for pod in result.recording.history.pods if pod.wanted.since_us is not None and pod.is_booted]
    assert len(running) == result.metric("replicas") or "stop" in text or "crash" in text or "node_down" in text, text
    assert result.metric("lag") >= -1, text
    in_flight, backlog, lag = (result.metric(name) for name in ("in_flight", "backlog", "lag"))
    assert "delete_topic" in text or abs(in_flight + backlog - lag) < 1e-3, (text, in_flight, backlog, lag)


@pytest.mark.parametrize("seed", range(4))
def test_pairs_of_events_lose_no_record(seed: int) -> None:
    held(seed)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(4, 304))
def test_many_pairs_of_events_lose_no_record(seed: int) -> None:
    held(seed)
