"""What changes leave behind: an undo file each, and the log of all changes, which knows the files that lie elsewhere."""

from __future__ import annotations

import errno
import getpass
import json
import os
import shlex
import socket
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, count
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from kgctl.admin import Committed, GroupAdmin, GroupResults
from kgctl.admin.notation import FileHeader, FromFile, UndoRow, read_header, seal, share_groups, undo_rows
from kgctl.admin.times import format_instant
from kgctl.cli.environment import Environment
from kgctl.cli.parameters import flag, option
from kgctl.cli.session import NamedCluster, Session
from kgctl.cli.settings import naming_project_file
from kgctl.errors import KgctlError, NotFoundError, RefusedError, StorageError, UsageError
from kgctl.files import at_home, write_again, write_new
from kgctl.model.values import frozen_in_order


def check_file_name(option: str, path: str | None) -> None:
    """Refuse an empty file name. Raises UsageError."""
    if path == "":
        raise UsageError(f"{option} is empty (an unset variable?): give it a file")


def check_new_file(option: str, path: str | None) -> None:
    """Raises UsageError for a file that is there already, or whose folder is not: nothing has been contacted yet."""
    check_file_name(option, path)
    if path is None:
        return
    if path == "-":
        raise UsageError(f"{option} -: stdout has the result; name a file, from which it can be read again")
    place = at_home(path)
    if place.exists():
        raise UsageError(f"{option} {path}: there is such a file already, and it is not replaced")
    if not place.absolute().parent.is_dir():
        raise UsageError(f"{option} {path}: there is no folder {place.absolute().parent}")


LAST = "last"
"""What means the newest change of the cluster."""


@frozen_in_order
class UndoFile:
    """What a change took away, or is said to have; its id is made of time and command."""

    id: str
    path: Path
    header: FileHeader
    is_gone: bool = False


@frozen_in_order
class LoggedChange:
    """A line of the log of changes, as it was at the end. ``results`` None: it has not ended, or was killed."""

    id: str
    header: FileHeader
    file: Path | None
    user: str
    host: str
    results: Mapping[str, int] | None = None


@frozen_in_order
class StartedChange:
    """A change that is under way: its undo file, where it has one, and its line in the log."""

    session: Session
    id: str
    header: FileHeader
    rows: Sequence[UndoRow]
    path: Path | None

    def settle(self, changed: Container[tuple[str, object]], results: Mapping[str, object]) -> None:
        """Leave in the file only what was, or may have been, changed: an undo must not take back what others did to the rest.

        ``results`` counts the rows of the change, for the log. A file that cannot be written anew stays as it is, and stderr
        says so.
        """
        kept = [row for row in self.rows if (row.group_id, row.partition) in changed]
        path = self.path
        if path is not None and len(kept) < len(self.rows):
            path = self._keep(path, kept)
        if self.header.groups:
            _log(self.session, {"id": self.id, "file": None if path is None else str(path), "results": dict(results)})

    def _keep(self, path: Path, kept: Sequence[UndoRow]) -> Path | None:
        try:
            if not kept:
                path.unlink()
                self.session.notice(f"{path} is removed again: nothing was changed, so there is nothing to undo.")
                return None
            header = replace(self.header, groups=_groups(kept), partitions=len(kept), share_groups=share_groups(kept))
            write_again(path, seal(header, undo_rows(kept)))
        except (OSError, StorageError) as error:
            self.session.notice(f"{path} also has offsets that were not changed, and could not be written anew: {error}")
        return path


@frozen_in_order
class Backup:
    """A block of options: where the previous offsets are saved."""

    backup: Annotated[str | None, option("FILE", "Save the previous offsets here.")] = None
    no_backup: Annotated[bool, flag("--no-backup", "Do not save the previous offsets: there is no undo.")] = False

    def __post_init__(self) -> None:
        if self.backup and self.no_backup:
            raise UsageError("--backup and --no-backup exclude each other")
        check_new_file("--backup", self.backup)

    def place(self, folder: Path, change_id: str) -> Path | None:
        if self.no_backup:
            return None
        return at_home(self.backup).absolute() if self.backup else folder / f"{change_id}.csv"


def start_change(
    session: Session,
    admin: GroupAdmin,
    cluster: NamedCluster,
    rows: Sequence[UndoRow],
    backup: Backup,
    *,
    groups: Sequence[str] = (),
    whole_groups: bool = False,
) -> StartedChange:
    """Save what is about to be changed, log it, and say how it is brought back.

    ``groups`` are what is changed, where that is more than the groups of the rows; ``whole_groups``: they are deleted.

    Raises:
        KgctlError: the file cannot be written, or exists already; nothing may be changed then.
    """
    environment = session.environment
    now_ms, named = environment.now_ms(), tuple(groups) or _groups(rows)
    about = (cluster.identity, cluster.label, session.command_line, now_ms, named, len(rows))
    header = FileHeader("undo", *about, share_groups(rows), whole_groups=whole_groups)
    if rows and not backup.no_backup:
        header = replace(header, topic_ids=admin.topic_ids(sorted({row.partition.topic for row in rows})))
    ids = _free_ids(environment, now_ms, session.command)
    change_id, path = _saved(environment.undo_folder, ids, backup, replace(header, groups=_groups(rows)), rows)
    if (project := naming_project_file(session.flags, environment)) is not None:
        session.notice(f"The cluster is the one that {project} names: {cluster}.")
    if named:
        _log(session, _first_line(change_id, header, path))
    if path is not None:
        line = shlex.join(["kgctl", *cluster.arguments, "undo", backup.backup or change_id, "--execute"])
        session.notice(f"Previous offsets saved; to undo: {line}")
    return StartedChange(session, change_id, header, rows, path)


