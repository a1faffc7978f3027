"""Operating a running ``kgctl serve``, found by address or data folder: status, commits, complete-rebalance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kgctl.cli.columns import GROUP, PARTITION, STATE, TOPIC, TYPE
from kgctl.cli.options import Yes
from kgctl.cli.report import Column, JsonKind, Report, Row, shows
from kgctl.cli.selection import check_as_shown, confirm
from kgctl.cli.session import Session, session_of
from kgctl.cli.settings import connection_settings
from kgctl.errors import NotFoundError, RefusedError, UnreachableError, UsageError

if TYPE_CHECKING:
    from kgctl.storage.record_log import CommitEntry
    from kgctl.wire import Deadline
    from kgctl.wire.connection import Connection


def is_folder(target: str | None) -> bool:
    """Whether a target names a data folder, not ``HOST:PORT``."""
    return target is not None and Path(target).is_dir()


def served_address(folder: Path) -> str | None:
    """Where the server listens that has the folder open; None where none has."""
    from kgctl.storage.files import ADDRESS_FILE, is_in_use, read_json

    found = read_json(folder / ADDRESS_FILE) if is_in_use(folder) else None
    return str(found["bootstrap"]) if isinstance(found, dict) and "bootstrap" in found else None


@contextmanager
def connected(session: Session, target: str | None) -> Iterator[tuple[Connection, Deadline]]:
    """A connection to the server at ``HOST:PORT``, of a data folder, or else that the shared options name.

    Raises `UnreachableError`, `AuthError` and `UsageError`.
    """
    from kgctl.wire import Deadline
    from kgctl.wire.connection import open_connection
    from kgctl.wire.settings import WireSettings, parse_bootstrap

    if target is not None and is_folder(target):
        address = served_address(Path(target))
        if address is None:
            raise UnreachableError(f"no kgctl serve runs on {target}")
        target = address
    if target is not None and "/" in target and "://" not in target:
        raise UsageError(f"there is no folder {target!r}, and it is no HOST:PORT")
    if target is not None:
        session.flags = replace(session.flags, bootstrap_server=target)
    settings = connection_settings(session.flags, session.environment)
    servers = settings.bootstrap or settings.properties.get("bootstrap.servers")
    if not servers:
        raise UsageError("no server is named: give HOST:PORT, or the data folder that it has open")
    deadline = Deadline(settings.timeout_ms)
    wire = WireSettings.from_properties({**settings.properties, "bootstrap.servers": servers})
    connection = open_connection(parse_bootstrap(servers)[0], wire, deadline)
    try:
        yield connection, deadline
    finally:
        connection.close()


MEMBER = Column("member", meaning="the member's id")
STATUS_COLUMNS = (
    GROUP,
    TYPE,
    STATE,
    Column("members", kind=JsonKind.WHOLE, meaning="how many members it has"),
    Column("generation", kind=JsonKind.WHOLE, meaning="its generation, or epoch"),
    Column("leader", wide=True, meaning="the id of its leader (classic protocol)"),
    Column("protocol", wide=True, meaning="the assignor that its members agreed on"),
    Column("in_state_since", wide=True, kind=JsonKind.TIME, meaning="since when it is in this state"),
    Column("created", wide=True, kind=JsonKind.TIME, meaning="when it was made"),
    Column("last_activity", wide=True, kind=JsonKind.TIME, meaning="when it was last heard of"),
    Column("waiting_for", meaning="what a rebalance waits for"),
    Column("awaited", kind=JsonKind.TEXTS, meaning="the members that it waits for"),
    Column("left_ms", kind=JsonKind.WHOLE, unit="ms", meaning="until it waits no longer"),
    Column("stuck", kind=JsonKind.BOOL, meaning="whether it waits longer than it should"),
)
MEMBER_COLUMNS = (
    GROUP,
    MEMBER,
    Column("instance", meaning="its `group.instance.id`, where it is static"),
    Column("client", meaning="its `client.id`"),
    Column("host", meaning="the host that it came from"),
    Column("joined", kind=JsonKind.TIME, meaning="when it joined"),
    Column("last_heartbeat", kind=JsonKind.TIME, meaning="when it was last heard of"),
    Column("session_ends", wide=True, kind=JsonKind.TIME, meaning="when it is taken out unless it is heard of"),
    Column("waits", kind=JsonKind.BOOL, meaning="whether it waits for an answer"),
)
SUMMARY = (
    Column("process_id", kind=JsonKind.WHOLE, meaning="the server's process"),
    Column("uptime_s", kind=JsonKind.NUMBER, unit="s", meaning="since when it runs"),
    Column("connections", kind=JsonKind.WHOLE, meaning="how many there are"),
    Column("requests", kind=JsonKind.WHOLE, meaning="how many it has answered"),
    Column("requests_per_s", kind=JsonKind.NUMBER, meaning="how many a second of late"),
    Column("loop_delay_ms", kind=JsonKind.NUMBER, unit="ms", meaning="how late it is with what is due"),
    Column("longest_loop_delay_ms", kind=JsonKind.NUMBER, unit="ms", meaning="the longest that was"),
    Column("longest_hold_ms", kind=JsonKind.NUMBER, unit="ms", meaning="the longest that one request held all others"),
    Column("longest_hold", meaning="which request that was"),
    Column("held_too_long", kind=JsonKind.WHOLE, meaning="how many did so for too long"),
    Column("bytes_in_flight", kind=JsonKind.WHOLE, unit="bytes", meaning="requests that are being read or answered"),
    Column("memory_bytes", kind=JsonKind.WHOLE, unit="bytes", meaning="the process's memory"),
    Column("offsets", kind=JsonKind.WHOLE, meaning="how many commits it holds"),
)


@shows(STATUS_COLUMNS, MEMBER_COLUMNS, summary=SUMMARY, examples="kgctl serve status 127.0.0.1:9092")
def serve_status(
    ctx: typer.Context,
    target: Annotated[
        str | None, typer.Argument(metavar="HOST:PORT|DIR", help="A running `kgctl serve`, or a data folder.", show_default=False)
    ] = None,
    *,
    group: Annotated[list[str] | None, typer.Option(metavar="GROUP", help="Only this group; repeatable.")] = None,
    rebalancing: Annotated[bool, typer.Option("--rebalancing", help="Only groups with a rebalance under way.")] = False,
    members: Annotated[bool, typer.Option("--members", help="A row a member: last heartbeat, end of session.")] = False,
) -> Report:
    """How a server is doing: groups, members, rebalances and whom they wait for; requests, delays, memory.

    Of a data folder that no server has open it shows the groups; --members and --rebalancing need one that runs.
    """
    session = session_of(ctx)
    if target is not None and is_folder(target) and served_address(Path(target)) is None:
        if members or rebalancing:
            raise UnreachableError(f"no server has {target} open: only one that runs has rebalances and sessions")
        return _at_rest(session, target, group or ())
    from kgctl.server.operator import Wanted, ask_status

    wanted = Wanted(groups=tuple(dict.fromkeys(group or ())), only_rebalancing=rebalancing, with_members=members)
    with connected(session, target) as (connection, deadline):
        found = ask_status(connection, deadline, wanted)
    shown = {row["group"] for row in found["group_rows"]}
    missing = [NotFoundError(f"group {name!r} does not exist", group=name) for name in wanted.groups if name not in shown]
    errors = [] if rebalancing else missing
    summary = {column.key: found.get(column.key) for column in SUMMARY}
    if members:
        return Report(MEMBER_COLUMNS, list(_member_rows(found)), errors, (_line(found),), ("group", "member"), summary=summary)
    return Report(
        STATUS_COLUMNS, [_row(row) for row in found["group_rows"]], errors, (_line(found),), ("group",), summary=summary
    )


def _member_rows(found: Mapping[str, Any]) -> Iterator[Row]:
    from kgctl.admin.times import format_instant

    for group in found["group_rows"]:
        for row in group["member_rows"]:
            times = {key: row[f"{key}_ms"] for key in ("joined", "last_heartbeat", "session_ends")}
            yield {
                "group": group["group"],
                **{key: row[key] for key in ("member", "instance", "client", "host")},
                **{key: None if at_ms is None else format_instant(at_ms) for key, at_ms in times.items()},
                "waits": row["is_waiting"],
            }


def _row(row: Mapping[str, Any]) -> Row:
    from kgctl.admin.times import format_instant

    times = {key: row.get(f"{key}_ms") for key in ("in_state_since", "created", "last_activity")}
    return {
        **{column.key: row.get(column.key) for column in STATUS_COLUMNS},
        **{key: None if at_ms is None else format_instant(at_ms) for key, at_ms in times.items()},
        "stuck": row["is_stuck"],
    }


def _line(found: Mapping[str, Any]) -> str:
    memory = "" if found["memory_bytes"] is None else f", {found['memory_bytes'] / 1_000_000:.0f} MB"
    return (
        f"process {found['process_id']}, up {found['uptime_s']} s: {found['connections']} connections, "
        f"{found['requests_per_s']} requests/s, delay {found['loop_delay_ms']} ms (longest {found['longest_loop_delay_ms']} ms), "
        f"{found['offsets']} offsets{memory}"
    )


def _at_rest(session: Session, folder: str, names: Sequence[str]) -> Report:
    session.flags = replace(session.flags, embedded=folder)
    with session.connect() as admin:
        listed = admin.list_groups()
        described = admin.describe_groups(sorted(listed.values))
    empty = dict.fromkeys(column.key for column in STATUS_COLUMNS)
    rows = [
        {
            **empty,
            "group": group_id,
            "type": listing.type.value,
            "state": listing.state.value,
            "members": len(described.values[group_id].members) if group_id in described.values else None,
        }
        for group_id, listing in sorted(listed.values.items())
        if not names or group_id in names
    ]
    errors = [error.to_exception(group=group_id) for group_id, error in sorted(listed.errors.items())]
    errors += [NotFoundError(f"group {name!r} does not exist", group=name) for name in names if name not in listed.values]
    return Report(STATUS_COLUMNS, rows, errors, (f"No server has {folder} open: this is what it holds.",), ("group",))


COMMITS_COLUMNS = (
    Column("time", kind=JsonKind.TIME, meaning="when the offset was committed"),
    GROUP,
    TOPIC,
    PARTITION,
    Column("offset", kind=JsonKind.WHOLE, meaning="the committed offset; null where the commit was deleted"),
    Column("metadata", wide=True, meaning="the text that was committed with it"),
    Column("leader_epoch", wide=True, kind=JsonKind.WHOLE, meaning="the leader epoch that was committed with it"),
    Column("member", meaning="the id of the member that committed"),
)


@shows(COMMITS_COLUMNS, examples="kgctl serve commits ./coordinator --group payments --since -PT1H")
def serve_commits(
    ctx: typer.Context,
    folder: Annotated[str, typer.Argument(metavar="DIR", help="A data folder; a server may have it open.")],
    *,
    group: Annotated[list[str] | None, typer.Option(metavar="GROUP", help="Only this group's; repeatable.")] = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="From here on: ISO 8601, milliseconds, or a span back from now (PT1H).")
    ] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Up to here.")] = None,
    at: Annotated[str | None, typer.Option(metavar="TIME", help="What was committed at this moment, instead of the log.")] = None,
) -> Report:
    """The commit log of a data folder: who committed which offset when, and what was deleted (an offset of `-`).

    With --at, the offsets that groups had at a moment, replayed from the log.
    """
    from kgctl.storage.bulk import BulkReader

    now_ms = session_of(ctx).environment.now_ms()
    since_ms, until_ms, at_ms = (_instant(text, now_ms) for text in (since, until, at))
    if at_ms is not None and (since_ms is not None or until_ms is not None):
        raise UsageError("--at shows one moment, --since and --until a stretch: choose")
    with BulkReader(Path(folder)) as reader:
        groups = list(dict.fromkeys(group or ()))
        if at_ms is not None:
            entries = [entry for name in groups or reader.committing_groups() for entry in reader.offsets_at(name, at_ms)]
        else:
            entries = list(reader.commits(groups, since_ms=since_ms, until_ms=until_ms))
    notices = () if entries else ("No commits.",)
    return Report(COMMITS_COLUMNS, list(_rows(entries)), (), notices, ("group", "topic", "partition"))


def _instant(text: str | None, now_ms: int) -> int | None:
    from kgctl.admin.times import parse_duration_ms, parse_instant_ms

    if text is None:
        return None
    span = text.removeprefix("-")
    if span[:1] in ("P", "p") or span[-1:] in ("s", "m", "h", "d"):
        return now_ms - parse_duration_ms(span)
    return parse_instant_ms(text)


def _rows(entries: Iterable[CommitEntry]) -> Iterable[Row]:
    from kgctl.admin.times import format_instant

    for entry in entries:
        yield {
            "time": format_instant(entry.timestamp_ms),
            "group": entry.group,
            "topic": entry.topic,
            "partition": entry.partition,
            "offset": entry.offset,
            "metadata": entry.metadata or None,
            "leader_epoch": entry.leader_epoch if entry.leader_epoch >= 0 else None,
            "member": entry.member_id,
        }


COMPLETED_COLUMNS = (GROUP, MEMBER, Column("status", meaning="removable, removed, failed, unknown or not-tried"))


@shows(COMPLETED_COLUMNS, examples="kgctl serve complete-rebalance payments 127.0.0.1:9092")
def serve_complete_rebalance(
    ctx: typer.Context,
    group: Annotated[str, typer.Argument(metavar="GROUP", help="The group whose rebalance does not end.")],
    target: Annotated[
        str | None,
        typer.Argument(metavar="HOST:PORT|DIR", help="A running `kgctl serve`, or its data folder.", show_default=False),
    ] = None,
    *,
    yes: Yes = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show whom it would remove.")] = False,
) -> Report:
    """End a rebalance now, without the members that it waits for: they are removed, the others go on. Asks first, unless --yes.

    A member that was removed joins again by itself when it is alive.
    """
    session = session_of(ctx)
    awaited, server = _awaited(session, target, group)
    if dry_run:
        return _completed(group, dict.fromkeys(awaited, "removable"), (f"Dry run on {server}: nothing was changed.",))
    named = ", ".join(awaited) or "nobody"
    asked = f"Complete the rebalance of {group!r} on {server} without the members that it waits for ({named})?"
    if confirm(session, asked, yes=yes):
        check_as_shown(awaited, _awaited(session, target, group)[0], server)
    with connected(session, target) as (connection, deadline):  # anew: a question may take long
        return _complete(session, (connection, deadline), group, awaited, target)


def _awaited(session: Session, target: str | None, group: str) -> tuple[list[str], str]:
    """The members that the group's rebalance waits for, and the server's address."""
    from kgctl.server.operator import Wanted, ask_status

    with connected(session, target) as (connection, deadline):
        row = next(iter(ask_status(connection, deadline, Wanted(groups=(group,)))["group_rows"]), None)
        address = str(connection.address)
    if row is None:
        raise NotFoundError(f"group {group!r} does not exist", group=group)
    if row["waiting_for"] is None:
        raise RefusedError(f"group {group!r} has no rebalance under way ({row['state']})", group=group)
    return list(row["awaited"]), address


def _complete(
    session: Session, server: tuple[Connection, Deadline], group: str, awaited: Sequence[str], target: str | None
) -> Report:
    """Do it, and tell what became of every member, whatever ends it: a lost answer is looked for in the server's status."""
    from kgctl.admin import ItemError
    from kgctl.admin.changes import ChangeStep, ItemOutcome, carry_out
    from kgctl.cli.groups.changes import ended
    from kgctl.server.operator import ask_to_complete

    connection, deadline = server
    gone = list(awaited)

    def act(_: Sequence[str]) -> dict[str, ItemError]:
        gone[:] = ask_to_complete(connection, group, deadline)
        return {}

    def is_over(_: Sequence[str]) -> dict[str, bool]:
        try:
            still, _ = _awaited(session, target, group)
        except RefusedError:  # no rebalance is under way any more
            return {group: True}
        return {group: bool(awaited) and set(awaited).isdisjoint(still)}

    account = carry_out([ChangeStep.of_one_request([group], act)], is_over, session.stop_signals())
    outcome = account.outcomes[group]
    word = "removed" if outcome is ItemOutcome.DONE else outcome.value
    said = "is complete" if outcome is ItemOutcome.DONE else "may be complete" if outcome is ItemOutcome.UNKNOWN else "goes on"
    report = _completed(group, dict.fromkeys(gone, word), (f"The rebalance of {group!r} on {connection.address} {said}.",))
    report = replace(report, something_done=account.may_have_changed, is_change=True)
    return ended(report, None if outcome is ItemOutcome.DONE else account.ended_by, account.signal)


def _completed(group: str, members: Mapping[str, str], notices: Sequence[str]) -> Report:
    rows = [{"group": group, "member": member, "status": status} for member, status in members.items()]
    return Report(COMPLETED_COLUMNS, rows, (), notices, ("group", "member"))
