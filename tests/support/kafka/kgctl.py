"""kgctl as a user runs it: a process of its own, its answer as data."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

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
    """Runs kgctl against a cluster, with JSON as its output unless ``arguments`` say otherwise; it must end with ``code``."""
    command = [sys.executable, "-m", "kgctl", "--bootstrap-server", bootstrap, "-o", "json", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S, stdin=subprocess.DEVNULL)
    assert code is None or done.returncode == code, f"{arguments} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return KgctlRun(done.returncode, done.stdout, done.stderr)
