"""Options that commands which change a cluster have alike."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kgctl.errors import UsageError

Execute = Annotated[bool, typer.Option("--execute", help="Do it; without it this is a dry run.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show the plan (the default).")]
Backup = Annotated[str | None, typer.Option("--backup", metavar="FILE", help="Save the previous offsets here.")]
NoBackup = Annotated[bool, typer.Option("--no-backup", help="Do not save the previous offsets: there is no undo.")]
OtherCluster = Annotated[bool, typer.Option("--other-cluster", help="Take a file of another cluster, for a migration.")]


def check_file_name(option: str, path: str | None) -> None:
    """Raises UsageError for an empty name."""
    if path == "":
        raise UsageError(f"{option} is empty (an unset variable?): give it a file")


def check_new_file(option: str, path: str | None) -> None:
    """Raises UsageError for a file that is there already, or whose folder is not: nothing has been contacted yet."""
    check_file_name(option, path)
    if path is None:
        return
    place = Path(path).expanduser()
    if place.exists():
        raise UsageError(f"{option} {path}: there is such a file already, and it is not replaced")
    if not place.absolute().parent.is_dir():
        raise UsageError(f"{option} {path}: there is no folder {place.absolute().parent}")


def check_backup(backup: str | None, *, no_backup: bool) -> None:
    """Raises UsageError where the two options contradict each other, or the file cannot be."""
    if backup and no_backup:
        raise UsageError("--backup and --no-backup exclude each other")
    check_new_file("--backup", backup)
