"""The world a command runs in."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from kgctl.cli.environment import Environment


def test_folders_come_from_variables_or_from_the_users_own(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = Environment(variables={"KGCTL_CONFIG": "~/c.yaml", "KGCTL_BACKUP_DIR": "b", "KGCTL_WAREHOUSE": "~/w"})
    assert (chosen.config_file, chosen.undo_folder) == (Path("~/c.yaml").expanduser(), Path("b"))
    assert chosen.warehouse == "~/w"
    own = Environment(variables={})
    assert (own.config_file.name, own.config_file.parent.name) == ("config.yaml", "kgctl")
    assert (own.undo_folder.name, own.undo_folder.parent.name) == ("backups", "kgctl")
    assert (Path(own.warehouse).name, Path(own.warehouse).parent.name) == ("warehouse", "kgctl")


def test_clock_counts_milliseconds_since_1970() -> None:
    assert 1_700_000_000_000 < Environment().now_ms() < 10_000_000_000_000


@pytest.mark.parametrize(
    ("called", "on_path", "shown"),
    [
        ("/bin dir/kgctl", "/bin dir/kgctl", "kgctl"),
        ("/bin dir/kgctl", None, "'/bin dir/kgctl'"),
        (".venv/bin/kgctl", "/elsewhere/kgctl", ".venv/bin/kgctl"),
        ("/x/kgctl/__main__.py", None, f"{shlex.quote(sys.executable)} -m kgctl"),
    ],
)
def test_user_is_shown_the_way_in_which_they_called(
    monkeypatch: pytest.MonkeyPatch, called: str, on_path: str | None, shown: str
) -> None:
    monkeypatch.setattr(sys, "argv", [called])
    monkeypatch.setattr("shutil.which", lambda name: on_path)
    assert Environment().program == shown
