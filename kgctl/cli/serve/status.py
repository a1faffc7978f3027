"""``kgctl serve status``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from kgctl.cli.output.report import Column, Report, Row
from kgctl.cli.serve.asking import connected, is_folder, served_address
from kgctl.cli.session import Session, session_of
from kgctl.errors import NotFoundError

COLUMNS = (
    Column("group"),
    Column("type"),
    Column("state"),
    Column("members"),
    Column("generation"),
    Column("leader", wide=True),
    Column("protocol", wide=True),
    Column("in_state_since", wide=True),
    Column("created", wide=True),
    Column("last_activity", wide=True),
    Column("waiting_for"),
    Column("awaited"),
    Column("left_ms"),
    Column("stuck"),
)
MEMBER_COLUMNS = (
    Column("group"),
    Column("member"),
    Column("instance"),
    Column("client"),
    Column("host"),
    Column("joined"),
    Column("last_heartbeat"),
    Column("session_ends", wide=True),
    Column("waits"),
)
SUMMARY = (
    *("process_id", "uptime_s", "connections", "requests", "requests_per_s", "loop_delay_ms", "longest_loop_delay_ms"),
    *("longest_hold_ms", "longest_hold", "held_too_long", "bytes_in_flight", "memory_bytes", "offsets"),
)


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: kgctl serve status 127.0.0.1:9092")(status)


def status(
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

    Of a data folder that no server has open it shows the groups.
    """
    session = session_of(ctx)
    if target is not None and is_folder(target) and served_address(Path(target)) is None:
        return _at_rest(session, target)
    from kgctl.server.operator import Wanted, ask_status

    wanted = Wanted(groups=tuple(dict.fromkeys(group or ())), only_rebalancing=rebalancing, with_members=members)
    with connected(session, target) as (connection, deadline):
        found = ask_status(connection, deadline, wanted)
    shown = {row["group"] for row in found["group_rows"]}
    missing = [NotFoundError(f"group {name!r} does not exist", group=name) for name in wanted.groups if name not in shown]
    errors = [] if rebalancing else missing
    summary = {key: found.get(key) for key in SUMMARY}
    if members:
        return Report(MEMBER_COLUMNS, list(_member_rows(found)), errors, (_line(found),), ("group", "member"), summary=summary)
    return Report(COLUMNS, [_row(row) for row in found["group_rows"]], errors, (_line(found),), ("group",), summary=summary)


def _member_rows(found: Mapping[str, Any]) -> Iterator[Row]:
    from kgctl.admin.plan.times import format_instant

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
    from kgctl.admin.plan.times import format_instant

    times = {key: row.get(f"{key}_ms") for key in ("in_state_since", "created", "last_activity")}
    return {
        **{column.key: row.get(column.key) for column in COLUMNS},
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


def _at_rest(session: Session, folder: str) -> Report:
    from dataclasses import replace

    session.flags = replace(session.flags, embedded=folder)
    with session.connect() as admin:
        listed = admin.list_groups()
        described = admin.describe_groups(sorted(listed.values))
    empty = dict.fromkeys(column.key for column in COLUMNS)
    rows = [
        {
            **empty,
            "group": group_id,
            "type": listing.type.value,
            "state": listing.state.value,
            "members": len(described.values[group_id].members) if group_id in described.values else None,
        }
        for group_id, listing in sorted(listed.values.items())
    ]
    errors = [error.to_exception(group=group_id) for group_id, error in sorted(listed.errors.items())]
    return Report(COLUMNS, rows, errors, (f"No server has {folder} open: this is what it holds.",), ("group",))
