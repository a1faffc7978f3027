"""Files that a command leaves, where the user names them."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from kgctl.errors import StorageError, UsageError


def check_place(path: Path) -> None:
    """Raise `kgctl.errors.UsageError` if there is no such folder, or one of the file's name."""
    if path.is_dir():
        raise UsageError(f"{path} is a folder; name a file")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"{path}: there is no folder {path.absolute().parent}")


def write_whole(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write a file under another name and rename it.

    Raises:
        StorageError: it cannot be written.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with draft.open("wb") as file:
            write(file)
        draft.replace(path)
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
