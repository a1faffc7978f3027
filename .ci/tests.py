"""The tests of ``.ci/run``: the README's line here, on bare Debians and other Pythons; installs; deep tests while there is time.

    python .ci/tests.py [SECONDS [DIR]]    SECONDS: how long ``.ci/run`` has taken so far; DIR: the files of a release

Where tests of a few files failed, .ci/second_chance.py runs them once more. The README's line decides, and then .ci/installs with
one Python, .ci/bare and .ci/pythons, two at a time, each on its half of the processors, so that one works while the other waits
for a package index, and as far as each gets in its time. What a machine cannot try (it has no right to make namespaces, no mirror
of Debian's) is told as not tried, at the end too. Deep tests are a search that goes as far as there is time: what it finds is
printed, to be mended and to become an example, and holds nothing up. The last line is pytest's own summary of the README's line.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINE = "python3 .ci/setup.py dev && .venv/bin/pytest"
DEEP = ".venv/bin/pytest -m deep --hypothesis-seed=1 --numprocesses=3"
SECOND_CHANCE = ".venv/bin/python .ci/second_chance.py"
BARE = {"bookworm": "3.11", "trixie": "3.13"}
"""The releases, and the Python that each has."""
INSTALLS_S, BARE_S, PYTHON_S = 300, 1_080, 900
NOT_DONE = {75: "NOT TRIED", 124: "TOOK TOO LONG"}
"""How a part ends that this machine cannot try, and ``timeout`` when it had to: said aloud, and nobody's fault."""
DEAREST = 50
BUDGET_S = 1_620
"""When the last deep test begins: the whole run ends within half an hour on a quiet machine."""
SHORTEST_S = 60
"""With less time than this no deep test is begun."""


@dataclass
class Part:
    """A run of pytest, with its second chance: what it printed last, what it took, and how it ended."""

    name: str
    command: str = ""
    processors: str = ""
    """Those that it may use, as ``taskset`` has them; empty: all. What it prints is shown at once, else when it has ended."""
    code: int = 0
    wall_s: float = 0.0
    processor_s: float = 0.0
    failed_at_first: int = 0
    summary: str = ""
    dearest: list[str] = field(default_factory=list)

    def run(self, command: str) -> None:
        """Run a command, printing what it prints but the table of the dearest tests, which is for the end."""
        wall = time.monotonic()
        environment = {**os.environ, "KGCTL_TEST_DEAREST": str(DEAREST)}
        started = subprocess.Popen(
            command, cwd=ROOT, shell=True, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        assert started.stdout is not None
        is_table = False
        kept = []
        for line in started.stdout:
            is_table = re.match(r"=+ \d+ dearest of", line) is not None or (is_table and not line.startswith("="))
            if is_table:
                self.dearest.append(line)
                continue
            kept.append(line)
            if not self.processors:
                print(line, end="", flush=True)
            self.failed_at_first += line.startswith("FAILED AT FIRST")
            self.summary = line.strip() or self.summary
        _, status, used = os.wait4(started.pid, 0)
        self.code = started.returncode = os.waitstatus_to_exitcode(status)
        self.wall_s += time.monotonic() - wall
        self.processor_s += used.ru_utime + used.ru_stime
        if self.processors:
            print(f"\n== {self.name}\n{''.join(kept)}", end="", flush=True)

    def run_twice_if_needed(self, command: str, marker: str = "") -> None:
        """Run it, and once more what failed of it."""
        for kept in (ROOT / ".pytest_cache" / "v" / "cache").glob("lastfailed"):
            kept.unlink()  # of an earlier run
        self.run(command)
        if self.code == 1:
            self.run(f"{SECOND_CHANCE} {marker}".strip())
        if self.code == 0 and not re.search(r"\b\d+ passed", self.summary):
            print("pytest ended without its summary")
            self.code = 1

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.wall_s:.0f} s of wall clock, {self.processor_s:.0f} s of processor time, "
            f"tests that needed a second chance: {self.failed_at_first}"
        )


def main(arguments: list[str]) -> int:
    """Run the parts; the exit code of the README's line."""
    left_s = BUDGET_S - float(arguments[0] if arguments else 0)
    suite, deep = Part("the README's line"), Part("deep tests")
    suite.run_twice_if_needed(LINE)
    begun = time.monotonic()
    others = elsewhere(arguments[1]) if suite.code == 0 and len(arguments) > 1 else []
    parts = [suite, *others]
    left_s -= suite.wall_s + time.monotonic() - begun
    if suite.code == 0 and left_s >= SHORTEST_S:
        print(f"\n== deep tests that begin within {left_s:.0f} s", flush=True)
        deep.run_twice_if_needed(f"{DEEP} --budget={left_s:.0f}", "deep")
        parts.append(deep)
    elif suite.code == 0:
        print("\n== DEEP TESTS NOT BEGUN: the other parts took the time; they run with .venv/bin/pytest -m deep", flush=True)
    print("".join(suite.dearest))
    for part in parts:
        print(part)
    for part in others:
        if part.code:
            print(f"{part.name.upper()} {NOT_DONE.get(part.code, 'FAILED, see above')}: {part.summary}")
    if deep.code:
        print(f"DEEP TESTS FAILED, see above: {deep.summary}")
    print(suite.summary)
    return suite.code or max((part.code for part in others if part.code not in NOT_DONE), default=0)


def elsewhere(dist: str) -> list[Part]:
    """What was built, installed; README's lines on bare machines; the tests on those Pythons that no bare machine had."""
    named = re.findall(r'Python :: (3\.\d+)"', (ROOT / "pyproject.toml").read_text())
    waiting = deque([*BARE, "installs", *(python for python in named if python not in BARE.values())])
    done: list[Part] = []

    def work(processors: str) -> None:
        while waiting:
            name = waiting.popleft()
            done.append(part := trial(name, dist, processors))
            if name in BARE and part.code != 0:
                waiting.append(BARE[name])

    print("\n== installs, bare Debians and other Pythons, two at a time", flush=True)
    with ThreadPoolExecutor(len(LANES)) as lanes:
        list(lanes.map(work, LANES))
    return done


def lanes() -> list[str]:
    """The processors that this process may use, as two halves; twice the one that there is."""
    numbers = sorted(os.sched_getaffinity(0))
    halves = [numbers[0::2], numbers[1::2] or numbers]
    return [",".join(map(str, half)) for half in halves]


LANES = lanes()


def trial(name: str, dist: str, processors: str) -> Part:
    """One of them, run."""
    if name == "installs":
        part = Part(name, f".ci/installs {shlex.quote(dist)} {sys.version_info[0]}.{sys.version_info[1]}", processors)
        limit_s = INSTALLS_S
    elif name in BARE:
        part, limit_s = Part(f"bare {name}", f".ci/bare {name}", processors), BARE_S
    else:
        part, limit_s = Part(f"Python {name}", f".ci/pythons {name}", processors), PYTHON_S
    part.run(timed(limit_s, part))
    if name == "installs" and part.code not in (0, *NOT_DONE):
        part.run(timed(limit_s, part))  # an index may have failed to answer once
    return part


def timed(limit_s: int, part: Part) -> str:
    """Its command, ended after so long, on its processors."""
    bound = f"taskset --cpu-list {part.processors} " if shutil.which("taskset") else ""
    return f"{bound}timeout {limit_s} {part.command}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
