"""Sessions, and the time that a member has to give tasks up."""

from __future__ import annotations

from kgctl.coordinator.timers import TimerKind
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import GroupState
from tests.unit.coordinator.streams.tasks import Streams, ids


def kinds(streams: Streams) -> list[str]:
    """The timers of the group."""
    keys = streams.harness.driver.coordinator.shard.timers.keys()
    return sorted(f"{key.kind} {key.member_id}".strip() for key in keys if key.group_id)


def test_who_is_silent_is_taken_out() -> None:
    streams = Streams()
    streams.beat("m")
    streams.beat("n")
    streams.harness.sleep_ms(44_999)
    streams.beat("n", 3)

    streams.harness.sleep_ms(1)

    assert sorted(streams.state.members) == ["n"]
    assert streams.state.group_epoch == 4
    assert kinds(streams) == [f"{TimerKind.STREAMS_SESSION} n"]


def test_who_does_not_give_tasks_up_is_taken_out() -> None:
    streams = Streams()
    streams.beat("m")
    streams.beat("n")
    streams.beat("m", 2)
    assert kinds(streams) == ["streams-rebalance m", "streams-session m", "streams-session n"]
    streams.harness.sleep_ms(29_999)
    assert streams.beat("m", 2).error is ErrorCode.NONE

    streams.harness.sleep_ms(1)

    assert sorted(streams.state.members) == ["n"]
    assert kinds(streams) == ["streams-session n"]


def test_who_has_given_tasks_up_has_all_the_time() -> None:
    streams = Streams()
    streams.beat("m")
    streams.beat("n")
    streams.beat("m", 2)
    streams.owns("m", ids(0, 1))
    assert kinds(streams) == ["streams-session m", "streams-session n"]

    streams.harness.sleep_ms(30_000)

    assert sorted(streams.state.members) == ["m", "n"]


def test_the_wait_for_others_ends_with_the_group() -> None:
    streams = Streams({})
    streams.beat("m")
    streams.beat("m", -1)
    assert kinds(streams) == ["streams-initial-rebalance"]

    assert streams.harness.delete_groups("g") == [ErrorCode.NONE]

    assert kinds(streams) == []


def test_who_comes_into_an_empty_group_waits_for_others_again() -> None:
    streams = Streams({})
    streams.beat("m")
    streams.harness.sleep_ms(3_000)
    streams.beat("m", 1)
    streams.beat("m", -1)
    assert streams.state.group_state is GroupState.EMPTY

    assert streams.beat("n").active_tasks == ()
    assert kinds(streams) == ["streams-initial-rebalance", "streams-session n"]
