"""``kgctl list groups``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated

import typer

from kgctl.admin import GroupAdmin, Sight
from kgctl.admin.group_view import NO_LAG, GroupLag, lag_by_group
from kgctl.admin.topic_scopes import TopicScope, is_within, parse_topic_scopes
from kgctl.cli.columns import COORDINATOR, COORDINATOR_ID, FLAGS, GROUP, LAG, MEMBERS, PROTOCOL_TYPE, STATE, TYPE
from kgctl.cli.groups.thresholds import Scope, ThresholdJudgement, Thresholds, hidden, judge_listed
from kgctl.cli.options import TopicOptions
from kgctl.cli.report import Column, JsonKind, Report, asked_for, shows
from kgctl.cli.selection import ExcludeOption, KindFilter, MatchOption, name_filter, parse_names, told_lag
from kgctl.cli.session import session_of
from kgctl.errors import KgctlError, NotFoundError, plural
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import GroupListing, MemberDescription, TopicPartition


@dataclass(slots=True)
class Listed:
    """One row: what a listing says of a group, and what was asked about it besides. None is unknown, or was not asked."""

    listing: GroupListing
    members: int | None = None
    topics: Sequence[str] | None = None
    partitions: int | None = None
    lag: GroupLag = NO_LAG

    @property
    def group_id(self) -> str:
        return self.listing.group_id


COLUMNS = (
    GROUP.of("group_id"),
    STATE.of("listing.state.value"),
    TYPE.of("listing.type.value"),
    PROTOCOL_TYPE.of(lambda row: row.listing.protocol_type or None),
    COORDINATOR.of(lambda row: str(row.listing.coordinator) if row.listing.coordinator else None, wide=True),
    COORDINATOR_ID.of(lambda row: row.listing.coordinator.node_id if row.listing.coordinator else None, wide=True),
    MEMBERS.of("members", when="members"),
    Column(
        "topics",
        kind=JsonKind.TEXTS,
        meaning="its topics: of commits, assignments and subscriptions",
        when="members",
        read=attrgetter("topics"),
    ),
    Column(
        "partitions",
        "#PARTITIONS",
        kind=JsonKind.WHOLE,
        meaning="how many partitions have a commit",
        when="lag",
        read=attrgetter("partitions"),
    ),
    LAG.of("lag.lag", when="lag"),
    FLAGS.of(lambda row: row.lag.flags and tuple(map(str, row.lag.flags)), when="lag"),
)

EXAMPLES = """
kgctl list groups --state stable --lag --sort lag
kgctl list groups --topic orders --members
kgctl list groups --match '^payments' --fail-if-lag-over 10000
"""


def _largest_first(value: int | None) -> tuple[bool, int]:
    return (True, 0) if value is None else (False, -value)


SORTS: Mapping[str, Callable[[Listed], tuple[object, ...]]] = {
    "name": lambda row: (row.group_id,),
    "lag": lambda row: (not row.lag.flags, *_largest_first(row.lag.lag)),
    "state": lambda row: (row.listing.state.value,),
    "members": lambda row: _largest_first(row.members),
}
"""What ``--sort`` takes: equal rows stay sorted by group."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """Which columns are there ``when`` they are asked for."""

    lag: bool
    members: bool


@shows(COLUMNS, examples=EXAMPLES)
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
    why), and where no commit of the group is to be seen. --topic keeps the groups that have a commit or a member there. The
    --fail-if options hold groups against limits; what cannot be measured is not within them.
    """
    names, scopes = name_filter(match, exclude), parse_topic_scopes(topic or ())
    (sort_key,) = parse_names("--sort", [sort or "name"], tuple(SORTS))
    lag, members = lag or sort_key == "lag", members or bool(topic) or sort_key == "members"
    session = session_of(ctx)
    with session.connect() as admin:
        listed, sight = admin.list_groups(states=kinds.states, types=kinds.types), admin.sight()
        listings = [one for group_id, one in sorted(listed.values.items()) if names(group_id) and _speaks(one, protocol)]
        errors = [error.to_exception(group=group_id) for group_id, error in sorted(listed.errors.items())]
        errors += [error.to_exception() for error in listed.unreachable.values()]
        rows = list(map(Listed, listings))
        if members:
            rows = _with_members(admin, rows, errors, scopes)
        if lag:
            _add_lag(admin, rows, errors)
        measured = [row.group_id for row in rows] if lag else ()
        judgement = ThresholdJudgement((), tuple(error.message for error in hidden(sight, measured, Scope())))
        if limits and not rows and not errors:
            raise NotFoundError("no group matches: there is nothing that the limits could hold for")
        if limits:
            judgement = judge_listed(admin, [row.listing for row in rows], limits, session.environment.now_ms())
    rows.sort(key=SORTS[sort_key])
    columns = asked_for(COLUMNS, _Asked(lag, members))
    is_filtered = bool(names or kinds or topic or protocol)
    told = _summary(rows, lag=lag) if rows else () if errors else _nothing(sight, is_filtered=is_filtered)
    known = {error.message for error in judgement.errors}
    errors = [*(error for error in errors if error.message not in known), *judgement.errors]
    return Report(columns, rows, errors, (*told, *judgement.notices), ("group",), judgement.exit_code)


