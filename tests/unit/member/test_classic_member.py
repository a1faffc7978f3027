"""Classic members back to back with the coordinator, held against what real Java consumers were measured to do."""

from __future__ import annotations

from itertools import pairwise

import pytest

from kgctl.member.api import CallbackKind, CommitDone, MemberState, RunAssignor, StopConsuming, StopReason
from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import Heartbeat, JoinGroup, LeaveGroup, OffsetCommit, SyncGroup
from tests.support.member_harness import SECOND, Pod, World, seconds

EAGER = {"partition.assignment.strategy": "range"}
COOPERATIVE = {"partition.assignment.strategy": "cooperative-sticky"}
STRATEGIES = pytest.mark.parametrize("settings", [EAGER, COOPERATIVE], ids=["eager", "cooperative"])


def group_of(count: int, settings: dict[str, str], *, seed: int = 1, partitions: int = 24, static: bool = False) -> World:
    """A stable group; the time is 60 s."""
    world = World({"orders": partitions}, seed=seed)
    for number in range(count):
        instance_id = f"i{number}" if static else None
        world.pod(f"m{number}", settings, at_s=number * 0.02, instance_id=instance_id, poll_blocks_us=100_000)
    world.run_until_stable()
    world.run_until(60)
    return world


def generation(world: World, pod: str = "m0") -> int:
    return world.pods[pod].member.generation_id


@STRATEGIES
def test_cold_start_takes_the_initial_delay_twice(settings: dict[str, str]) -> None:
    world = World({"orders": 24})
    for number in range(8):
        world.pod(f"m{number}", settings, at_s=number * 0.02, poll_blocks_us=100_000)
    stable_s = world.run_until_stable()

    assert 6.0 <= stable_s <= 6.3  # measured: 6.1-6.2 s
    assert generation(world) == 1
    assert sorted(map(len, world.owners().values())) == [3] * 8


@STRATEGIES
def test_rolling_restart_keeps_one_owner_and_ends_balanced(settings: dict[str, str]) -> None:
    world = group_of(5, settings)
    for number in range(5):
        at_s = world.now_us / SECOND
        world.close(world.pods[f"m{number}"])
        world.run_until(at_s + 8)
        world.pod(f"n{number}", settings, at_s=at_s + 8, poll_blocks_us=100_000)
        world.run_until(at_s + 8.5)
        world.run_until_stable()
        world.run_until(at_s + 38)

    assert sorted(map(len, world.owners().values())) == [4, 5, 5, 5, 5]
    assert [pod.failure for pod in world.pods.values()] == [None] * 10


def test_eager_restart_stops_every_member_and_cooperative_only_the_moving_partitions() -> None:
    touched = {}
    for name, settings in (("eager", EAGER), ("cooperative", COOPERATIVE)):
        world = group_of(6, settings)
        world.close(world.pods["m5"])
        world.run_until(68)
        world.run_until_stable()
        stopped = {
            pod.name for pod in world.live for at, event in pod.log if isinstance(event, StopConsuming) and at > 60 * SECOND
        }
        touched[name] = stopped

    assert touched == {"eager": {"m0", "m1", "m2", "m3", "m4"}, "cooperative": set()}


def test_cooperative_handover_costs_one_heartbeat_after_the_generation() -> None:
    world = group_of(4, COOPERATIVE)
    world.pod("new", COOPERATIVE, at_s=70, poll_blocks_us=100_000)
    world.run_until(70.1)
    world.run_until_stable()
    moved = world.gaps_since(70)

    assert len(moved) == 4
    assert min(moved) >= 2.9
    assert max(moved) <= 6.5  # measured: 3.1 s, 6.2 s when a sync was overtaken
    revocations = [pod.callbacks(CallbackKind.REVOKED) for pod in world.live]
    assert sum(len(callback.partitions) for calls in revocations for _, callback in calls) == 4


def test_cooperative_member_gets_an_assigned_callback_in_every_generation() -> None:
    world = group_of(3, COOPERATIVE)
    world.close(world.pods["m2"])
    world.run_until(70)
    world.run_until_stable()
    member = world.pods["m0"]

    assert len(member.callbacks(CallbackKind.ASSIGNED)) == generation(world)


