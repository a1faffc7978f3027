"""Members of the consumer protocol back to back with the coordinator, held against measurements of Java consumers."""

from __future__ import annotations

from itertools import pairwise

import pytest

from kgctl.member.api import CallbackKind, MemberState, StartConsuming, StopConsuming, StopReason
from kgctl.model.requests import ConsumerGroupHeartbeat, OffsetCommit
from tests.support.member_harness import SECOND, World, seconds

CONSUMER = {"group.protocol": "consumer"}
BY_HAND = CONSUMER | {"enable.auto.commit": "false"}


def group_of(
    count: int, settings: dict[str, str] = CONSUMER, *, seed: int = 1, spread_s: float = 0.7, static: bool = False
) -> World:
    """A stable group whose members started ``spread_s`` apart; the time is 60 s."""
    world = World({"orders": 24})
    for number in range(count):
        instance_id = f"i{number}" if static else None
        world.pod(f"m{number}", settings, at_s=number * spread_s, instance_id=instance_id, poll_blocks_us=100_000)
    world.run_until_stable()
    world.run_until(60)
    return world


def test_cold_start_has_its_first_owner_at_once_and_takes_some_beats() -> None:
    world = World({"orders": 24})
    for number in range(8):
        world.pod(f"m{number}", CONSUMER, at_s=number * 0.02, poll_blocks_us=100_000)
    world.run_until(0.3)
    assert len(world.readers) == 24
    stable_s = world.run_until_stable()

    assert 5 <= stable_s <= 10.5  # measured: up to 10 s of handovers
    assert sorted(map(len, world.owners().values())) == [3] * 8
    assert world.pods["m0"].member.generation_id <= 11


def test_handover_the_loser_sends_at_once_and_the_gainer_waits_for_its_beat() -> None:
    world = group_of(4)
    world.pod("new", CONSUMER, at_s=61, poll_blocks_us=100_000)
    world.run_until(61.5)
    world.run_until_stable()
    moved = world.gaps_since(61)

    assert len(moved) >= 4
    assert max(moved) <= 5.3  # measured: 0.2-5.1 s
    for pod in (pod for pod in world.live if pod.name != "new"):
        for at, _ in pod.callbacks(CallbackKind.REVOKED):
            beats = [beat for beat in pod.times(ConsumerGroupHeartbeat) if beat >= at]
            assert beats[0] - at <= seconds(0.3)


def test_only_partitions_that_move_are_interrupted() -> None:
    world = group_of(4)
    world.close(world.pods["m3"])
    world.run_until(62)
    world.run_until_stable()

    stopped = {pod.name for pod in world.live for at, event in pod.log if isinstance(event, StopConsuming) and at > 60 * SECOND}
    assert stopped == set()
    assert sorted(map(len, world.owners().values())) == [8, 8, 8]


def test_member_that_is_back_before_the_others_beat_gets_its_partitions_back() -> None:
    world = group_of(3, spread_s=0.01)
    owned = world.owners()
    while world.now_us / SECOND < 61 or not recently_beaten(world):
        world.run_until(world.now_us / SECOND + 0.05)
    world.close(world.pods["m1"])
    world.run_until(world.now_us / SECOND + 1)
    world.pod("m1b", CONSUMER, at_s=world.now_us / SECOND, poll_blocks_us=100_000)
    world.run_until(world.now_us / SECOND + 0.2)
    world.run_until_stable()

    assert {len(partitions) for partitions in world.owners().values()} == {8}
    assert world.owners()["m0"] == owned["m0"]
    assert world.owners()["m2"] == owned["m2"]


def recently_beaten(world: World) -> bool:
    """Whether both of the members that stay have just sent a beat."""
    return all(world.now_us - world.pods[name].times(ConsumerGroupHeartbeat)[-1] < seconds(0.4) for name in ("m0", "m2"))


