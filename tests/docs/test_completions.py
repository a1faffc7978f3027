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
        (["kgctl", "list", "groups", "-o", "wi"], "wide"),
    ],
)
def test_bash_completes(tmp_path: Path, words: list[str], expected: str) -> None:
    bash = shutil.which("bash")
    assert bash, "bash is needed for this test"
    config = tmp_path / "config.yaml"
    config.write_text("contexts: {staging: {bootstrap-server: 'a:1'}}\n")
    program = (
        f"source '{FILES['bash']}'\n"
        f"COMP_LINE='{' '.join(words)}'\nCOMP_WORDS=({' '.join(words)})\nCOMP_CWORD={len(words) - 1}\n"
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


@pytest.mark.parametrize(
    ("line", "words", "asked", "offered", "completed"),
    [
        ("k orders:", ["k", "orders", ":"], ["k", "orders:"], ["orders:0", "orders:1"], ["0", "1"]),
        ("k a orders:1", ["k", "a", "orders", ":", "1"], ["k", "a", "orders:1"], ["orders:1", "orders:10"], ["1", "10"]),
        ("k --topic=orders:", ["k", "--topic", "=", "orders", ":"], ["k", "--topic=orders:"], ["orders:7"], ["7"]),
        ("k  host:1  ", ["k", "host", ":", "1", ""], ["k", "host:1", ""], ["list"], ["list"]),
    ],
)
def test_words_with_a_colon_in_bash(
    tmp_path: Path, line: str, words: list[str], asked: list[str], offered: list[str], completed: list[str]
) -> None:
    """bash splits words at colons and equals signs, and puts what is offered in the place of the part behind the last."""
    stub = tmp_path / "k"
    note = f"printf '%s|%s' \"$COMP_WORDS\" \"$COMP_CWORD\" > '{tmp_path}/asked'"
    stub.write_text(f"#!/bin/sh\n{note}\nprintf '%s\\n' {' '.join(offered)}\n")
    stub.chmod(0o755)
    typed = " ".join(f"'{word}'" for word in words)
    program = (
        f"source '{FILES['bash']}'\nCOMP_WORDBREAKS=' =:'\n"
        f"COMP_LINE='{line}'\nCOMP_WORDS=({typed})\nCOMP_CWORD={len(words) - 1}\n"
        f'_kgctl_completion {stub}\nprintf "%s\\n" "${{COMPREPLY[@]}}"\n'
    )
    ran = subprocess.run(["bash", "--norc", "-c", program], capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    assert (ran.stdout.split(), ran.stderr) == (completed, "")
    assert (tmp_path / "asked").read_text() == "\n".join(asked) + f"|{len(asked) - 1}"
