"""Tests in several processes that are forked when all tests are collected: modules are imported and tests found once.

It takes the place of pytest-xdist and obeys its ``-n``. There each process collects everything for itself, ten seconds of
processor time and more, and is told of each test by name. To plugins a forked process looks like one of pytest-xdist's: it has a
``workerinput`` and a ``workeroutput``, and `pytest_testnodedown` is called for it at the end. A process that dies fails the test
that it ran, and so does one that says nothing for too long; another one goes on with what is left.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import math
import os
import signal
import socket
import struct
import sys
import time
import traceback
import warnings
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from os import getpid  # a test may have replaced that of the module
from pathlib import Path
from typing import Any, NoReturn

import pytest

INTERRUPTED_S = 20
"""How long processes may take to end their servers when a run is interrupted."""
SILENT_S = 300
"""How long a process may say nothing, ending its servers or itself, or behind the time limit of a test, which code in C does
not obey."""
TICK_S = 1.0
"""How often to look for processes that have ended, or say nothing for too long."""
_DIE_WITH_PARENT = 1
"""PR_SET_PDEATHSIG of Linux."""


@dataclass
class Gateway:
    """What the report of a test has for its process where ``-v`` shows it."""

    id: str


@dataclass
class End:
    """What a report names where it is of no test."""

    nodeid: str

    @property
    def location(self) -> tuple[str, None, str]:
        """What a test has: a file, a line and a name."""
        return self.nodeid, None, self.nodeid


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
    is_mute: bool = False
    """It has closed its connection, or sent on it what is no message."""
    status: int | None = None
    """How it ended, as `os.waitpid` tells."""
    silent_until_s: float = 0.0
    """When it is ended unless it has said something."""
    blame: str = ""
    """Why it was ended."""
    workeroutput: dict[str, Any] = field(default_factory=dict)

    @property
    def workerinfo(self) -> dict[str, Any]:
        """What a failure's first line says of the process."""
        version = tuple(sys.version_info)
        return {"id": self.gateway.id, "sysplatform": sys.platform, "version_info": version, "executable": sys.executable}

    def is_heard(self) -> bool:
        """Whether it tells something that nobody has listened to yet."""
        return not self.is_mute and self.connection.poll()

    def heard(self) -> list[tuple[str, Any]]:
        """What it tells; nothing any more once it has closed its connection. One that tells what is no message is ended."""
        try:
            messages: list[tuple[str, Any]] = self.connection.recv()
        except EOFError:
            self.is_mute = True
        except Exception as error:  # noqa: BLE001 - a test has found the connection: this can be anything
            self.is_mute, self.blame = True, f": what it told was no message ({type(error).__name__})"
            self.end(signal.SIGKILL)
        else:
            return messages
        return []

    def is_gone(self) -> bool:
        """Whether the process has ended: its connection may stay open where another one has it, too."""
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.status = status if pid else None
        return self.status is not None

    def end(self, number: signal.Signals) -> None:
        """Send it a signal, unless it has ended."""
        if not self.is_gone():
            os.kill(self.pid, number)

    def give(self, group: Sequence[int]) -> None:
        """Have it run these tests, by their places; none: have it end."""
        self.left.extend(group)
        self.is_told_to_end = not group
        with contextlib.suppress(OSError):  # where it has died, `_bury` is next
            self.connection.send(list(group))