def _speaks(listing: GroupListing, protocol: str | None) -> bool:
    return protocol in (None, listing.protocol_type)


def _add_lag(admin: GroupAdmin, rows: Sequence[Listed], errors: list[KgctlError]) -> None:
    committed = admin.list_committed_offsets([row.group_id for row in rows])
    partitions = sorted({partition for offsets in committed.values.values() for partition in offsets})
    logs = admin.list_log_offsets(partitions)
    lags = lag_by_group(committed.values, logs)
    errors += [error.to_exception(group=group_id) for group_id, error in sorted(committed.errors.items())]
    errors += [error for group_id in sorted(committed.flaws) for error in committed.flaws[group_id]]
    errors += [error.to_exception(partition=partition) for partition, error in sorted(logs.errors.items())]
    for row in rows:
        offsets = committed.values.get(row.group_id)
        row.partitions = None if offsets is None else len(offsets)
        row.lag = lags[row.group_id] if offsets else NO_LAG


def _with_members(
    admin: GroupAdmin, rows: Sequence[Listed], errors: list[KgctlError], scopes: Sequence[TopicScope]
) -> list[Listed]:
    """With the number of members and the topics. Of ``scopes``, where there are any, only the groups that have something to do
    with one; a group that cannot be asked has an error, unless it is gone."""
    ids = [row.group_id for row in rows]
    described = admin.describe_groups(ids)
    committed = admin.list_committed_offsets(ids)
    gone = ErrorCode.GROUP_ID_NOT_FOUND.name
    failed = [error.to_exception(group=group_id) for group_id, error in sorted({**described.errors, **committed.errors}.items())]
    errors += [error for error in failed if error.code != gone]
    kept = []
    for row in rows:
        members = described.values[row.group_id].members if row.group_id in described.values else None
        subscribed = {topic for member in members or () for topic in member.subscribed_topics or ()}
        partitions = {*committed.values.get(row.group_id, ()), *_assigned(members or ())}
        row.members = None if members is None else len(members)
        row.topics = sorted({*subscribed, *(partition.topic for partition in partitions)})
        whole = {scope.topic for scope in scopes if scope.ranges is None}
        if not scopes or whole & subscribed or any(is_within(partition, scopes) for partition in partitions):
            kept.append(row)
    return kept


def _assigned(members: Sequence[MemberDescription]) -> Iterator[TopicPartition]:
    for member in members:
        for topic, partitions in (member.assignment or {}).items():
            yield from (TopicPartition(topic, number) for number in partitions)


def _summary(rows: Sequence[Listed], *, lag: bool) -> tuple[str, ...]:
    """How many there are, for a person who looks at many."""
    states = Counter(row.listing.state.value for row in rows)
    shown = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    total = f"; {told_lag((row.lag.lag for row in rows), 'group')}" if lag else ""
    return (f"{plural(len(rows), 'group')}: {shown}{total}.",) if len(rows) > 1 else ()


def _nothing(sight: Sight, *, is_filtered: bool) -> tuple[str, ...]:
    if is_filtered:
        return ("No group matches.",)
    return ("The cluster has no groups." if sight.all_groups else "No group is to be seen.",)
