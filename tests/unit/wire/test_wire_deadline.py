"""The moment by which a call must be over."""

from __future__ import annotations

import re

import pytest

from kgctl.errors import TimedOutError
from kgctl.wire import Deadline


def test_time_is_left_until_the_end() -> None:
    deadline = Deadline(60_000)

    assert 40 < deadline.seconds_left() <= 60
    assert not deadline.is_over


def test_after_the_end_there_is_none_left() -> None:
    deadline = Deadline(0)

    assert deadline.is_over
    assert deadline.wait(0.01) is False
    with pytest.raises(TimedOutError, match=r"^the broker did not answer within 0 s$"):
        deadline.seconds_left("the broker")


def test_the_message_has_the_time_as_it_was_given() -> None:
    assert str(Deadline(2_500).timed_out("x")) == "x did not answer within 2.5 s"
    call = Deadline.of_call(Deadline(1_000, 0.5), 0)
    assert re.fullmatch(r"x did not answer within 0\.25 s \(--timeout: 1 s\)", str(call.part(0.5).timed_out("x")))


def test_a_part_leaves_time_for_the_rest() -> None:
    assert 20 < Deadline(60_000).part(0.5).seconds_left() <= 30
    assert Deadline(0).part(0.5).timeout_ms == 1


def test_what_several_calls_have_together_knows_whether_one_had_to_wait() -> None:
    limit = Deadline(60_000)
    call = Deadline.of_call(limit, 0)
    assert (limit.is_troubled, call.expects("b")) == (False, True)
    call.part(0.5).within(1).wait(0)
    assert limit.is_troubled


def test_a_limit_that_is_renewed_remembers_who_was_silent() -> None:
    limit = Deadline(0, 0.5)
    longer = limit.renewed(60)
    Deadline.of_call(longer, 0).part(0.5).note_silence("b")
    call = Deadline.of_call(limit.renewed(30), 0)
    assert (call.expects("b"), call.expects("c"), round(call.seconds_left())) == (False, True, 15)
    assert Deadline(9).expects("b")


def test_a_wait_never_goes_past_the_end() -> None:
    deadline = Deadline(30)

    assert deadline.wait(60) is True
    assert deadline.is_over
