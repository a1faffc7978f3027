"""``kgctl list groups``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

import typer

from kgctl.admin import GroupAdmin, Sight
from kgctl.cli.groups.thresholds import Scope, Thresholds, Verdict, hidden, judge_listed
from kgctl.cli.options import TopicOptions
from kgctl.cli.report import GROUP, Column, Report, Row, shows
from kgctl.cli.selection import ExcludeOption, KindFilter, MatchOption, name_filter, parse_names, plural
from kgctl.cli.session import session_of
from kgctl.errors import KgctlError, NotFoundError
from kgctl.model.groups import GroupListing

COLUMNS = (
    GROUP,
    *map(Column, ("state", "type")),
    *(Column(name, wide=True) for name in ("protocol_type", "coordinator", "coordinator_id")),
)
LAG_COLUMNS = (Column("partitions", "#PARTITIONS"), Column("lag"), Column("flags", if_any=True))
MEMBER_COLUMNS = (Column("members", "#MEMBERS"), Column("topics"))

EPILOG = """Examples:

\b
kgctl list groups --state stable --lag --sort lag
kgctl list groups --topic orders --members
kgctl list groups --match '^payments' --fail-if-lag-over 10000
"""


def _largest_first(value: object) -> tuple[bool, int]:
    return (False, -value) if isinstance(value, int) else (True, 0)


SORTS: Mapping[str, Callable[[Row], tuple[object, ...]]] = {
    "name": lambda row: (row["group"],),
    "lag": lambda row: (not row["flags"], *_largest_first(row["lag"])),
    "state": lambda row: (row["state"],),
    "members": lambda row: _largest_first(row["members"]),
}
"""What ``--sort`` takes: equal rows stay sorted by group."""


def register(app: typer.Typer) -> None:
    app.command(epilog=EPILOG)(list_groups)


@shows(COLUMNS, LAG_COLUMNS, MEMBER_COLUMNS)
def list_groups(
    ctx: typer.Context,
    *,
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
    kinds: KindFilter,
    limits: Thresholds,
) -> Report:
    """List the groups of the cluster, sorted by id, whatever protocol they speak.

    Total lag is the sum over the partitions with a committed offset; `-` where that of one is unknown (the column FLAGS says
    why), and where no commit of the group is to be seen. --topic keeps the groups that have a commit or a member on a topic. The
    --fail-if options hold groups against limits; what cannot be measured is not within them.
    """
    names = name_filter(match, exclude)
    (sort_key,) = parse_names("--sort", [sort or "name"], tuple(SORTS))
    lag, members = lag or sort_key == "lag", members or bool(topic) or sort_key == "members"
    session = session_of(ctx)
    with session.connect() as admin, session.waiting():
        listed, sight = admin.list_groups(states=kinds.states, types=kinds.types), admin.sight()
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
        if limits and not rows and not errors:
            raise NotFoundError("no group matches: there is nothing that the limits could hold for")
        if limits:
            shown = {row["group"] for row in rows}
            judged = [listing for listing in listings if listing.group_id in shown]
            verdict = judge_listed(admin, judged, limits, session.environment.now_ms())
    rows.sort(key=SORTS[sort_key])
    columns = (*COLUMNS, *(MEMBER_COLUMNS if members else ()), *(LAG_COLUMNS if lag else ()))
    is_filtered = bool(names or kinds or topic or protocol)
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
    from kgctl.admin.group_view import GroupLag, lag_by_group

    by_group = {str(row["group"]): row for row in rows}
    committed = admin.list_committed_offsets(list(by_group))
    partitions = sorted({partition for offsets in committed.values.values() for partition in offsets})
    logs = admin.list_log_offsets(partitions)
    lags = lag_by_group(committed.values, logs)
    errors += [error.to_exception(group=group_id) for group_id, error in sorted(committed.errors.items())]
    errors += [error for group_id in sorted(committed.flaws) for error in committed.flaws[group_id]]
    errors += [error.to_exception(partition=partition) for partition, error in sorted(logs.errors.items())]
    found: list[Row] = []
    for group_id, row in by_group.items():
        offsets = committed.values.get(group_id)
        known, count = (lags[group_id] if offsets else GroupLag(None)), None if offsets is None else len(offsets)
        found.append({**row, "partitions": count, "lag": known.lag, "flags": tuple(map(str, known.flags))})
    return found


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