def test_static_restart_moves_nothing_and_calls_nobody_back() -> None:
    world = group_of(4, COOPERATIVE, static=True)
    before = {pod.name: len(pod.callbacks()) for pod in world.live}
    owned = world.owners()
    world.close(world.pods["m1"])
    world.run_until(70)
    reborn = world.pod("m1b", COOPERATIVE, instance_id="i1", at_s=70)
    world.run_until(70.1)
    world.run_until_stable()

    assert world.pods["m1"].times(LeaveGroup) == []
    assert generation(world) == 1
    assert [str(partition) for partition in reborn.member.consumed_partitions] == owned["m1"]
    assert {name: len(world.pods[name].callbacks()) for name in ("m0", "m2", "m3")} == {
        name: before[name] for name in ("m0", "m2", "m3")
    }
    assert world.gaps_since(60)[0] == pytest.approx(10.2, abs=0.3)


@STRATEGIES
def test_crash_is_noticed_after_the_session_timeout(settings: dict[str, str]) -> None:
    world = group_of(4, settings | {"session.timeout.ms": "10000"})
    world.crash(world.pods["m3"])
    world.run_until(75)
    world.run_until_stable()
    lost = [gap for at, _, _, gap in world.gaps if at > 60 * SECOND]

    assert 6 * SECOND <= max(lost) <= 14 * SECOND
    assert sorted(map(len, world.owners().values())) == [8, 8, 8]


def test_growing_topic_is_noticed_by_the_leader_after_its_metadata_is_too_old() -> None:
    world = group_of(3, EAGER | {"metadata.max.age.ms": "30000"})
    world.run_until(65)
    world.grow("orders", 30)
    world.run_until(85)
    assert not world.is_stable()
    stable_s = world.run_until_stable()

    assert 90 < stable_s <= 95
    assert sorted(map(len, world.owners().values())) == [10, 10, 10]
    assert generation(world) == 2


def test_new_topic_of_a_pattern_is_picked_up() -> None:
    world = World({"orders-eu": 4, "other": 2})
    for number in range(2):
        world.pod(f"m{number}", EAGER | {"metadata.max.age.ms": "20000"}, pattern="orders-.*")
    world.run_until(10)
    world.grow("orders-us", 4)
    world.run_until(45)

    assert [len(pods) for pods in world.owners().values()] == [4, 4]


def test_new_topic_of_a_pattern_costs_one_rebalance_wherever_it_was_heard_of_first() -> None:
    world = World({"orders-eu": 4, "other": 2})
    for number in range(4):
        world.pod(f"m{number}", COOPERATIVE | {"metadata.max.age.ms": "20000"}, pattern="orders-.*", at_s=4 * number)
    world.run_until(40)
    before = generation(world)
    world.grow("orders-us", 4)
    world.run_until(90)

    assert sorted(map(len, world.owners().values())) == [2, 2, 2, 2]
    assert generation(world) == before + 1


def test_heartbeats_of_all_members_lock_at_the_generation_and_keep_the_measured_period() -> None:
    world = World({"orders": 24})
    for number in range(8):
        world.pod(f"m{number}", EAGER | {"enable.auto.commit": "false"}, poll_gap_us=(400_000, 500_000), at_s=number * 0.3)
    world.run_until(420)
    beats = [pod.times(Heartbeat) for pod in world.live]
    intervals = [later - earlier for times in beats for earlier, later in pairwise(times[2:])]

    first = [times[0] for times in beats]
    assert max(first) - min(first) <= seconds(0.7)  # a poll gap, although they started over 2.1 s
    assert sum(intervals) / len(intervals) == pytest.approx(3_020_000, abs=3_000)
    assert min(intervals) >= 2_900_000
    assert max(intervals) <= 3_130_000
    hundred = [times[100] for times in beats]
    assert max(hundred) - min(hundred) <= seconds(1.2)


def test_join_answers_are_handled_only_inside_poll() -> None:
    world = group_of(2, EAGER)
    slow = world.pods["m1"]
    slow.poll_blocks_us = 0
    world.pod("new", EAGER, at_s=61)
    world.run_until(62)
    joins = len(slow.times(JoinGroup))
    while len(slow.times(JoinGroup)) == joins:
        world.run_until(world.now_us / SECOND + 0.001)
    syncs = len(slow.times(SyncGroup))
    world.stall(slow, 20)
    world.run_until(world.now_us / SECOND + 15)

    assert len(slow.times(SyncGroup)) == syncs
    assert not world.is_stable()


