"""What a run tries: by default the same bounded examples on every machine, with ``pytest -m deep`` everything else too.

The marker ``deep`` is for what repeats a default test with more seeds, codecs or programs, and for long searches; a run whose
``-m`` does not name it leaves those out. Under it every test of hypothesis is deep as well: more examples, drawn at random,
each failure with the line that repeats it. What such a run finds becomes an ``@example`` of the test.

A run that came to its end has told of every test that it collected.

No example has a time limit: machines are slow now and then, and the test as a whole has one. ``--budget 600`` begins no test
after ten minutes and says how many that left out.
"""

from __future__ import annotations

import time
from math import inf
from typing import Any

import pytest
from hypothesis import is_hypothesis_test, settings

from tests.support.run.workers import is_over

settings.register_profile("repeatable", deadline=None, derandomize=True, database=None, max_examples=20)
settings.register_profile("deep", deadline=None, derandomize=False, print_blob=True, max_examples=1_000)

DEEP_S = 900
"""How long a deep test may last where it does not say; others have what pyproject.toml says."""

_END_S = pytest.StashKey[float]()
_LEFT_OUT = pytest.StashKey[int]()
"""How many tests this process, and those that it has started, did not begin."""
_told: set[str] = set()
"""The tests of which something was said, by name."""
_ENDS = {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}


def pytest_configure(config: pytest.Config) -> None:
    """Load the profile before a module of tests takes it as the base of its own settings."""
    settings.load_profile("deep" if is_deep(config) else "repeatable")
    config.stash[_LEFT_OUT] = 0


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer ``--budget``."""
    parser.addoption("--budget", type=float, default=inf, metavar="S", help="begin no test after so many seconds")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Start the clock."""
    session.config.stash[_END_S] = time.monotonic() + session.config.option.budget


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> bool | None:
    """Leave out what there is no time for."""
    if time.monotonic() <= item.config.stash[_END_S]:
        return None
    item.config.stash[_LEFT_OUT] += 1
    return True


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Tell the process that reports how many were left out; there, have a run fail that says nothing of a test."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["left_out"] = session.config.stash[_LEFT_OUT]
    elif exitstatus in _ENDS and not session.config.option.collectonly and not is_over(session) and untold(session):
        session.exitstatus = pytest.ExitCode.INTERNAL_ERROR


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note that a test has been told of."""
    _told.add(report.nodeid)


def untold(session: pytest.Session) -> int:
    """How many tests were collected, not left out, and nothing was said of."""
    return len({item.nodeid for item in session.items} - _told) - session.config.stash[_LEFT_OUT]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add what a process has left out."""
    node.config.stash[_LEFT_OUT] += getattr(node, "workeroutput", {}).get("left_out", 0)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say how many were left out, and how many have vanished."""
    if config.stash[_LEFT_OUT]:
        terminalreporter.line(f"no time was left for {config.stash[_LEFT_OUT]} tests")
    session = terminalreporter._session
    if session is not None and session.exitstatus == pytest.ExitCode.INTERNAL_ERROR:
        terminalreporter.line(f"NOTHING WAS SAID OF {untold(session)} TESTS THAT WERE COLLECTED", red=True)


@pytest.fixture
def time_left_s(pytestconfig: pytest.Config) -> float:
    """Return for how long a search may go on: what is left of ``--budget``, without end where there is none."""
    return pytestconfig.stash[_END_S] - time.monotonic()


def is_deep(config: pytest.Config) -> bool:
    """Whether the run's ``-m`` names the marker."""
    return "deep" in config.option.markexpr.replace("not deep", "")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect deep tests, or mark those of hypothesis as deep too, before pytest looks at ``-m``."""
    if is_deep(config):
        for item in items:
            if isinstance(item, pytest.Function) and is_hypothesis_test(item.obj):
                item.add_marker("deep")
            if not item.get_closest_marker("timeout"):
                item.add_marker(pytest.mark.timeout(DEEP_S))
        return
    deep = [item for item in items if item.get_closest_marker("deep")]
    if deep:
        config.hook.pytest_deselected(items=deep)
        items[:] = [item for item in items if not item.get_closest_marker("deep")]
