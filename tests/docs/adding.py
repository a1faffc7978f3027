"""Follows the page for contributors: adds its examples to a copy of the package, and runs there what it types."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from tests.docs.pages import ROOT, with_output
from tests.support.patience import PATIENCE_S

PAGE = "adding-things"
ADDED = re.compile(r"^```python\n# (?P<path>\S+?\.py)(?: (?P<place>.+?))?\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
AT_THE_END = "at the end"
BETWEEN = "\n\n"


class CopyShell:
    """Runs kgctl lines with the package of a copy, each in a process of its own."""

    def __init__(self, copy: Path) -> None:
        self._copy = copy

    def write(self, path: str, text: str) -> None:
        (self._copy / path).write_text(text, encoding="utf-8")

    def run(self, line: str) -> str:
        ran = subprocess.run(
            [sys.executable, "-m", *shlex.split(line)],
            cwd=self._copy,
            env={**os.environ, "PYTHONPATH": str(self._copy), "KGCTL_CONFIG": str(self._copy / "none.yaml")},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        return ran.stdout


def copied(folder: Path) -> Path:
    """Make a copy of the package in this folder, which is returned."""
    shutil.copytree(ROOT / "kgctl", folder / "kgctl", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def add(copy: Path, path: str, place: str | None, code: str) -> None:
    """Put the code where the page says: into a new file, behind the end, or before or behind the line that has a text."""
    file = copy / path
    if place is None:
        assert not file.exists(), path
        file.write_text(code, encoding="utf-8")
        return
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    if place == AT_THE_END:
        lines += [BETWEEN, code]
    else:
        side, _, wanted = place.partition(" ")
        (number,) = [number for number, line in enumerate(lines) if line.strip().startswith(wanted)]
        lines.insert(number + (side == "after"), code + (BETWEEN if side == "before" else ""))
    file.write_text("".join(lines), encoding="utf-8")


def followed(text: str, folder: Path) -> str:
    """The page with what its commands show once its examples are added to a copy of the package in this folder."""
    copied(folder)
    for example in ADDED.finditer(text):
        add(folder, example["path"], example["place"], example["code"])
    return with_output(text, CopyShell(folder), lambda mark: mark == "toys")
