"""Java consumers under a test's command: processes of `tests/java/members/Fleet.java`, and what they say."""

from __future__ import annotations

import contextlib
import queue
import signal
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.kafka.install import POM
from tests.support.maven import compile_java, java_command
from tests.support.patience import PATIENCE_S

SOURCE = Path(__file__).parents[1] / "java" / "members" / "Fleet.java"
JVM = ("-Xmx192m", "-Xss512k", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


@dataclass(frozen=True, slots=True)
class Line:
    """Something that a consumer did. ``rest``: a generation and partitions, or ranges of offsets."""

    at_us: int
    member: str
    what: str
    rest: tuple[str, ...] = ()

    @property
    def partitions(self) -> tuple[str, ...]:
        """Those of a callback."""
        return tuple(self.rest[1].split(",")) if len(self.rest) > 1 and self.rest[1] else ()

    @property
    def generation(self) -> int:
        """That of a callback, or of a state."""
        return int(self.rest[0])


class Fleet:
    """One Java process with any number of consumers. What it says goes to ``said``, in its order."""

    def __init__(self, bootstrap: str, said: queue.Queue[Line]) -> None:
        command = java_command(compile_java(POM, [SOURCE]), "Fleet", bootstrap, jvm=JVM)
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
        self._said = said
        self._is_ready = threading.Event()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def wait_until_ready(self) -> None:
        """Its classes are loaded."""
        assert self._is_ready.wait(PATIENCE_S), "the Java consumers did not start"

    def tell(self, *words: str) -> None:
        """A command; see Fleet.java."""
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(words) + "\n")
        self._process.stdin.flush()

    def start(self, name: str, topics: str, settings: Mapping[str, str]) -> None:
        """A consumer, at once."""
        self.tell("start", name, topics, *(f"{key}={value}" for key, value in settings.items()))

    def kill(self) -> None:
        """As SIGKILL does it: nobody leaves a group."""
        self._process.kill()
        self._process.wait()
        self._listener.join()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(BrokenPipeError):
                assert pipe is not None
                pipe.close()

    def freeze(self) -> None:
        """As SIGSTOP does it: nothing goes on."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """It goes on."""
        self._process.send_signal(signal.SIGCONT)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for text in self._process.stdout:
            at_us, member, what, *rest = text.split()
            if what == "ready":
                self._is_ready.set()
            else:
                self._said.put(Line(int(at_us), member, what, tuple(rest)))
