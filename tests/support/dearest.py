"""``pytest --dearest 50``: where a run's time goes, test by test and folder by folder, printed before its summary.

``KGCTL_TEST_DEAREST=50`` in the environment does the same for a command line that may not be changed.
Processor time is that of the test's process and of every program that it started and saw end. A server that tests share is a
line of its own.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import pytest


def processor_s() -> float:
    """Return the processor time of this process and of the ended ones that it started."""
    return sum(os.times()[:4])


@dataclass
class Cost:
    """What a test or a folder of tests took, preparations included."""

    processor_s: float = 0.0
    wall_s: float = 0.0

    def add(self, processor_s: float, wall_s: float) -> None:
        """Count another part."""
        self.processor_s += processor_s
        self.wall_s += wall_s


class Dearest:
    """The plugin: each process measures its tests, the one that reports adds up."""

    def __init__(self) -> None:
        self._mark = processor_s()
        self._tests: dict[str, Cost] = defaultdict(Cost)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        """Begin to count: what was before belongs to no test."""
        self._mark = processor_s()

    def pytest_fixture_post_finalizer(self, fixturedef: pytest.FixtureDef[object]) -> None:
        """Note what the programs of a shared server took that has just ended."""
        if fixturedef.scope == "session":
            self._tests[f"server {fixturedef.argname}"].add(self._since_mark(), 0.0)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Note what a phase of a test took."""
        report = yield
        self._tests[report.nodeid].add(self._since_mark(), report.duration)
        return report

    def _since_mark(self) -> float:
        before, self._mark = self._mark, processor_s()
        return self._mark - before

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Hand what was measured to the process that reports."""
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["dearest"] = {name: (cost.processor_s, cost.wall_s) for name, cost in self._tests.items()}

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take what a process has measured."""
        for name, (used_s, wall_s) in getattr(node, "workeroutput", {}).get("dearest", {}).items():
            self._tests[name].add(used_s, wall_s)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
        """Print the dearest tests and what each folder took."""
        folders: dict[str, Cost] = defaultdict(Cost)
        for name, cost in self._tests.items():
            folders[folder_of(name)].add(cost.processor_s, cost.wall_s)
        count = config.option.dearest
        terminalreporter.section(f"{count} dearest of {len(self._tests)} tests")
        terminalreporter.line("processor s   wall s")
        for costs in (dict(dearest_first(self._tests)[:count]), dict(dearest_first(folders))):
            for name, cost in costs.items():
                terminalreporter.line(f"{cost.processor_s:11.2f} {cost.wall_s:8.2f}  {name}")
            terminalreporter.line("")


def dearest_first(costs: dict[str, Cost]) -> list[tuple[str, Cost]]:
    """Sort by processor time or, where it is longer, by a half of the wall clock: two processors wait in vain then."""
    return sorted(costs.items(), key=lambda pair: (-max(pair[1].processor_s, pair[1].wall_s / 2), pair[0]))


def folder_of(name: str) -> str:
    """Return the room of a test: ``tests/wire``, and below ``tests/unit`` a folder more."""
    parts = PurePosixPath(name.partition("::")[0]).parts[:-1]
    if not parts:
        return "shared servers"
    return "/".join(parts[: 3 if "unit" in parts else 2])


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer ``--dearest``."""
    usual = int(os.environ["KGCTL_TEST_DEAREST"]) if "KGCTL_TEST_DEAREST" in os.environ else None
    parser.addoption(
        "--dearest", type=int, default=usual, metavar="N", help="print the N dearest tests and what each folder took"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Measure where asked."""
    if config.option.dearest is not None:
        config.pluginmanager.register(Dearest(), "dearest")