def not_saved(found: GroupResults[Committed]) -> Iterator[str]:
    """What no undo will bring back."""
    for group_id, error in found.errors.items():
        yield f"{error.message}: offsets of group {group_id!r} are not saved"
    for flaws in found.flaws.values():
        yield from (f"{flaw.message}: not saved" for flaw in flaws)


def _saved(
    folder: Path, ids: Iterator[str], backup: Backup, header: FileHeader, rows: Sequence[UndoRow]
) -> tuple[str, Path | None]:
    """The change's id, and its undo file, where it has one; an id whose file another change has just made is passed over."""
    change_id = next(ids)
    path = backup.place(folder, change_id) if rows else None
    if path is None:
        return change_id, None
    try:
        write_new(path, seal(header, undo_rows(rows)), make_folder=not backup.backup)
    except StorageError as error:
        if path.exists() and not backup.backup:
            return _saved(folder, ids, backup, header, rows)
        raise KgctlError(
            f"cannot save the previous offsets to {error.message}; nothing was changed "
            "(--backup FILE puts them elsewhere, --no-backup does without)",
            code="BACKUP_FAILED",
        ) from None
    return change_id, path


def _groups(rows: Sequence[UndoRow]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(row.group_id for row in rows))


def _free_ids(environment: Environment, now_ms: int, command: str) -> Iterator[str]:
    """Time and command, with a number behind them where two changes fall into one second."""
    moment = format_instant(now_ms)[:19].replace(":", "").replace("-", "")
    stem = f"{moment}Z-{command.replace(' ', '-')}"
    logged: set[str] = set()
    with suppress(StorageError):  # the change goes on without it, as where it cannot be written
        logged = {change.id for change in logged_changes(environment)}
    ids = (f"{stem}{suffix}" for suffix in chain([""], (f"-{number}" for number in count(2))))
    return (each for each in ids if each not in logged and not (environment.undo_folder / f"{each}.csv").exists())


LOG = "changes.jsonl"
MOST_GROUPS = 100
"""So many groups are named in the log; the undo file names all."""


def _first_line(change_id: str, header: FileHeader, path: Path | None) -> dict[str, Any]:
    return {
        "id": change_id,
        "time_ms": header.time_ms,
        "user": _user(),
        "host": socket.gethostname(),
        "command": header.command,
        "cluster_id": header.cluster_id,
        "cluster": header.cluster,
        "groups": header.groups[:MOST_GROUPS],
        "partitions": header.partitions,
        "file": None if path is None else str(path),
    }


def _user() -> str:
    """Whoever is at the keyboard, as far as the system knows."""
    with suppress(OSError, KeyError):  # a container's user may have no name
        name = getpass.getuser()
        behind = os.environ.get("SUDO_USER")
        return f"{behind} as {name}" if behind and behind != name else name
    return str(os.getuid())


