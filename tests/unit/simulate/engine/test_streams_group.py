"""Groups of Kafka Streams applications in runs: who reads a partition, and when; the classic protocol."""

from __future__ import annotations

import random

import pytest

from kgctl.simulate.metrics.result import RunResult, run
from kgctl.simulate.recording.owners import cause_of
from kgctl.simulate.scenario.load import load
from kgctl.simulate.scenario.vocabulary import GapCause
from kgctl.yaml_files import read_yaml

FILE = """
kgctl: 1
name: app
topics: {orders: 6}
group: {id: totals}
members:
  app: {count: 3, boot: 1s, streams: {store: 360000, restore: 20000/s}, config: {probing.rebalance.interval.ms: 60s}}
warmup: 60s
"""


def played(more: str, *settings: str) -> RunResult:
    (variant,) = load(read_yaml(FILE + more, "s.yaml"), settings=settings).variants
    return run(variant.scenario, 1)


def test_an_instance_that_restarts_waits_for_its_old_session() -> None:
    """KafkaStreams#close leaves the group to the session time-out: its tasks come back with the end of that, from its disk."""
    result = played("duration: 120s\nevents: [{at: 10s, restart: app/0}]")

    gaps = [length for length in result.longest_gaps().values() if length > 1]
    assert len(gaps) == 2
    assert all(40 < length < 48 for length in gaps)
    assert result.metric("restored") == 0
    assert result.metric("time_to_whole") == max(gaps)
    waited = [result.metric("unavailable", (f"cause {cause}",)) for cause in ("detection", "restore")]
    assert waited == [pytest.approx(sum(gaps), abs=1), pytest.approx(2 * 0.1, abs=0.02)]  # poll.ms, of each task


def test_a_closed_instance_that_is_to_leave_hands_over_at_once() -> None:
    leaves = "members.app.config.group.membership.operation=leave"
    result = played("duration: 120s\nevents: [{at: 10s, restart: app/0}]", leaves)
    assert float(result.metric("max_gap") or 99) < 8


def test_a_task_is_nobodys_while_it_is_restored() -> None:
    """The lane of each of the dead pod's partitions: detection, then restoration, then an owner."""
    result = played("duration: 150s\nevents: [{at: 10s, crash: app/1, for: 5s}]", "members.app.streams.disk=lost")
    measured = result.metrics.measured
    waited = [
        [cause_of(value) for _, _, value in measured.segments(number, (measured.start_us, measured.end_us)) if value < 0]
        for number in range(6)
    ]
    dead = [lane for lane in waited if GapCause.DETECTION in lane]
    assert dead == [[GapCause.DETECTION, GapCause.FETCH, GapCause.RESTORE]] * 2
    assert result.metric("restored") == 120_000


def test_a_new_instance_gets_tasks_when_it_has_caught_up() -> None:
    """No task is down for a restoration: its copy warms up, and a probing rebalance moves it."""
    added = "duration: 280s\nevents: [{at: 10s, scale: app, to: 4}]"
    few, many = played(added), played(added, "members.app.config.max.warmup.replicas=9")

    assert [few.metric("restored"), many.metric("restored")] == [0, 0]
    assert [float(each.metric("max_gap") or 99) < 5 for each in (few, many)] == [True, True]
    assert float(few.metric("probing_rebalances") or 0) > float(many.metric("probing_rebalances") or 0) == 1
    assert few.metric("warmups") == many.metric("warmups")
    assert many.metric("copied") == 60_000 * float(many.metric("warmups") or 0)
    assert {len(topics.get("orders", ())) for topics in many.final_assignment().values()} == {1, 2}


def test_an_acceptable_lag_above_the_state_moves_tasks_at_once() -> None:
    added = "duration: 200s\nevents: [{at: 10s, scale: app, to: 4}]"
    result = played(added, "members.app.config.acceptable.recovery.lag=60000")
    assert [result.metric("warmups"), result.metric("probing_rebalances")] == [0, 0]
    assert float(result.metric("restored") or 0) > 0


def test_parts_of_a_topology_are_tasks_of_their_own() -> None:
    topics = "duration: 100s\nevents: [{at: 10s, restart: app/0}]"
    parts = 'members.app.streams={"disk": "lost", "subtopologies": {"a": {"topics": ["orders"], "store": 60000}, "b": ["pays"]}}'
    result = played(topics, 'topics={"orders": 6, "pays": 3}', parts)
    assert result.recording.tasks is not None
    assert list(result.recording.tasks.tasks) == [
        *(f"0_{number}" for number in range(6)),
        *(f"1_{number}" for number in range(3)),
    ]
    assert result.metric("restored") == 20_000  # of the part that has a store: a third of its six tasks


def test_topics_that_are_joined_are_one_task_for_each_partition() -> None:
    result = played("duration: 60s", 'topics={"orders": 6, "pays": 4}')
    assert result.recording.tasks is not None
    assert {name: len(numbers) for name, numbers in result.recording.tasks.tasks.items()} == {
        **{f"0_{number}": 2 for number in range(4)},
        "0_4": 1,
        "0_5": 1,
    }


STREAMS = "members.app.config.group.protocol=streams"


def test_with_the_streams_protocol_an_instance_that_closes_leaves() -> None:
    """It is back before the others have beaten, and has its tasks again; or its tasks are restored elsewhere."""
    soon, late = (
        played("duration: 120s\nevents: [{at: 10s, restart: app/0}]", STREAMS, f"members.app.boot={boot}")
        for boot in ("100ms", "20s")
    )
    assert [soon.metric("restored"), late.metric("restored")] == [0, 120_000 + 60_000]
    assert [float(each.metric("max_gap") or 99) < 15 for each in (soon, late)] == [True, True]
    assert soon.metric("unavailable", ("cause detection",)) == 0


