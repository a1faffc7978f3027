"""The tables of the classic group's states agree with each other."""

from __future__ import annotations

import pytest

from kgctl.coordinator.classic.group import ALLOWED, DEAD, EMPTY, RESPONSES, STABLE, STATE, TRANSITIONS, ClassicGroup
from kgctl.errors import InvariantViolation
from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import JoinGroupResult, LeaveGroupResult
from tests.support.coordinator_harness import CoordinatorHarness


def test_every_state_has_facts_and_responses() -> None:
    states = {transition.source for transition in TRANSITIONS} | {transition.target for transition in TRANSITIONS}

    assert states == set(STATE) == set(RESPONSES)


def test_dead_is_final_and_can_be_reached_from_everywhere() -> None:
    assert {source for source, target in ALLOWED if target is DEAD} == set(STATE) - {DEAD}
    assert not any(source is DEAD for source, _ in ALLOWED)


def test_each_change_stands_there_once() -> None:
    assert len(ALLOWED) == len(TRANSITIONS)


def test_a_change_that_is_not_there_is_a_bug() -> None:
    group = ClassicGroup("g", 0)
    assert group.state is EMPTY

    with pytest.raises(InvariantViolation, match="group 'g' cannot go from Empty to Stable"):
        group.transition_to(STABLE, 1)


def test_a_dead_group_sends_everybody_away() -> None:
    harness = CoordinatorHarness()
    (member,) = harness.stable_group()
    harness.group().transition_to(DEAD, 1)

    unavailable = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert harness.join(member).join == JoinGroupResult(error=unavailable, member_id=member)
    assert harness.sync(member, 1).error is unavailable
    assert harness.heartbeat(member, 1) is unavailable
    assert harness.leave(member) == LeaveGroupResult(error=unavailable)
    assert harness.commit({"t-0": 1}, member, 1) == {"t-0": unavailable}
    assert harness.delete_groups("g") == [ErrorCode.GROUP_ID_NOT_FOUND]