def test_beats_keep_the_phase_of_each_members_own_start() -> None:
    world = World({"orders": 24})
    for number in range(4):
        world.pod(f"m{number}", BY_HAND, at_s=number, poll_gap_us=(900_000, 1_000_000), poll_blocks_us=100_000)
    world.run_until(400)
    beats = {pod.name: [at for at in pod.times(ConsumerGroupHeartbeat) if at > 30 * SECOND] for pod in world.live}
    intervals = [later - earlier for times in beats.values() for earlier, later in pairwise(times)]

    assert sum(intervals) / len(intervals) == pytest.approx(5_000_000, abs=2_000)
    assert min(intervals) >= 4_970_000
    assert max(intervals) <= 5_030_000
    phases = [[at % 5_000_000 for at in times] for times in beats.values()]
    assert all(max(phase) - min(phase) <= 50_000 for phase in phases if max(phase) - min(phase) < 4_000_000)


def test_static_member_that_comes_back_gets_its_partitions_and_nobody_notices() -> None:
    world = group_of(3, static=True)
    owned = world.owners()
    epoch = world.pods["m0"].member.generation_id
    before = len(world.pods["m0"].callbacks())
    world.close(world.pods["m1"])
    world.run_until(70)
    world.pod("m1b", CONSUMER, instance_id="i1", at_s=70, poll_blocks_us=100_000)
    world.run_until(71)
    world.run_until_stable()

    assert world.owners()["m1b"] == owned["m1"]
    assert len(world.pods["m0"].callbacks()) == before
    assert world.pods["m0"].member.generation_id == epoch


def test_static_member_that_crashed_may_not_come_back_before_its_session_is_over() -> None:
    world = group_of(3, static=True)
    world.crash(world.pods["m1"])
    world.pod("m1b", CONSUMER, instance_id="i1", at_s=65, poll_blocks_us=100_000)
    world.run_until(70)

    assert world.pods["m1b"].failure == "UNRELEASED_INSTANCE_ID"


def test_a_member_that_owns_nothing_takes_its_first_partitions_in_one_poll() -> None:
    """It has nothing to commit: its thread begins without the application (measured: the callback hears the new epoch first)."""
    world = group_of(3)
    late = world.pod("late", CONSUMER, at_s=60, poll_gap_us=(2 * SECOND, 2 * SECOND))
    world.run_until(90)

    assigned = next(at for at, callback in late.callbacks(CallbackKind.ASSIGNED) if callback.partitions)
    beats = [at for at in late.times(ConsumerGroupHeartbeat) if at < assigned]
    assert assigned - beats[-1] <= 2 * SECOND


def test_crash_is_noticed_after_the_session_timeout() -> None:
    world = group_of(3)
    world.crash(world.pods["m2"])
    world.run_until(100)
    assert len(world.readers) == 16
    world.run_until(116)

    assert world.is_stable()
    assert 40 <= world.gaps_since(60)[0] <= 51


def test_poll_limit_is_noticed_at_the_next_beat_and_taken_over_at_the_others() -> None:
    world = group_of(3, CONSUMER | {"max.poll.interval.ms": "8000"})
    stalled = world.pods["m2"]
    since_us = stalled.last_poll_us
    world.stall(stalled, 30)
    world.run_until(80)

    left_us = next(at for at, request in stalled.requests if getattr(request, "member_epoch", 0) == -1)
    taken = [at for at, _, _, _ in world.gaps if at > 60 * SECOND]
    assert 8 <= (left_us - since_us) / SECOND <= 13.1
    assert 8 <= (max(taken) - since_us) / SECOND <= 18.2
    stops = [(at, event.reason) for at, event in stalled.log if isinstance(event, StopConsuming) and at > 60 * SECOND]
    assert stops == [(since_us + 8 * SECOND, StopReason.POLL_TIMEOUT)]
    world.run_until(95)
    world.run_until_stable()
    assert CallbackKind.LOST in [callback.kind for _, callback in stalled.callbacks()]
    assert sorted(map(len, world.owners().values())) == [8, 8, 8]