def test_sync_that_is_overtaken_by_a_join_starts_another_round() -> None:
    world = group_of(2, COOPERATIVE)
    late = world.pods["m1"]
    late.poll_gap_us = (900_000, 1_000_000)
    late.poll_blocks_us = 0
    world.pod("new", COOPERATIVE, at_s=61)
    world.run_until(90)

    # m0 revokes and joins again at once, before m1 has handled its JoinGroup answer: m1's SyncGroup meets REBALANCE_IN_PROGRESS.
    assert generation(world) >= 3
    assert sorted(map(len, world.owners().values())) == [8, 8, 8]


def test_member_that_does_not_poll_leaves_after_max_poll_interval() -> None:
    world = group_of(3, EAGER | {"max.poll.interval.ms": "8000"})
    stalled = world.pods["m2"]
    world.stall(stalled, 30)
    world.run_until(60 + 8.3)

    assert 7.9 <= (stalled.times(LeaveGroup)[0] - 60 * SECOND) / SECOND <= 8.2
    assert stalled.log[-1][1] == StopConsuming(stalled.member.owned_partitions, StopReason.POLL_TIMEOUT)
    world.run_until(75)
    assert sorted(map(len, world.owners().values())) == [0, 12, 12]
    world.run_until(95)
    world.run_until_stable()
    assert [callback.kind for _, callback in stalled.callbacks()[-2:]] == [CallbackKind.LOST, CallbackKind.ASSIGNED]
    assert sorted(map(len, world.owners().values())) == [8, 8, 8]


def test_close_commits_calls_back_and_leaves() -> None:
    world = group_of(2, EAGER)
    pod = world.pods["m1"]
    world.close(pod)
    world.run_until(61)

    assert pod.member.state is MemberState.CLOSED
    assert [type(request).__name__ for at, request in pod.requests if at >= 60 * SECOND] == ["OffsetCommit", "LeaveGroup"]
    assert pod.callbacks()[-1][1].kind is CallbackKind.REVOKED
    assert pod.closed_us is not None
    assert 60 * SECOND <= pod.closed_us <= seconds(60.52)  # measured: 0-0.5 s


def test_close_while_a_join_is_outstanding_waits_for_it_and_loses_its_partitions() -> None:
    world = group_of(3, COOPERATIVE)
    world.pod("new", COOPERATIVE, at_s=61)
    pod = world.pods["m0"]
    joins = len(pod.times(JoinGroup))
    while len(pod.times(JoinGroup)) == joins:
        world.run_until(world.now_us / SECOND + 0.001)
    closed_at_us = world.now_us
    world.close(pod)
    world.run_until(world.now_us / SECOND + 4)

    assert pod.callbacks()[-1][1].kind is CallbackKind.LOST
    assert pod.closed_us is not None
    assert pod.closed_us - closed_at_us <= seconds(3.6)
    left_us, answered_us = pod.times(LeaveGroup)[0], pod.closed_us
    assert closed_at_us < left_us < answered_us
    world.run_until_stable()
    assert sorted(map(len, world.owners().values())) == [8, 8, 8]


@pytest.mark.parametrize(("operation", "leaves"), [("default", False), ("leave", True), ("remain", False)])
def test_close_of_a_static_member_leaves_only_when_told_to(operation: str, leaves: bool) -> None:
    world = group_of(2, EAGER | {"group.membership.operation": operation}, static=True)
    pod = world.pods["m1"]
    world.close(pod)
    world.run_until(61)

    assert bool(pod.times(LeaveGroup)) is leaves


def test_dynamic_member_that_remains_is_expired_by_its_session() -> None:
    world = group_of(2, EAGER | {"group.membership.operation": "remain", "session.timeout.ms": "10000"})
    world.close(world.pods["m1"])
    world.run_until(65)
    assert sorted(map(len, world.owners().values())) == [12]
    world.run_until(80)
    assert sorted(map(len, world.owners().values())) == [24]


