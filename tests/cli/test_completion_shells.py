"""Tab in a real shell, at a pseudo-terminal: the values that kgctl offers come up."""

from __future__ import annotations

import os
import pty
import select
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.members import missing_part
from tests.support.patience import PATIENCE_S

SHELLS = {
    "bash": (["bash", "--noprofile", "--norc", "-i"], "source <(kgctl completion bash)"),
    "zsh": (["zsh", "-f", "-i"], "autoload -U compinit; compinit -D; source <(kgctl completion zsh)"),
    "fish": (["fish", "--no-config", "-i"], "kgctl completion fish | source"),
}
TABS = {
    "kgctl list groups -o ya": "yaml",
    "kgctl delete-g": "delete-groups",
    "kgctl list groups --sort me": "members",
}
READY = "shell-is-ready"


class Shell:
    """An interactive shell and what it has shown."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal
        self.shown = ""

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def wait_for(self, text: str) -> None:
        """Until it has shown this since the last wait."""
        deadline = time.monotonic() + PATIENCE_S
        while text not in self.shown:
            assert time.monotonic() < deadline, f"{text!r} is not in {self.shown!r}"
            if select.select([self._terminal], [], [], 0.2)[0]:
                self.shown += os.read(self._terminal, 65_536).decode(errors="replace")
        self.shown = ""


@contextmanager
def started(argv: list[str], home: Path) -> Iterator[Shell]:
    """The shell at a terminal of its own, with this Python's kgctl first in its path."""
    child, terminal = pty.fork()
    if child == 0:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        os.execvpe(argv[0], argv, {"PATH": path, "HOME": str(home), "TERM": "dumb", "KGCTL_CONFIG": str(home / "config.yaml")})
    try:
        yield Shell(terminal)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(terminal)


@pytest.mark.slow
@pytest.mark.parametrize("name", SHELLS)
def test_tab_completes_commands_and_values(name: str, tmp_path: Path) -> None:
    if shutil.which(name) is None:
        missing_part(f"{name} is not installed (Debian has it)")
    argv, set_up = SHELLS[name]
    with started(argv, tmp_path) as shell:
        shell.type(f"{set_up}\n")
        shell.type(f"echo {READY[:6]}''{READY[6:]}\n")
        shell.wait_for(READY)
        for typed, completed in TABS.items():
            shell.type(f"{typed}\t")
            shell.wait_for(completed)
            shell.type("\x15")