def test_with_the_streams_protocol_a_crash_waits_for_the_brokers_session() -> None:
    crash = "duration: 150s\nevents: [{at: 10s, crash: app/1, for: 5s}]"
    for session_ms in (45_000, 60_000):
        brokers = f'cluster.config={{"group.streams.session.timeout.ms": {session_ms}}}'
        result = played(crash, STREAMS, "members.app.streams.disk=lost", brokers)
        assert float(result.metric("max_gap") or 0) == pytest.approx(session_ms / 1000 + 4, abs=7)
        assert result.metric("restored") in (120_000, 180_000)


def test_with_the_streams_protocol_standbys_are_the_brokers() -> None:
    crash = "duration: 200s\nevents: [{at: 10s, crash: app/1, for: 60s}]"
    standby = 'cluster.config={"group.streams.num.standby.replicas": 1}'
    result = played(crash, STREAMS, "members.app.streams.disk=lost", standby)
    # One of the two has its copy where there is room for it: the sticky assignor keeps the loads alike first.
    assert [result.metric("restored", ("before 75s",)), result.metric("warmups")] == [60_000, 0]
    assert result.metric("restored", ("after 75s",)) in (60_000, 120_000, 180_000)  # by the instance that is back
    assert [result.metric("standby_coverage", (f"at {second}s",)) for second in (5, 180)] == [1, 1]


def test_with_the_streams_protocol_a_new_instance_restores_before_it_runs() -> None:
    """Kafka 4.3 has no warm-ups there."""
    result = played("duration: 150s\nevents: [{at: 10s, scale: app, to: 6}]", STREAMS)
    assert result.metric("restored") == 3 * 60_000
    assert result.metric("warmups") == 0
    assert {len(topics.get("orders", ())) for topics in result.final_assignment().values()} == {1}


def test_results_of_other_groups_have_no_metrics_of_tasks() -> None:
    (variant,) = load(read_yaml("{kgctl: 1, name: x, topics: {t: 2}, members: {a: {count: 1}}, duration: 9s}", "s.yaml")).variants
    result = run(variant.scenario, 1)
    assert "task_downtime" not in result.summary()
    assert result.metric("task_downtime") is None


EVENTS = (
    "{at: %ds, crash: app/%d, for: 20s}",
    "{at: %ds, restart: app/%d}",
    "{at: %ds, stop: app/%d, for: 30s}",
    "{at: %ds, pause_process: app/%d, for: 50s}",
    "{at: %ds, stall: app/%d, for: 40s}",
    "{at: %ds, network: app/%d, partition: true, for: 60s}",
    "{at: %ds, rolling_restart: app} # %d",
    "{at: %ds, rollout: app, workload: deployment} # %d",
    "{at: %ds, broker_down: 1, for: 30s} # %d",
    "{at: %ds, scale: app, by: +1} # %d",
)


def _any_scenario(draw: random.Random) -> tuple[str, ...]:
    standbys = draw.choice((0, 0, 1, 2))
    config = {
        "group.protocol": draw.choice(("classic", "streams")),
        "num.standby.replicas": standbys,
        "max.warmup.replicas": draw.randint(1, 4),
        "acceptable.recovery.lag": draw.choice((0, 10_000, 70_000)),
        "session.timeout.ms": draw.choice((10_000, 45_000)),
        "processing.guarantee": draw.choice(("at_least_once", "exactly_once_v2")),
        "state.cleanup.delay.ms": draw.choice((20_000, 600_000)),
    }
    set_to = (f"members.app.config.{name}={value}" for name, value in config.items())
    brokers = f'cluster.config={{"group.streams.num.standby.replicas": {standbys}}}'
    return (
        f"members.app.count={draw.randint(1, 4)}",
        f"members.app.streams.disk={draw.choice(('kept', 'lost'))}",
        brokers,
        *set_to,
    )


def _check(seed: int) -> None:
    """What holds whatever happens: one instance runs a task, all run in the end, and nothing is restored that there is not."""
    draw = random.Random(seed)
    settings = _any_scenario(draw)
    pods = int(settings[0].partition("=")[2])
    events = "\n".join(f"  - {draw.choice(EVENTS) % (draw.randint(0, 90), draw.randrange(pods))}" for _ in range(2))
    traffic = draw.choice(("", "traffic: {orders: 3000/s}\n"))
    result = played(f"{traffic}duration: 700s\nevents:\n{events}", *settings)
    recording = result.recording
    told = f"seed {seed}: {settings}\n{events}"

    assert not recording.ending.stopped, told
    assert recording.owners.unowned == 0, told
    doubles = {pod for _, _, _, pod in recording.owners.double_owned}
    assert not doubles or any(word in events for word in ("pause", "stall", "partition:")), told
    assert recording.tasks is not None
    starts = sum(len(lane) // 2 for lane in recording.owners.changes)
    largest = 60_000 + 3_000 // 6 * 900
    assert all(0 < each.amount <= largest for each in recording.tasks.restored), told
    assert sum(each.amount for each in recording.tasks.restored) <= starts * largest, told
    assert {pod.name for pod in recording.history.pods if pod.in_group.since_us is not None} == {
        pod.name for pod in recording.history.pods if pod.wanted.since_us is not None
    }, told


def test_pairs_of_any_events_leave_every_task_with_one_instance() -> None:
    """Two events at any times; a process that stands still or is cut off may read on for a while, as with any consumer."""
    for seed in range(25):
        _check(seed)


@pytest.mark.deep
def test_many_pairs_of_any_events_leave_every_task_with_one_instance() -> None:
    """The same, of more of them."""
    for seed in range(25, 1_500):
        _check(seed)
