"""What each kind of event does to a group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kgctl.simulate.engine.run import RunLimits
from kgctl.simulate.metrics.result import RunResult, run
from kgctl.simulate.scenario.event import PODS, RACK, Event, Share, TargetType
from kgctl.simulate.scenario.events import EVENT_KINDS
from kgctl.simulate.scenario.fields import Commit, CommitMode, changed
from kgctl.simulate.scenario.load import load
from kgctl.simulate.scenario.quantities import Constant, Uniform
from kgctl.simulate.scenario.vocabulary import Subscribed
from kgctl.yaml_files import read_yaml
from tests.support.simulated import CONSUMER, COOPERATIVE, RANGE, S, event, finished, scenario
from tests.unit.simulate.batch.test_explain import NAMED

pytestmark = pytest.mark.usefixtures("exact_warmup")

Step = tuple[float, str]
"""(seconds, what)"""


def life(result: RunResult, pod: str) -> list[tuple[float, float]]:
    """When the pod's consumer ran, in seconds after the warm-up."""
    history = next(found for found in result.recording.history.pods if found.name == pod)
    start_us = result.recording.scenario.warmup_us
    intervals = history.running.until(result.end_us + start_us)
    return [((first - start_us) / S, (last - start_us) / S) for first, last in intervals]


def test_every_kind_has_help_and_fields_with_one_name_each() -> None:
    for name, kind in EVENT_KINDS.items():
        assert (kind.kind, kind.help()[-1:]) == (name, ".")
        assert set(kind.one_of) <= set(kind.by_key())
        assert all(kind.model_fields[field].description for field in kind.by_key().values()), name


NOBODY: Mapping[TargetType, str] = {PODS: "app/9", RACK: "c"}


@pytest.mark.parametrize("kind", [name for name, kind in EVENT_KINDS.items() if kind.target_type in NOBODY])
def test_an_event_that_finds_nobody_says_so(kind: str) -> None:
    """It fails a run that does not allow it: what was to be rehearsed was not."""
    on_nobody = changed(NAMED[kind], target=NOBODY[EVENT_KINDS[kind].target_type])
    given = scenario(on_nobody, duration_s=120, rate=100, rack="a")
    result = run(changed(given, cluster=changed(given.cluster, brokers=1, racks=("a", "b", "c"))), 1)
    assert [what for _, _, what, _ in result.events_marks()] == ["begins", "has no effect", "ends"]


def test_a_crash_with_a_duration_boots_again_after_it() -> None:
    result = run(scenario(event("crash", "app/1", at_s=10, for_us=30 * S), duration_s=100), 1)
    assert life(result, "app-1") == [(-19.0, 10.0), (41.0, 100.0)]


def test_a_stop_without_a_duration_is_for_good_and_leaves_the_group() -> None:
    result = run(scenario(event("stop", "app/1", at_s=10), duration_s=60), 1)
    assert len(life(result, "app-1")) == 1
    assert (result.metric("members"), result.metric("detection_time")) == (3, None)
    assert 10 <= life(result, "app-1")[0][1] <= 10.6


@pytest.mark.parametrize("restarts", [False, True])
def test_a_static_member_that_is_back_before_its_crash_is_noticed(restarts: bool) -> None:
    """In the consumer protocol it is refused, and its client gives up: only another process can help."""
    crash = event("crash", "app/1", 5, for_us=2 * S)
    calm = scenario(crash, config=CONSUMER, instance_id="$name", restarts_on_failure=restarts, duration_s=200)
    result = run(calm, 1)
    refused = result.metric("errors", ("UNRELEASED_INSTANCE_ID",))
    assert result.metric("fenced") == 0 or refused
    assert (refused, result.metric("members")) == ((8, 4) if restarts else (2, 3))  # as answers, and out of poll()
    assert result.metric("stuck_members") == (0 if restarts else 1)


def test_a_stop_without_a_handler_is_noticed_by_the_session_only() -> None:
    result = run(scenario(event("stop", "app/1", at_s=10), duration_s=100, leaves_on_stop=False), 1)
    assert life(result, "app-1") == [(-19.0, 10.0)]
    assert 42 <= result.metric("detection_time") <= 45  # type: ignore[operator]


def test_start_runs_a_set_that_waited_for_it() -> None:
    result = run(scenario(event("start", "app", at_s=10), start=None, duration_s=30), 1)
    assert [life(result, f"app-{index}") for index in range(4)] == [[(11.0, 30.0)]] * 4


