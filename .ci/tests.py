"""The tests of ``.ci/run``: the README's line here, on bare Debians and other Pythons; installs; deep tests while there is time.

    python .ci/tests.py [SECONDS [DIR]]    SECONDS: how long ``.ci/run`` has taken so far; DIR: the files of a release

Where tests of a few files failed, .ci/second_chance.py runs them once more. The README's line decides, and then .ci/installs with
one Python, .ci/bare and .ci/pythons, each as far as it gets in its time: they ask package indexes, which may be slow. What a
machine cannot try (it has no right to make namespaces, no mirror of Debian's) is told as not tried, at the end too. Deep tests
are a search that goes as far as there is time: what it finds is printed, to be mended and to become an example, and
holds nothing up. The last line is pytest's own summary of the README's line.
"""

import os
import re
import resource
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINE = "python3 .ci/setup.py dev && .venv/bin/pytest"
DEEP = ".venv/bin/pytest -m deep --hypothesis-seed=1 --numprocesses=3"
SECOND_CHANCE = ".venv/bin/python .ci/second_chance.py"
BARE = ("bookworm", "trixie")
BARE_PYTHONS = ("3.11", "3.13")
"""What these releases have."""
INSTALLS_S, BARE_S, PYTHONS_S = 180, 720, 900
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
    code: int = 0
    wall_s: float = 0.0
    processor_s: float = 0.0
    failed_at_first: int = 0
    summary: str = ""
    dearest: list[str] = field(default_factory=list)

    def run(self, command: str) -> None:
        """Run a command, printing what it prints but the table of the dearest tests, which is for the end."""
        wall, processor = time.monotonic(), children_s()
        environment = {**os.environ, "KGCTL_TEST_DEAREST": str(DEAREST)}
        started = subprocess.Popen(
            command, cwd=ROOT, shell=True, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        assert started.stdout is not None
        is_table = False
        for line in started.stdout:
            is_table = re.match(r"=+ \d+ dearest of", line) is not None or (is_table and not line.startswith("="))
            if is_table:
                self.dearest.append(line)
                continue
            print(line, end="", flush=True)
            self.failed_at_first += line.startswith("FAILED AT FIRST")
            self.summary = line.strip() or self.summary
        self.code = started.wait()
        self.wall_s += time.monotonic() - wall
        self.processor_s += children_s() - processor

    def run_twice_if_needed(self, command: str, marker: str = "") -> None:
        """Run it, and once more what failed of it."""
        for kept in (ROOT / ".pytest_cache" / "v" / "cache").glob("lastfailed"):
            kept.unlink()  # of an earlier run
        self.run(command)
        if self.code == 1:
            self.run(f"{SECOND_CHANCE} {marker}".strip())

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.wall_s:.0f} s of wall clock, {self.processor_s:.0f} s of processor time, "
            f"tests that needed a second chance: {self.failed_at_first}"
        )


def children_s() -> float:
    """Return the processor time of all programs that this one started and saw end."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(arguments: list[str]) -> int:
    """Run the parts; the exit code of the README's line."""
    left_s = BUDGET_S - float(arguments[0] if arguments else 0)
    suite, deep = Part("the README's line"), Part("deep tests")
    suite.run_twice_if_needed(LINE)
    others = elsewhere(arguments[1]) if suite.code == 0 and len(arguments) > 1 else []
    parts = [suite, *others]
    left_s -= sum(part.wall_s for part in parts)
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
    installs = trial("installs", INSTALLS_S, f".ci/installs {shlex.quote(dist)} {sys.version_info[0]}.{sys.version_info[1]}")
    if installs.code not in (0, *NOT_DONE):
        installs.run(timed(INSTALLS_S, installs.command))  # an index may have failed to answer once
    bare = [trial(f"bare {release}", BARE_S, f".ci/bare {release}") for release in BARE]
    named = re.findall(r'Python :: (3\.\d+)"', (ROOT / "pyproject.toml").read_text())
    seen = [python for python, part in zip(BARE_PYTHONS, bare, strict=True) if part.code == 0]
    left = [python for python in named if python not in seen]
    return [installs, *bare, trial("pythons", PYTHONS_S, f".ci/pythons {' '.join(left)}")]


def trial(name: str, limit_s: int, command: str) -> Part:
    """One that may take so long, run."""
    print(f"\n== {name}, up to {limit_s} s", flush=True)
    part = Part(name, command=command)
    part.run(timed(limit_s, command))
    return part


def timed(limit_s: int, command: str) -> str:
    """The command, ended after so long."""
    return f"timeout {limit_s} {command}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
