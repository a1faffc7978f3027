"""The completion scripts of ``completions/``, as ``kgctl completion`` prints them."""

from __future__ import annotations

from pathlib import Path

from kgctl.cli.completion import script

FOLDER = Path(__file__).parents[2] / "completions"
FILES = {"bash": FOLDER / "kgctl.bash", "zsh": FOLDER / "_kgctl", "fish": FOLDER / "kgctl.fish"}

__all__ = ["FILES", "FOLDER", "script"]
