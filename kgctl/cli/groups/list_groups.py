"""``kgctl list groups``."""

from __future__ import annotations

from typing import Annotated

import typer

from kgctl.admin.client import GroupAdmin
from kgctl.cli.output.report import Column, Report, Row
from kgctl.cli.selection import ExcludeOption, MatchOption, NameFilter, name_filter, parse_names
from kgctl.cli.session import session_of
from kgctl.errors import KgctlError
from kgctl.model.groups import GroupListing, GroupState, GroupType

COLUMNS = (
    Column("group"),
    Column("state"),
    Column("type"),
    Column("protocol_type", wide=True),
    Column("coordinator", wide=True),
    Column("coordinator_id", wide=True),
)
LAG_COLUMNS = (Column("partitions", "#PARTITIONS"), Column("lag"))

STATES = tuple(state.value for state in GroupState)
TYPES = tuple(kind.value for kind in GroupType)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: kgctl list groups --state stable --lag -o json")(list_groups)


def list_groups(
    ctx: typer.Context,
    *,
    state: Annotated[list[str] | None, typer.Option(metavar="STATE,...", help="Only groups in one of these states.")] = None,
    type_: Annotated[
        list[str] | None, typer.Option("--type", metavar="TYPE,...", help="Only classic, consumer, share or streams groups.")
    ] = None,
    match: MatchOption = None,
    exclude: ExcludeOption = None,
    lag: Annotated[bool, typer.Option("--lag", help="Add partitions with a commit, and total lag in records.")] = False,
) -> Report:
    """List the groups of the cluster, sorted by id, whatever protocol they speak.

    Total lag is the sum over the partitions with a committed offset; `-` where a log end is unknown.
    """
    states = [GroupState(name) for name in parse_names("--state", state or (), STATES)]
    types = [GroupType(name) for name in parse_names("--type", type_ or (), TYPES)]
    names = name_filter(match, exclude)
    with session_of(ctx).connect() as admin:
        listed = admin.list_groups(states=states, types=types)
        listings = [listing for group_id, listing in sorted(listed.values.items()) if names(group_id)]
        errors = [error.to_exception(group=group_id) for group_id, error in sorted(listed.errors.items())]
        errors += [error.to_exception() for error in listed.unreachable.values()]
        rows: list[Row] = [_row(listing) for listing in listings]
        if lag:
            rows = _with_lag(admin, rows, errors)
    notices = () if rows or errors else (_nothing(names, bool(states or types)),)
    return Report((*COLUMNS, *(LAG_COLUMNS if lag else ())), rows, errors, notices, ("group",))


def _row(listing: GroupListing) -> Row:
    coordinator = listing.coordinator
    return {
        "group": listing.group_id,
        "state": listing.state.value,
        "type": listing.type.value,
        "protocol_type": listing.protocol_type or None,
        "coordinator": str(coordinator) if coordinator else None,
        "coordinator_id": coordinator.node_id if coordinator else None,
    }


def _with_lag(admin: GroupAdmin, rows: list[Row], errors: list[KgctlError]) -> list[Row]:
    from kgctl.admin.group_view import lag_by_group

    committed = admin.list_committed_offsets([str(row["group"]) for row in rows])
    partitions = sorted({partition for offsets in committed.values.values() for partition in offsets})
    logs = admin.list_log_offsets(partitions)
    lags = lag_by_group(committed.values, logs.values)
    errors += [error.to_exception(group=group_id) for group_id, error in sorted(committed.errors.items())]
    errors += [error for group_id in sorted(committed.flaws) for error in committed.flaws[group_id]]
    errors += [error.to_exception(partition=partition) for partition, error in sorted(logs.errors.items())]
    counts = {group_id: len(offsets) for group_id, offsets in committed.values.items()}
    return [{**row, "partitions": counts.get(str(row["group"])), "lag": lags.get(str(row["group"]))} for row in rows]


def _nothing(names: NameFilter, filtered: bool) -> str:
    return "No group matches." if names or filtered else "The cluster has no groups."
