"""Files that are left where the user names them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Literal, TextIO

from kgctl.errors import KgctlError, RefusedError, StorageError, UsageError


def text_of(path: Path | str, *, stdin: TextIO | None = None, missing: type[KgctlError] = UsageError, most: int = -1) -> str:
    """The text of a file, or its first ``most`` bytes, with line ends as they are, without a mark of UTF-8 in front.

    Where ``stdin`` is given, it is what is named ``-``.

    Raises:
        UsageError: it cannot be read, or is no text. ``missing``: there is no file of this name.
    """
    try:
        if stdin is not None and str(path) == "-":
            return stdin.read()
        with Path(path).open("rb") as file:
            return file.read(most).decode("utf-8-sig")
    except OSError as error:
        kind = missing if isinstance(error, FileNotFoundError) else UsageError
        raise kind(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        looks = "; it looks like UTF-16: save it as UTF-8" if error.object[:2] in (b"\xff\xfe", b"\xfe\xff") else ""
        raise UsageError(f"{path} is not UTF-8 text (line {line}, byte {error.start}){looks}") from None


def at_home(path: Path | str) -> Path:
    """The path, with ~ as this user's home. Raises as `own_folder`."""
    with _home_is_told():
        return Path(path).expanduser()


def own_folder(kind: Literal["cache", "config", "state"]) -> Path:
    """This user's folder of this kind for kgctl, there or not.

    Raises:
        KgctlError: the user has no home: in a container, say, whose user stands in no list, and which has no HOME.
    """
    from platformdirs import PlatformDirs

    with _home_is_told():
        return Path(getattr(PlatformDirs("kgctl"), f"user_{kind}_dir"))


@contextmanager
def _home_is_told() -> Iterator[None]:
    """Both pathlib and platformdirs raise RuntimeError here, for nothing else."""
    try:
        yield
    except RuntimeError:
        raise KgctlError("this user has no home directory: set HOME", code="OS_ERROR") from None


def check_named(path: Path) -> None:
    """Raise `kgctl.errors.UsageError` for -, which is not stdout here."""
    if str(path) == "-":
        raise UsageError("- would be a file of this name: stdout has the result; name a file")


def check_place(path: Path) -> None:
    """Raise `kgctl.errors.UsageError` as `check_named`, and if there is no such folder, or one of the file's name."""
    check_named(path)
    if path.is_dir():
        raise UsageError(f"{path} is a folder; name a file")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"{path}: there is no folder {path.absolute().parent}")


def new_file(path: Path | None) -> Path | None:
    """Return where to write what is nowhere yet; None is stdout, and so is -.

    Raises:
        RefusedError: it is there: what somebody may have written is not replaced. UsageError: as `check_place`.
    """
    if path is None or str(path) == "-":
        return None
    if path.exists():
        raise RefusedError(f"{path} is there already; name another file or remove it")
    check_place(path)
    return path


def write_whole(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write a file under another name and rename it.

    Raises:
        StorageError: it cannot be written.
    """
    _write(path, write, lambda draft: draft.open("wb"), lambda draft: draft.replace(path))


def write_new(path: Path, text: str, *, make_folder: bool = False) -> None:
    """Write a file that only its owner may read, whole or not at all: beside its place first, then moved there.

    ``make_folder`` makes the folder, for its owner alone, where there is none.

    Raises:
        StorageError: it cannot be written, or there is a file of this name already.
    """
    if make_folder:
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(f"{path}: {error.strerror or error}") from error
    _write_private(path, text, path.hardlink_to)  # unlike a rename it never replaces a file


def write_again(path: Path, text: str) -> None:
    _write_private(path, text, lambda draft: draft.replace(path))


def _write_private(path: Path, text: str, move: Callable[[Path], object]) -> None:
    def write(file: BinaryIO) -> None:
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())

    _write(path, write, lambda draft: os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb"), move)


def _write(
    path: Path, write: Callable[[BinaryIO], object], make: Callable[[Path], BinaryIO], move: Callable[[Path], object]
) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with make(draft) as file:
            write(file)
        move(draft)
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
