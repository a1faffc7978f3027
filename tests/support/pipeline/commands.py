"""``kgctl history`` as a user runs it, its answer as data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.kafka.kgctl import run_line


def run_history(command: str, warehouse: Path, *arguments: str, code: int = 0) -> Any:
    """The rows of ``kgctl history COMMAND --warehouse WAREHOUSE``; it must end with ``code``."""
    return run_line(["history", command, "--warehouse", str(warehouse), "-o", "json", *arguments], code).data
