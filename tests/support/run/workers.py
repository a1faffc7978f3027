"""Tests in several processes that are forked when all tests are collected: modules are imported and tests found once.

It takes the place of pytest-xdist and obeys its ``-n``. There each process collects everything for itself, ten seconds of
processor time and more, and is told of each test by name. To plugins a forked process looks like one of pytest-xdist's: it has a
``workerinput`` and a ``workeroutput``, and `pytest_testnodedown` is called when it has ended. A process that dies fails the test
that it ran; another one goes on with what is left.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import signal
import sys
import time
import traceback
import warnings
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NoReturn

import pytest

INTERRUPTED_S = 20
"""How long processes may take to end their servers when a run is interrupted."""
_DIE_WITH_PARENT = 1
"""PR_SET_PDEATHSIG of Linux."""


@dataclass
class Gateway:
    """What the report of a test has for its process where ``-v`` shows it."""

    id: str


@dataclass(eq=False)
class Worker:
    """A process as seen from the one that has started it; `pytest_testnodedown` has it as its ``node``."""

    gateway: Gateway
    config: pytest.Config
    pid: int
    connection: Connection
    left: deque[int] = field(default_factory=deque)
    """What it has of its group and has not ended, the test that it runs first."""
    last: int = 0
    """The test that it ended last."""
    is_told_to_end: bool = False
    has_ended: bool = False
    workeroutput: dict[str, Any] = field(default_factory=dict)

    @property
    def workerinfo(self) -> dict[str, Any]:
        """What a failure's first line says of the process."""
        version = tuple(sys.version_info)
        return {"id": self.gateway.id, "sysplatform": sys.platform, "version_info": version, "executable": sys.executable}

    def heard(self) -> list[tuple[str, Any]] | None:
        """What it tells; nothing any more once it has ended."""
        try:
            messages: list[tuple[str, Any]] = self.connection.recv()
        except (EOFError, ConnectionResetError):
            return None
        return messages

    def give(self, group: Sequence[int]) -> None:
        """Have it run these tests, by their places; none: have it end."""
        self.left.extend(group)
        self.is_told_to_end = not group
        with contextlib.suppress(BrokenPipeError):  # where it has died, `_bury` is next
            self.connection.send(list(group))


class Workers:
    """The plugin of the process that has collected: hands out groups of tests and reports what comes back."""

    def __init__(self, count: int, groups: Sequence[Sequence[int]]) -> None:
        self._waiting = deque(groups)
        self._count = min(count, len(groups))
        self._started = 0
        self._running: list[Worker] = []

    def run(self, session: pytest.Session) -> None:
        """Run all groups, or what is wanted of them (``--maxfail``)."""
        session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # of which each process has a part
        try:
            for _ in range(self._count):
                self._start(session)
            while self._running:
                for ready in wait([worker.connection for worker in self._running]):
                    self._hear(session, next(worker for worker in self._running if worker.connection is ready))
        finally:
            self._end()

    def _start(self, session: pytest.Session) -> None:
        ours, theirs = Pipe()
        name = f"gw{self._started}"
        self._started += 1
        sys.stdout.flush()
        sys.stderr.flush()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # threads of libraries' allocators, which know of forks
            pid = os.fork()
        if not pid:
            for other in [ours, *(worker.connection for worker in self._running)]:
                other.close()
            Task(session, theirs, name).work()
        theirs.close()
        worker = Worker(Gateway(name), session.config, pid, ours)
        self._running.append(worker)
        self._give(session, worker)

    def _give(self, session: pytest.Session, worker: Worker) -> None:
        is_over = session.shouldfail or session.shouldstop or not self._waiting
        worker.give([] if is_over else self._waiting.popleft())

    def _hear(self, session: pytest.Session, worker: Worker) -> None:
        messages = worker.heard()
        if messages is None:
            self._bury(session, worker)
            return
        for kind, content in messages:
            self._take(session, worker, kind, content)
        if (session.shouldfail or session.shouldstop) and not worker.is_told_to_end:
            worker.give([])

    def _take(self, session: pytest.Session, worker: Worker, kind: str, content: Any) -> None:
        hook = session.config.hook
        if kind == "report":
            self._report(session, worker, hook.pytest_report_from_serializable(config=session.config, data=content))
        elif kind == "warning":
            hook.pytest_warning_recorded.call_historic(kwargs=content)
        elif kind == "done":
            worker.last = worker.left.popleft()
        elif kind == "free" and not worker.is_told_to_end:
            self._give(session, worker)
        elif kind == "end":
            worker.has_ended, worker.workeroutput = True, content

    def _report(self, session: pytest.Session, worker: Worker, report: pytest.TestReport) -> None:
        report.node = worker  # type: ignore[attr-defined]
        session.config.hook.pytest_runtest_logreport(report=report)

    def _bury(self, session: pytest.Session, worker: Worker) -> None:
        """Take leave of a process that has ended; where it was in the middle of a test, that has failed."""
        self._running.remove(worker)
        worker.connection.close()
        _, status = os.waitpid(worker.pid, 0)
        session.config.hook.pytest_testnodedown(node=worker, error=None)
        if worker.has_ended:
            return
        when = "while it ran" if worker.left else "after"
        item = session.items[worker.left.popleft() if worker.left else worker.last]
        words = f"process {worker.gateway.id} ended with {os.waitstatus_to_exitcode(status)} {when} this test"
        self._report(session, worker, pytest.TestReport(item.nodeid, item.location, {}, "failed", words, "call"))
        if worker.left:
            self._waiting.appendleft(worker.left)
        self._start(session)

    def _end(self) -> None:
        """Where the run was interrupted: let processes end their servers, but not wait for more."""
        for worker in self._running:
            os.kill(worker.pid, signal.SIGINT)
        end_s = time.monotonic() + INTERRUPTED_S
        for worker in self._running:
            while os.waitpid(worker.pid, os.WNOHANG) == (0, 0):
                if time.monotonic() > end_s:
                    os.kill(worker.pid, signal.SIGKILL)
                time.sleep(0.01)