def _log(session: Session, line: Mapping[str, Any]) -> None:
    """Add a line; where that fails the change goes on, and stderr says what the log lacks."""
    folder = session.environment.undo_folder
    data = f"{json.dumps(line, ensure_ascii=False)}\n".encode()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(folder / LOG, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            size = os.lseek(descriptor, 0, os.SEEK_END)
            cut = size and os.pread(descriptor, 1, size - 1) != b"\n"  # a full disk has left half a line there
            data = b"\n" + data if cut else data
            if os.write(descriptor, data) < len(data):  # in one call: of two changes at a time no line breaks the other
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(descriptor)
    except OSError as error:
        session.notice(f"This change is not in the log of changes: {folder / LOG}: {error.strerror or error}")


def logged_changes(environment: Environment) -> list[LoggedChange]:
    """The changes of the log, in its order; lines that are damaged are passed over.

    Raises:
        StorageError: it is there, and cannot be read.
    """
    path = environment.undo_folder / LOG
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise _unreadable(path, error) from None
    found: dict[str, LoggedChange] = {}
    for line in lines:
        with suppress(ValueError, KeyError, TypeError):
            said = json.loads(line)
            known = found.get(said["id"])
            if "time_ms" in said:
                found[said["id"]] = _logged(said)
            elif known is not None:
                file = Path(said["file"]) if said["file"] else None
                found[said["id"]] = replace(known, file=file, results=dict(said["results"]))
    return list(found.values())


def _logged(said: Mapping[str, Any]) -> LoggedChange:
    names = ("cluster_id", "cluster", "command", "time_ms", "partitions")
    header = FileHeader(kind="undo", groups=tuple(said["groups"]), **{name: said[name] for name in names})
    path = Path(said["file"]) if said["file"] else None
    return LoggedChange(said["id"], header, path, said["user"], said["host"])


_MOMENT = len("20260302T084000Z")


class UndoFiles(NamedTuple):
    """What can be undone, newest first; and what nobody can look at, by its name: a file of another user, say."""

    files: Sequence[UndoFile]
    unreadable: Mapping[str, KgctlError]


def undo_files(environment: Environment) -> UndoFiles:
    """The files of the undo folder, and those elsewhere that the log knows, there or gone.

    Raises:
        StorageError: the folder is there, and cannot be read.
    """
    folder, unreadable = environment.undo_folder, dict[str, KgctlError]()
    read = {path.stem: _undo_file(path.stem, path) for path in _paths(folder)}
    changes: Sequence[LoggedChange] = ()
    try:
        changes = logged_changes(environment)
    except StorageError as error:
        unreadable[LOG] = error
    for change in changes:
        if change.file is not None and change.id not in read and change.file.parent != folder:
            there = _undo_file(change.id, change.file)
            read[change.id] = there or UndoFile(change.id, change.file, change.header, is_gone=True)
    unreadable |= {name: file for name, file in read.items() if isinstance(file, KgctlError)}
    found = [file for file in read.values() if isinstance(file, UndoFile)]
    return UndoFiles(sorted(found, key=lambda file: (file.header.time_ms, file.id), reverse=True), unreadable)


def _paths(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if path.name.endswith(".csv")]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise _unreadable(folder, error) from None


def _unreadable(path: Path, error: OSError) -> StorageError:
    return StorageError(f"cannot read {path}: {error.strerror or error}")


def _undo_file(name: str, path: Path) -> UndoFile | KgctlError | None:
    """None for another file that lies there, and for none."""
    try:
        with path.open(encoding="utf-8", newline="\n") as file:
            header = read_header(file.readline(), str(path))
    except (FileNotFoundError, UnicodeDecodeError):
        return None
    except OSError as error:
        return _unreadable(path, error)
    except UsageError as error:
        return StorageError(error.message)
    return UndoFile(name, path, header) if header is not None and header.kind == "undo" else None


def find_undo_file(environment: Environment, name: str, identity: str) -> Path:
    """The file that an id, the beginning of one, `LAST`, or a path means on the cluster of this identity.

    A beginning means a change of this cluster, where there is one; `LAST` its newest.

    Raises:
        NotFoundError: there is none, or it is gone.
        UsageError: the beginning of several ids.
        StorageError: it cannot be read; or one that is as new as what `LAST` would be.
    """
    if is_path(name):
        return at_home(name)
    files, unreadable = undo_files(environment)
    own = [file for file in files if file.header.cluster_id == identity]
    if name == LAST:
        matching = own[:1]
    else:
        exact = [file for file in files if file.id == name]
        matching = exact or [file for file in own if file.id.startswith(name)] or [f for f in files if f.id.startswith(name)]
    for other, error in unreadable.items():
        if _may_be_meant(name, other, matching):
            raise error
    if not matching:
        what = "no change of this cluster that can be undone" if name == LAST else f"no undo file {name!r}"
        raise NotFoundError(f"there is {what} in {environment.undo_folder} (kgctl undo lists those of a cluster)")
    newest = matching[0]
    if len(matching) > 1:
        line = shlex.join(["kgctl", "undo", newest.id])
        what = f"{name!r} begins the ids of {len(matching)} changes"
        raise UsageError(f"{what}; the newest of them is `{newest.header.command}`: {line}")
    if newest.is_gone:
        raise NotFoundError(f"the undo file of {newest.id} is gone: {newest.path}", code="UNDO_FILE_GONE")
    return newest.path


def _may_be_meant(name: str, other: str, matching: Sequence[UndoFile]) -> bool:
    """Whether a file that nobody can look at is the one, as far as its name tells: it begins with the time of the change."""
    if name != LAST:
        return not matching and other.startswith(name)
    return not matching or other[:_MOMENT] >= matching[0].id[:_MOMENT]


def is_path(name: str) -> bool:
    return name != LAST and ("/" in name or name.endswith(".csv") or at_home(name).is_file())


def beside_topics(admin: GroupAdmin, strategy: FromFile, cluster: NamedCluster) -> FromFile:
    """The strategy, which knows which of the file's topics were made anew since; those of another cluster are others anyway."""
    header = strategy.header
    if header is None or header.cluster_id != cluster.identity:
        return strategy
    return strategy.seeing(admin.topic_ids(sorted(header.topic_ids)))


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
