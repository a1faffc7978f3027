"""``kgctl list groups``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

import typer

from kgctl.admin import GroupAdmin, Sight
from kgctl.cli.groups.thresholds import (
    AllowUnknown,
    FailIfLagOver,
    FailIfPartitionLagOver,
    FailIfTimeLagOver,
    Scope,
    Thresholds,
    Verdict,
    hidden,
    judge,
    read_thresholds,
)
from kgctl.cli.options import TopicOptions
from kgctl.cli.report import Column, Report, Row
from kgctl.cli.selection import ExcludeOption, MatchOption, name_filter, parse_names, plural
from kgctl.cli.session import session_of
from kgctl.errors import KgctlError
from kgctl.model.groups import GroupListing, GroupState, GroupType

COLUMNS = (
    *map(Column, ("group", "state", "type")),
    *(Column(name, wide=True) for name in ("protocol_type", "coordinator", "coordinator_id")),
)
LAG_COLUMNS = (Column("partitions", "#PARTITIONS"), Column("lag"))
MEMBER_COLUMNS = (Column("members", "#MEMBERS"), Column("topics"))

STATES = tuple(state.value for state in GroupState)
TYPES = tuple(kind.value for kind in GroupType)
EPILOG = """Examples:

\b
kgctl list groups --state stable --lag --sort lag
kgctl list groups --topic orders --members
kgctl list groups --match '^payments' --fail-if-lag-over 10000
"""


def _known(value: object, *, largest_first: bool = False) -> tuple[bool, int]:
    return (False, -value if largest_first else value) if isinstance(value, int) else (True, 0)


SORTS: Mapping[str, Callable[[Row], tuple[object, ...]]] = {
    "name": lambda row: (row["group"],),
    "lag": lambda row: _known(row["lag"], largest_first=True),
    "state": lambda row: (row["state"],),
    "members": lambda row: _known(row["members"], largest_first=True),
}
"""What ``--sort`` takes: equal rows stay sorted by group."""


def register(app: typer.Typer) -> None:
    app.command(epilog=EPILOG)(list_groups)


def list_groups(
    ctx: typer.Context,
    *,
    state: Annotated[
        list[str] | None,
        typer.Option(metavar="STATE,...", help="Only groups in one of these states.", autocompletion=lambda: list(STATES)),
    ] = None,
    type_: Annotated[
        list[str] | None,
        typer.Option(
            "--type",
            metavar="TYPE,...",
            help="Only classic, consumer, share or streams groups.",
            autocompletion=lambda: list(TYPES),
        ),
    ] = None,
    protocol: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only groups of this protocol type: consumer, connect, share, ...")
    ] = None,
    match: MatchOption = None,
    exclude: ExcludeOption = None,
    topic: TopicOptions = None,
    lag: Annotated[bool, typer.Option("--lag", help="Add partitions with a commit, and total lag in records.")] = False,
    members: Annotated[bool, typer.Option("--members", help="Add the number of members, and the topics of the group.")] = False,
    sort: Annotated[
        str | None, typer.Option(metavar="KEY", help="By name, lag, state or members.", autocompletion=lambda: list(SORTS))
    ] = None,
    fail_if_lag_over: FailIfLagOver = None,
    fail_if_partition_lag_over: FailIfPartitionLagOver = None,
    fail_if_time_lag_over: FailIfTimeLagOver = None,
    allow_unknown: AllowUnknown = False,
) -> Report:
    """List the groups of the cluster, sorted by id, whatever protocol they speak.

    Total lag is the sum over the partitions with a committed offset; `-` where a log end is unknown, and where no commit of the
    group is to be seen. --topic keeps the groups that have a commit or a member on a topic. The --fail-if options hold consumer
    groups against limits; what cannot be measured is not within them.
    """
    states = [GroupState(name) for name in parse_names("--state", state or (), STATES)]
    types = [GroupType(name) for name in parse_names("--type", type_ or (), TYPES)]
    names = name_filter(match, exclude)
    limits = read_thresholds(fail_if_lag_over, fail_if_partition_lag_over, fail_if_time_lag_over, allow_unknown=allow_unknown)
    (sort_key,) = parse_names("--sort", [sort or "name"], tuple(SORTS))
    lag, members = lag or sort_key == "lag", members or bool(topic) or sort_key == "members"
    session = session_of(ctx)
    with session.connect() as admin, session.waiting():
        listed, sight = admin.list_groups(states=states, types=types), admin.sight()
        listings = [one for group_id, one in sorted(listed.values.items()) if names(group_id) and _speaks(one, protocol)]
        errors = [error.to_exception(group=group_id) for group_id, error in sorted(listed.errors.items())]
        errors += [error.to_exception() for error in listed.unreachable.values()]
        rows: list[Row] = [_row(listing) for listing in listings]
        if members:
            rows = _with_members(admin, rows, errors, topic or ())
        if lag:
            rows = _with_lag(admin, rows, errors)
        measured = [str(row["group"]) for row in rows] if lag else ()
        verdict = Verdict((), tuple(error.message for error in hidden(sight, measured, Scope())))
        if limits:
            verdict = _judged(admin, listings, rows, limits, session.environment.now_ms())
    rows.sort(key=SORTS[sort_key])
    columns = (*COLUMNS, *(MEMBER_COLUMNS if members else ()), *(LAG_COLUMNS if lag else ()))
    is_filtered = bool(names or states or types or topic or protocol)
    told = _summary(rows, lag=lag) if rows else () if errors else _nothing(sight, is_filtered=is_filtered)
    known = {error.message for error in verdict.errors}
    errors = [*(error for error in errors if error.message not in known), *verdict.errors]
    return Report(columns, rows, errors, (*told, *verdict.notices), ("group",), verdict.exit_code)


def _speaks(listing: GroupListing, protocol: str | None) -> bool:
    return protocol in (None, listing.protocol_type)


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

    by_group = {str(row["group"]): row for row in rows}
    committed = admin.list_committed_offsets(list(by_group))
    partitions = sorted({partition for offsets in committed.values.values() for partition in offsets})
    logs = admin.list_log_offsets(partitions)
    lags = lag_by_group(committed.values, logs.values)
    errors += [error.to_exception(group=group_id) for group_id, error in sorted(committed.errors.items())]
    errors += [error for group_id in sorted(committed.flaws) for error in committed.flaws[group_id]]
    errors += [error.to_exception(partition=partition) for partition, error in sorted(logs.errors.items())]
    counts = {group_id: len(offsets) for group_id, offsets in committed.values.items()}
    seen = {group_id for group_id, count in counts.items() if count}
    return [
        {**row, "partitions": counts.get(group), "lag": lags[group] if group in seen else None} for group, row in by_group.items()
    ]


def _with_members(admin: GroupAdmin, rows: list[Row], errors: list[KgctlError], topics: Sequence[str]) -> list[Row]:
    """With the number of members and the topics, for groups whose members are consumers; the others have neither."""
    ids = [str(row["group"]) for row in rows if row["type"] not in ("share", "streams")]
    described = admin.describe_groups(ids).values
    committed = admin.list_committed_offsets(ids)
    errors += [error.to_exception(group=group_id) for group_id, error in sorted(committed.errors.items())]
    found: list[Row] = []
    for row in rows:
        group_id = str(row["group"])
        description = described.get(group_id)
        of_group = {partition.topic for partition in committed.values.get(group_id, {})}
        for member in description.members if description else ():
            of_group |= {*(member.assignment or {}), *(member.subscribed_topics or ())}
        if not topics or of_group & {*topics}:
            count = len(description.members) if description else None
            found.append({**row, "members": count, "topics": sorted(of_group)})
    return found


def _judged(admin: GroupAdmin, listings: Sequence[GroupListing], rows: Sequence[Row], limits: Thresholds, now_ms: int) -> Verdict:
    from kgctl.admin.group_view import is_consumer_group, view_offsets

    shown = {str(row["group"]) for row in rows}
    ids = [listing.group_id for listing in listings if listing.group_id in shown and is_consumer_group(listing)]
    return judge(admin, view_offsets(admin, ids), limits, now_ms, Scope())


def _summary(rows: Sequence[Row], *, lag: bool) -> tuple[str, ...]:
    """How many there are, for a person who looks at many."""
    states = Counter(str(row["state"]) for row in rows)
    shown = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    known = [row["lag"] for row in rows if isinstance(row.get("lag"), int)] if lag else []
    total = f"; total lag {sum(int(str(each)) for each in known)}" if lag else ""
    unknown = f", unknown for {plural(len(rows) - len(known), 'group')}" if lag and len(known) < len(rows) else ""
    return (f"{plural(len(rows), 'group')}: {shown}{total}{unknown}.",) if len(rows) > 1 else ()


def _nothing(sight: Sight, *, is_filtered: bool) -> tuple[str, ...]:
    if is_filtered:
        return ("No group matches.",)
    return ("The cluster has no groups." if sight.all_groups else "No group is to be seen.",)
