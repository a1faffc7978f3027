"""``kgctl undo``."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from kgctl.admin.notation import FromFile, named_groups
from kgctl.admin.offset_reset import CHANGED_MEANWHILE, GroupPlan, ResetPlan, ResetRequest
from kgctl.admin.resets import plan_reset
from kgctl.admin.times import format_instant, parse_duration_ms
from kgctl.cli.columns import BY_RESULT
from kgctl.cli.completion import complete_undo_ids
from kgctl.cli.groups.changes import COLUMNS as OFFSETS
from kgctl.cli.groups.changes import SUMMARY, DryRun, Execute, OffsetChange, OtherCluster, PerPartition, Summary, check_deed
from kgctl.cli.groups.targets import read_file
from kgctl.cli.groups.undo_files import (
    Backup,
    LoggedChange,
    UndoFile,
    beside_topics,
    check_cluster,
    find_undo_file,
    is_path,
    logged_changes,
    undo_files,
)
from kgctl.cli.options import Yes
from kgctl.cli.parameters import argument, flag, option
from kgctl.cli.report import BOOL, TEXTS, TIME, WHOLE, Column, Report, shows
from kgctl.cli.session import Session
from kgctl.errors import KgctlError, RefusedError, StorageError, UsageError

ID = Column("id", "the change's id, for `kgctl undo ID`")
MADE = Column("time", "when the change was made", TIME, read="header.time_ms")
OF_CHANGES = (
    Column("groups", "the groups that were changed; of many, the log has the first 100", TEXTS, most=3, read="header.groups"),
    Column("partitions", "how many partitions were changed", WHOLE, header="#PARTITIONS", read="header.partitions"),
)
COMMAND = Column("command", "the line that was typed, without `-X`", read="header.command")
OF_CLUSTER = (
    Column("cluster", "how the cluster was named", wide=True, read="header.cluster"),
    Column("cluster_id", "the cluster's own id", wide=True, read="header.cluster_id"),
)
FILE = Column("file", "the undo file; null where there is none", wide=True, shown=str)
COLUMNS = (
    ID,
    MADE,
    *OF_CHANGES,
    COMMAND,
    *OF_CLUSTER,
    Column("is_gone", "whether the undo file is gone", BOOL, header="GONE", if_any=True),
    FILE.of("path"),
)


def _results(change: LoggedChange) -> list[str]:
    if change.results is None:
        return ["not known: it did not end by itself"]
    return [f"{count} {word}" for word, count in change.results.items()]


LOG_COLUMNS = (
    MADE,
    Column("user", "who made the change"),
    Column("host", "the host that the user was on", wide=True),
    COMMAND,
    *OF_CHANGES,
    Column("results", "how many partitions have which result", TEXTS, read=_results),
    *OF_CLUSTER,
    replace(ID, wide=True),
    FILE,
)
EXAMPLES = """
kgctl undo
kgctl undo last
kgctl undo 20240131T100000Z-reset-offsets --execute
kgctl undo --log
kgctl undo --prune 30d
"""


@shows(COLUMNS, LOG_COLUMNS, OFFSETS, SUMMARY, summary=BY_RESULT, examples=EXAMPLES)
def undo(
    session: Session,
    file: Annotated[
        str | None,
        argument(
            "ID|FILE|last",
            "What to undo: an id of the list, its beginning, a file, or the last change.",
            complete=complete_undo_ids,
        ),
    ] = None,
    *,
    all_clusters: Annotated[bool, flag("--all-clusters", "List the changes of every cluster.")] = False,
    log: Annotated[bool, flag("--log", "List all changes: who, when, what, and what became of it.")] = False,
    prune: Annotated[str | None, option("SPAN", "Remove undo files older than this: 30d.")] = None,
    overwrite: Annotated[
        bool, flag("--overwrite", "Undo also where something else was committed since: that is lost then.")
    ] = False,
    per_partition: PerPartition = False,
    summary: Summary = False,
    execute: Execute = False,
    dry_run: DryRun = False,
    other_cluster: OtherCluster = False,
    backup: Backup,
    yes: Yes = False,
) -> Report:
    """Bring back the offsets that an earlier change took away; without arguments, list what can be undone on this cluster.

    Resets, deleted offsets and deleted groups can be undone, and so can an undo. It is a dry run unless --execute is given. A
    file of another cluster is refused, and so is a group that has committed anything since the change, unless --overwrite.
    """
    is_undo = execute or overwrite or per_partition or summary or other_cluster
    if prune is not None:
        if file is not None or is_undo or log:
            raise UsageError("--prune stands alone: it removes files, and undoes nothing")
        return _prune(session, prune, dry_run=dry_run)
    check_deed(execute=execute, dry_run=dry_run, yes=yes, backup=backup)
    if file is not None and (log or all_clusters):
        which = "--log" if log else "--all-clusters"
        raise UsageError(f"{which} lists changes, and undoes none: {file!r} has no place beside it")
    if file is None:
        if is_undo:
            raise UsageError("say what to undo: `kgctl undo` lists it, `kgctl undo last --execute` takes the last change back")
        return _listed(session, all_clusters=all_clusters, log=log)
    if is_path(file):
        _read(session, file)  # what is wrong with it is said before anything is contacted
    with session.connect() as admin:
        cluster = session.cluster(admin)
        path = find_undo_file(session.environment, file, cluster.identity)
        strategy = _read(session, str(path))
        check_cluster(strategy.header, cluster, other_cluster=other_cluster, name=str(path))
        strategy = beside_topics(admin, strategy, cluster)
        if strategy.is_blind and execute and not overwrite:
            raise RefusedError(f"{_blind(path)}: --overwrite insists; nothing was changed", code=CHANGED_MEANWHILE)
        asked = strategy.overwriting() if overwrite else strategy
        plan = plan_reset(admin, ResetRequest(tuple(asked.groups), asked, create=True, per_partition=per_partition))
        change = OffsetChange(session, cluster, _remarks(strategy, path, plan), backup, summary=summary)
        return change.execute(admin, plan, None, yes=yes) if execute else change.show(plan)


def _read(session: Session, path: str) -> FromFile:
    strategy = read_file(path, (), session.environment.stdin)
    if strategy.header is not None and strategy.header.kind != "undo":
        line = shlex.join(["kgctl", "reset-offsets", "--plan", path])
        raise UsageError(f"{path} is a {strategy.header.kind}, and undoes nothing: {line}")
    return strategy


def _remarks(strategy: FromFile, path: Path, plan: ResetPlan) -> tuple[str, ...]:
    remarks = [_about(strategy, path)]
    shared = strategy.header.share_groups if strategy.header else ()
    others = {group.group_id: group for group in plan.groups if _is_of_other_type(group, strategy)}
    if same := [group_id for group_id in shared if group_id not in others]:
        remarks.append(f"Share groups get their start offsets back ({named_groups(same)}), not what was acknowledged past them.")
    remarks += [_told_other_type(group, shared) for group in others.values() if not group.is_refused]
    if strategy.is_blind:
        remarks.append(f"{_blind(path)}; --execute needs --overwrite.")
    return tuple(remarks)


def _is_of_other_type(group: GroupPlan, strategy: FromFile) -> bool:
    """Whether it gets start offsets back as commits, or the other way round."""
    if strategy.header is None or group.description is None:
        return False
    was_shared, wanted = group.group_id in strategy.header.share_groups, strategy.groups[group.group_id].values()
    return group.description.type.has_start_offsets is not was_shared and any(each.target is not None for each in wanted)


def _told_other_type(group: GroupPlan, shared: Collection[str]) -> str:
    now = group.description.type.value if group.description else ""
    if group.group_id in shared:
        return f"Group {group.group_id!r} was a share group then, and is a {now} group now: it gets commits, not start offsets."
    return f"Group {group.group_id!r} was no share group then, and is a {now} group now: it gets start offsets, not commits."


def _blind(path: Path) -> str:
    return f"{path} does not say what the change wrote, so that what was committed since cannot be told, and would be lost"


def _about(strategy: FromFile, path: Path) -> str:
    header = strategy.header
    if header is None:
        return f"{path} does not say which command it undoes, nor on which cluster."
    return f"Undoes `{header.command}` of {format_instant(header.time_ms)}, on {named_groups(header.groups)}."


def _listed(session: Session, *, all_clusters: bool, log: bool) -> Report:
    """The undo files, or the changes of the log, of this cluster or of all; the newest first."""
    columns, nothing = (LOG_COLUMNS, "There has been no change") if log else (COLUMNS, "Nothing can be undone")
    changes: Sequence[UndoFile | LoggedChange]
    unreadable: Sequence[KgctlError] = ()
    if log:
        changes = logged_changes(session.environment)[::-1]
    else:
        changes, by_name = undo_files(session.environment)
        unreadable = list(by_name.values())
    if all_clusters:
        return Report(columns, changes, unreadable, () if changes or unreadable else (f"{nothing}.",), ("id",))
    with session.connect() as admin:
        cluster = session.cluster(admin)
    own = [change for change in changes if change.header.cluster_id == cluster.identity]
    others = len(changes) - len(own)
    notices = [] if own or unreadable else [f"{nothing} on {cluster}."]
    if others:
        notices.append(f"{others} more of other clusters (--all-clusters).")
    return Report(columns, own, unreadable, notices, ("id",))


def _prune(session: Session, span: str, *, dry_run: bool) -> Report:
    try:
        oldest_ms = session.environment.now_ms() - parse_duration_ms(span)
    except UsageError as error:
        raise UsageError(f"--prune: {error.message}") from None
    own = session.environment.undo_folder
    old = [file for file in undo_files(session.environment).files if file.header.time_ms < oldest_ms and file.path.parent == own]
    errors: list[KgctlError] = []
    for file in () if dry_run else old:
        try:
            file.path.unlink()
        except OSError as error:
            errors.append(StorageError(f"cannot remove {file.path}: {error.strerror}"))
    would = "would be removed; nothing was" if dry_run else "removed"
    told = f"{len(old) - len(errors)} undo files older than {format_instant(oldest_ms)} {would}."
    return Report(COLUMNS, old, errors, (told,), ("id",))
