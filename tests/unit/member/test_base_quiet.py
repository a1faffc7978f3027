"""Leaving out what would change nothing: polls, heartbeats, metadata refreshes, automatic commits."""

from __future__ import annotations

import pytest

from kgctl.member.api import Send
from kgctl.model.requests import Heartbeat, OffsetCommit
from tests.support.member_harness import SECOND, World, seconds

PROTOCOLS = pytest.mark.parametrize("protocol", ["classic", "consumer"])


def quiet_world(protocol: str) -> World:
    world = World({"orders": 4})
    for number in range(2):
        world.pod(f"m{number}", {"group.protocol": protocol}, poll_blocks_us=50_000)
    world.run_until_stable()
    world.run_until(30)
    while not world.is_stable():
        world.run_until(world.now_us / SECOND + 0.01)
    return world


@PROTOCOLS
def test_group_whose_members_poll_only_when_needed_lives_like_any_other(protocol: str) -> None:
    ends = []
    for only_when_needed in (False, True):
        world = World({"orders": 6}, polls_only_when_needed=only_when_needed)
        for number in range(3):
            world.pod(f"m{number}", {"group.protocol": protocol})
        world.run_until_stable()
        world.run_until(60)
        world.close(world.pods["m0"])
        world.run_until(61)
        world.run_until_stable()
        ends.append(sorted(map(len, world.owners().values())))

    assert ends == [[3, 3], [3, 3]]


@PROTOCOLS
def test_skipped_day_counts_its_chores_and_keeps_every_deadline_ahead(protocol: str) -> None:
    world = quiet_world(protocol)
    member = world.pods["m0"].member
    until_us = world.now_us + seconds(86_400)
    skipped = member.skip_quiet(until_us)

    period_s = 3.02 if protocol == "classic" else 5.0
    assert skipped.heartbeats == pytest.approx(86_400 / period_s, rel=0.001)
    assert skipped.commits == pytest.approx(86_400 / 5, abs=1)
    assert skipped.metadata_refreshes == 288
    assert skipped.last_heartbeat_us is not None
    assert until_us - seconds(period_s + 0.1) <= skipped.last_heartbeat_us < until_us
    assert skipped.last_commit_us is not None
    assert until_us - seconds(5) <= skipped.last_commit_us < until_us
    deadline_us = member.next_deadline_us()
    assert deadline_us is not None
    assert deadline_us >= until_us
    assert member.is_quiet


@PROTOCOLS
def test_automatic_commits_wait_for_the_polls_that_make_them(protocol: str) -> None:
    world = quiet_world(protocol)
    member = world.pods["m0"].member
    until_us = world.now_us + seconds(86_400)
    last_us = member.quiet_commit_us(until_us, seconds(0.7))
    skipped = member.skip_quiet(until_us, seconds(0.7))

    assert skipped.commits == pytest.approx(86_400 / 5.7, abs=1)
    assert skipped.last_commit_us == last_us
    assert last_us is not None
    assert until_us - seconds(5.7) <= last_us < until_us


@PROTOCOLS
def test_nothing_is_skipped_before_the_first_chore(protocol: str) -> None:
    world = quiet_world(protocol)
    member = world.pods["m0"].member
    deadline_us = member.next_deadline_us()
    skipped = member.skip_quiet(world.now_us)

    assert (skipped.heartbeats, skipped.commits, skipped.metadata_refreshes) == (0, 0, 0)
    assert member.next_deadline_us() == deadline_us


def test_chores_go_on_after_a_skip() -> None:
    world = quiet_world("classic")
    pod = world.pods["m0"]
    until_us = world.now_us + seconds(1_000)
    pod.member.skip_quiet(until_us)
    sent = []
    now_us = until_us
    while now_us < until_us + seconds(6):
        now_us = pod.member.next_deadline_us() or now_us
        actions = [*pod.member.expire(now_us), *pod.member.poll(now_us)]
        sent += [type(action.request) for action in actions if isinstance(action, Send)]
        now_us += 1

    assert {Heartbeat, OffsetCommit} == set(sent)


@PROTOCOLS
def test_only_the_poll_limit_of_a_busy_application_is_loud(protocol: str) -> None:
    world = quiet_world(protocol)
    member = world.pods["m0"].member
    assert member.next_loud_deadline_us() is None
    assert not member.needs_poll
    member.application_busy(world.now_us)

    assert member.next_loud_deadline_us() == world.now_us + 300 * SECOND
    assert member.needs_poll
    member.poll(world.now_us + 1)
    assert member.next_loud_deadline_us() is None
