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
    ".ci/bare": 'for i in 1 2 3; do sleep 0.1; echo "line $i on $1"; done; [ "$1" != {lacks} ] || exit {code}',
    ".ci/pythons": 'echo "tests on $*"',
}
"""In the place of the checkout's own."""


@pytest.mark.parametrize(("code", "ended"), [(75, 0), (1, 1), (124, 0)])
def test_all_parts_run_and_a_python_that_was_not_tried_is_tried_elsewhere(tmp_path: Path, code: int, ended: int) -> None:
    for name, text in SCRIPTS.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n" + text.replace("{lacks}", "trixie").replace("{code}", str(code)) + "\n")
        path.chmod(0o755)
    (tmp_path / ".ci" / "setup.py").write_text("")
    (tmp_path / ".ci" / "tests.py").write_bytes((ROOT / ".ci" / "tests.py").read_bytes())
    (tmp_path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    command = [sys.executable, ".ci/tests.py", "100000", "dist"]
    environment = {"PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

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
