"""How the tests are dealt out to processes: four more than there are processors, what shares a server to the same one.

A JVM or a server that a session starts is dear, so tests that use one of `SERVERS` go to one process, which starts it once and
ends it after the last of them: an idle JVM takes processor time from others. All other tests stay together by file, since what a
file prepares is made once a process. The groups that last begin first.

A run of a few files or tests, or of what failed last, stays in one process: starting others would take longer than it.

Most tests take a millisecond, and pytest-xdist's five messages for each take three: a passed test is told by one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

SERVERS = {
    "spark": "spark",
    "kafka_broker": "kafka",
    "secure_kafka_broker": "kafka",
    "three_kafka_brokers": "kafka",
    "java_assignors": "java-assignors",
    "serve_target": "serve",
    "old_kafka": "zookeeper",
    "zookeeper_server": "zookeeper",
}
"""The fixtures that start something once a session, those of the longest groups first, and the group of their tests.

A test that asks for several belongs to the first. Apache Kafka's nodes share a process, since many tests need more than one; the
tests of the folders in `APART` have another one, with nodes of their own, since all of them one after the other take too long.
"""

APART = {"tests/pipeline/": "kafka-pipeline"}
ORDER = ("kafka-pipeline", "kafka", "spark", "java-assignors", "serve", "zookeeper")
"""The groups of servers, as they begin."""

LONG = (
    "tests/pipeline/test_collect_serve.py",
    "tests/pipeline/test_truth.py",
    "tests/docs/test_pages.py",
    "tests/interop/test_groups.py",
    "tests/admin/test_unreachable.py",
    "tests/unit/pipeline/builds/test_run.py",
    "tests/interop/test_simulate_init.py",
    "tests/interop/test_burrow.py",
    "tests/unit/storage/test_batches_segments_of_kafka.py",
    "tests/unit/pipeline/builds/test_builds_incremental.py",
    "tests/unit/pipeline/store/test_warehouse_s3.py",
    "tests/differential/test_against_kafka_coordinator.py",
    "tests/pipeline/test_truth_of_serve.py",
    "tests/wire/test_generated_same_as_kafka.py",
    "tests/unit/pipeline/test_upkeep.py",
    "tests/unit/pipeline/store/test_warehouse_foreign.py",
    "tests/unit/simulate/test_builtin.py",
    "tests/cli/test_contract.py",
    "tests/repo/test_tidy.py",
    "tests/unit/simulate/batch/test_shrink.py",
)
"""Files of ten seconds and more (``--dearest`` tells), the longest first: they go before others, so that none is what is left."""

WAITING = ("slow", "kafka", "interop", "zookeeper")
"""Markers of files that go before others: they wait for clients, and must not be what is left at the end."""

FEW = 20
"""So many files run in one process."""


_ENDED = pytest.StashKey[list[str]]()
"""The servers that end with a test."""


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Nought for a run of up to `FEW` files, else four more than this process may use processors: many tests wait."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    if config.getoption("lf", default=False) or sum(map(files_of, config.args)) <= FEW:
        return 0
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return processors + 4


def files_of(name: str) -> int:
    """How many files of tests an argument of pytest stands for."""
    path = Path(name.partition("::")[0])
    return sum(1 for _ in path.rglob("test_*.py")) if path.is_dir() else 1


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give each test its group, bring the groups into the order in which they are to begin, and note when a server may end."""
    is_worker = hasattr(config, "workerinput")
    if is_worker:
        _deal_out(items)
    last = {
        (group_of(item) if is_worker else "", fixture): item
        for item in items
        for fixture in SERVERS
        if fixture in fixtures_of(item)
    }
    for (_, fixture), item in last.items():
        item.stash.setdefault(_ENDED, []).append(fixture)


