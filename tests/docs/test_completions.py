"""``completions/`` is what kgctl prints, and it completes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.completions import FILES, FOLDER, script
from tests.support.patience import PATIENCE_S


@pytest.mark.parametrize("shell", FILES)
def test_script_is_up_to_date(shell: str) -> None:
    assert FILES[shell].read_text(encoding="utf-8") == script(shell), "run `python -m tests.docs.update`"


def test_folder_has_nothing_else() -> None:
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted(path.name for path in FILES.values())


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["kgctl", "desc"], "describe"),
        (["kgctl", "list", "gr"], "groups"),
        (["kgctl", "reset-offsets", "--shift"], "--shift-by"),
        (["kgctl", "context", "use", "sta"], "staging"),
    ],
)
def test_bash_completes(tmp_path: Path, words: list[str], expected: str) -> None:
    bash = shutil.which("bash")
    assert bash, "bash is needed for this test"
    config = tmp_path / "config.yaml"
    config.write_text("contexts: {staging: {bootstrap-server: 'a:1'}}\n")
    program = (
        f"source '{FILES['bash']}'\n"
        f"COMP_WORDS=({' '.join(words)})\nCOMP_CWORD={len(words) - 1}\n"
        "_kgctl_completion kgctl\n"
        'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        [bash, "--norc", "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
        env={**os.environ, "PATH": path, "KGCTL_CONFIG": str(config)},
    )
    assert (ran.stdout.split(), ran.stderr) == ([expected], "")
