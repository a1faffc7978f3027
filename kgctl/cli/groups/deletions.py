"""``kgctl delete-groups`` and ``kgctl delete-offsets``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import typer

from kgctl.admin import Committed, GroupAdmin, ItemError, Sight, check_supports, item_error
from kgctl.admin.changes import (
    Account,
    ChangeStep,
    CommitsAsPlanned,
    DeletionDecision,
    ItemOutcome,
    carry_out,
    decide_deletion,
    execute_deletion,
)
from kgctl.admin.group_view import check_rights_on, subscribed_topics
from kgctl.admin.notation import UndoRow, named_groups
from kgctl.admin.rights import DELETE_OFFSETS
from kgctl.admin.share_groups import in_part
from kgctl.admin.topic_scopes import TopicScope, is_within, parse_topic_scopes
from kgctl.cli.columns import BY_RESULT, GROUP, PARTITION, STATE, TOPIC, TYPE
from kgctl.cli.groups.changes import (
    RESULT_AND_ERROR,
    AtOnce,
    account_report,
    counted,
    how_far,
    is_answered,
    result_report,
    with_internal,
)
from kgctl.cli.groups.internal_topics import DELETED, DeleteAll, InternalTopics
from kgctl.cli.groups.undo_files import Backup, start_change
from kgctl.cli.options import TopicOptions, Yes
from kgctl.cli.report import Column, JsonKind, Report, Row, shows
from kgctl.cli.selection import ChangedGroups, check_as_shown, confirm, with_neighbours
from kgctl.cli.session import NamedCluster, Session, session_of
from kgctl.errors import KgctlError, NotFoundError, RefusedError, UsageError, plural
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import (
    NO_OFFSET,
    GroupDescription,
    GroupListing,
    GroupState,
    GroupType,
    OffsetAndMetadata,
    StartOffset,
    TopicPartition,
)

GROUPS_EXAMPLES = """
kgctl delete-groups payments-old payments-test --dry-run
kgctl delete-groups --match '^tmp-' --exclude keep --max-groups 50 --yes
"""
GROUPS_COLUMNS = (
    GROUP,
    TYPE,
    STATE,
    Column("offsets", "#OFFSETS", kind=JsonKind.WHOLE, meaning="how many partitions the group has a commit for"),
)


@shows((*GROUPS_COLUMNS, *RESULT_AND_ERROR), summary=(*BY_RESULT, DELETED), examples=GROUPS_EXAMPLES)
def delete_groups(
    ctx: typer.Context,
    *,
    groups: ChangedGroups,
    backup: Backup,
    delete_all_internal_topics: DeleteAll = False,
    execute: AtOnce = False,
    yes: Yes = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show which groups can be deleted now.")] = False,
) -> Report:
    """Delete groups with all their committed offsets. Asks first, unless --execute or --yes.

    A group with members cannot be deleted, and fails alone: the others are deleted, and the exit code says partial. The offsets
    are saved first, and kgctl undo commits them again. --match and --all-groups mean consumer groups, or those of
    --type; others are named.
    """
    yes = is_answered(groups, execute=execute, dry_run=dry_run, yes=yes, takes_more=delete_all_internal_topics)
    session = session_of(ctx)
    with session.connect() as admin:
        cluster = session.cluster(admin)
        chosen = groups.select(admin)
        plan = _groups_plan(admin, chosen.group_ids)
        described = admin.describe_groups(list(plan.deletable) if delete_all_internal_topics else [])
        for group_id, error in described.errors.items():
            raise error.to_exception(group=group_id)
        internal = InternalTopics.of(admin, described.values.values(), everything=delete_all_internal_topics)
        if dry_run:
            rows = [(row, plan.refused.get(group_id)) for group_id, row in plan.rows.items()]
            report = result_report(GROUPS_COLUMNS, rows, "deletable", ("group",))
            told = (*report.notices, *plan.lost, *internal.planned(), f"Dry run on {cluster}: nothing was changed.")
            return replace(report, errors=(*chosen.errors, *plan.flaws, *report.errors), notices=told)
        if plan.deletable:
            if _ask(session, cluster, plan, internal, yes=yes):
                now = _groups_plan(admin, chosen.group_ids)
                check_as_shown((set(plan.deletable), plan.saved), (set(now.deletable), now.saved), cluster)
            if plan.unread and not backup.no_backup:
                raise plan.unread[0]
        stop = session.stop_signals()
        started = start_change(session, admin, cluster, plan.saved, backup, groups=list(plan.deletable))
        with session.telling(how_far(stop, plan.deletable)):
            account = execute_deletion(admin, plan.decisions, stop, plan.saved_of)
            internal.delete(admin, account.having(ItemOutcome.DONE))
    gone = {*account.having(ItemOutcome.DONE), *account.having(ItemOutcome.UNKNOWN)}
    report = with_internal(_groups_report(plan, account, (*chosen.errors, *plan.flaws), cluster), internal)
    report = replace(report, notices=(*internal.told(), *report.notices))
    started.settle({row[:2] for row in plan.saved if row.group_id in gone}, report.summary or {})
    return report


@dataclass(frozen=True, slots=True)
class _GroupsPlan:
    """Which groups can be deleted, what is committed for them, and what of that cannot be learnt."""

    decisions: Mapping[str, DeletionDecision]
    read: tuple[str, ...]
    saved: list[UndoRow]
    unread: list[KgctlError]
    sight: Sight
    flaws: tuple[KgctlError, ...]
    refused: Mapping[str, KgctlError]

    @property
    def deletable(self) -> dict[str, GroupListing]:
        return {group_id: one.listing for group_id, one in self.decisions.items() if one.listing and not one.refused}

    @property
    def saved_of(self) -> Mapping[str, Mapping[TopicPartition, OffsetAndMetadata]]:
        """Return the commits of each group whose commits could be read."""
        found: dict[str, dict[TopicPartition, OffsetAndMetadata]] = {group_id: {} for group_id in self.read}
        for group_id, partition, commit, _ in self.saved:
            if commit is not None:
                found[group_id][partition] = commit
        return found

    @property
    def lost(self) -> list[str]:
        shared = sum(listing.type is GroupType.SHARE for listing in self.deletable.values())
        lines = [f"{plural(shared, 'share group')}: undo brings start offsets back, not what was acknowledged past them"] * bool(
            shared
        )
        lines += [f"{error.message}: not saved" for error in self.flaws]
        if self.sight.lacks_topics:
            lines.append(f"{self.sight.lacks_topics}: commits on others are deleted and not saved")
        return lines

    @property
    def rows(self) -> dict[str, Row]:
        counts = Counter(row.group_id for row in self.saved)
        return {group_id: _row(group_id, decision, counts) for group_id, decision in self.decisions.items()}


def _groups_plan(admin: GroupAdmin, group_ids: Sequence[str]) -> _GroupsPlan:
    decisions = decide_deletion(admin, group_ids)
    groups = [group_id for group_id, one in decisions.items() if not one.refused]
    found = admin.list_committed_offsets(groups)
    rows = [UndoRow(group_id, *each) for group_id, commits in found.values.items() for each in commits.items()]
    unread = [error.to_exception(group=group_id) for group_id, error in found.errors.items()]
    flaws = tuple(error for group_id in sorted(found.flaws) for error in found.flaws[group_id])
    refused = [one.refused.to_exception(group=group_id) for group_id, one in decisions.items() if one.refused]
    told = {str(error.group): error for error in with_neighbours(admin, refused)}
    return _GroupsPlan(decisions, tuple(found.values), rows, unread, admin.sight() if groups else Sight(), flaws, told)


def _groups_report(plan: _GroupsPlan, account: Account[str], errors: Sequence[KgctlError], cluster: NamedCluster) -> Report:
    report = account_report(
        GROUPS_COLUMNS,
        plan.rows,
        account,
        "deleted",
        name_keys=("group",),
        explain=lambda group_id, error: error.to_exception(group=group_id),
        refused=plan.refused,
    )
    told = f"Executed on {cluster}: {counted(report.summary or {})}." if account.may_have_changed else "Nothing was changed."
    return replace(report, errors=(*errors, *report.errors), notices=(*plan.lost, told))


def _ask(session: Session, cluster: NamedCluster, plan: _GroupsPlan, internal: InternalTopics, *, yes: bool) -> bool:
    deletable = plan.deletable
    named, offsets = named_groups(list(deletable), 10), plural(len(plan.saved), "committed offset")
    lost = "".join(f"; {line}" for line in (*plan.lost, *filter(None, [internal.loss])))
    return confirm(session, f"Delete {plural(len(deletable), 'group')} ({named}) with {offsets} on {cluster}{lost}?", yes=yes)


def _row(group_id: str, decision: DeletionDecision, counts: Mapping[str, int]) -> Row:
    listing = decision.listing
    return {
        "group": group_id,
        "type": listing.type.value if listing else None,
        "state": listing.state.value if listing else None,
        "offsets": None if decision.refused else counts.get(group_id, 0),
    }


OFFSETS_COLUMNS = (
    GROUP,
    TOPIC,
    PARTITION,
    Column("offset", kind=JsonKind.WHOLE, meaning="the committed offset that is deleted"),
)
OFFSETS_EXAMPLES = """
kgctl delete-offsets payments --topic orders:0,2-5 --dry-run
kgctl delete-offsets --match '^payments' --topic orders-old --yes
kgctl delete-offsets payments --stale
"""

Item = tuple[str, TopicPartition]


@shows((*OFFSETS_COLUMNS, *RESULT_AND_ERROR), summary=BY_RESULT, examples=OFFSETS_EXAMPLES)
def delete_offsets(
    ctx: typer.Context,
    *,
    groups: ChangedGroups,
    topic: TopicOptions = None,
    stale: Annotated[bool, typer.Option("--stale", help="Those on topics that no member subscribes to any more.")] = False,
    backup: Backup,
    execute: AtOnce = False,
    yes: Yes = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show which offsets can be deleted now.")] = False,
) -> Report:
    """Delete groups' committed offsets on topics or partitions. Asks first, unless --execute or --yes.

    Works on active groups too, for topics that none of their members reads; partitions of the others fail, each named. A
    partition that is named and has no commit fails as not found. --stale finds what a stable group has committed on topics that
    it reads no more. The offsets are saved first, and kgctl undo brings them back.
    """
    yes = is_answered(groups, execute=execute, dry_run=dry_run, yes=yes)
    scopes = parse_topic_scopes(topic or ())
    if not scopes and not stale:
        raise UsageError("no scope given: use --topic TOPIC or --topic TOPIC:0,2-5, or --stale")
    session = session_of(ctx)
    with session.connect() as admin:
        cluster = session.cluster(admin)
        chosen = groups.select(admin)
        check_supports(admin, DELETE_OFFSETS)
        plan = _offsets_plan(admin, chosen.group_ids, scopes, is_named=bool(groups.ids), stale=stale)
        errors = (*chosen.errors, *plan.errors)
        if scopes and not stale and not (plan.commits or plan.refused or errors):
            raise NotFoundError("none of the groups has committed offsets there")
        if not plan.commits and not plan.refused and errors:
            return Report(OFFSETS_COLUMNS, (), errors)
        if dry_run:
            rows = [(plan.row(item), plan.refused.get(item)) for item in plan.items()]
            report = result_report(OFFSETS_COLUMNS, rows, "deletable", ("group", "topic", "partition"))
            told = (*report.notices, f"Dry run on {cluster}: nothing was changed.")
            return replace(report, errors=(*errors, *report.errors), notices=told)
        saved = [UndoRow(*item, commit) for item, commit in plan.commits.items()]
        if saved and confirm(session, _question(plan, cluster), yes=yes):
            now = _offsets_plan(admin, chosen.group_ids, scopes, is_named=bool(groups.ids), stale=stale)
            check_as_shown(plan.commits, now.commits, cluster)
        stop = session.stop_signals()
        started = start_change(session, admin, cluster, saved, backup)
        with session.telling(how_far(stop, {group_id for group_id, _ in plan.commits})):
            account = carry_out(
                list(_steps(admin, plan)),
                lambda items: _are_gone(admin, items),
                stop,
                CommitsAsPlanned(admin, plan.commits, dict.fromkeys(plan.commits)),
                admin=admin,
            )
    report = _offsets_report(plan, account, errors, str(cluster))
    started.settle({*account.having(ItemOutcome.DONE), *account.having(ItemOutcome.UNKNOWN)}, report.summary or {})
    return report


@dataclass(frozen=True, slots=True)
class _OffsetsPlan:
    """The commits that can be deleted, by group and partition; the partitions where that is refused; and groups that failed."""

    commits: Mapping[Item, OffsetAndMetadata]
    refused: Mapping[Item, KgctlError]
    errors: tuple[KgctlError, ...]

    def items(self) -> list[Item]:
        return sorted({*self.commits, *self.refused})

    def row(self, item: Item) -> Row:
        commit = self.commits.get(item)
        partition = item[1]
        offset = commit.offset if commit else None
        return {"group": item[0], "topic": partition.topic, "partition": partition.partition, "offset": offset}


def _explain(item: Item, error: ItemError) -> KgctlError:
    return error.to_exception(group=item[0], partition=item[1])


def _offsets_plan(
    admin: GroupAdmin, group_ids: Sequence[str], scopes: Sequence[TopicScope], *, is_named: bool, stale: bool
) -> _OffsetsPlan:
    """What is committed there, and which of it is still read. A selected group without any is left out, a named one fails."""
    described = admin.describe_groups(group_ids)
    committed = admin.list_committed_offsets(list(described.values))
    counts = admin.list_topics([scope.topic for scope in scopes])
    check_rights_on(admin, [scope.topic for scope in scopes if scope.topic not in counts])
    commits: dict[Item, OffsetAndMetadata] = {}
    refused: dict[Item, KgctlError] = {}
    failed = {**described.errors, **committed.errors}
    errors = [failed[group_id].to_exception(group=group_id) for group_id in group_ids if group_id in failed]
    errors += [flaw for flaws in (described.flaws, committed.flaws) for group_id in sorted(flaws) for flaw in flaws[group_id]]
    for group_id, offsets in committed.values.items():
        present = {partition: commit for partition, commit in offsets.items() if commit.offset != NO_OFFSET}
        if stale:
            old, why_none = _stale(described.values[group_id], present, scopes)
            commits.update({(group_id, partition): present[partition] for partition in old})
            errors += [why_none] if why_none and is_named else []
            continue
        for scope in scopes:
            named = scope.resolve(counts[scope.topic]) if is_named and scope.ranges is not None and scope.topic in counts else ()
            wanted = sorted({*named, *(partition for partition in present if partition in scope)})
            if not wanted and is_named:
                errors.append(_nothing(group_id, scope.topic, counts))
            for partition in wanted:
                _decide((group_id, partition), described.values[group_id], present, commits, refused)
    commits = {item: commit for item, commit in commits.items() if item not in _in_part(commits, committed.values, refused)}
    return _OffsetsPlan(commits, refused, with_neighbours(admin, errors))


def _in_part(
    commits: Mapping[Item, OffsetAndMetadata], committed: Mapping[str, Committed], refused: dict[Item, KgctlError]
) -> Mapping[Item, KgctlError]:
    """Refuse start offsets that Kafka cannot delete without others of their topic."""
    by_group: dict[str, list[TopicPartition]] = {}
    for (group_id, partition), commit in commits.items():
        if isinstance(commit, StartOffset):
            by_group.setdefault(group_id, []).append(partition)
    for group_id, partitions in by_group.items():
        for partition, error in in_part(committed[group_id], partitions).items():
            refused[group_id, partition] = _explain((group_id, partition), error)
    return refused


def _stale(
    description: GroupDescription, present: Mapping[TopicPartition, OffsetAndMetadata], scopes: Sequence[TopicScope]
) -> tuple[list[TopicPartition], KgctlError | None]:
    """The partitions with a commit whose topic no member subscribes to, or why there are none.

    Only a stable group whose members name their topics tells: of an empty one nobody knows what it will read.
    """
    group_id = description.group_id
    subscribed = subscribed_topics(description)
    if description.state is not GroupState.STABLE:
        what = f"group {group_id!r} is {description.state.value}: only a stable group tells what it reads no more"
        return [], RefusedError(what, group=group_id)
    if subscribed is None:
        what = f"the members of group {group_id!r} subscribe by a pattern, or do not tell to what: nothing is known to be stale"
        return [], RefusedError(what, group=group_id)
    old = sorted(each for each in present if each.topic not in subscribed and (not scopes or is_within(each, scopes)))
    return old, None if old else NotFoundError(f"group {group_id!r} has no stale offsets there", group=group_id)


def _decide(
    item: Item,
    description: GroupDescription,
    present: Mapping[TopicPartition, OffsetAndMetadata],
    commits: dict[Item, OffsetAndMetadata],
    refused: dict[Item, KgctlError],
) -> None:
    group_id, partition = item
    if partition not in present:
        what = f"group {group_id!r} has no committed offset on {partition}"
        refused[item] = NotFoundError(what, group=group_id, topic=partition.topic, partition=partition.partition)
    elif description.type.has_start_offsets and description.members:
        refused[item] = _explain(item, item_error(ErrorCode.NON_EMPTY_GROUP, group=group_id))
    elif _is_read(description, partition.topic):
        refused[item] = _explain(item, item_error(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, group=group_id, partition=partition))
    else:
        commits[item] = present[partition]


def _is_read(description: GroupDescription, topic: str) -> bool:
    """Whether a member reads the topic, as far as the members tell; the broker has the last word.

    Source: ClassicGroup#isSubscribedToTopic, ModernGroup#isSubscribedToTopic.
    """
    return any(topic in (member.subscribed_topics or ()) or topic in (member.assignment or {}) for member in description.members)


def _nothing(group_id: str, topic: str, counts: Mapping[str, int]) -> KgctlError:
    missing = "" if topic in counts else " (nor is there such a topic that this user may see)"
    return NotFoundError(f"group {group_id!r} has no committed offsets on {topic!r}{missing}", group=group_id, topic=topic)


def _steps(admin: GroupAdmin, plan: _OffsetsPlan) -> Iterator[ChangeStep[Item]]:
    by_group: dict[str, list[TopicPartition]] = {}
    for group_id, partition in plan.commits:
        by_group.setdefault(group_id, []).append(partition)
    for group_id, partitions in by_group.items():
        yield _step(admin, group_id, partitions)


def _step(admin: GroupAdmin, group_id: str, partitions: list[TopicPartition]) -> ChangeStep[Item]:
    def act(items: Sequence[Item]) -> Mapping[Item, ItemError]:
        errors = admin.delete_offsets(group_id, [partition for _, partition in items]).errors
        return {(group_id, partition): error for partition, error in errors.items()}

    return ChangeStep.of_one_request([(group_id, partition) for partition in partitions], act)


def _are_gone(admin: GroupAdmin, items: Sequence[Item]) -> Mapping[Item, bool]:
    committed = admin.list_committed_offsets(list(dict.fromkeys(group_id for group_id, _ in items))).values
    return {item: item[1] not in committed[item[0]] for item in items if item[0] in committed}


def _offsets_report(plan: _OffsetsPlan, account: Account[Item], errors: Sequence[KgctlError], cluster: str) -> Report:
    rows = {item: plan.row(item) for item in plan.items()}
    names = ("group", "topic", "partition")
    report = account_report(OFFSETS_COLUMNS, rows, account, "deleted", name_keys=names, explain=_explain, refused=plan.refused)
    told = f"Executed on {cluster}: {counted(report.summary or {})}." if account.may_have_changed else "Nothing was changed."
    return replace(report, errors=(*errors, *report.errors), notices=(told,))


def _question(plan: _OffsetsPlan, cluster: object) -> str:
    of = plural(len({group_id for group_id, _ in plan.commits}), "group")
    return f"Delete {plural(len(plan.commits), 'committed offset')} of {of} ({_named(plan)}) on {cluster}?"


def _named(plan: _OffsetsPlan) -> str:
    shown = list(dict.fromkeys(partition for _, partition in plan.commits))
    text = ", ".join(map(str, shown[:10]))
    return text if len(shown) <= 10 else f"{text} and {len(shown) - 10} more"
