"""Requests of one member: finding the coordinator, waiting behind what is parked, timeouts, and losing the line."""

from __future__ import annotations

from itertools import count
from random import Random  # the seeded source that members are handed
from typing import Any

import pytest

from kgctl.member.api import FindCoordinator, FindCoordinatorResult, MemberIdentity, NetworkError, Send
from kgctl.member.config import MemberConfig
from kgctl.member.runtime import LOOKUP, REQUESTS, MemberConnection, Runtime
from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import Heartbeat, HeartbeatResult, JoinGroup, JoinGroupResult, LeaveGroup


class Line:
    """A connection, what it was answered, and what it sent."""

    def __init__(self, *, is_known: bool = True) -> None:
        self.runtime = Runtime(MemberIdentity(name="m", group_id="g"), MemberConfig(), Random(1), lambda _p, _t: {})
        self.found = 0
        self.answers: list[Any] = []
        self.connection = MemberConnection(self.runtime, count(1), self._on_found)
        if is_known:
            self.connection.find()
            self.connection.answer(1, FindCoordinatorResult())
            self.runtime.take_actions()

    def _on_found(self) -> None:
        self.found += 1

    def send(self, kind: type[Any], *, parks: bool = False, **fields: Any) -> int:
        return self.connection.send(kind, self.answers.append, parks=parks, group_id="g", **fields)

    def beat(self) -> int:
        return self.send(Heartbeat, generation_id=1, member_id="m")

    @property
    def sent(self) -> list[int]:
        return [action.correlation_id for action in self.runtime.take_actions() if isinstance(action, Send)]


def test_coordinator_is_looked_for_once() -> None:
    line = Line(is_known=False)
    line.connection.find()
    line.connection.find()

    assert line.runtime.take_actions() == [FindCoordinator(1)]
    line.connection.answer(1, FindCoordinatorResult())
    assert (line.connection.is_known, line.found) == (True, 1)


@pytest.mark.parametrize("answer", [FindCoordinatorResult(ErrorCode.COORDINATOR_NOT_AVAILABLE), NetworkError(1)])
def test_coordinator_that_is_not_found_is_looked_for_again_later(answer: FindCoordinatorResult | NetworkError) -> None:
    line = Line(is_known=False)
    line.connection.find()
    line.connection.answer(1, answer)
    line.runtime.take_actions()
    line.connection.find()

    assert line.runtime.take_actions() == []
    at_us = line.runtime.deadlines.at(LOOKUP)
    assert at_us is not None
    assert 80_000 <= at_us <= 120_000


def test_requests_wait_behind_a_parked_one() -> None:
    line = Line()
    join = line.send(JoinGroup, parks=True)
    leave = line.send(LeaveGroup, members=())
    assert line.sent == [join]
    line.connection.answer(join, JoinGroupResult())

    assert line.sent == [leave]
    assert line.answers == [JoinGroupResult()]


def test_requests_that_do_not_park_go_out_together() -> None:
    line = Line()
    numbers = [line.beat(), line.beat()]

    assert line.sent == numbers
    assert not line.connection.is_idle
    assert not line.connection.is_clear


def test_broken_connection_fails_all_that_was_under_way_and_looks_for_the_coordinator() -> None:
    line = Line()
    numbers = [line.beat(), line.beat()]
    line.runtime.take_actions()
    line.connection.answer(numbers[1], NetworkError(numbers[1]))

    assert line.answers == [NetworkError(numbers[0]), NetworkError(numbers[1])]
    assert not line.connection.is_known
    assert [type(action) for action in line.runtime.take_actions()] == [FindCoordinator]
    assert not line.connection.expects(numbers[0])


def test_request_without_an_answer_is_given_up_after_its_timeout() -> None:
    line = Line()
    number = line.connection.send(Heartbeat, line.answers.append, timeout_ms=500, group_id="g", generation_id=1, member_id="m")
    assert line.runtime.deadlines.at(REQUESTS) == 500_000
    line.runtime.now_us = 500_000
    line.connection.expire_requests()

    assert line.answers == [NetworkError(number)]
    assert not line.connection.is_known


def test_answer_takes_its_timeout_away() -> None:
    line = Line()
    line.connection.answer(line.beat(), HeartbeatResult())

    assert line.answers == [HeartbeatResult()]
    assert line.runtime.deadlines.at(REQUESTS) is None
    assert line.connection.is_idle


def test_abandoned_connection_waits_for_nothing() -> None:
    line = Line()
    number = line.beat()
    line.connection.abandon()

    assert not line.connection.expects(number)
    assert line.runtime.deadlines.next_us() is None
