"""The event loop."""

from __future__ import annotations

from kgctl.simulate.engine.context import Loop


def test_tasks_of_one_moment_run_in_the_order_of_scheduling() -> None:
    loop = Loop()
    seen: list[str] = []
    loop.at(5, seen.append, "late")
    loop.at(1, seen.append, "first")
    loop.at(1, lambda _: loop.at(1, seen.append, "third"))
    loop.at(1, seen.append, "second")
    loop.run(until_us=5, most=100, look_at=100)
    assert (seen, loop.now_us, loop.executed) == (["first", "second", "third", "late"], 5, 5)


def test_a_moment_that_never_ends_is_left_at_the_limit() -> None:
    loop = Loop()

    def again(_: object) -> None:
        loop.at(loop.now_us, again)

    loop.at(1, again)
    loop.run(until_us=1, most=7, look_at=100)
    assert loop.executed == 7
