"""``kgctl serve status``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from kgctl.cli.output.report import Column, Report, Row
from kgctl.cli.serve.asking import connected, is_folder, served_address
from kgctl.cli.session import Session, session_of

COLUMNS = (
    Column("group"),
    Column("type"),
    Column("state"),
    Column("members"),
    Column("generation"),
    Column("leader", wide=True),
    Column("protocol", wide=True),
    Column("in_state_since", wide=True),
    Column("waiting_for"),
    Column("awaited"),
    Column("left_ms"),
    Column("stuck"),
)
SUMMARY = (
    *("process_id", "uptime_s", "connections", "requests", "requests_per_s", "loop_delay_ms", "longest_loop_delay_ms"),
    *("longest_hold_ms", "longest_hold", "held_too_long", "bytes_in_flight", "memory_bytes", "offsets"),
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: kgctl serve status 127.0.0.1:9092")(status)


def status(
    ctx: typer.Context,
    target: Annotated[
        str | None, typer.Argument(metavar="HOST:PORT|DIR", help="A running `kgctl serve`, or a data folder.", show_default=False)
    ] = None,
) -> Report:
    """How a server is doing: groups, members, rebalances and whom they wait for; requests, delays, memory.

    Of a data folder that no server has open it shows the groups.
    """
    session = session_of(ctx)
    if target is not None and is_folder(target) and served_address(Path(target)) is None:
        return _at_rest(session, target)
    from kgctl.server.operator import ask_status

    with connected(session, target) as (connection, deadline):
        found = ask_status(connection, deadline)
    summary = {key: found.get(key) for key in SUMMARY}
    return Report(COLUMNS, [_row(row) for row in found["group_rows"]], (), (_line(found),), ("group",), summary=summary)


def _row(row: Mapping[str, Any]) -> Row:
    from kgctl.admin.plan.times import format_instant

    since = row["in_state_since_ms"]
    return {
        **{column.key: row.get(column.key) for column in COLUMNS},
        "in_state_since": None if since is None else format_instant(since),
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
