"""``kgctl serve`` as a process of its own, so that it can be killed."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from tests.support.patience import PATIENCE_S

FAST_GROUPS = {"group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "500"}


class ServeProcess:
    """A running server. ``bootstrap`` is what it printed."""

    def __init__(
        self,
        topics: Mapping[str, int] | None = None,
        config: Mapping[str, str] | None = None,
        data: Path | None = None,
        listen: str = "127.0.0.1:0",
        brokers: int = 1,
        options: Sequence[str] = (),
    ) -> None:
        command = [sys.executable, "-m", "kgctl", "serve", "--listen", listen, "--brokers", str(brokers), *options]
        for name, partitions in (topics or {}).items():
            command += ["--topic", f"{name}:{partitions}"]
        for key, value in {**FAST_GROUPS, **(config or {})}.items():
            command += ["--config", f"{key}={value}"]
        if data is not None:
            command += ["--data", str(data)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line.startswith("listening on "):
            _, errors = self.process.communicate(timeout=PATIENCE_S)
            raise AssertionError(f"kgctl serve did not start: {line!r} {errors}")
        self.bootstrap = line.removeprefix("listening on ").strip()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate(timeout=PATIENCE_S)

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate(timeout=PATIENCE_S)

    def terminate(self) -> tuple[int, str]:
        """Ask it to end; its exit code and what it wrote to stderr."""
        self.process.terminate()
        _, errors = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, errors


class ServeFactory:
    """Starts servers and sees that they end with the test."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack

    def __call__(
        self,
        topics: Mapping[str, int] | None = None,
        config: Mapping[str, str] | None = None,
        data: Path | None = None,
        listen: str = "127.0.0.1:0",
        brokers: int = 1,
        options: Sequence[str] = (),
    ) -> ServeProcess:
        return self._stack.enter_context(ServeProcess(topics, config, data, listen, brokers, options))


@pytest.fixture
def kgctl_serve() -> Iterator[ServeFactory]:
    with ExitStack() as stack:
        yield ServeFactory(stack)
