"""Saves the offsets that a reset is about to replace, so that it can be undone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kgctl.admin.plan.offset_file import write_backup
from kgctl.admin.plan.offset_reset import ResetRow
from kgctl.admin.plan.times import format_instant
from kgctl.cli.environment import Environment
from kgctl.errors import KgctlError


def save_backup(rows: Sequence[ResetRow], environment: Environment, wanted: str | None) -> Path:
    """Write the old offsets of these rows to a new file, ``wanted`` or one in the backup folder, and return its path.

    Raises:
        KgctlError: it cannot be written, or ``wanted`` exists already.
    """
    text = write_backup([(row.group_id, row.partition, row.old) for row in rows])
    path = Path(wanted).expanduser() if wanted else _free_path(environment)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8", newline="") as stream:
            stream.write(text)
    except OSError as error:
        raise KgctlError(
            f"cannot save the previous offsets to {path}: {error.strerror}; nothing was changed "
            "(--backup FILE puts them elsewhere, --no-backup does without)",
            code="BACKUP_FAILED",
        ) from None
    return path


def _free_path(environment: Environment) -> Path:
    """A name made of the time, with a number behind it where two resets fall into one second."""
    moment = format_instant(environment.now_ms())[:19].replace(":", "").replace("-", "")
    folder = environment.backup_folder
    names = (f"offsets-{moment}Z{suffix}.csv" for suffix in ("", *(f"-{number}" for number in range(2, 10_000))))
    return next(folder / name for name in names if not (folder / name).exists())
