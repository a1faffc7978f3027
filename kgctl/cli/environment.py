"""The world a command runs in: streams, variables, folders, clock, and the way to a cluster. Tests replace it whole."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from kgctl.admin.client import GroupAdmin
    from kgctl.admin.connect import ConnectionSettings


def _connect(settings: ConnectionSettings) -> GroupAdmin:
    from kgctl.admin.connect import connect

    return connect(settings)


def _program() -> str:
    called = sys.argv[0]
    if Path(called).name == "__main__.py":
        return f"{shlex.quote(sys.executable)} -m kgctl"
    found = shutil.which("kgctl")
    return "kgctl" if found and Path(found).absolute() == Path(called).absolute() else shlex.quote(called)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _sleep_ms(milliseconds: int) -> None:
    time.sleep(milliseconds / 1000)


@dataclass(frozen=True)
class Environment:
    """Everything that a command may touch outside of itself.

    ``connect`` is called at most once a command; what it returns is closed by the command. ``now_ms`` is wall-clock time in
    milliseconds since the epoch.
    """

    stdin: TextIO = field(default_factory=lambda: sys.stdin)
    stdout: TextIO = field(default_factory=lambda: sys.stdout)
    stderr: TextIO = field(default_factory=lambda: sys.stderr)
    variables: Mapping[str, str] = field(default_factory=lambda: os.environ)
    connect: Callable[[ConnectionSettings], GroupAdmin] = _connect
    now_ms: Callable[[], int] = _now_ms
    sleep_ms: Callable[[int], None] = _sleep_ms

    @property
    def program(self) -> str:
        """How the user calls kgctl from where they are."""
        return _program()

    @property
    def is_own_process(self) -> bool:
        """Whether the process is kgctl's, and no test's or program's that runs a command inside of itself."""
        return self.variables is os.environ

    @property
    def stdout_is_terminal(self) -> bool:
        """Whether a person reads stdout directly."""
        return self.stdout.isatty()

    @property
    def config_file(self) -> Path:
        """Where contexts are kept; see `kgctl.admin.config_file.config_path`."""
        from kgctl.admin.config_file import config_path

        return config_path(self.variables)

    @property
    def undo_folder(self) -> Path:
        """Where changes save what they take away: KGCTL_BACKUP_DIR, else ``backups`` in the user's state folder for kgctl."""
        if path := self.variables.get("KGCTL_BACKUP_DIR"):
            return Path(path).expanduser()
        import platformdirs

        return platformdirs.user_state_path("kgctl") / "backups"

    @property
    def warehouse_folder(self) -> Path:
        """Where the history of groups is kept: KGCTL_WAREHOUSE, else ``warehouse`` in the user's state folder for kgctl."""
        if path := self.variables.get("KGCTL_WAREHOUSE"):
            return Path(path).expanduser()
        import platformdirs

        return platformdirs.user_state_path("kgctl") / "warehouse"

    def notice(self, line: str) -> None:
        """Tell the user something beside the result: one line on stderr."""
        self.stderr.write(f"{line}\n")
        self.stderr.flush()