def test_second_process_with_the_same_instance_id_fences_the_first() -> None:
    world = group_of(3, COOPERATIVE, static=True)
    world.pod("twin", COOPERATIVE, instance_id="i1", at_s=61)
    world.run_until(66)
    world.run_until_stable()

    assert world.pods["m1"].failure == "FENCED_INSTANCE_ID"
    assert world.pods["m1"].member.state is MemberState.FAILED
    assert generation(world) == 1


def test_member_without_a_common_assignor_fails() -> None:
    world = group_of(2, EAGER)
    world.pod("odd", COOPERATIVE, at_s=61)
    world.run_until(70)

    assert world.pods["odd"].failure == "INCONSISTENT_GROUP_PROTOCOL"
    assert generation(world) == 1


def test_two_bounces_take_a_group_from_range_to_cooperative_sticky() -> None:
    both = {"partition.assignment.strategy": "cooperative-sticky,range"}
    world = group_of(3, EAGER)
    for step, settings in enumerate((both, COOPERATIVE)):
        for number in range(3):
            at_s = world.now_us / SECOND
            old = world.pods[f"m{number}" if step == 0 else f"a{number}"]
            world.close(old)
            world.run_until(at_s + 5)
            world.pod(f"{'ab'[step]}{number}", settings, at_s=at_s + 5)
            world.run_until(at_s + 5.2)
            world.run_until_stable()

    assert [pod.failure for pod in world.pods.values()] == [None] * 9
    assert sorted(map(len, world.owners().values())) == [8, 8, 8]


@STRATEGIES
def test_lost_connection_is_found_again_without_a_rebalance(settings: dict[str, str]) -> None:
    world = group_of(3, settings)
    world.unreachable.add("m1")
    quiet = set()
    for tenth in range(670, 700):
        world.run_until(tenth / 10)
        quiet.add(world.pods["m1"].member.is_quiet)
    assert False in quiet
    world.unreachable.clear()
    world.run_until(75)
    world.run_until_stable()

    assert generation(world) == 1


@STRATEGIES
def test_member_cut_off_for_longer_than_its_session_comes_back(settings: dict[str, str]) -> None:
    world = group_of(3, settings | {"session.timeout.ms": "10000"})
    world.unreachable.add("m1")
    world.run_until(80)
    assert len(world.readers) == 24
    world.unreachable.clear()
    world.run_until(85)
    world.run_until_stable()

    assert CallbackKind.LOST in [callback.kind for _, callback in world.pods["m1"].callbacks()]
    assert sorted(map(len, world.owners().values())) == [8, 8, 8]


def test_slow_revocation_holds_the_eager_group_until_it_is_over() -> None:
    world = World({"orders": 12})
    for number in range(3):
        callbacks = {CallbackKind.REVOKED: seconds(4)} if number == 1 else {}
        world.pod(f"m{number}", EAGER, callback_us=callbacks)
    world.run_until_stable()
    world.run_until(60)
    world.close(world.pods["m2"])
    world.run_until(75)

    longest = world.gaps_since(60)[0]
    assert 4.0 <= longest <= 8.0


def test_automatic_commits_leave_every_interval_and_before_a_revocation() -> None:
    world = group_of(2, EAGER)
    pod = world.pods["m0"]
    commits = [at for at in pod.times(OffsetCommit) if at > 20 * SECOND]

    assert all(4.99 <= (later - earlier) / SECOND <= 5.4 for earlier, later in pairwise(commits))
    world.close(world.pods["m1"])
    world.run_until(65)
    revoked_us = pod.callbacks(CallbackKind.REVOKED)[-1][0]
    assert any(revoked_us - seconds(0.4) <= at <= revoked_us for at in pod.times(OffsetCommit))