class Silence:
    """In the place of the terminal's plugin in a forked process: has its writer, which others format by, and writes nothing."""

    def __init__(self, writer: object) -> None:
        self._tw = writer


class Task:
    """The plugin of a forked process: runs what it is given and tells what became of it."""

    def __init__(self, session: pytest.Session, connection: Connection, name: str) -> None:
        self._session = session
        self._config: Any = session.config
        self._connection = connection
        self._name = name
        self._untold: list[tuple[str, Any]] = []

    def work(self) -> NoReturn:
        """Run groups of tests until there is none; the process ends here."""
        code = 1
        try:
            self._become_a_worker()
            for group in self._groups():
                self._run(group)
            self._config.hook.pytest_sessionfinish(session=self._session, exitstatus=pytest.ExitCode.OK)
            self._tell("end", self._config.workeroutput)
            code = 0
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal and the process above tell both
            self._session._setupstate.teardown_exact(None)
        except BaseException:  # noqa: BLE001 - this process has nobody above it
            traceback.print_exc()
        finally:
            warnings.simplefilter("ignore")  # pytest's own filters are over where a process ends by itself
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _become_a_worker(self) -> None:
        """Have files, outputs and plugins of its own: nothing that is shared with the process that has collected."""
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        config, plugins = self._config, self._config.pluginmanager
        capture = plugins.getplugin("capturemanager")
        capture.suspend_global_capture(in_=True)
        capture.read_global_capture()
        capture.stop_global_capturing()
        with Path(os.devnull).open("w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
        capture.start_global_capturing()
        plugins.register(Silence(plugins.unregister(name="terminalreporter")._tw), "terminalreporter")
        config.workerinput, config.workeroutput = {"workerid": self._name}, {}
        os.environ["PYTEST_XDIST_WORKER"] = self._name
        config.option.basetemp = config._tmp_path_factory.getbasetemp() / f"popen-{self._name}"
        config._tmp_path_factory = type(config._tmp_path_factory).from_config(config, _ispytest=True)
        plugins.register(self)

    def _groups(self) -> Iterator[list[int]]:
        while group := self._connection.recv():
            yield group
            self._tell("free")

    def _run(self, group: Sequence[int]) -> None:
        """Run the tests of a group. Behind its last one all is torn down but what belongs to the whole session."""
        items = [self._session.items[place] for place in group]
        for item, after in zip(items, [*items[1:], self._session], strict=True):
            if self._connection.poll():
                return  # told to end
            self._config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            self._tell("done")

    def _tell(self, kind: str, content: Any = None) -> None:
        self._untold.append((kind, content))
        if kind != "report":
            self._connection.send(self._untold)
            self._untold.clear()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Tell how a test ended, and of what came before and after only where that did not pass."""
        if report.when == "call" or not report.passed:
            data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
            self._tell("report", data)

    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage, when: str, nodeid: str, location: Any) -> None:
        """Tell of a warning, in words."""
        told = warnings.WarningMessage(
            str(warning_message.message), warning_message.category, warning_message.filename, warning_message.lineno
        )
        self._tell("warning", {"warning_message": told, "when": when, "nodeid": nodeid, "location": location})


def in_groups(names: Iterable[str]) -> list[list[int]]:
    """The places of equal names that follow each other."""
    groups: list[list[int]] = []
    before = None
    for place, name in enumerate(names):
        if name != before:
            groups.append([])
        groups[-1].append(place)
        before = name
    return groups
