"""Processes with real clients, and the lines that they say."""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from kgctl.errors import KgctlError, UsageError

HELPER = "helper"
READY_S = 60.0
_ANSWER_S = 40.0
_END_S = 15.0
_JVM = ("-Xmx192m", "-Xss512k", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


@dataclass(frozen=True, slots=True)
class Line:
    """Something that a client did, at a time in microseconds since the epoch. ``rest``: a callback's partitions and the like."""

    at_us: int
    name: str
    what: str
    rest: tuple[str, ...] = ()

    @property
    def partitions(self) -> tuple[str, ...]:
        """Return the partitions of a callback's line, each as ``topic-0``."""
        return tuple(self.rest[0].split(",")) if self.rest and self.rest[0] else ()


class ClientKind(ABC):
    """A family of clients: how a process of them is started. ``profile``: what the simulation calls them."""

    profile = ""
    is_shared = False
    """Whether a process holds the consumers of several pods, those that are never killed."""

    @abstractmethod
    def command(self) -> list[str]:
        """Return the command line that starts the client's process."""

    def close(self) -> None:  # noqa: B027  # most have nothing to give back
        """Remove what was prepared for starting clients."""


class ConfluentKafka(ClientKind):
    """librdkafka, by confluent-kafka: what kgctl itself is made with."""

    profile = "librdkafka"

    def command(self) -> list[str]:
        """Return the command line of the client in this Python."""
        return [sys.executable, "-m", "kgctl.simulate.against.client"]


class JavaClient(ClientKind):
    """Kafka's own Java client, compiled here against the jars of an installation of Kafka.

    ``libs`` is its folder ``libs``, or a class path. Raises `UsageError` where there is no JDK, or no such client in the jars.
    """

    profile = "java"
    is_shared = True

    def __init__(self, libs: str) -> None:
        java, javac = _java("java"), _java("javac")
        path = libs if os.pathsep in libs or not Path(libs).is_dir() else str(Path(libs, "*"))
        self._folder = tempfile.TemporaryDirectory(prefix="kgctl-java-")
        with resources.as_file(resources.files("kgctl.simulate.against").joinpath("Fleet.java")) as source:
            command = [javac, "-nowarn", "-proc:none", "-encoding", "UTF-8", "-d", self._folder.name, "-cp", path, str(source)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # the JDK's compiler
        if done.returncode:
            first = next(iter(done.stderr.splitlines()), "")
            raise UsageError(f"the Java client needs kafka-clients of 4.1 or later, in {libs} there is no such: {first}")
        self._command = [java, *_JVM, "-cp", f"{self._folder.name}{os.pathsep}{path}", "Fleet"]

    def command(self) -> list[str]:
        """Return the command line of the client's Java class."""
        return self._command

    def close(self) -> None:
        """Delete the folder of compiled classes."""
        self._folder.cleanup()


def _java(program: str) -> str:
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home, "bin", program)) if home else shutil.which(program)
    if not found or not Path(found).exists():
        raise UsageError(f"the Java client needs a JDK: there is no {program} ({'in JAVA_HOME' if home else 'set JAVA_HOME'})")
    return found


