"""kgctl as a user runs it, its answer as data: in this process, since a start of Python costs more than most commands do.

What a process of its own adds (start, signals, pipes, its end) has tests of its own: ``tests/cli/test_process.py`` and others.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kgctl.cli.app import run
from kgctl.cli.environment import Environment
from tests.support.patience import PATIENCE_S


@dataclass(frozen=True)
class KgctlRun:
    """What one command line did."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """The rows of the JSON envelope."""
        return self.document["data"]

    @property
    def document(self) -> Any:
        """The JSON envelope."""
        return json.loads(self.out)


def run_kgctl(bootstrap: str, *arguments: str, code: int | None = 0) -> KgctlRun:
    """Run kgctl against a cluster, with JSON as its output unless ``arguments`` say otherwise; it must end with ``code``."""
    return run_line(["--bootstrap-server", bootstrap, "-o", "json", *arguments], code)


def run_line(arguments: Sequence[str], code: int | None = 0) -> KgctlRun:
    """Run any command line of kgctl; it must end with ``code``.

    In another thread than the main one it is a process: streams and signals are the whole process's.
    """
    is_main = threading.current_thread() is threading.main_thread()
    done = run_here(arguments) if is_main else run_as_process(arguments)
    assert code is None or done.code == code, f"{arguments} ended with {done.code}:\n{done.out}{done.err}"
    return done


def run_here(arguments: Sequence[str]) -> KgctlRun:
    """Run kgctl in this process, with its variables and nothing on stdin."""
    out, err = io.StringIO(), io.StringIO()
    code = run(arguments, Environment(stdin=io.StringIO(), stdout=out, stderr=err, variables=dict(os.environ)))
    return KgctlRun(int(code), out.getvalue(), err.getvalue())


def run_as_process(arguments: Sequence[str]) -> KgctlRun:
    """Run kgctl as a process, with nothing on stdin."""
    command = [sys.executable, "-m", "kgctl", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S, stdin=subprocess.DEVNULL)
    return KgctlRun(done.returncode, done.stdout, done.stderr)