def _deal_out(items: list[pytest.Item]) -> None:
    groups = [group_of(item) for item in items]
    sizes = Counter(groups)
    waits = {group for item, group in zip(items, groups, strict=True) if any(map(item.get_closest_marker, WAITING))}

    first = [*ORDER, *LONG]

    def place(group: str) -> tuple[int, bool, int, str]:
        return first.index(group) if group in first else len(first), group not in waits, -sizes[group], group

    def server(item: pytest.Item) -> int:
        """Tests that start the same servers follow each other, those of the rarest first."""
        wanted = [number for number, fixture in enumerate(SERVERS) if fixture in fixtures_of(item)]
        return -max(wanted, default=-1)

    order = {group: number for number, group in enumerate(sorted(sizes, key=place))}
    items[:] = [item for _, item in sorted(zip(groups, items, strict=True), key=lambda pair: (order[pair[0]], server(pair[1])))]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None]:
    """End the servers that no later test of the run asks for."""
    yield
    for fixture in item.stash.get(_ENDED, []):
        for definition in item.session._fixturemanager.getfixturedefs(fixture, item) or ():
            definition.finish(item._request)  # type: ignore[attr-defined]


def fixtures_of(item: pytest.Item) -> list[str]:
    """The fixtures that a test asks for, by itself or through others; `target` asks for one of two while it is made."""
    fixtures: list[str] = getattr(item, "fixturenames", [])
    if "target" in fixtures:
        return [*fixtures, "kafka_broker" if item.get_closest_marker("kafka") else "serve_target"]
    return fixtures


def group_of(item: pytest.Item) -> str:
    """The name of the tests that share a process with this one: of their server, else of their file."""
    named = item.get_closest_marker("xdist_group")
    if named is not None:
        return str(named.args[0])
    fixtures = fixtures_of(item)
    group = next((group for fixture, group in SERVERS.items() if fixture in fixtures), item.nodeid.partition("::")[0])
    apart = [name for folder, name in APART.items() if item.nodeid.startswith(folder)]
    return apart[0] if apart and group == "kafka" else group


def compile_once(config: pytest.Config) -> None:
    """Compile kgctl and the tests in a new checkout, half of them on each processor: else each process compiles all of them."""
    root = config.rootpath
    stale = [path for path in sorted((root / "tests").rglob("test_*.py")) if not is_compiled(path)]
    if len(stale) <= FEW:
        return
    subprocess.run([sys.executable, "-m", "compileall", "-q", "-j0", "kgctl", "tests/support"], cwd=root, check=False)
    collect = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n0", "-p", "no:cacheprovider"]
    halves = [[*collect, *map(str, stale[first::2])] for first in (0, 1)]
    started = [subprocess.Popen(half, cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for half in halves]
    for each in started:
        each.wait()


def is_compiled(path: Path) -> bool:
    """Whether pytest has kept a file of tests with its assertions rewritten, and the file has not changed since."""
    kept = path.parent.joinpath("__pycache__").glob(f"{path.stem}.*-pytest-{pytest.__version__}.pyc")
    return any(each.stat().st_mtime >= path.stat().st_mtime for each in kept)


class Interactor:
    """In the place of pytest-xdist's `WorkerInteractor` where that tells of each phase of each test, and where it names groups.

    It adds the group to what pytest 9.1 and earlier make a test's name of; without this each test would be a group of its own.
    """

    def __init__(self, interactor: Any) -> None:
        self._interactor = interactor

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Tell the tests in the form in which ``--dist loadgroup`` looks for their groups."""
        ids = [f"{item.nodeid}@{group_of(item)}" for item in session.items]
        self._interactor.sendevent("collectionfinish", topdir=str(session.config.rootpath), ids=ids)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Tell how a test ended, and of what came before and after only where that did not pass."""
        if report.when == "call" or not report.passed:
            self._interactor.pytest_runtest_logreport(report)


REPLACED = ("pytest_collection_finish", "pytest_runtest_logstart", "pytest_runtest_logfinish", "pytest_runtest_logreport")
"""The hooks of pytest-xdist's worker that `Interactor` has, or that need not be told."""


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Put `Interactor` into a worker; compile what is new where workers will be started."""
    if config.getoption("numprocesses", default=None) and not hasattr(config, "workerinput"):
        compile_once(config)
    interactor = next((each for each in config.pluginmanager.get_plugins() if type(each).__name__ == "WorkerInteractor"), None)
    if interactor is not None:
        for name in REPLACED:
            getattr(config.hook, name)._remove_plugin(interactor)
        config.pluginmanager.register(Interactor(interactor))