def test_librdkafka_is_silent_past_its_poll_limit_and_leaves_when_it_is_polled() -> None:
    world = World({"orders": 24})
    for number in range(3):
        settings = CONSUMER | {"max.poll.interval.ms": "8000"}
        world.pod(f"m{number}", settings, profile="librdkafka", at_s=number, poll_blocks_us=100_000)
    world.run_until_stable()
    world.run_until(60)
    stalled = world.pods["m2"]
    world.stall(stalled, 16)
    world.run_until(120)

    sent = [(at, request.member_epoch) for at, request in stalled.requests if isinstance(request, ConsumerGroupHeartbeat)]
    late = [(at, epoch) for at, epoch in sent if at > 68.6 * SECOND]
    assert [epoch for _, epoch in late[:2]] == [-1, 0]
    assert 75.8 <= late[0][0] / SECOND <= 76.2
    assert sorted(map(len, world.owners().values())) == [8, 8, 8]


def test_poll_that_comes_late_but_before_the_beat_goes_on_where_it_was() -> None:
    world = group_of(3, CONSUMER | {"max.poll.interval.ms": "8000", "auto.commit.interval.ms": "600000"})
    late = world.pods["m2"]
    beat_us = late.times(ConsumerGroupHeartbeat)[-1] + 5 * SECOND
    world.run_until(beat_us / SECOND + 1)
    epoch = late.member.generation_id
    world.stall(late, 8.5)  # the limit is over a second before the next beat but one, the poll comes half a second later
    world.run_until(90)

    events = [event for at, event in late.log if at > beat_us and isinstance(event, StartConsuming | StopConsuming)]
    assert [type(event) for event in events] == [StopConsuming, StartConsuming]
    assert [len(event.positions) for event in events if isinstance(event, StartConsuming)] == [8]
    assert (late.member.generation_id, late.callbacks(CallbackKind.LOST)) == (epoch, [])
    assert len(world.readers) == 24


def test_growing_topic_is_shared_out_at_the_next_beats() -> None:
    world = group_of(3)
    world.grow("orders", 30)
    stable_s = world.run_until_stable()

    assert stable_s <= 71
    assert sorted(map(len, world.owners().values())) == [10, 10, 10]


@pytest.mark.parametrize(("profile", "before_s", "epochs"), [("librdkafka", 13, 1), ("java", 13, 1), ("java by client", 33, 2)])
def test_pattern_is_matched_by_the_coordinator_or_by_each_member(profile: str, before_s: int, epochs: int) -> None:
    """Java's subscribe(Pattern) waits for each client's metadata and its next beat, each of which is another group to assign."""
    world = World({"orders-eu": 4, "other": 2})
    for number in range(2):
        settings = CONSUMER | {"metadata.max.age.ms": "20000"}
        name, _, by = profile.partition(" by ")
        world.pod(
            f"m{number}",
            settings,
            profile=name,
            pattern="orders-.*",
            matches_pattern=by == "client",
            poll_blocks_us=100_000,
            at_s=number,
        )
    world.run_until(20)
    assert sorted(len(partitions) for partitions in world.owners().values()) == [2, 2]
    epoch = max(pod.member.generation_id for pod in world.live)
    world.grow("orders-us", 4)
    world.run_until(20 + before_s)

    assert sorted(len(partitions) for partitions in world.owners().values()) == [4, 4]
    assert max(pod.member.generation_id for pod in world.live) == epoch + epochs


@pytest.mark.parametrize(
    ("static", "operation", "epoch"),
    [(False, "default", -1), (False, "remain", -1), (True, "default", -2), (True, "leave", -1), (True, "remain", -2)],
)
def test_close_says_goodbye_with_the_epoch_of_its_kind(static: bool, operation: str, epoch: int) -> None:
    world = group_of(2, CONSUMER | {"group.membership.operation": operation}, static=static)
    pod = world.pods["m1"]
    world.close(pod)
    world.run_until(61)
    last = pod.requests[-1][1]

    assert isinstance(last, ConsumerGroupHeartbeat)
    assert last.member_epoch == epoch
    assert pod.callbacks()[-1][1].kind is CallbackKind.REVOKED
    assert pod.member.state is MemberState.CLOSED


