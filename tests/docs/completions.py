"""The completion scripts, as kgctl itself prints them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.patience import PATIENCE_S

FOLDER = Path(__file__).parents[2] / "completions"
FILES = {"bash": FOLDER / "kgctl.bash", "zsh": FOLDER / "_kgctl", "fish": FOLDER / "kgctl.fish"}


def script(shell: str) -> str:
    """What ``_KGCTL_COMPLETE=source_SHELL kgctl`` prints, without the blank line that zsh would stumble over."""
    program = Path(sys.executable).parent / "kgctl"
    ran = subprocess.run(
        [str(program)],
        env={**os.environ, "_KGCTL_COMPLETE": f"source_{shell}"},
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    return ran.stdout.strip() + "\n"
