"""``kgctl list groups``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Annotated

from kgctl.admin import GroupAdmin, Sight
from kgctl.admin.group_view import NO_LAG, GroupLag, lag_by_group
from kgctl.admin.topic_scopes import TopicScope, is_within, parse_topic_scopes
from kgctl.cli.columns import COORDINATOR, COORDINATOR_ID, FLAGS, GROUP, LAG, MEMBERS, PROTOCOL_TYPE, STATE, TYPE
from kgctl.cli.groups.thresholds import Scope, ThresholdJudgement, Thresholds, hidden, judge_listed
from kgctl.cli.options import TopicOptions
from kgctl.cli.parameters import flag, option
from kgctl.cli.report import TEXTS, WHOLE, Column, Report, asked_for, shows
from kgctl.cli.selection import KindFilter, NameFilter, check_topics, failures, parse_name, told_lag
from kgctl.cli.session import Session
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
    COORDINATOR.of("listing.coordinator", wide=True),
    COORDINATOR_ID.of("listing.coordinator?.node_id", wide=True),
    MEMBERS.of("members", when="members"),
    Column("topics", "its topics: of commits, assignments and subscriptions", TEXTS, when="members"),
    Column("partitions", "how many partitions have a commit", WHOLE, header="#PARTITIONS", when="lag"),
    LAG.of("lag.lag", when="lag"),
    FLAGS.of("lag.flags", when="lag"),
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


@shows(COLUMNS, examples=EXAMPLES)
def list_groups(
    session: Session,
    *,
    protocol: Annotated[str | None, option("NAME", "Only groups of this protocol type: consumer, connect, share, ...")] = None,
    names: NameFilter,
    topic: TopicOptions = None,
    lag: Annotated[bool, flag("--lag", "Add partitions with a commit, and total lag in records.")] = False,
    members: Annotated[bool, flag("--members", "Add the number of members, and the topics of the group.")] = False,
    sort: Annotated[str | None, option("KEY", "By name, lag, state or members.", complete=SORTS)] = None,
    kinds: KindFilter,
    limits: Thresholds,
) -> Report:
    """List the groups of the cluster, sorted by id, whatever protocol they speak.

    Total lag is the sum over the partitions with a committed offset; `-` where that of one is unknown (the column FLAGS says
    why), and where no commit of the group is to be seen. --topic keeps the groups that have a commit or a member there. The
    --fail-if options hold groups against limits; what cannot be measured is not within them.
    """
    scopes = parse_topic_scopes(topic or ())
    sort_key = "name" if sort is None else parse_name("--sort", sort, tuple(SORTS))
    lag, members = lag or sort_key == "lag", members or bool(topic) or sort_key == "members"
    with session.connect() as admin:
        listed, sight = admin.list_groups(states=kinds.states, types=kinds.types), admin.sight()
        listings = [one for group_id, one in sorted(listed.values.items()) if names(group_id) and _speaks(one, protocol)]
        errors = failures(sorted(listed.errors), listed)
        errors += [error.to_exception() for error in listed.unreachable.values()]
        rows = list(map(Listed, listings))
        if members:
            rows = _with_members(admin, rows, errors, scopes)
        if not errors:
            check_topics(admin, {name for row in rows for name in row.topics or ()}, scopes)
        if lag:
            _add_lag(admin, rows, errors)
        measured = [row.group_id for row in rows] if lag else ()
        judgement = ThresholdJudgement((), tuple(error.message for error in hidden(sight, measured, Scope())))
        if limits and not rows and not errors:
            raise NotFoundError("no group matches: there is nothing that the limits could hold for")
        if limits:
            judgement = judge_listed(admin, [row.listing for row in rows], limits, session.environment.now_ms())
    rows.sort(key=SORTS[sort_key])
    columns = asked_for(COLUMNS, SimpleNamespace(lag=lag, members=members))
    is_filtered = bool(names or kinds or topic or protocol)
    told = _summary(rows, lag=lag) if rows else () if errors else _nothing(sight, is_filtered=is_filtered)
    return Report(columns, rows, judgement.beside(errors), (*told, *judgement.notices), ("group",), judgement.exit_code)


def _speaks(listing: GroupListing, protocol: str | None) -> bool:
    return protocol in (None, listing.protocol_type)


def _add_lag(admin: GroupAdmin, rows: Sequence[Listed], errors: list[KgctlError]) -> None:
    committed = admin.list_committed_offsets([row.group_id for row in rows])
    partitions = sorted({partition for offsets in committed.values.values() for partition in offsets})
    logs = admin.list_log_offsets(partitions)
    lags = lag_by_group(committed.values, logs)
    errors += failures(sorted(committed.errors), committed)
    errors += [error.to_exception(partition=partition) for partition, error in sorted(logs.errors.items())]
    for row in rows:
        offsets = committed.values.get(row.group_id)
        row.partitions = None if offsets is None else len(offsets)
        row.lag = lags[row.group_id] if offsets and row.group_id not in committed.flaws else NO_LAG


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