class Client:
    """One process. It is told commands, and what it says goes to ``said`` as `Line`s."""

    def __init__(self, command: list[str], connection: Mapping[str, str], said: queue.Queue[Line]) -> None:
        self._process = subprocess.Popen(  # noqa: S603  # a client of `ClientKind`
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C at the terminal is for who plays, and cleans up
        )
        self._said = said
        self._is_ready = threading.Event()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        self.tell("connect", *(f"{key}={value}" for key, value in connection.items()))

    def wait_until_ready(self) -> None:
        """Wait until the process takes commands. Raises `KgctlError`."""
        if not self._is_ready.wait(READY_S) or self._process.poll() is not None:
            raise KgctlError("a process with a real client did not start", code="CLIENT_FAILED")

    def tell(self, *words: str) -> None:
        """Give a command. A process that is gone hears nothing."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            self._process.stdin.write("\t".join(words) + "\n")
            self._process.stdin.flush()

    def kill(self) -> None:
        """End it as SIGKILL does: nobody leaves a group."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()
        self._listener.join(_END_S)
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                assert pipe is not None
                pipe.close()

    def freeze(self) -> None:
        """Stop the process with SIGSTOP."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let the process go on with SIGCONT."""
        self._process.send_signal(signal.SIGCONT)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for text in self._process.stdout:
            at_us, name, what, *rest = text.rstrip("\n").split("\t")
            if what == "ready":
                self._is_ready.set()
            else:
                self._said.put(Line(int(at_us), name, what, tuple(rest)))
        self._is_ready.set()


class Fleet:
    """All processes of a play. Some are started before they are needed, so that only the scenario's boot times count.

    The caller closes it, which kills what is left.
    """

    def __init__(self, kind: ClientKind, connection: Mapping[str, str]) -> None:
        self.said: queue.Queue[Line] = queue.Queue()
        self.profile = kind.profile
        self._kind = kind
        self._connection = dict(connection)
        self._spare: list[Client] = []
        self._all: list[Client] = []
        self._shared: Client | None = None
        self._helper = self._start(ConfluentKafka())
        self._answers: dict[str, tuple[str, ...]] = {}
        self._questions = 0

    def prepare(self, spare: int) -> None:
        """Have this many processes ready. Raises `KgctlError` where they do not start."""
        self._spare += [self._start(self._kind) for _ in range(spare - len(self._spare))]
        for client in (self._helper, *self._spare):
            client.wait_until_ready()

    def take(self, *, alone: bool) -> Client:
        """A process for one pod; not ``alone``: one that it may share with others."""
        if alone or not self._kind.is_shared:
            client = self._spare.pop(0) if self._spare else self._start(self._kind)
            self._spare.append(self._start(self._kind))
            return client
        if self._shared is None:
            self._shared = self._spare.pop(0) if self._spare else self._start(self._kind)
        return self._shared

    def is_shared(self, client: Client) -> bool:
        """Return whether several pods live in this process."""
        return client is self._shared

    def give_back(self, client: Client) -> None:
        """End the process of a pod that is gone."""
        if client is not self._shared:
            client.kill()
            self._all.remove(client)

    def help(self, command: str, *words: str) -> None:
        """Have the helper do something that has no answer."""
        self._helper.tell(command, *words)

    def ask(self, command: str, *words: str) -> tuple[str, ...]:
        """Have the helper do something: () once it is done, or the error's code and text. Other lines stay in the queue."""
        number = self.ask_later(command, *words)
        kept: list[Line] = []
        end_s = time.monotonic() + _ANSWER_S
        try:
            while time.monotonic() < end_s:
                with contextlib.suppress(queue.Empty):
                    line = self.said.get(timeout=0.1)
                    if line.name != HELPER:
                        kept.append(line)
                    elif line.rest[0] == number:
                        return line.rest[1:]
        finally:
            for line in kept:
                self.said.put(line)
        return ("_TIMED_OUT", "no answer")

    def ask_later(self, command: str, *words: str) -> str:
        """Have the helper do something; its answer is a line that names what is returned."""
        self._questions += 1
        self._helper.tell(command, str(self._questions), *words)
        return str(self._questions)

    def end_members(self) -> None:
        """Kill every process with consumers."""
        for client in [client for client in self._all if client is not self._helper]:
            client.kill()
            self._all.remove(client)
        self._spare, self._shared = [], None

    def close(self) -> None:
        """Kill the processes that still run."""
        for client in self._all:
            client.kill()
        self._all = []
        self._kind.close()

    def _start(self, kind: ClientKind) -> Client:
        client = Client(kind.command(), self._connection, self.said)
        self._all.append(client)
        return client
