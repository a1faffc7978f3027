"""What a program takes with all that it starts: seconds, seconds of processor, memory."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.measure import ENVIRONMENT, BenchmarkError

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_EVERY_S = 0.02


@dataclass(frozen=True)
class Usage:
    """``cpu_s`` of the program and all that it started; ``peak_bytes`` resident at a time, shared pages counted in each."""

    wall_s: float
    cpu_s: float
    peak_bytes: int
    printed: str = ""


def watch(argv: Sequence[str], *, codes: Sequence[int] = (0,), variables: dict[str, str] | None = None) -> Usage:
    """Run it to its end, looking at ``/proc`` all the time; Linux only.

    Raises:
        BenchmarkError: it ended with none of ``codes``.
    """
    started = time.perf_counter()
    environment = {**ENVIRONMENT, **(variables or {})}
    with subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        watcher = _Watcher(process.pid)
        watcher.start()
        printed, said = process.communicate()
        wall_s = time.perf_counter() - started
        watcher.ended.set()
        watcher.join()
    if process.returncode not in codes:
        raise BenchmarkError(f"{' '.join(argv)} ended with {process.returncode}: {said[-2000:]}")
    return Usage(wall_s, sum(watcher.cpu_s.values()), watcher.peak_bytes, printed)


class _Watcher(threading.Thread):
    """Notes what each process of the tree has used so far."""

    def __init__(self, root: int) -> None:
        super().__init__(daemon=True)
        self.root, self.ended = root, threading.Event()
        self.cpu_s: dict[int, float] = {}
        self.peak_bytes = 0

    def run(self) -> None:
        while not self.ended.wait(_EVERY_S):
            self.peak_bytes = max(self.peak_bytes, sum(self._note(pid) for pid in self._tree()))

    def _tree(self) -> list[int]:
        found = [self.root]
        for pid in found:
            for task in Path(f"/proc/{pid}/task").glob("*/children"):
                try:
                    found += map(int, task.read_text().split())
                except OSError:
                    continue
        return found

    def _note(self, pid: int) -> int:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0
        self.cpu_s[pid] = (int(fields[11]) + int(fields[12])) * _TICK_S
        return int(fields[21]) * _PAGE
