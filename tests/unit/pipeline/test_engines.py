"""Work spread over processes gives what one process gives; what fails is a result."""

from __future__ import annotations

import multiprocessing
import threading
from concurrent.futures.process import _ExecutorManagerThread
from functools import partial
from multiprocessing import connection
from pathlib import Path

import pytest

from kgctl.errors import KgctlError, UsageError
from kgctl.pipeline.engines import PROCESS_DIED, EngineName, EngineOptions, ItemDone, ItemFailure, LocalEngine, open_engine
from tests.support.patience import PATIENCE_S
from tests.support.pipeline.work import kill_at_five, kill_at_five_from, square


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_results_are_in_the_order_of_the_items_and_failures_among_them(jobs: int) -> None:
    seen: list[int] = []
    found = LocalEngine(jobs).map(square, range(10, 17), on_done=lambda done: seen.append(done.index))
    assert sorted(seen) == list(range(7))
    assert [done.value for done in found] == [100, 121, 144, None, None, 225, 256]
    assert found[3].failure == ItemFailure("INVARIANT_VIOLATION", "thirteen is not squared")
    mistake = found[4].failure
    assert mistake is not None
    assert (mistake.code, mistake.message) == ("ZeroDivisionError", "ZeroDivisionError: 14")
    assert "in square" in mistake.trace


@pytest.mark.parametrize("jobs", [1, 2])
def test_nothing_to_do_is_nothing_done(jobs: int) -> None:
    assert LocalEngine(jobs).map(square, []) == []


def test_an_item_that_kills_its_process_fails_alone() -> None:
    found = LocalEngine(2).map(kill_at_five, range(12))
    assert [done.value for done in found] == [0, 1, 2, 3, 4, None, 6, 7, 8, 9, 10, 11]
    assert found[5].failure is not None
    assert found[5].failure.code == PROCESS_DIED


def test_a_process_may_die_while_results_are_looked_at(tmp_path: Path) -> None:
    now = tmp_path / "now"
    found: list[tuple[int, int | None]] = []
    for done in LocalEngine(2).stream(partial(kill_at_five_from, now), [0, 5, *range(20, 30)]):
        if not found:
            now.touch()
            for process in multiprocessing.active_children():
                process.join(PATIENCE_S)  # one dies, and the pool ends the other
        found.append((done.index, done.value))
    assert sorted(found) == [(0, 0), (1, None), *enumerate(range(20, 30), start=2)]


def test_an_iterator_that_is_left_leaves_no_process_behind() -> None:
    stream = LocalEngine(2).stream(square, range(100))
    assert next(stream).value is not None
    stream.close()
    for process in multiprocessing.active_children():
        connection.wait([process.sentinel], PATIENCE_S)
    for thread in threading.enumerate():
        if isinstance(thread, _ExecutorManagerThread):
            thread.join(PATIENCE_S)  # it waits for the same processes: what it has not noted yet seems to run still
    assert multiprocessing.active_children() == []


def test_a_value_that_is_asked_of_a_failure_raises_it() -> None:
    assert ItemDone(0, value=7).get() == 7
    with pytest.raises(KgctlError, match="it broke") as caught:
        ItemDone(0, failure=ItemFailure("BROKEN", "it broke")).get()
    assert caught.value.code == "BROKEN"


def test_the_local_engine_has_a_process_for_each_job() -> None:
    with open_engine(EngineOptions(jobs=3)) as engine:
        assert (engine.name, engine.slots) == ("local", 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((EngineName.LOCAL, None), "--master is Spark's: add --engine spark"),
        ((EngineName.SPARK, 2), "--jobs and --master both say"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options: tuple[EngineName, int | None], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        EngineOptions(name=options[0], jobs=options[1], master="local[2]")