def test_fenced_member_gives_everything_up_and_joins_again() -> None:
    world = group_of(3)
    world.unreachable.add("m1")
    world.run_until(120)
    assert len(world.readers) == 24
    world.unreachable.clear()
    world.run_until(125)
    world.run_until_stable()

    assert CallbackKind.LOST in [callback.kind for _, callback in world.pods["m1"].callbacks()]
    assert sorted(map(len, world.owners().values())) == [8, 8, 8]


def test_commit_that_could_not_be_sent_is_not_sent_in_the_name_of_a_later_membership() -> None:
    world = World({"orders": 24}, latency_us=20_000)
    for number in range(3):
        world.pod(f"m{number}", CONSUMER | {"auto.commit.interval.ms": "600000"}, at_s=number)
    world.run_until(60)
    pod = world.pods["m0"]
    before = len(pod.times(OffsetCommit))
    world.pod("new", CONSUMER, at_s=61)
    while len(pod.times(OffsetCommit)) == before:  # the commit before it gives partitions up
        world.run_until(world.now_us / SECOND + 0.01)
    world.unreachable.add("m0")
    world.run_until(180)
    world.unreachable.clear()
    world.run_until(200)

    assert pod.member.state is MemberState.STABLE
    late = [request for at, request in pod.requests if isinstance(request, OffsetCommit) and at > seconds(180)]
    assert [offset.offset for request in late for offset in request.partitions if offset.offset < 180_000] == []


def test_short_loss_of_the_connection_costs_nothing() -> None:
    world = group_of(3)
    epoch = world.pods["m0"].member.generation_id
    world.unreachable.add("m1")
    world.run_until(80)
    world.unreachable.clear()
    world.run_until(90)

    assert world.is_stable()
    assert world.pods["m0"].member.generation_id == epoch


def test_slow_revocation_delays_only_what_moves() -> None:
    world = World({"orders": 12})
    for number in range(2):
        world.pod(f"m{number}", CONSUMER, callback_us={CallbackKind.REVOKED: seconds(4)}, poll_blocks_us=100_000)
    world.run_until_stable()
    world.run_until(60)
    world.pod("new", CONSUMER, at_s=60, poll_blocks_us=100_000)
    world.run_until(60.5)
    world.run_until_stable()
    moved = world.gaps_since(60)

    assert len(moved) == 4
    assert min(moved) >= 4


def test_rolling_restart_keeps_one_owner_and_ends_balanced() -> None:
    world = group_of(4)
    for number in range(4):
        at_s = world.now_us / SECOND
        world.close(world.pods[f"m{number}"])
        world.run_until(at_s + 8)
        world.pod(f"n{number}", CONSUMER, at_s=at_s + 8, poll_blocks_us=100_000)
        world.run_until(at_s + 8.5)
        world.run_until_stable()
        world.run_until(at_s + 38)

    assert sorted(map(len, world.owners().values())) == [6, 6, 6, 6]


def test_online_upgrade_from_classic_keeps_one_owner() -> None:
    world = World({"orders": 12})
    classic = {"partition.assignment.strategy": "cooperative-sticky"}
    for number in range(3):
        world.pod(f"m{number}", classic, poll_blocks_us=100_000)
    world.run_until_stable()
    world.run_until(60)
    for number in range(3):
        at_s = world.now_us / SECOND
        world.close(world.pods[f"m{number}"])
        world.run_until(at_s + 5)
        world.pod(f"n{number}", CONSUMER, at_s=at_s + 5, poll_blocks_us=100_000)
        world.run_until(at_s + 6)
        world.run_until_stable()

    assert sorted(map(len, world.owners().values())) == [4, 4, 4]
    assert [pod.failure for pod in world.pods.values()] == [None] * 6