@STRATEGIES
def test_librdkafka_commits_what_it_gives_up_after_its_callback_and_joins_then(settings: dict[str, str]) -> None:
    """As it had read it when it stopped, so that nobody reads a record twice. Java commits as the round begins, and reads on."""
    world = World({"orders": 24})
    for number in range(2):
        slow = {CallbackKind.REVOKED: seconds(2)}
        world.pod(f"m{number}", settings, profile="librdkafka", at_s=number * 0.02, callback_us=slow)
    world.run_until(60)
    world.pod("new", settings, profile="librdkafka", at_s=61)
    world.run_until(80)
    pod = world.pods["m0"]

    stopped_us, stop = next((at, each) for at, each in pod.log if at > 60 * SECOND and isinstance(each, StopConsuming))
    called_us, callback = next(each for each in pod.callbacks(CallbackKind.REVOKED) if each[0] > 60 * SECOND)
    committed_us, commit = next((at, each) for at, each in pod.requests if at > stopped_us and isinstance(each, OffsetCommit))
    joined_us = next(at for at in pod.times(JoinGroup) if at > called_us)
    assert {(each.topic, each.partition) for each in commit.partitions} == set(stop.partitions) == set(callback.partitions)
    assert {each.offset for each in commit.partitions} == {stopped_us // 1000}
    assert committed_us == called_us + seconds(2)
    assert joined_us >= committed_us + 2 * world.latency_us
    assert sorted(map(len, world.owners().values())) == [8, 8, 8]


@pytest.mark.parametrize("profile", ["librdkafka", "java"])
def test_librdkafka_beats_an_interval_after_its_last_beat_whatever_generations_begin(profile: str) -> None:
    """Java's timer begins with each generation, librdkafka's with the first one, in which a beat leaves at once."""
    world = World({"orders": 24})
    member = world.pod("m0", EAGER, profile=profile, poll_gap_us=(seconds(2), seconds(2)))
    world.pod("other", EAGER, profile=profile, at_s=7.5)
    world.run_until(40)
    beats, (first_us, again_us) = member.times(Heartbeat), member.times(SyncGroup)[-2:]
    gaps = [round((later - earlier) / SECOND, 1) for earlier, later in pairwise(beats) if earlier < again_us < later]
    assert (gaps == [3.0], beats[0] < first_us + 10_000) == ((True, True) if profile == "librdkafka" else (False, False))


def test_commit_of_the_application_is_answered() -> None:
    world = group_of(2, EAGER | {"enable.auto.commit": "false"})
    pod = world.pods["m0"]
    commit(world, pod)
    world.run_until(60.5)
    done = pod.log[-1][1]

    assert isinstance(done, CommitDone)
    assert (done.error, done.is_automatic, len(done.offsets)) == (ErrorCode.NONE, False, 12)


def test_commit_during_a_rebalance_is_refused_by_the_client_itself() -> None:
    world = group_of(2, COOPERATIVE | {"enable.auto.commit": "false"})
    pod = world.pods["m0"]
    pod.poll_gap_us = (seconds(1), seconds(1))
    world.pod("new", COOPERATIVE, at_s=61)
    joins = len(pod.times(JoinGroup))
    while len(pod.times(JoinGroup)) == joins:
        world.run_until(world.now_us / SECOND + 0.001)
    commit(world, pod)

    done = pod.log[-1][1]
    assert isinstance(done, CommitDone)
    assert done.error is ErrorCode.REBALANCE_IN_PROGRESS


def commit(world: World, pod: Pod) -> None:
    pod.poll_gap_us = (seconds(5), seconds(5))
    world._perform(pod, pod.member.commit(world.now_us))


def test_leader_says_how_large_the_work_of_its_assignor_is() -> None:
    world = group_of(3, EAGER)
    runs = [event for pod in world.live for _, event in pod.log if isinstance(event, RunAssignor)]

    assert runs == [RunAssignor("range", 3, 24)]


def test_a_rebalance_is_heard_of_when_the_heartbeat_thread_looks_or_a_poll_ends() -> None:
    """HeartbeatThread#run looks every retry.backoff.ms; a poll() that has records reads the network as it returns."""
    world = World({"orders": 24})
    settings = {"partition.assignment.strategy": "cooperative-sticky"}
    for number in range(2):
        world.pod(f"m{number}", settings, at_s=number * 0.02, poll_gap_us=(2_000_000, 2_000_000))
    world.run_until_stable()
    world.pod("late", settings, at_s=world.now_us / 1e6 + 0.5)
    world.run_until(world.now_us / 1e6 + 20)

    for name in ("m0", "m1"):
        pod = world.pods[name]
        beats, joins = pod.times(Heartbeat), pod.times(JoinGroup)
        told = max(beat for beat in beats if beat < joins[-1])
        assert joins[-1] - told >= 100_000
