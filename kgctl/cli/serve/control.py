"""Operating a running ``kgctl serve``, found by address or data folder: status, commits, complete-rebalance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from kgctl.cli.columns import GROUP, PARTITION, STATE, TOPIC, TYPE
from kgctl.cli.options import Yes
from kgctl.cli.parameters import argument, flag, option
from kgctl.cli.report import BOOL, NUMBER, TEXTS, TIME, WHOLE, Column, Report, shows
from kgctl.cli.selection import confirm
from kgctl.cli.session import Session
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
        if session.flags.bootstrap_server not in (None, target):
            raise UsageError(f"{target} and --bootstrap-server both say which server is meant: give one of them")
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


def _at(key: str, meaning: str, *, wide: bool = True) -> Column:
    """A column of a time, of which the server tells the milliseconds."""
    return Column(key, meaning, TIME, wide=wide, read=lambda row: row.get(f"{key}_ms"))


MEMBER = Column("member", "the member's id")
STATUS_COLUMNS = (
    GROUP,
    TYPE,
    STATE,
    Column("members", "how many members it has", WHOLE),
    Column("generation", "its generation, or epoch", WHOLE),
    Column("leader", "the id of its leader (classic protocol)", wide=True),
    Column("protocol", "the assignor that its members agreed on", wide=True),
    _at("in_state_since", "since when it is in this state"),
    _at("created", "when it was made"),
    _at("last_activity", "when it was last heard of"),
    Column("waiting_for", "what a rebalance waits for"),
    Column("awaited", "the members that it waits for", TEXTS),
    Column("left_ms", "until it waits no longer", WHOLE, "ms"),
    Column("stuck", "whether it waits longer than it should", BOOL, read=itemgetter("is_stuck")),
)
MEMBER_COLUMNS = (
    GROUP,
    MEMBER,
    Column("instance", "its `group.instance.id`, where it is static"),
    Column("client", "its `client.id`"),
    Column("host", "the host that it came from"),
    _at("joined", "when it joined", wide=False),
    _at("last_heartbeat", "when it was last heard of", wide=False),
    _at("session_ends", "when it is taken out unless it is heard of"),
    Column("waits", "whether it waits for an answer", BOOL, read=itemgetter("is_waiting")),
)
SUMMARY = (
    Column("process_id", "the server's process", WHOLE),
    Column("uptime_s", "since when it runs", NUMBER, "s"),
    Column("connections", "how many there are", WHOLE),
    Column("requests", "how many it has answered", WHOLE),
    Column("requests_per_s", "how many a second of late", NUMBER),
    Column("loop_delay_ms", "how late it is with what is due", NUMBER, "ms"),
    Column("longest_loop_delay_ms", "the longest that was", NUMBER, "ms"),
    Column("longest_hold_ms", "the longest that one request held all others", NUMBER, "ms"),
    Column("longest_hold", "which request that was"),
    Column("held_too_long", "how many did so for too long", WHOLE),
    Column("bytes_in_flight", "requests that are being read or answered", WHOLE, "bytes"),
    Column("memory_bytes", "the process's memory", WHOLE, "bytes"),
    Column("offsets", "how many commits it holds", WHOLE),
)


@shows(STATUS_COLUMNS, MEMBER_COLUMNS, summary=SUMMARY, examples="kgctl serve status 127.0.0.1:9092")
def serve_status(
    session: Session,
    target: Annotated[str | None, argument("HOST:PORT|DIR", "A running `kgctl serve`, or a data folder.")] = None,
    *,
    group: Annotated[list[str] | None, option("GROUP", "Only this group; repeatable.")] = None,
    rebalancing: Annotated[bool, flag("--rebalancing", "Only groups with a rebalance under way.")] = False,
    members: Annotated[bool, flag("--members", "A row a member: last heartbeat, end of session.")] = False,
) -> Report:
    """How a server is doing: groups, members, rebalances and whom they wait for; requests, delays, memory.

    Of a data folder that no server has open it shows the groups; --members and --rebalancing need one that runs.
    """
    if target is not None and is_folder(target) and served_address(Path(target)) is None:
        if members or rebalancing:
            raise UnreachableError(f"no server has {target} open: only one that runs has rebalances and sessions")
        return _at_rest(session, target, group or ())
    from kgctl.server.operator import Wanted, ask_status

    wanted = Wanted(groups=tuple(dict.fromkeys(group or ())), only_rebalancing=rebalancing, with_members=members)
    with connected(session, target) as (connection, deadline):
        found = ask_status(connection, deadline, wanted)
        shown = {row["group"] for row in found["group_rows"]}
        if rebalancing and (quiet := tuple(name for name in wanted.groups if name not in shown)):
            shown |= {row["group"] for row in ask_status(connection, deadline, Wanted(groups=quiet))["group_rows"]}
    errors = [NotFoundError(f"group {name!r} does not exist", group=name) for name in wanted.groups if name not in shown]
    summary = {column.key: found.get(column.key) for column in SUMMARY}
    if members:
        rows = [{"group": each["group"], **row} for each in found["group_rows"] for row in each["member_rows"]]
        return Report(MEMBER_COLUMNS, rows, errors, (_line(found),), ("group", "member"), summary=summary)
    return Report(STATUS_COLUMNS, found["group_rows"], errors, (_line(found),), ("group",), summary=summary)


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
    empty = dict.fromkeys([*(column.key for column in STATUS_COLUMNS), "is_stuck"])
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


def _epoch(entry: CommitEntry) -> int | None:
    return entry.leader_epoch if entry.leader_epoch >= 0 else None


COMMITS_COLUMNS = (
    Column("time", "when the offset was committed", TIME, read="timestamp_ms"),
    GROUP,
    TOPIC,
    PARTITION,
    Column("offset", "the committed offset; null where the commit was deleted", WHOLE),
    Column("metadata", "the text that was committed with it", wide=True, read=lambda entry: entry.metadata or None),
    Column("leader_epoch", "the leader epoch that was committed with it", WHOLE, wide=True, read=_epoch),
    Column("member", "the id of the member that committed", read="member_id"),
)


@shows(COMMITS_COLUMNS, examples="kgctl serve commits ./coordinator --group payments --since -PT1H")
def serve_commits(
    session: Session,
    folder: Annotated[str, argument("DIR", "A data folder; a server may have it open.")],
    *,
    group: Annotated[list[str] | None, option("GROUP", "Only this group's; repeatable.")] = None,
    since: Annotated[str | None, option("TIME", "From here on: ISO 8601, milliseconds, or a span back from now (PT1H).")] = None,
    until: Annotated[str | None, option("TIME", "Up to here.")] = None,
    at: Annotated[str | None, option("TIME", "What was committed at this moment, instead of the log.")] = None,
) -> Report:
    """The commit log of a data folder: who committed which offset when, and what was deleted (an offset of `-`).

    With --at, the offsets that groups had at a moment, replayed from the log.
    """
    from kgctl.storage.bulk import BulkReader

    now_ms = session.environment.now_ms()
    since_ms, until_ms, at_ms = (_instant(text, now_ms) for text in (since, until, at))
    if at_ms is not None and (since_ms is not None or until_ms is not None):
        raise UsageError("--at shows one moment, --since and --until a stretch: choose")
    with BulkReader(Path(folder)) as reader:
        groups = list(dict.fromkeys(group or ()))
        if at_ms is not None:
            entries = [entry for name in groups or reader.committing_groups() for entry in reader.offsets_at(name, at_ms)]
        else:
            entries = list(reader.commits(groups, since_ms=since_ms, until_ms=until_ms))
        without = set(groups).difference(entry.group for entry in entries)
        missing = sorted(without.difference(reader.committing_groups())) if without else []
    errors = [NotFoundError(f"group {name!r} has never committed", group=name) for name in missing]
    notices = () if entries or errors else ("No commits.",)
    return Report(COMMITS_COLUMNS, entries, errors, notices, ("group", "topic", "partition"))


def _instant(text: str | None, now_ms: int) -> int | None:
    from kgctl.admin.times import parse_duration_ms, parse_instant_ms

    if text is None:
        return None
    span = text.removeprefix("-")
    if span[:1] in ("P", "p") or span[-1:] in ("s", "m", "h", "d"):
        return now_ms - parse_duration_ms(span)
    return parse_instant_ms(text)


COMPLETED_COLUMNS = (GROUP, MEMBER, Column("status", "removable, removed, failed, unknown or not-tried"))


@shows(COMPLETED_COLUMNS, examples="kgctl serve complete-rebalance payments 127.0.0.1:9092")
def serve_complete_rebalance(
    session: Session,
    group: Annotated[str, argument("GROUP", "The group whose rebalance does not end.")],
    target: Annotated[str | None, argument("HOST:PORT|DIR", "A running `kgctl serve`, or its data folder.")] = None,
    *,
    yes: Yes = False,
    dry_run: Annotated[bool, flag("--dry-run", "Only show whom it would remove.")] = False,
) -> Report:
    """End a rebalance now, without the members that it waits for: they are removed, the others go on. Asks first, unless --yes.

    A member that was removed joins again by itself when it is alive.
    """
    awaited, server = _awaited(session, target, group)
    if dry_run:
        return _completed(group, dict.fromkeys(awaited, "removable"), (f"Dry run on {server}: nothing was changed.",))
    named = ", ".join(awaited) or "nobody"
    asked = f"Complete the rebalance of {group!r} on {server} without the members that it waits for ({named})?"
    confirm(session, asked, yes=yes, cluster=server, is_as_shown=lambda: awaited == _awaited(session, target, group)[0])
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