class Workers:
    """The plugin of the process that has collected: hands out groups of tests and reports what comes back."""

    def __init__(self, count: int, groups: Sequence[Sequence[int]]) -> None:
        self._waiting = deque(groups)
        self._count = min(count, len(groups))
        self._started = 0
        self._running: list[Worker] = []
        self._gone: list[Worker] = []
        self._astray: set[str] = set()
        """Tests that have failed whatever their own process says of them, by name."""

    def run(self, session: pytest.Session) -> None:
        """Run all groups, or what is wanted of them (``--maxfail``)."""
        session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # of which each process has a part
        try:
            for _ in range(self._count):
                self._start(session)
            while self._running:
                self._wait(session)
        finally:
            self._end()
            for worker in self._gone:  # only now: who is forked in the place of another one must not tell of this again
                session.config.hook.pytest_testnodedown(node=worker, error=None)

    def _wait(self, session: pytest.Session) -> None:
        talking = {worker.connection: worker for worker in self._running if not worker.is_mute}
        for ready in wait(list(talking), TICK_S if len(talking) == len(self._running) else TICK_S / 100):
            self._hear(session, talking[ready])  # type: ignore[index]
        for worker in list(self._running):
            if worker.is_gone():
                self._bury(session, worker)
            elif time.monotonic() > worker.silent_until_s and not worker.is_heard():
                self._hurry(worker)

    def _start(self, session: pytest.Session) -> None:
        ours, theirs = Pipe()
        with socket.socket(fileno=os.dup(ours.fileno())) as end:  # who waits for the rest of a message waits for it only so long
            end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", INTERRUPTED_S, 0))
        name = f"gw{self._started}"
        self._started += 1
        sys.stdout.flush()
        sys.stderr.flush()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # threads of libraries' allocators, which know of forks
            pid = os.fork()
        if not pid:
            try:
                for other in [ours, *(worker.connection for worker in self._running)]:
                    other.close()
                Task(session, theirs, name).work()
            finally:
                os._exit(1)  # whatever happens: nothing above is this process's own
        theirs.close()
        worker = Worker(Gateway(name), session.config, pid, ours)
        self._running.append(worker)
        self._give(session, worker)

    def _give(self, session: pytest.Session, worker: Worker) -> None:
        worker.give([] if is_over(session) or not self._waiting else self._waiting.popleft())
        worker.silent_until_s = self._limit_s(session, worker)

    def _limit_s(self, session: pytest.Session, worker: Worker) -> float:
        limit_s = time_limit_s(session.items[worker.left[0]]) if worker.left else 0.0
        return time.monotonic() + limit_s + SILENT_S

    def _hurry(self, worker: Worker) -> None:
        """End one that says nothing for too long: `faulthandler` tells where it stands, if it can."""
        worker.end(signal.SIGKILL if worker.blame else signal.SIGABRT)
        worker.blame = ": it said nothing for too long"
        worker.silent_until_s += INTERRUPTED_S

    def _hear(self, session: pytest.Session, worker: Worker) -> None:
        for kind, content in worker.heard():
            self._take(session, worker, kind, content)
        if is_over(session) and not worker.is_told_to_end:
            worker.give([])

    def _take(self, session: pytest.Session, worker: Worker, kind: str, content: Any) -> None:
        hook = session.config.hook
        if kind == "report":
            self._report(session, worker, hook.pytest_report_from_serializable(config=session.config, data=content))
        elif kind == "warning":
            hook.pytest_warning_recorded.call_historic(kwargs=content)
        elif kind == "done":
            worker.last = worker.left.popleft()
            worker.silent_until_s = self._limit_s(session, worker)
        elif kind == "astray":
            item = session.items[content]
            self._astray.add(item.nodeid)
            self._fail(session, worker, item, "returned in a process that the test has forked")
        elif kind == "free" and not worker.is_told_to_end:
            self._give(session, worker)
        elif kind == "end":
            worker.has_ended, worker.workeroutput = True, content

    def _report(self, session: pytest.Session, worker: Worker, report: pytest.TestReport) -> None:
        if report.passed and report.nodeid in self._astray:
            return  # else pytest would take it as one that did not fail
        report.node = worker  # type: ignore[attr-defined]
        session.config.hook.pytest_runtest_logreport(report=report)

    def _fail(self, session: pytest.Session, worker: Worker, item: pytest.Item | End, words: str) -> None:
        said = f"process {worker.gateway.id} {words}"
        self._report(session, worker, pytest.TestReport(item.nodeid, item.location, {}, "failed", said, "call"))

    def _bury(self, session: pytest.Session, worker: Worker) -> None:
        """Take leave of a process that has ended, badly unless it was told to; others go on with what it has left."""
        while worker.is_heard():
            self._hear(session, worker)
        self._running.remove(worker)
        self._gone.append(worker)
        worker.connection.close()
        if not worker.has_ended or worker.status:
            self._tell_of_death(session, worker)
        if worker.left:
            self._waiting.appendleft(worker.left)
        if self._waiting and not is_over(session):
            self._start(session)

    def _tell_of_death(self, session: pytest.Session, worker: Worker) -> None:
        """Fail the test that it was in the middle of; else its end, which is no test: to run one again would not repeat it."""
        ended = f"ended with {os.waitstatus_to_exitcode(worker.status or 0)}"
        if worker.left:
            item = session.items[worker.left.popleft()]
            self._fail(session, worker, item, f"{ended} while it ran this test{worker.blame}")
        else:
            last = session.items[worker.last].nodeid
            self._fail(session, worker, End(f"end of process {worker.gateway.id}"), f"{ended} after {last}{worker.blame}")

    def _end(self) -> None:
        """Where the run was interrupted: let processes end their servers, but not wait for more."""
        for worker in self._running:
            worker.end(signal.SIGINT)
        end_s = time.monotonic() + INTERRUPTED_S
        for worker in self._running:
            while not worker.is_gone():
                if time.monotonic() > end_s:
                    worker.end(signal.SIGKILL)
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
        self._place = 0
        self._pid = getpid()

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
            self._be_alone()
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal and the process above tell both
            self._session._setupstate.teardown_exact(None)
        except BaseException:  # noqa: BLE001 - this process has nobody above it
            self._be_alone()
            traceback.print_exc()
        try:
            warnings.simplefilter("ignore")  # pytest's own filters are over where a process ends by itself
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
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
        for place, item, after in zip(group, items, [*items[1:], self._session], strict=True):
            self._place = place
            if self._connection.poll():
                return  # told to end
            self._config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            self._tell("done")

    def _tell(self, kind: str, content: Any = None) -> None:
        self._be_alone()
        self._untold.append((kind, content))
        if kind != "report":
            self._connection.send(self._untold)
            self._untold.clear()

    def _be_alone(self) -> None:
        """End a process that a test has forked and that should never have returned here."""
        if getpid() != self._pid:
            self._connection.send([("astray", self._place)])
            os._exit(1)

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


def is_over(session: pytest.Session) -> bool:
    """Whether no more tests are wanted."""
    return bool(session.shouldfail or session.shouldstop)


def time_limit_s(item: pytest.Item) -> float:
    """That of pytest-timeout, whose plugin ends a test itself where it can; without end where there is none."""
    if not item.config.pluginmanager.hasplugin("timeout"):
        return math.inf
    from pytest_timeout import _get_item_settings

    return float(_get_item_settings(item).timeout or math.inf)
