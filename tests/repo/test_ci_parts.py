"""What CI runs behind the README's line: two at a time, each told whole, and what a machine cannot try is run another way."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.repo.project import ROOT

SCRIPTS = {
    ".venv/bin/pytest": 'echo "== 7 passed =="',
    ".ci/installs": 'echo "installed with $2"',
    ".ci/bare": 'for i in 1 2 3; do sleep 0.1; echo "line $i on $1"; done',
    ".ci/pythons": 'echo "tests on $*"',
}
"""In the place of the checkout's own."""


@pytest.mark.parametrize("last", ["collecting", "== 4 deselected in 0.10s ==", "what was passed to it: 7"])
def test_a_run_of_pytest_that_says_nothing_has_failed(tmp_path: Path, last: str) -> None:
    """Who ends the process while tests are collected ends it with what code he likes."""
    done = run(tmp_path, **{".venv/bin/pytest": f"echo '{last}'"})
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == last
    assert "pytest ended without its summary" in done.stdout
    assert "installed" not in done.stdout


def run(folder: Path, **scripts: str) -> subprocess.CompletedProcess[str]:
    """The tests of CI in a checkout whose programs are `SCRIPTS`, or those given."""
    for name, text in {**SCRIPTS, **scripts}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
    (folder / ".ci" / "setup.py").write_text("")
    (folder / ".ci" / "tests.py").write_bytes((ROOT / ".ci" / "tests.py").read_bytes())
    (folder / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    command = [sys.executable, ".ci/tests.py", "100000", "dist"]
    environment = {"PATH": "/usr/bin:/bin"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("code", "ended"), [(75, 0), (1, 1), (124, 0)])
def test_all_parts_run_and_a_python_that_was_not_tried_is_tried_elsewhere(tmp_path: Path, code: int, ended: int) -> None:
    done = run(tmp_path, **{".ci/bare": f'{SCRIPTS[".ci/bare"]}; [ "$1" != trixie ] || exit {code}'})
    assert done.returncode == ended, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[-1] == "== 7 passed =="
    for release in ("bookworm", "trixie"):
        first = lines.index(f"== bare {release}")
        assert lines[first + 1 : first + 4] == [f"line {number} on {release}" for number in (1, 2, 3)]
    pythons = [line.removeprefix("tests on ") for line in lines if line.startswith("tests on ")]
    assert sorted(pythons) == ["3.12", "3.13", "3.14"]
    assert f"installed with {sys.version_info[0]}.{sys.version_info[1]}" in lines
    said = {75: "NOT TRIED", 1: "FAILED, see above", 124: "TOOK TOO LONG"}[code]
    assert f"BARE TRIXIE {said}: line 3 on trixie" in lines
    assert len([line for line in lines if re.match(r"[^:]+: \d+ s of wall clock, \d+ s of processor time", line)]) == 7
