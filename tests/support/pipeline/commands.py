"""``kgctl history`` as a user runs it: a process of its own, its answer as data."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.kafka.kgctl import KgctlRun
from tests.support.patience import PATIENCE_S


def run_history(command: str, warehouse: Path, *arguments: str, code: int = 0) -> Any:
    """The rows of ``kgctl history COMMAND --warehouse WAREHOUSE``; it must end with ``code``."""
    line = [sys.executable, "-m", "kgctl", "history", command, "--warehouse", str(warehouse), "-o", "json", *arguments]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=PATIENCE_S, stdin=subprocess.DEVNULL)
    assert done.returncode == code, f"{line} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return KgctlRun(done.returncode, done.stdout, done.stderr).data
