"""Undo files: what a change takes away is saved first, in a file that knows its cluster, and found again when it is wanted."""

from __future__ import annotations

import shlex
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kgctl.admin.plan.offset_file import undo_rows
from kgctl.admin.plan.sealed_file import FileHeader, read_header, seal
from kgctl.admin.plan.times import format_instant
from kgctl.cli.environment import Environment
from kgctl.cli.output.files import write_again, write_new
from kgctl.cli.session import NamedCluster, Session
from kgctl.errors import KgctlError, NotFoundError, RefusedError, StorageError, UsageError
from kgctl.model.partitions import OffsetAndMetadata, TopicPartition

UndoRow = tuple[str, TopicPartition, OffsetAndMetadata | None]
"""A group, a partition, and what was committed; None for nothing."""


@dataclass(frozen=True, slots=True)
class UndoFile:
    """A file of the undo folder; its id is its name without the ending."""

    path: Path
    header: FileHeader

    @property
    def id(self) -> str:
        """What ``kgctl undo`` takes."""
        return self.path.stem


def save_undo(session: Session, cluster: NamedCluster, rows: Sequence[UndoRow], wanted: str | None = None) -> UndoFile | None:
    """Save what is about to be changed and say how it is brought back; None where there is nothing to save.

    The file is ``wanted``, or a new one in the undo folder.

    Raises:
        KgctlError: it cannot be written, or ``wanted`` exists already; nothing may be changed then.
    """
    if not rows:
        return None
    environment = session.environment
    now_ms = environment.now_ms()
    header = FileHeader("undo", cluster.identity, cluster.label, session.command_line, now_ms, _groups(rows), len(rows))
    path = Path(wanted).expanduser() if wanted else _free_path(environment, now_ms, session.command)
    try:
        write_new(path, seal(header, undo_rows(rows)), make_folder=wanted is None)
    except StorageError as error:
        raise KgctlError(
            f"cannot save the previous offsets to {error.message}; nothing was changed "
            "(--backup FILE puts them elsewhere, --no-backup does without)",
            code="BACKUP_FAILED",
        ) from None
    undo = ["kgctl", *cluster.arguments, "undo", str(path) if wanted else path.stem, "--execute"]
    session.notice(f"Previous offsets saved; to undo: {shlex.join(undo)}")
    return UndoFile(path, header)


def settle_undo(
    session: Session, file: UndoFile | None, rows: Sequence[UndoRow], changed: Container[tuple[str, TopicPartition]]
) -> None:
    """Leave in the file only what was, or may have been, changed: an undo must not take back what others did to the rest.

    A file that cannot be written anew stays as it is, and stderr says so.
    """
    kept = [row for row in rows if row[:2] in changed]
    if file is None or len(kept) == len(rows):
        return
    try:
        if not kept:
            file.path.unlink()
            session.notice(f"{file.path} is removed again: nothing was changed, so there is nothing to undo.")
            return
        header = replace(file.header, groups=_groups(kept), partitions=len(kept))
        write_again(file.path, seal(header, undo_rows(kept)))
    except (OSError, StorageError) as error:
        session.notice(f"{file.path} also has offsets that were not changed, and could not be written anew: {error}")


def _groups(rows: Sequence[UndoRow]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(group_id for group_id, _, _ in rows))


def _free_path(environment: Environment, now_ms: int, command: str) -> Path:
    """A name made of time and command, with a number behind it where two changes fall into one second."""
    moment = format_instant(now_ms)[:19].replace(":", "").replace("-", "")
    stem = f"{moment}Z-{command.replace(' ', '-')}"
    names = (f"{stem}{suffix}.csv" for suffix in ("", *(f"-{number}" for number in range(2, 10_000))))
    return next(environment.undo_folder / name for name in names if not (environment.undo_folder / name).exists())


def undo_files(environment: Environment) -> Iterator[UndoFile]:
    """The files of the undo folder, newest first; others that lie there are passed over."""
    folder = environment.undo_folder
    found = []
    for path in folder.glob("*.csv") if folder.is_dir() else ():
        try:
            with path.open(encoding="utf-8", newline="\n") as file:
                header = read_header(file.readline(), str(path))
        except (OSError, UnicodeDecodeError, UsageError):
            continue
        if header is not None and header.kind == "undo":
            found.append(UndoFile(path, header))
    yield from sorted(found, key=lambda file: (file.header.time_ms, file.id), reverse=True)


def find_undo_file(environment: Environment, name: str) -> Path:
    """The file that an id, the beginning of one, or a path means.

    Raises:
        NotFoundError: there is none.
        UsageError: the beginning of several ids.
    """
    if "/" in name or name.endswith(".csv") or Path(name).expanduser().is_file():
        return Path(name).expanduser()
    ids = {file.id: file.path for file in undo_files(environment)}
    matching = [name] if name in ids else [one for one in ids if one.startswith(name)]
    if not matching:
        raise NotFoundError(f"there is no undo file {name!r} in {environment.undo_folder} (kgctl undo lists those of a cluster)")
    if len(matching) > 1:
        raise UsageError(f"{name!r} begins the names of {len(matching)} undo files: {', '.join(sorted(matching)[:5])}")
    return ids[matching[0]]


def check_cluster(header: FileHeader | None, cluster: NamedCluster, *, other_cluster: bool, name: str) -> None:
    """Refuse a file of another cluster.

    Raises:
        RefusedError: it is another's, and that is not wanted.
    """
    if header is None or other_cluster or header.cluster_id == cluster.identity:
        return
    raise RefusedError(
        f"{name} is of the cluster {header.cluster} (id {header.cluster_id}), and this is {cluster}: offsets of one cluster mean "
        "nothing on another (--other-cluster insists, for a migration)",
        code="OTHER_CLUSTER",
    )
