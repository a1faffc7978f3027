"""The tasks of an instance among its threads."""

from __future__ import annotations

from kgctl.assignors.high_availability import NumberedTask
from kgctl.assignors.streams.threads import Threads, by_lag

TASKS = [NumberedTask(0, number) for number in range(5)]


def test_threads_keep_what_they_had_and_share_the_rest() -> None:
    threads = Threads(["a", "b"], {"a": TASKS[2:], "b": []})

    assert threads.assign(TASKS, is_stateful=True) == {"a": [TASKS[2], TASKS[3], TASKS[4]], "b": [TASKS[0], TASKS[1]]}


def test_one_kind_of_tasks_evens_out_what_the_one_before_left() -> None:
    threads = Threads(["a", "b"], {})
    threads.assign(TASKS[:1], is_stateful=True)

    assert threads.assign(TASKS[1:], is_stateful=False) == {"a": [TASKS[1], TASKS[4]], "b": [TASKS[2], TASKS[3]]}


def test_where_stateless_tasks_were_does_not_count() -> None:
    threads = Threads(["a", "b"], {"a": TASKS[1:2], "b": TASKS[:1]})

    assert threads.assign(TASKS[:2], is_stateful=False) == {"a": [TASKS[0]], "b": [TASKS[1]]}


def test_the_least_lag_comes_first() -> None:
    assert by_lag(TASKS[:3], {TASKS[0]: 5, TASKS[1]: 0, TASKS[2]: 0}.__getitem__) == [TASKS[1], TASKS[2], TASKS[0]]