def test_a_rolling_restart_goes_by_batches_and_settles() -> None:
    result = run(scenario(event("rolling_restart", "app", batch=Share(500_000), settle=20 * S, set_={}), config=COOPERATIVE), 1)
    starts = sorted(life(result, f"app-{index}")[1][0] for index in range(4))
    assert starts[1] < 2.5 < 21 < starts[2]
    assert [name for _, name, what, _ in result.events_marks() if what == "ends"] == ["rolling_restart"]


def test_a_rolling_restart_that_waits_for_stable_never_has_two_disturbances() -> None:
    result = run(scenario(event("rolling_restart", "app", wait="stable"), config=COOPERATIVE), 1)
    assert result.metric("rebalances") in (4, 5, 6, 7, 8)
    assert result.metric("members") == 4


def test_an_upgrade_changes_the_settings_of_the_new_processes() -> None:
    change = event("upgrade", "app", settle=15 * S, set_={"partition.assignment.strategy": "cooperative-sticky"})
    result = run(scenario(change, duration_s=300), 1)
    # A group of range does not take members in that cannot speak it.
    assert result.metric("errors", ("INCONSISTENT_GROUP_PROTOCOL",))
    assert result.metric("stuck_members")


def test_two_bounces_change_the_assignor_without_an_error() -> None:
    both = {"partition.assignment.strategy": "range,cooperative-sticky"}
    first = event("upgrade", "app", settle=15 * S, set_=both)
    then = event("upgrade", "app", after="previous", settle=15 * S, set_=COOPERATIVE)
    done = finished(scenario(first, then), 1)
    assert [done.metrics.metric(name) for name in ("errors", "stuck_members", "state")] == [0, 0, "Stable"]
    assert done.broker.observer.assignments.is_cooperative


@pytest.mark.parametrize(
    ("change", "members"), [({"to": 6}, 6), ({"to": 1}, 1), ({"by": 2}, 6), ({"by": -3}, 1), ({"by": -9}, 0)]
)
def test_scale_changes_the_number_of_pods(change: dict[str, int], members: int) -> None:
    result = run(scenario(event("scale", "app", over=10 * S, **change), duration_s=120), 1)
    assert (result.metric("members"), result.metric("replicas")) == (members, members)


def test_scale_down_takes_the_highest_numbers_first() -> None:
    result = run(scenario(event("scale", "app", to=2), duration_s=60), 1)
    assert list(result.final_assignment()) == ["app-0", "app-1"]


def test_a_stall_beyond_max_poll_interval_costs_the_membership_and_is_repaired() -> None:
    config = {**RANGE, "max.poll.interval.ms": "8000"}
    result = run(scenario(event("stall", "app/1", for_us=30 * S), config=config, rate=10), 1)
    # The client leaves by itself; the rest takes over within a heartbeat.
    assert 8.0 <= result.metric("unavailable", ("cause stall", "app/1")) + 8 <= 8 + 2 * 3.2  # type: ignore[operator]
    assert (result.metric("members"), result.metric("state")) == (4, "Stable")


@pytest.mark.parametrize(("mode", "failed"), [(CommitMode.AFTER_BATCH, 1), (CommitMode.AUTO, 0)])
def test_the_commit_of_a_batch_that_took_too_long_is_refused(mode: CommitMode, failed: int) -> None:
    config = {**RANGE, "max.poll.interval.ms": "8000"}
    result = run(scenario(event("stall", "app/1", for_us=20 * S), config=config, rate=10, commit=Commit(mode=mode)), 1)
    assert (result.metric("fenced_commits"), result.metric("errors", ("COMMIT_FAILED",))) == (failed, failed)


