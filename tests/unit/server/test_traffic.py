"""Limits, turns and the watch over the event loop."""

from __future__ import annotations

import asyncio
import time

import pytest

from kgctl.server.traffic import ByteBudget, Held, LoopWatch, Turns


def test_room_is_given_in_order_and_never_beyond_the_limit() -> None:
    budget, let_in = ByteBudget(100), list[str]()
    assert budget.take(60, lambda: None)
    assert not budget.take(50, lambda: let_in.append("second"))
    assert not budget.take(10, lambda: let_in.append("third"))
    budget.give_back(60)

    assert (let_in, budget.used) == (["second", "third"], 60)


def test_a_request_above_the_limit_goes_alone() -> None:
    budget, let_in = ByteBudget(100), list[str]()
    assert budget.take(10, lambda: None)
    assert not budget.take(1_000, lambda: let_in.append("large"))
    budget.give_back(10)

    assert (let_in, budget.used) == (["large"], 1_000)


def test_who_waits_for_room_and_goes_away_keeps_nobody_back() -> None:
    budget, let_in = ByteBudget(100), list[str]()

    def gone() -> None:
        let_in.append("gone")

    assert budget.take(80, lambda: None)
    assert not budget.take(90, gone)
    assert not budget.take(20, lambda: let_in.append("other"))
    budget.forget(gone)

    assert let_in == ["other"]


def test_sockets_are_looked_at_between_turns() -> None:
    done: list[str] = []

    async def work_and_beat() -> None:
        turns = Turns()
        for _ in range(20):
            turns.add(lambda: (time.sleep(0.004), done.append("commit"))[1])  # type: ignore[func-returns-value]
        asyncio.get_running_loop().call_soon(done.append, "heartbeat")
        while len(turns):
            await asyncio.sleep(0)

    asyncio.run(work_and_beat())

    assert done.count("commit") == 20
    assert done.index("heartbeat") <= 3


def test_who_held_the_loop_is_named(caplog: pytest.LogCaptureFixture) -> None:
    watch = LoopWatch()
    held = Held(8, 1_234, "10.0.0.9:5000")
    watch.begin(held, time.monotonic() - 0.2)
    watch.end(held)

    assert "a request of 1234 bytes of API 8 from 10.0.0.9:5000 held the server for 2" in caplog.text
    assert (watch.held_too_long, watch.requests[8]) == (1, 1)
