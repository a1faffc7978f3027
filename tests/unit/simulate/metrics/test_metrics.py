"""The formulas, on histories that are written down by hand. The window is 0-100 s; pods a-0, a-1, a-2; topic t of four."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest

from kgctl.errors import UsageError
from kgctl.model.groups import MetadataImage, TopicMetadata
from kgctl.simulate.metrics.measured import Measured
from kgctl.simulate.metrics.result import MetricView, run
from kgctl.simulate.recording.recording import Counted, PodHistory, Recording
from kgctl.simulate.recording.trace import GroupChanged, Happened
from kgctl.simulate.scenario.group_types import CONSUMER
from kgctl.simulate.scenario.metric import metric_kinds
from kgctl.simulate.scenario.model import MemberSet, Scenario, Topic
from kgctl.simulate.scenario.vocabulary import EventStage, GapCause, Identity
from tests.support.simulated import event, scenario

S = 1_000_000


def recorded(partitions: int = 4) -> Recording:
    """Everybody runs and is in the group all the time, calm, and nothing is consumed."""
    members = MemberSet(name="a", count=3)
    made = Recording(Scenario(name="test", topics=(Topic(name="t", partitions=partitions),), members=(members,)), 1)
    made.owners.add(made.partitions.add("t", partitions, 0, counted=True), GapCause.BOOT, 0)
    made.ledger.add("t", partitions, 0)
    made.server_heartbeat_ms = 5_000
    made.image = MetadataImage({"t": TopicMetadata("t", UUID(int=1), partitions)}, 1)
    for index in range(3):
        pod = PodHistory(f"a-{index}", "a", index, None, None, members, {})
        pod.running.set(0, is_so=True)
        pod.in_group.set(0, is_so=True)
        made.history.pods.append(pod)
    return made


def at(made: Recording, seconds: float) -> int:
    made.now_us = round(seconds * S)
    made.step += 1
    return made.now_us


def consumed(made: Recording) -> None:
    """a-0 has 0 and 1, a-1 has 2, a-2 has 3, from the start."""
    made.owners.own(0, [0, 1], 0)
    made.owners.own(1, [2], 0)
    made.owners.own(2, [3], 0)


def gap(
    made: Recording, number: int, first: float, last: float, *, by: int, then: int, cause: GapCause = GapCause.HANDOVER
) -> None:
    made.owners.release(by, [number], cause, round(first * S))
    made.owners.own(then, [number], round(last * S))


def values(made: Recording, *metrics: str) -> list[float | str | None]:
    at(made, 100)
    view = MetricView(made)
    return [view.metric(name) for name in metrics]


def test_gaps_are_summed_up_by_cause_and_owner() -> None:
    made = recorded()
    consumed(made)
    gap(made, 0, 10, 13, by=0, then=1)
    made.owners.release(2, [3], GapCause.DETECTION, 20 * S)
    made.owners.set_cause([3], GapCause.REBALANCE, 25 * S)
    made.owners.own(2, [3], 26 * S)
    at(made, 100)
    view = MetricView(made)
    assert view.metric("unavailable") == 9
    assert [
        view.metric("unavailable", (cause,)) for cause in ("cause handover", "cause detection", "cause rebalance", "cause boot")
    ] == [
        3,
        5,
        1,
        0,
    ]
    assert [view.metric("unavailable", (who,)) for who in ("a/0", "not a/0", "a", "a/0..1")] == [3, 6, 9, 3]
    assert [view.metric("unavailable", (when,)) for when in ("before 12s", "after 12s", "after 22s")] == [2, 7, 4]
    assert view.metric("availability") == 1 - 9 / 400
    assert [view.metric(name) for name in ("max_gap", "gap_p50", "gaps")] == [6, 3, 2]


def test_collateral_is_what_comes_back_to_a_pod_that_lived_through_it() -> None:
    made = recorded()
    consumed(made)
    gap(made, 0, 10, 13, by=0, then=0, cause=GapCause.REBALANCE)
    gap(made, 1, 10, 14, by=0, then=1)
    made.history.pods[1].running.set(31 * S, is_so=False)
    made.history.pods[1].running.set(32 * S, is_so=True)
    gap(made, 2, 30, 35, by=1, then=1, cause=GapCause.STATIC_WAIT)
    gap(made, 3, 40, 50, by=2, then=2, cause=GapCause.STALL)
    assert values(made, "collateral", "unavailable") == [3, 22]


def test_the_world_stands_still_when_nothing_is_consumed_and_somebody_is_there() -> None:
    made = recorded()
    consumed(made)
    for number, pod in ((0, 0), (1, 0), (2, 1)):
        gap(made, number, 10, 20, by=pod, then=pod)
    gap(made, 3, 12, 15, by=2, then=2)
    at(made, 100)
    view = MetricView(made)
    assert [view.metric("stop_the_world", share) for share in ((), ("75%",), ("80%",))] == [3, 10, 3]


def test_rebalances_that_lie_close_together_are_one() -> None:
    made = recorded()
    near_us = 4 * 1_000
    for first, last in ((10 * S, 12 * S), (12 * S + near_us - 1, 13 * S), (13 * S + near_us, 20 * S), (50 * S, 51 * S)):
        made.history.unsettled.set(first, is_so=True)
        made.history.unsettled.set(last, is_so=False)
    for at_s, generation, state in ((10, 1, "PreparingRebalance"), (12, 2, "Stable"), (13, 3, "Stable"), (51, 4, "Stable")):
        made.history.group.append(GroupChanged(at_s * S, state, generation, 3, ""))
    made.history.applied_us += [12 * S, 14 * S, 20 * S, 53 * S]
    made.history.triggers += [(10 * S, "JoinGroup a-1"), (50 * S, "timer")]
    at(made, 100)
    view = MetricView(made)
    assert [view.metric(name) for name in ("rebalances", "generations", "aborted")] == [3, 4, 1]
    assert [
        view.metric("rebalances", part) for part in (("before 40s",), ("after 40s",), ("cause timeout",), ("cause join",))
    ] == [
        2,
        1,
        1,
        1,
    ]
    assert view.metric("rebalance_time") == pytest.approx(7 - near_us / S, abs=0.01)
    assert view.metric("rebalance_time", ("p50",)) == 3


def test_of_no_rebalance_and_no_gap_there_is_no_length() -> None:
    made = recorded()
    consumed(made)
    at(made, 100)
    view = MetricView(made)
    assert [view.metric(name) for name in ("rebalances", "gaps", "max_gap")] == [0, 0, 0]
    lengths = [view.metric("rebalance_time", part) for part in ((), ("mean",), ("max",), ("p99",), ("before 40s",))]
    assert [*lengths, view.metric("gap_p50")] == [None] * 6


def test_a_real_group_that_is_settled_for_a_moment_is_in_the_same_rebalance() -> None:
    made = recorded()
    made.is_played = True
    made.history.calm.set(0, is_so=True)
    for first_ms, last_ms in ((10_000, 12_000), (12_250, 13_000), (20_000, 21_000)):
        made.history.unsettled.set(first_ms * 1_000, is_so=True)
        made.history.calm.set(first_ms * 1_000, is_so=False)
        made.history.unsettled.set(last_ms * 1_000, is_so=False)
        made.history.calm.set(last_ms * 1_000, is_so=True)
    at(made, 100)
    view = MetricView(made)
    assert view.metric("rebalances") == 2
    assert [first for first, _ in Measured(made).calm_times((0, 100 * S))] == [0, 13 * S, 21 * S]


def test_stable_is_what_stays_calm_for_two_heartbeats() -> None:
    made = recorded()
    for first, last in ((0, 10), (12, 15), (20, None)):
        made.history.calm.set(first * S, is_so=True)
        if last is not None:
            made.history.calm.set(last * S, is_so=False)
    made.history.disturbances += [10 * S]
    at(made, 100)
    view = MetricView(made)
    # Ten seconds are two heartbeats of the consumer protocol's default, six of the classic one's; there is no process here.
    assert view.metric("time_to_stable") == 10
    assert [view.metric("time_to_stable", (when,)) for when in ("at 0s", "at 1s", "at 30s")] == [20, 19, 0]
    assert view.metric("time_to_stable", ("nothing",)) is None


def test_what_was_stable_for_a_while_and_is_not_at_the_end_is_not_stable() -> None:
    made = recorded()
    for first, last in ((0, 10), (12, 40)):
        made.history.calm.set(first * S, is_so=True)
        made.history.calm.set(last * S, is_so=False)
    made.history.disturbances += [10 * S]
    made.history.events += [
        Happened(5 * S, "first", EventStage.BEGINS, "a", "stall"),
        Happened(10 * S, "first", EventStage.ENDS, "a", "stall"),
        Happened(39 * S, "second", EventStage.BEGINS, "a", "stall"),
    ]
    at(made, 100)
    view = MetricView(made)
    assert view.metric("time_to_stable") == float("inf")
    assert [view.metric("time_to_stable", (name,)) for name in ("first", "second")] == [2, float("inf")]


@pytest.mark.usefixtures("exact_warmup")
def test_a_fault_that_lasts_counts_to_its_end() -> None:
    stall = run(scenario(event("stall", "app/1", 5, for_us=400 * S), duration_s=600), 1)
    assert stall.metric("rebalances") == 2
    assert 0 < stall.metric("time_to_stable") < 10  # type: ignore[operator]  # it joins again when it polls again
    assert [mark.at_us for mark in stall.recording.history.events if mark.lifts] == [(20 + 405) * S]


def test_never_stable_is_infinite() -> None:
    made = recorded()
    assert values(made, "time_to_stable") == [float("inf")]


def test_moves_are_changes_of_owner() -> None:
    made = recorded()
    consumed(made)
    gap(made, 0, 10, 13, by=0, then=1)
    gap(made, 0, 20, 21, by=1, then=0)
    gap(made, 1, 20, 21, by=0, then=0)
    gap(made, 2, 20, 21, by=1, then=0)
    gap(made, 2, 800, 801, by=0, then=1)
    at(made, 1000)
    view = MetricView(made)
    assert view.metric("moves") == 4
    assert [view.metric("moves", (when,)) for when in ("before 15s", "after 15s")] == [1, 3]


def test_a_pod_that_comes_back_is_another_owner_by_its_member_id_only() -> None:
    made = recorded()
    for number, pod in enumerate(made.history.pods):
        pod.came(f"id-{number}", 0)
    consumed(made)
    gap(made, 0, 10, 13, by=0, then=0)
    made.history.pods[0].came("id-3", 12 * S)
    gap(made, 1, 20, 21, by=0, then=0)
    made.history.pods[0].came("id-3", 20 * S)
    assert values(made, "moves") == [0]
    made.identity = Identity.MEMBER_ID
    assert values(made, "moves") == [2]


def test_the_fewest_moves_are_those_of_the_departed_and_above_the_quota() -> None:
    made = recorded(6)
    made.history.pods[2].in_group.set(0, is_so=False)
    made.owners.own(0, [0, 1, 2], 0)
    made.owners.own(1, [3, 4, 5], 0)
    made.history.calm.set(0, is_so=True)
    made.history.calm.set(10 * S, is_so=False)
    # a-2 comes: two partitions have to move, three do.
    made.history.pods[2].in_group.set(10 * S, is_so=True)
    for number, by, then in ((2, 0, 2), (5, 1, 2), (4, 1, 0)):
        gap(made, number, 10, 12, by=by, then=then)
    made.history.calm.set(12 * S, is_so=True)
    made.history.calm.set(30 * S, is_so=False)
    # a-1, which has one, goes: one has to move.
    made.history.pods[1].in_group.set(30 * S, is_so=False)
    gap(made, 3, 30, 31, by=1, then=2)
    made.history.calm.set(31 * S, is_so=True)
    assert values(made, "moves", "moves_min", "excess_moves") == [4, 3, 1]


def test_balance_at_the_end_in_the_mean_and_at_its_worst() -> None:
    made = recorded()
    consumed(made)
    made.history.calm.set(0, is_so=True)
    made.history.calm.set(50 * S, is_so=False)
    for number, by in ((1, 0), (2, 1)):
        gap(made, number, 50, 60, by=by, then=2)
    made.history.calm.set(60 * S, is_so=True)
    at(made, 100)
    view = MetricView(made)
    # 2 1 1, then 1 0 3
    assert [view.metric(name) for name in ("spread", "idle_members", "members")] == [3, 1, 3]
    assert [view.metric("spread", how) for how in (("at 10s",), ("mean",), ("worst",), ("t",))] == [
        1,
        (50 * 1 + 40 * 3) / 90,
        3,
        3,
    ]
    assert view.metric("idle_members", ("mean",)) == 40 / 90


def test_counts_go_by_time_pod_and_name() -> None:
    made = recorded()
    made.history.errors += [Counted(5 * S, 1, 0, "UNKNOWN_MEMBER_ID"), Counted(50 * S, 1, 1, "ILLEGAL_GENERATION")]
    made.history.requests += [Counted(5 * S, 1, 0, "JoinGroup"), Counted(5 * S + 1, 1, 1, "JoinGroup")]
    made.history.skipped_requests["Heartbeat"] = 100
    made.history.duplicates.append(Counted(5 * S, 42, 0, "t"))
    made.history.detections += [Counted(5 * S, 7 * S, 0), Counted(6 * S, 9 * S, 1)]
    at(made, 100)
    view = MetricView(made)
    assert [view.metric("errors", part) for part in ((), ("UNKNOWN_MEMBER_ID",), ("a/1",), ("after 10s",))] == [2, 1, 1, 1]
    assert [view.metric("requests", part) for part in ((), ("JoinGroup",), ("peak",), ("a/0",))] == [102, 2, 2, 1]
    assert [view.metric("duplicates", part) for part in ((), ("t",), ("a/1",))] == [42, 42, 0]
    assert [view.metric("detection_time", part) for part in ((), ("a/0",), ("a/2",))] == [9, 7, None]


def test_a_pod_that_runs_a_minute_outside_the_group_is_stuck() -> None:
    made = recorded()
    made.history.pods[0].in_group.set(30 * S, is_so=False)
    made.history.pods[1].in_group.set(50 * S, is_so=False)
    assert values(made, "stuck_members", "member_seconds") == [1, 300]


def test_two_owners_are_counted_while_they_last() -> None:
    made = recorded()
    consumed(made)
    made.owners.own(1, [0], 10 * S)
    at(made, 20)
    view = MetricView(made)
    assert [view.metric(name) for name in ("owners", "double_owned")] == [2, 10]
    made.owners.release(0, [0], GapCause.REBALANCE, 25 * S)
    at(made, 100)
    assert [view.metric(name) for name in ("owners", "double_owned", "moves")] == [1, 15, 1]


@pytest.mark.parametrize(
    ("series", "expected"),
    [
        ([4, 8, 12], 0.0),
        # up 8, down 8: alpha 1, so the whole variation over the range.
        ([4, 12, 4], 100 * 16 / 8),
        # up 8, down 4: alpha = 0.5 ** 0.8.
        ([4, 12, 8], 100 * (0.5**0.8 * 12 + (1 - 0.5**0.8) * 4) / 8),
    ],
)
def test_thrash_leaves_trends_alone(series: list[int], expected: float) -> None:
    from kgctl.simulate.metrics.rebalances import thrash_of

    assert thrash_of([float(value) for value in series]) == pytest.approx(expected)


def test_replicas_and_their_flaps() -> None:
    made = recorded()
    for pod, changes in ((0, (0,)), (1, (10, 20, 30)), (2, (10, 90))):
        for number, at_s in enumerate(changes):
            made.history.pods[pod].wanted.set(at_s * S, is_so=number % 2 == 0)
    at(made, 100)
    view = MetricView(made)
    # 1 at first, 3 from 10 s, 2 from 20 s, 3 from 30 s, 2 from 90 s.
    assert [view.metric("replicas", part) for part in ((), ("max",), ("min",), ("at 15s",))] == [2, 3, 1, 3]
    assert view.metric("flaps") == 3


def test_without_traffic_there_is_no_lag() -> None:
    made = recorded()
    consumed(made)
    assert values(made, "lag", "backlog", "lag_peak", "latency_p99", "drain_time") == [0, 0, 0, None, 0]


def with_traffic(made: Recording, change: Callable[[Recording], None]) -> MetricView:
    """10 records a second to each of two partitions; nobody reads for 10 s, then ``change``."""
    made.has_traffic = True
    made.ledger.set_rates([0, 1], [10 * S, 10 * S], 0)
    at(made, 10)
    for number in (0, 1):
        made.ledger.account_waiting(number, made.now_us)
    change(made)
    at(made, 20)
    for number in (0, 1):
        if made.owners.owner[number] < 0:
            made.ledger.account_waiting(number, made.now_us)
    return MetricView(made)


def test_lag_and_backlog_while_nobody_reads() -> None:
    view = with_traffic(recorded(2), lambda _: None)
    assert [view.metric(name) for name in ("lag", "backlog", "lag_peak", "backlog_peak", "lag_age")] == [400, 400, 400, 400, 20]
    assert [view.metric("backlog", ("at 5s",)), view.metric("backlog", ("mean",))] == [100, 200]
    assert view.metric("drain_time", ("at 10s",)) == float("inf")
    assert view.metric("latency_p99") == pytest.approx(19.8, abs=0.001)  # nobody has read them: they have waited up to 20 s


def test_a_topic_that_nobody_subscribes_to_is_no_lag_unless_it_is_named() -> None:
    made = recorded(2)
    made.partitions.counted[0] = made.partitions.counted[1] = False
    view = with_traffic(made, lambda _: None)
    assert [view.metric(name) for name in ("lag", "backlog", "lag_peak", "backlog_peak")] == [0, 0, 0, 0]
    assert view.metric("backlog", (made.partitions.names[0].topic,)) == 400


def test_what_was_read_and_committed_is_no_lag() -> None:
    def read(made: Recording) -> None:
        made.owners.own(0, [0, 1], made.now_us)
        for number in (0, 1):
            made.ledger.start(number, 0, made.now_us)
            made.ledger.catch_up(number, made.now_us)
            made.ledger.store(number, 100, made.now_us)

    view = with_traffic(recorded(2), read)
    assert [view.metric(name) for name in ("lag", "backlog", "lag_peak", "backlog_peak", "processed")] == [200, 0, 200, 200, 400]
    # Half of the records waited up to 10 s, evenly; the other half not at all.
    assert view.metric("latency_p99") == pytest.approx(9.8, abs=0.001)


def test_every_metric_answers_for_a_run_in_which_nothing_happens() -> None:
    view = MetricView(Recording(Scenario(name="nothing"), 1))
    for name in metric_kinds():
        assert view.metric(name) in (0, 1, None, float("inf"), "Dead"), name
    kinds = metric_kinds().items()
    assert set(view.summary()) == {name for name, kind in kinds if kind.is_summary and kind.about in CONSUMER.has}


@pytest.mark.parametrize(
    ("name", "filters"), [("unavailability", ()), ("unavailable", ("after noon",)), ("unavailable", ("a/first",))]
)
def test_what_is_no_metric_or_filter_is_a_usage_error(name: str, filters: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        MetricView(recorded()).metric(name, filters)
