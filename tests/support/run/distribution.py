"""How the tests are dealt out to processes: four more than there are processors, what shares a server to the same one.

A JVM or a server that a session starts is dear, so tests that use one of `SERVERS` go to one process, which starts it once and
ends it after the last of them: an idle JVM takes processor time from others. All other tests stay together by file, since what a
file prepares is made once a process. The groups that last begin first.

A run of a few files or tests, or of what failed last, stays in one process: starting others would take longer than it.

`tests.support.run.workers` has the processes.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.support.run.workers import Workers, in_groups

SERVERS = {
    "spark": "spark",
    "kafka_broker": "kafka",
    "secure_kafka_broker": "kafka",
    "three_kafka_brokers": "kafka",
    "lossy_kafka_brokers": "kafka-lossy",
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
ORDER = ("kafka-pipeline", "kafka", "spark", "kafka-lossy", "java-assignors", "serve", "zookeeper")
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
    "tests/repo/test_distribution.py",
    "tests/repo/test_tidy.py",
    "tests/unit/simulate/batch/test_shrink.py",
)
"""Files of ten seconds and more (``--dearest`` tells), the longest first: they go before others, so that none is what is left."""

WAITING = ("slow", "kafka", "interop", "zookeeper")
"""Markers of files that go before others: they wait for clients, and must not be what is left at the end."""

FEW = 20
"""So many files run in one process."""


_PROCESSES = pytest.StashKey[int]()
"""How many a run has beside the one that collects; nought: it runs the tests, too."""

_ENDED = pytest.StashKey[list[str]]()
"""The servers that end with a test."""


@pytest.hookimpl(wrapper=True)
def pytest_cmdline_main(config: pytest.Config) -> Generator[None, object, object]:
    """Take what ``-n`` says before pytest-xdist sees it."""
    wanted = config.option.numprocesses
    config.stash[_PROCESSES] = 0 if config.option.usepdb else wanted if isinstance(wanted, int) else usual_processes(config)
    config.option.numprocesses = 0
    return (yield)


def usual_processes(config: pytest.Config) -> int:
    """Nought for a run of up to `FEW` files, else four more than this process may use processors: many tests wait."""
    if config.getoption("lf", default=False) or sum(map(files_of, config.args)) <= FEW:
        return 0
    return processors() + 4


def processors() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def files_of(name: str) -> int:
    """How many files of tests an argument of pytest stands for."""
    path = Path(name.partition("::")[0])
    return sum(1 for _ in path.rglob("test_*.py")) if path.is_dir() else 1


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give each test its group, bring the groups into the order in which they are to begin, and note when a server may end."""
    has_workers = bool(config.stash.get(_PROCESSES, 0))
    if has_workers:
        _deal_out(items)
    last = {
        (group_of(item) if has_workers else "", fixture): item
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
    """Compile kgctl and the tests in a new checkout, half of them on each of two processors: collecting is done by one alone."""
    root = config.rootpath
    stale = [path for path in sorted((root / "tests").rglob("test_*.py")) if not is_compiled(path)]
    if len(stale) <= FEW or processors() == 1:
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


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Start the processes, where there are to be some and all was collected."""
    config, option = session.config, session.config.option
    count = config.stash.get(_PROCESSES, 0)
    if not count or option.collectonly or (session.testsfailed and not option.continue_on_collection_errors):
        return None
    Workers(count, in_groups(map(group_of, session.items))).run(session)
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)
    return True


def pytest_configure(config: pytest.Config) -> None:
    """Compile what is new where processes will be started, and have the terminal show a test's name with its outcome."""
    if not config.stash.get(_PROCESSES, 0):
        return
    compile_once(config)
    terminal = config.pluginmanager.getplugin("terminalreporter")
    if terminal is not None:
        terminal.showfspath = False
