"""``kgctl undo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kgctl.admin.notation import FromFile, format_instant, named_groups, parse_duration_ms
from kgctl.admin.offset_reset import ResetRequest
from kgctl.admin.resets import plan_reset
from kgctl.cli.groups.changes import (
    Backup,
    Change,
    DryRun,
    Execute,
    NoBackup,
    OtherCluster,
    UndoFile,
    check_backup,
    check_cluster,
    find_undo_file,
    undo_files,
)
from kgctl.cli.groups.reset_offsets import read_file
from kgctl.cli.options import Yes
from kgctl.cli.report import Column, Report, Row
from kgctl.cli.session import Session, session_of
from kgctl.errors import KgctlError, StorageError, UsageError

COLUMNS = (
    Column("id"),
    Column("time"),
    Column("groups", most=3),
    Column("partitions", "#PARTITIONS"),
    Column("command"),
    *(Column(name, wide=True) for name in ("cluster", "cluster_id", "file")),
)
EPILOG = """Examples:

\b
kgctl undo
kgctl undo 20240131T100000Z-reset-offsets
kgctl undo 20240131T100000Z-reset-offsets --execute
kgctl undo --prune 30d
"""


def register(app: typer.Typer) -> None:
    app.command(epilog=EPILOG)(undo)


def undo(
    ctx: typer.Context,
    file: Annotated[
        str | None,
        typer.Argument(metavar="ID|FILE", help="What to undo: an id of the list, its beginning, or a file.", show_default=False),
    ] = None,
    *,
    all_clusters: Annotated[bool, typer.Option("--all-clusters", help="List what can be undone on any cluster.")] = False,
    prune: Annotated[str | None, typer.Option("--prune", metavar="SPAN", help="Remove undo files older than this: 30d.")] = None,
    execute: Execute = False,
    dry_run: DryRun = False,
    other_cluster: OtherCluster = False,
    backup: Backup = None,
    no_backup: NoBackup = False,
    yes: Yes = False,
) -> Report:
    """Bring back the offsets that an earlier change took away; without arguments, list what can be undone on this cluster.

    Resets, deleted offsets and deleted groups can be undone, and so can an undo. It is a dry run unless --execute is given. A
    file of another cluster is refused.
    """
    if execute and dry_run:
        raise UsageError("--execute and --dry-run exclude each other")
    check_backup(backup, no_backup=no_backup)
    session = session_of(ctx)
    if prune is not None:
        if file is not None or execute:
            raise UsageError("--prune stands alone: it removes files, and undoes nothing")
        return _prune(session, prune, dry_run=dry_run)
    if file is None:
        if execute:
            raise UsageError("say what to undo: kgctl undo lists it")
        return _listed(session, all_clusters=all_clusters)
    path = find_undo_file(session.environment, file)
    strategy = read_file(str(path), (), session.environment.stdin)
    with session.connect() as admin:
        cluster = session.cluster(admin)
        check_cluster(strategy.header, cluster, other_cluster=other_cluster, name=str(path))
        plan = plan_reset(admin, ResetRequest(tuple(strategy.groups), strategy, create=True))
        change = Change(session, cluster, (_about(strategy, path),), backup, no_backup=no_backup)
        return change.execute(admin, plan, None, yes=yes) if execute else change.show(plan)


def _about(strategy: FromFile, path: Path) -> str:
    header = strategy.header
    if header is None:
        return f"{path} does not say which command it undoes, nor on which cluster."
    return f"Undoes `{header.command}` of {format_instant(header.time_ms)}, on {named_groups(header.groups)}."


def _listed(session: Session, *, all_clusters: bool) -> Report:
    files = list(undo_files(session.environment))
    if all_clusters:
        return _report(files, () if files else ("Nothing can be undone.",))
    with session.connect() as admin:
        cluster = session.cluster(admin)
    own = [file for file in files if file.header.cluster_id == cluster.identity]
    others = len(files) - len(own)
    notices = [] if own else [f"Nothing can be undone on {cluster}."]
    if others:
        notices.append(f"{others} more of other clusters (--all-clusters).")
    return _report(own, notices)


def _prune(session: Session, span: str, *, dry_run: bool) -> Report:
    try:
        oldest_ms = session.environment.now_ms() - parse_duration_ms(span)
    except UsageError as error:
        raise UsageError(f"--prune: {error.message}") from None
    old = [file for file in undo_files(session.environment) if file.header.time_ms < oldest_ms]
    errors: list[KgctlError] = []
    for file in () if dry_run else old:
        try:
            file.path.unlink()
        except OSError as error:
            errors.append(StorageError(f"cannot remove {file.path}: {error.strerror}"))
    would = "would be removed; nothing was" if dry_run else "removed"
    return _report(old, [f"{len(old) - len(errors)} undo files older than {format_instant(oldest_ms)} {would}."], errors)


def _report(files: list[UndoFile], notices: list[str] | tuple[str, ...], errors: list[KgctlError] | tuple[()] = ()) -> Report:
    return Report(COLUMNS, [_row(file) for file in files], errors, notices, ("id",))


def _row(file: UndoFile) -> Row:
    header = file.header
    return {
        "id": file.id,
        "time": format_instant(header.time_ms),
        "groups": header.groups,
        "partitions": header.partitions,
        "command": header.command,
        "cluster": header.cluster,
        "cluster_id": header.cluster_id,
        "file": str(file.path),
    }