@pytest.mark.parametrize("client", ["java", "librdkafka", "aiokafka"])
def test_a_member_that_was_stuck_for_too_long_joins_again_when_it_polls_and_not_before(client: str) -> None:
    config = {"max.poll.interval.ms": "8000", "session.timeout.ms": "6000", "partition.assignment.strategy": "roundrobin"}
    result = run(scenario(event("stall", "app/1", for_us=30 * S), config=config, rate=10, client=client, duration_s=60), 1)
    members = {point.at_us // S - 20: point.members for point in result.recording.history.group if point.state == "Stable"}
    assert [number for at_s, number in members.items() if at_s > 0] == [3, 4]
    assert max(members) >= 30


@pytest.mark.parametrize(
    ("client", "least_s", "most_s"),
    [("java", 7.9, 8.1), ("aiokafka", 7.9, 8.1), ("librdkafka", 8.0, 8.6), ("kafka-python", 9.9, 10.2)],
)
def test_each_client_looks_at_its_poll_limit_as_it_was_measured(client: str, least_s: float, most_s: float) -> None:
    config = {"max.poll.interval.ms": "8000", "session.timeout.ms": "6000", "partition.assignment.strategy": "roundrobin"}
    found = []
    for seed in range(1, 9):
        result = run(
            scenario(event("stall", "app/1", 1, for_us=30 * S), config=config, rate=10, client=client, duration_s=60), seed
        )
        left_us = next(point.at_us for point in result.recording.history.group if point.at_us > result.recording.start_us)
        found.append((left_us - result.recording.start_us) / S - 1)
    assert least_s <= min(found) <= max(found) <= most_s, found


def test_a_group_goes_on_without_a_static_member_that_does_not_join_again_in_time() -> None:
    """Its JoinGroup is out, so that no thread looks at its limit: it stays a member, and owns beside its successor."""
    config = {**COOPERATIVE, "max.poll.interval.ms": "20000"}
    events = (event("scale", "app", 10, by=1), event("stall", "app/1", 12.3, for_us=60 * S))
    result = run(scenario(*events, config=config, instance_id="$name", rate=10, duration_s=120), 1)
    assert 39 < result.metric("double_owned") < 42  # type: ignore[operator]
    assert (result.metric("members"), result.metric("state"), result.metric("owners")) == (5, "Stable", 1)


def test_a_stall_within_a_stall_only_makes_it_longer() -> None:
    config = {**RANGE, "max.poll.interval.ms": "8000"}
    stalls = (event("stall", "app/1", for_us=6 * S), event("stall", "app/1", 5, for_us=25 * S))
    result = run(scenario(*stalls, config=config, rate=10), 1)
    first, *_ = (lane for lane in result.lanes().values() if lane[0].owner == "app-1")
    assert 7.9 * S <= first[0].to_us <= 8.1 * S


def test_a_short_stall_is_no_gap_but_a_backlog() -> None:
    result = run(scenario(event("stall", "app/1", for_us=10 * S), rate=80, rate_uhz=100 * S), 1)
    assert (result.metric("unavailable"), result.metric("rebalances")) == (0, 0)
    # Two of eight partitions, 10 records a second each, for 10 s and a little.
    assert result.metric("backlog_peak") == pytest.approx(200, abs=2)


def test_a_pod_too_slow_for_its_poll_interval_and_without_partitions_is_no_endless_loop() -> None:
    config = {**RANGE, "max.poll.interval.ms": "500"}
    slow = event("slow", "app/3", factor=20_000_000, for_us=20 * S)
    calm = scenario(slow, config=config, count=4, partitions=3, poll=Uniform(0, 100_000), duration_s=60, rate_uhz=100 * S)
    assert run(calm, 1, limits=RunLimits(tasks=200_000)).stopped == ""


def test_restarts_that_overlap_end_both() -> None:
    """A pod that is taken down while it boots is waited for until its next process has subscribed."""
    first, then = event("rolling_restart", "app", set_={}), event("rolling_restart", "app", at_s=1.5, set_={})
    marks = [(at_us / S, what) for at_us, _, what, _ in run(scenario(first, then), 1).events_marks()]
    assert [what for _, what in marks] == ["begins", "begins", "ends", "ends"]
    assert marks[-1][0] < 20


def test_slow_does_nothing_where_records_take_no_time() -> None:
    slow = event("slow", "app", factor=10, for_us=20 * S)
    ways = ({"rate": 80, "rate_uhz": None}, {"rate_uhz": 100 * S}, {"rate": 80, "rate_uhz": 100 * S})
    told = [[what for _, _, what, _ in run(scenario(slow, **way), 1).events_marks()] for way in ways]
    assert told == [["begins", "has no effect", "ends"], ["begins", "has no effect", "ends"], ["begins", "ends"]]


def test_a_slow_pod_reads_so_much_less() -> None:
    result = run(scenario(event("slow", "app/1", for_us=10 * S, factor=10 * S), rate=80, rate_uhz=100 * S), 1)
    # 20 records a second come, 10 are read.
    assert result.metric("backlog_peak") == pytest.approx(100, abs=1)
    assert result.metric("drain_time", ("slow",)) == pytest.approx(10 + 100 / 80, abs=0.05)


def test_a_frozen_process_shorter_than_its_session_keeps_its_partitions() -> None:
    result = run(scenario(event("pause_process", "app/1", for_us=20 * S)), 1)
    metrics = [("rebalances", ()), ("unavailable", ()), ("unavailable", ("cause stall",))]
    assert [result.metric(*asked) for asked in metrics] == [0, 40, 40]


def test_a_frozen_process_longer_than_its_session_comes_back_as_a_zombie() -> None:
    paused = scenario(event("pause_process", "app/1", for_us=80 * S), config=RANGE, rate=8)
    result = run(paused, 1)
    assert (result.metric("kicked"), result.metric("lost")) == (1, 0)
    assert result.metric("double_owned") > 0  # type: ignore[operator]
    # Two of eight partitions: what was not committed, and what was written in 80 s, found before it hears that it is out.
    assert 160 <= result.metric("duplicates") <= 160 + 2 * 6  # type: ignore[operator]


def test_a_zombie_reads_no_more_than_its_polls_return() -> None:
    config = {**RANGE, "max.poll.records": "50"}
    result = run(scenario(event("pause_process", "app/1", for_us=80 * S), config=config, rate=80, poll=Uniform(0, 100_000)), 1)
    assert 50 <= result.metric("duplicates") <= 2 * 60 + 6 * 50  # type: ignore[operator]


def test_the_time_to_drain_is_that_of_all_that_has_piled_up_since_the_first_event() -> None:
    """Ten minutes of 100 records a second, which four pods work off at 400 a second."""
    events = (event("stop", "app", at_s=10), event("start", "app", at_s=610))
    result = run(scenario(*events, rate=100, rate_uhz=100 * S, duration_s=1000), 1)
    assert result.metric("drain_time") == pytest.approx(200, abs=10)
    assert result.metric("drain_time", ("start",)) < 10  # type: ignore[operator]


@pytest.mark.parametrize("fault", [{"partition": True}, {"loss_ppm": 1_000_000}], ids=["partition", "loss: 100%"])
def test_a_partitioned_pod_is_taken_out_and_comes_back(fault: dict[str, Any]) -> None:
    result = run(scenario(event("network", "app/1", for_us=90 * S, **fault), config=CONSUMER), 1)
    assert (result.metric("kicked"), result.metric("members"), result.metric("state")) == (1, 4, "Stable")
    assert result.metric("unavailable", ("cause detection",)) > 2 * 39  # type: ignore[operator]


def test_latency_shows_in_the_time_of_a_rebalance() -> None:
    slow = event("network", "app", latency=Constant(500_000))
    result = run(scenario(slow, event("restart", "app/1", at_s=30), duration_s=120), 1)
    usual = run(scenario(event("restart", "app/1", at_s=30), duration_s=120), 1)
    assert result.metric("unavailable") > 2 * usual.metric("unavailable")  # type: ignore[operator]


def test_new_partitions_are_found_with_the_next_metadata() -> None:
    config = {**RANGE, "metadata.max.age.ms": "30000"}
    result = run(scenario(event("add_partitions", "t", at_s=5, to=12), config=config), 1)
    delay = result.metric("discovery_delay", ("t",))
    assert 0 < delay <= 31  # type: ignore[operator]
    assert result.metric("unavailable", ("cause discovery",)) == pytest.approx(4 * delay, rel=0.2)  # type: ignore[operator]
    assert (result.metric("spread"), len(result.lanes())) == (0, 12)


@pytest.mark.parametrize(
    ("events", "idle"),
    [
        ([event("add_partitions", "t", 10, to=12), event("add_partitions", "t", 20, to=10)], [("add_partitions", 20)]),
        ([event("delete_topic", "t", 10), event("add_partitions", "t", 20, by=2)], [("add_partitions", 20)]),
        ([event("delete_topic", "t", 10), event("delete_topic", "t", 20)], [("delete_topic", 20)]),
        ([event("create_topic", "t", 10, partitions=3)], [("create_topic", 10)]),
        ([event("delete_topic", "t", 10), event("create_topic", "t", 20, partitions=3)], []),
    ],
)
def test_event_about_a_topic_that_cannot_be_done_says_so(events: list[Event], idle: list[tuple[str, int]]) -> None:
    result = run(scenario(*events, duration_s=60), 1)
    found = [(mark.event, mark.at_us // S - 20) for mark in result.recording.history.events if mark.what == "has no effect"]
    assert found == idle


def test_the_consumer_protocol_finds_new_partitions_with_a_beat() -> None:
    result = run(scenario(event("add_partitions", "t", at_s=5, by=4), config=CONSUMER), 1)
    assert 0 < result.metric("discovery_delay", ("t",)) <= 10.1  # type: ignore[operator]


@pytest.mark.parametrize("pattern", [None, "t.*"])
def test_the_consumer_protocol_finds_new_topics_whatever_the_metadata_age(pattern: str | None) -> None:
    """The members' own metadata may be refreshed before the first beat that makes the coordinator look."""
    for seed in range(1, 6):
        config = {**CONSUMER, "metadata.max.age.ms": "1000"}
        grown = event("add_partitions", "t", 5, to=12) if pattern is None else event("create_topic", "t-2", 5, partitions=4)
        result = run(scenario(grown, config=config, subscribe=Subscribed(pattern=pattern), duration_s=60, warmup_s=40), seed)
        assert result.metric("discovery_delay", ("t" if pattern is None else "t-2",)) < 12  # type: ignore[operator]


@pytest.mark.parametrize(("by", "least_s", "most_s"), [("", 0.1, 16), ("broker", 0.1, 16), ("client", 16, 301)])
def test_a_pattern_of_java_is_matched_by_the_brokers_unless_it_is_said_otherwise(by: str, least_s: float, most_s: float) -> None:
    """Apache Kafka 4.3.1 with SubscriptionPattern: the new topic was read 4.6, 9.3, 11.9 and 16 s after it was made."""
    create = event("create_topic", "t-2", 5, partitions=4)
    given = scenario(create, config=CONSUMER, subscribe=Subscribed(pattern="t.*", by=by), duration_s=320, warmup_s=40)
    assert least_s < run(given, 1).metric("discovery_delay") < most_s  # type: ignore[operator]


def test_a_new_topic_is_picked_up_by_a_pattern() -> None:
    config = {**COOPERATIVE, "metadata.max.age.ms": "30000"}
    result = run(scenario(event("create_topic", "t-eu", partitions=4), config=config, subscribe=Subscribed(pattern="t.*")), 1)
    assert 0 < result.metric("discovery_delay", ("t-eu",)) <= 35  # type: ignore[operator]
    assert result.metric("collateral") == 0


@pytest.mark.parametrize("config", [RANGE, COOPERATIVE, CONSUMER], ids=["range", "cooperative", "consumer"])
def test_a_deleted_topic_is_nobodys_gap(config: dict[str, str]) -> None:
    result = run(
        scenario(event("delete_topic", "t", at_s=5), config={**config, "metadata.max.age.ms": "30000"}, duration_s=90), 1
    )
    assert (result.metric("unavailable"), result.final_assignment()) == (0, {f"app-{index}": {} for index in range(4)})


def test_traffic_above_capacity_piles_up() -> None:
    result = run(scenario(event("set_traffic", "t", rate=((0, 1000 * S),)), rate=100, rate_uhz=100 * S, duration_s=10), 1)
    assert result.metric("backlog") == 6000
    assert result.metric("drain_time", ("set_traffic",)) == float("inf")


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ("{at: 10s, set_traffic: t, rate: 100/s}", 100 * 30),
        ("{at: 10s, set_traffic: t, rate: {0s: 100/s, 10s: 50/s, 20s: 0/s}}", 100 * 10 + 50 * 10),
        ("{at: 10s, create_topic: t-2, partitions: 4, rate: 100/s}", 100 * 30),
    ],
)
def test_rates_are_followed_as_a_file_gives_them(given: str, written: int) -> None:
    """There is no other traffic: the event writes the first record."""
    text = (
        f"kgctl: 1\nname: x\ntopics: {{t: 4}}\nmembers: {{app: {{count: 2, subscribe: ^t.*}}}}\nduration: 40s\nevents: [{given}]"
    )
    (variant,) = load(read_yaml(text, "f")).variants
    result = run(variant.scenario, 1)
    assert result.metric("processed") + result.metric("backlog", ("end",)) == written  # type: ignore[operator]


def test_events_follow_each_other_and_repeat() -> None:
    crash = event("crash", "app/0", name="boom", every_us=30 * S, times=2, for_us=5 * S)
    grow = event("add_partitions", "t", 3, after="boom", by=1)
    result = run(scenario(crash, grow, duration_s=120), 1)
    assert [(at_us / S, name, what) for at_us, name, what, _ in result.events_marks()] == [
        (0, "boom", "begins"),
        (6, "boom", "ends"),
        (30, "boom", "begins"),
        (36, "boom", "ends"),
        (39, "add_partitions", "begins"),
        (39, "add_partitions", "ends"),
    ]


@pytest.mark.parametrize("config", [RANGE, COOPERATIVE], ids=["range", "cooperative"])
def test_a_leader_with_old_metadata_gives_out_a_topic_that_is_gone_and_nobody_reads_it(config: dict[str, str]) -> None:
    given = scenario(event("delete_topic", "t", 5), event("stop", "app/1", 6), config=config, rate=100, duration_s=60)
    result = run(given, 1)
    assert (result.metric("rebalances"), result.metric("unavailable")) == (1, 0)
    assert not any(result.final_assignment().values())
