"""What each test needs of the machine, settled when tests are collected: one table, by the names of fixtures and markers.

A test whose needs are not met is skipped before any of its fixtures begins; with ``CI=true`` in the environment it fails. What
only asking can tell (Maven Central is out of reach) is raised by whoever asks, as `Unavailable`, and ends the same way. The end
of a run tells in one line for each kind how many were skipped, and what installs the packages.

Nobody can forget to say what is needed: a test that starts a program of `NEEDS` and has not asked for it fails on every machine.
"""

from __future__ import annotations

import functools
import os
import shutil
import sys
from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.support.machine import NEEDS, Unavailable, is_there

APACHE_KAFKA = ("java", "maven")
OLD_KAFKA = ("java", "maven", "zookeeper")
OWN_JAVA = ("java", "maven", "javac")
ZOOKEEPER = ("java", "zookeeper")
SPARK = ("java", "pyspark")

GATES: dict[str, tuple[str, ...]] = {
    # markers
    "kafka": APACHE_KAFKA,
    "zookeeper": ZOOKEEPER,  # a fixture too
    # fixtures
    "kafka_broker": APACHE_KAFKA,
    "secure_kafka_broker": APACHE_KAFKA,
    "own_kafka_broker": APACHE_KAFKA,
    "three_kafka_brokers": APACHE_KAFKA,
    "java_assignors": OWN_JAVA,
    "re2j": OWN_JAVA,
    "spark": SPARK,
    "zookeeper_server": ZOOKEEPER,
    "own_zookeeper": ZOOKEEPER,
    "old_kafka": OLD_KAFKA,
    "tls_server": ("netty",),
}
"""What a marker or a fixture stands for. For all others: ``@pytest.mark.needs(NAME...)``, with names of `NEEDS`."""

INSTALL = ".ci/tools"

FETCHED = frozenset({"maven", "go", "node"})
FETCH_S = 900
"""How long a test may take that needs one of these: the first one of a machine fetches or compiles what all others find there."""

_LACKS = pytest.StashKey[str]()
_NEEDS = pytest.StashKey[frozenset[str]]()
_declared: list[frozenset[str]] = []
"""What the running test has asked for; empty between tests."""


def uses(*names: str) -> None:
    """Tell that something of `NEEDS` is used, or what an earlier run made with it: fails a test that has not asked for it.

    Raises:
        Unavailable: no test runs (a benchmark, say), and this machine has it not.
    """
    if not _declared and (reason := what_is_missing(names)):
        raise Unavailable(f"this machine cannot do it: it {reason}")
    if _declared and (forgotten := sorted(set(names) - _declared[-1])):
        words = ", ".join(map(repr, forgotten))
        raise AssertionError(f"this test uses {words} and has not asked for it: @pytest.mark.needs({words})")


def needs_of(item: pytest.Item) -> frozenset[str]:
    """The names of `NEEDS` that a test asks for by its markers and fixtures, those of its fixtures' fixtures included."""
    markers = list(item.iter_markers())
    named: list[str] = [name for mark in markers if mark.name == "needs" for name in mark.args]
    if unknown := sorted(set(named) - NEEDS.keys()):
        raise pytest.UsageError(f"{item.nodeid}: needs({', '.join(unknown)}): there are {', '.join(NEEDS)}")
    asked = {*(mark.name for mark in markers), *getattr(item, "fixturenames", ())}
    return frozenset([*named, *(need for name in GATES.keys() & asked for need in GATES[name])])


def what_is_missing(needs: Iterable[str]) -> str:
    """``needs Java 17 or later, Maven``: those of ``needs`` that this machine has not, in the order of the list; or nothing."""
    missing = [need.label for name, need in NEEDS.items() if name in needs and not is_there(name)]
    return f"needs {', '.join(missing)}" if missing else ""


def lacking(reason: str) -> NoReturn:
    """Skip the running test; fail it under ``CI=true``, where nothing may be missing."""
    if is_complete():
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def is_complete() -> bool:
    """Whether this machine says of itself that it has all."""
    return os.environ.get("CI", "").lower() == "true"


def pytest_configure(config: pytest.Config) -> None:
    """``-v`` shows each skipped test; without it the summary's few lines are all that is said of them."""
    config.addinivalue_line("markers", "needs(*names): what it needs of the machine, by the names in tests/support/machine.py")
    if config.option.verbose > 0:
        config.option.reportchars += "s"
    config.pluginmanager.register(Refusal())
    _programs()
    sys.addaudithook(_watch)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what this machine cannot run; under ``CI=true`` have it fail."""
    for item in items:
        item.stash[_NEEDS] = needs = needs_of(item)
        if needs & FETCHED and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(FETCH_S))
        if reason := what_is_missing(needs):
            item.stash[_LACKS] = reason
            if not is_complete():
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Know which test runs."""
    _declared.append(item.stash.get(_NEEDS, frozenset()))
    try:
        return (yield)
    finally:
        _declared.pop()


class Refusal:
    """A plugin beside this one: a hook that ends a test is none that wraps others."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Fail before a fixture begins, where nothing may be missing."""
        if is_complete() and _LACKS in item.stash:
            lacking(item.stash[_LACKS])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None]:
    """What turns out to be out of reach while a fixture begins is lacking too."""
    try:
        yield
    except Unavailable as missing:
        lacking(f"cannot have: {missing}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None]:
    """What turns out to be out of reach while a test runs is lacking too."""
    try:
        yield
    except Unavailable as missing:
        lacking(f"cannot have: {missing}")


def _watch(event: str, arguments: Sequence[Any]) -> None:
    """An audit hook: `uses` for each program of `NEEDS` that this process starts; a test's own stand-ins are none."""
    if event != "subprocess.Popen" or not _declared:
        return
    words = [os.fsdecode(word) for word in arguments[1]] if isinstance(arguments[1], list | tuple) else []
    if words and Path(words[0]).name == "setpriv":
        words = words[3:]
    if words and (found := shutil.which(words[0])) in _programs():
        uses(_programs()[found])


@functools.cache
def _programs() -> dict[str | None, str]:
    """Where this machine has the programs of `NEEDS`, and which of them it is; asked before a test has changed the PATH."""
    return {shutil.which(program): name for name, need in NEEDS.items() for program in need.programs if shutil.which(program)}


@pytest.hookimpl(tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line for each thing that was missing."""
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in terminalreporter.stats.get("skipped", ()))
    if not reasons:
        return
    terminalreporter.write_sep("=", "skipped", yellow=True)
    terminalreporter.write_line(f"tests skipped: {reasons.total()}. {INSTALL} installs what they need, -v names each of them:")
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"{count:6} {reason.removeprefix('needs ')}")
