"""What a member's timer does when it fires, whatever type its group is of."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kgctl.coordinator.consumer.group import ConsumerGroup
from kgctl.coordinator.consumer.timers import CONSUMER_TIMERS
from kgctl.coordinator.modern.member import Refusal
from kgctl.coordinator.modern.timers import RETRY_MS, fencing
from kgctl.coordinator.share.group import ShareGroup
from kgctl.coordinator.streams.group import StreamsGroup
from kgctl.coordinator.streams.timers import STREAMS_TIMERS
from kgctl.coordinator.timers import Timer, TimerKey, TimerKind
from kgctl.model.error_codes import ErrorCode

KEY = TimerKey(TimerKind.SESSION, "g", "m")


class Shard:
    """A group with one member, at epoch 7; what is done to it."""

    def __init__(self, group: Any = None) -> None:
        group = group or StreamsGroup("g")
        group.members = {"m": SimpleNamespace(member_id="m", member_epoch=7)}
        self.groups: dict[str, Any] = {"g": group}
        self.now_ms = 100
        self.done: list[tuple[object, ...]] = []
        self.story = SimpleNamespace(note=lambda *said: self.done.append(said))

    def arm(self, *given: object) -> None:
        self.done.append(given)

    def fires(
        self, argument: int = 7, *, at_epoch: bool = False, fails: bool = False, kind: type[Any] = StreamsGroup
    ) -> list[Any]:
        """What happens then."""

        def fence(_: object, group: Any, member: Any) -> None:
            self.done.append((group.group_id, member.member_id))
            if fails:
                raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)

        on_timer = fencing(kind, fence, at_epoch=at_epoch)
        on_timer(self, Timer(KEY, 100, 1, argument, (100, 1)))  # type: ignore[arg-type]
        return self.done


FENCED = [("g", 100, f"{TimerKind.SESSION} timer fences", "m"), ("g", "m")]


def test_a_member_that_is_there_is_fenced_and_it_is_noted() -> None:
    assert Shard().fires() == FENCED
    assert Shard().fires(argument=3) == FENCED


@pytest.mark.parametrize(("argument", "done"), [(7, FENCED), (6, [])])
def test_a_timer_of_an_epoch_fences_at_that_epoch_alone(argument: int, done: list[object]) -> None:
    assert Shard().fires(argument, at_epoch=True) == done


BY_EPOCH = [
    (STREAMS_TIMERS[TimerKind.STREAMS_REBALANCE], StreamsGroup),
    (CONSUMER_TIMERS[TimerKind.CONSUMER_REBALANCE], ConsumerGroup),
]


@pytest.mark.parametrize(("on_timer", "kind"), BY_EPOCH)
def test_a_limit_on_a_rebalance_is_one_of_its_epoch(on_timer: Any, kind: type[Any]) -> None:
    shard = Shard(kind("g"))
    on_timer(shard, Timer(KEY, 100, 1, 6, (100, 1)))
    assert shard.done == []


def test_what_kafkas_own_code_fails_at_is_tried_again() -> None:
    assert RETRY_MS == 500
    assert Shard().fires(fails=True) == [*FENCED, (KEY, 500, 7)]


def test_who_is_gone_is_not_fenced() -> None:
    assert Shard().fires(kind=ShareGroup) == []
    shard = Shard()
    shard.groups["g"].members = {}
    assert shard.fires() == []
    shard.groups = {}
    assert shard.fires() == []
