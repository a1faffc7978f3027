"""``kgctl delete-groups`` and ``kgctl delete-offsets``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, NamedTuple

from kgctl.admin import Committed, GroupAdmin, ItemError, Sight, check_supports, item_error, lacking
from kgctl.admin.changes import (
    Account,
    CommitsAsPlanned,
    DeletionDecision,
    ItemOutcome,
    carry_out,
    decide_deletion,
    execute_deletion,
    taking_away,
)
from kgctl.admin.group_view import check_rights_on, is_consumer_group, subscribed_topics
from kgctl.admin.notation import UndoRow, named_groups
from kgctl.admin.rights import DELETE_GROUP, DELETE_OFFSETS
from kgctl.admin.share_groups import in_part
from kgctl.admin.topic_scopes import TopicScope, absent, is_within, parse_topic_scopes
from kgctl.cli.columns import BY_RESULT, GROUP, PARTITION, STATE, TOPIC, TYPE
from kgctl.cli.environment import StopSignals
from kgctl.cli.groups.changes import RESULT_AND_ERROR, AtOnce, ItemChange, is_answered
from kgctl.cli.groups.internal_topics import DELETED, DeleteAll, InternalTopics
from kgctl.cli.groups.undo_files import Backup, not_saved
from kgctl.cli.options import TopicOptions, Yes
from kgctl.cli.parameters import flag
from kgctl.cli.report import WHOLE, Column, Report, shows
from kgctl.cli.selection import ChangedGroups, confirm, failures, nothing_on, with_neighbours
from kgctl.cli.session import NamedCluster, Session
from kgctl.errors import KgctlError, NotFoundError, RefusedError, UsageError, first_few, plural
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
    listing_of,
)
from kgctl.model.values import frozen_in_order

GROUPS_EXAMPLES = """
kgctl delete-groups payments-old payments-test --dry-run
kgctl delete-groups --match '^tmp-' --exclude keep --max-groups 50 --yes
"""
GROUPS_COLUMNS = (
    GROUP.of("of.group_id"),
    TYPE.of("of.decision.listing?.type.value"),
    STATE.of("of.decision.listing?.state.value"),
    Column("offsets", "how many partitions the group has a commit for", WHOLE, header="#OFFSETS", read="of.offsets"),
)


@shows((*GROUPS_COLUMNS, *RESULT_AND_ERROR), summary=(*BY_RESULT, DELETED), examples=GROUPS_EXAMPLES)
def delete_groups(
    session: Session,
    *,
    groups: ChangedGroups,
    backup: Backup,
    delete_all_internal_topics: DeleteAll = False,
    execute: AtOnce = False,
    yes: Yes = False,
    dry_run: Annotated[bool, flag("--dry-run", "Only show which groups can be deleted now.")] = False,
) -> Report:
    """Delete groups with all their committed offsets. Asks first, unless --execute or --yes.

    A group with members cannot be deleted, and fails alone: the others are deleted, and the exit code says partial. The offsets
    are saved first, and kgctl undo commits them again. --match and --all-groups mean consumer groups, or those of
    --type; others are named.
    """
    yes = is_answered(groups, execute=execute, dry_run=dry_run, yes=yes, takes_more=delete_all_internal_topics)
    with session.connect() as admin:
        cluster = session.cluster(admin)
        chosen = groups.select(admin)
        planned = partial(_groups_plan, admin, chosen.group_ids, saves=not backup.no_backup)
        plan = planned()
        described = admin.describe_groups(list(plan.deletable) if delete_all_internal_topics else []).raise_first()
        internal = InternalTopics.of(admin, described.values.values(), everything=delete_all_internal_topics)
        change = ItemChange(
            *(session, cluster, GROUPS_COLUMNS, ("group",), plan.rows, "deletable", "deleted"),
            lambda group_id, error: error.to_exception(group=group_id),
            refused=plan.refused,
            errors=(*chosen.errors, *plan.flaws),
            remarks=plan.lost,
            internal=internal,
        )
        if dry_run:
            return change.show()
        if plan.deletable:
            question = _groups_question(cluster, plan, internal)
            confirm(session, question, yes=yes, cluster=cluster, is_as_shown=lambda: plan.is_like(planned()))

        def act(stop: StopSignals) -> Account[str]:
            account = execute_deletion(admin, plan.decisions, stop, plan.saved_of)
            internal.delete(admin, account.having(ItemOutcome.DONE))
            return account

        return change.execute(admin, act, groups=plan.deletable, saved=plan.saved, backup=backup, whole_groups=True)


class _GroupRow(NamedTuple):
    """A group that is to be deleted; ``offsets``: how many it has, None where it cannot be deleted, or nobody knows."""

    group_id: str
    decision: DeletionDecision
    offsets: int | None


@frozen_in_order
class _GroupsPlan:
    """Which groups can be deleted, what is committed for them, and what of that cannot be learnt (``unsaved``: as it is told)."""

    decisions: Mapping[str, DeletionDecision]
    read: tuple[str, ...]
    saved: list[UndoRow]
    unsaved: tuple[str, ...]
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
        lines += self.unsaved
        if self.sight.lacks_topics and self.deletable:
            lines.append(f"{self.sight.lacks_topics}: commits on others are deleted and not saved")
        return lines

    @property
    def rows(self) -> dict[str, _GroupRow]:
        counts = Counter(row.group_id for row in self.saved)
        known = self.deletable.keys() & {*self.read}
        return {name: _GroupRow(name, one, counts[name] if name in known else None) for name, one in self.decisions.items()}

    def is_like(self, now: _GroupsPlan) -> bool:
        """Whether this one does the same."""
        return (set(self.deletable), self.saved) == (set(now.deletable), now.saved)


def _groups_plan(admin: GroupAdmin, group_ids: Sequence[str], *, saves: bool) -> _GroupsPlan:
    """``saves``: groups whose commits nobody can read are left alone, as nobody could bring these back."""
    decisions = decide_deletion(admin, group_ids)
    denied = lacking(admin, DELETE_GROUP, (group_id for group_id, one in decisions.items() if not one.refused)).groups
    decisions |= _refusing(decisions, denied)
    groups = [group_id for group_id, one in decisions.items() if not one.refused]
    found = admin.list_committed_offsets(groups)
    rows = [UndoRow(group_id, *each) for group_id, commits in found.values.items() for each in commits.items()]
    if saves:
        decisions |= _refusing(decisions, found.errors)
        found = replace(found, errors={})
    flaws = tuple(error for group_id in sorted(found.flaws) for error in found.flaws[group_id])
    refused = [one.refused.to_exception(group=group_id) for group_id, one in decisions.items() if one.refused]
    told = {str(error.group): error for error in with_neighbours(admin, refused)}
    sight = admin.sight() if groups else Sight()
    return _GroupsPlan(decisions, tuple(found.values), rows, tuple(not_saved(found)), sight, flaws, told)


def _refusing(decisions: Mapping[str, DeletionDecision], errors: Mapping[str, ItemError]) -> dict[str, DeletionDecision]:
    return {group_id: replace(decisions[group_id], refused=error) for group_id, error in errors.items()}


def _groups_question(cluster: NamedCluster, plan: _GroupsPlan, internal: InternalTopics) -> str:
    deletable = plan.deletable
    named, offsets = named_groups(list(deletable), 10), plural(len(plan.saved), "committed offset")
    lost = "".join(f"; {line}" for line in (*plan.lost, *filter(None, [internal.loss])))
    return f"Delete {plural(len(deletable), 'group')} ({named}) with {offsets} on {cluster}{lost}?"


OFFSETS_COLUMNS = (
    GROUP.of("of.group_id"),
    TOPIC.of("of.partition.topic"),
    PARTITION.of("of.partition.partition"),
    Column("offset", "the committed offset that is deleted", WHOLE, read="of.before?.offset"),
)
OFFSETS_NAMES = ("group", "topic", "partition")
OFFSETS_EXAMPLES = """
kgctl delete-offsets payments --topic orders:0,2-5 --dry-run
kgctl delete-offsets --match '^payments' --topic orders-old --yes
kgctl delete-offsets payments --stale
"""

Item = tuple[str, TopicPartition]


@shows((*OFFSETS_COLUMNS, *RESULT_AND_ERROR), summary=BY_RESULT, examples=OFFSETS_EXAMPLES)
def delete_offsets(
    session: Session,
    *,
    groups: ChangedGroups,
    topic: TopicOptions = None,
    stale: Annotated[bool, flag("--stale", "Those on topics that no member subscribes to any more.")] = False,
    backup: Backup,
    execute: AtOnce = False,
    yes: Yes = False,
    dry_run: Annotated[bool, flag("--dry-run", "Only show which offsets can be deleted now.")] = False,
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
    with session.connect() as admin:
        cluster = session.cluster(admin)
        chosen = groups.select(admin)
        check_supports(admin, DELETE_OFFSETS)
        planned = partial(_offsets_plan, admin, chosen.group_ids, scopes, is_named=bool(groups.ids), stale=stale)
        plan = planned()
        errors = (*chosen.errors, *plan.errors)
        if not plan.commits and not plan.refused and errors:
            return Report(OFFSETS_COLUMNS, (), errors)
        change = ItemChange(
            *(session, cluster, OFFSETS_COLUMNS, OFFSETS_NAMES, plan.rows, "deletable", "deleted", _explain),
            refused=plan.refused,
            unsure=plan.unsure,
            errors=errors,
        )
        if dry_run:
            return change.show()
        if plan.commits:
            question = _question(plan, cluster)
            confirm(session, question, yes=yes, cluster=cluster, is_as_shown=lambda: plan.commits == planned().commits)
        steps, watch = list(taking_away(admin, plan.commits)), CommitsAsPlanned(admin, plan.commits, dict.fromkeys(plan.commits))
        return change.execute(
            admin,
            lambda stop: carry_out(steps, lambda items: _are_gone(admin, items), stop, watch, admin=admin),
            groups=dict.fromkeys(group_id for group_id, _ in plan.commits),
            saved=[UndoRow(*item, commit) for item, commit in plan.commits.items()],
            backup=backup,
        )


@frozen_in_order
class _OffsetsPlan:
    """The commits that can be deleted, by group and partition; the partitions where that is refused; and groups that failed.

    ``unsure``: those of the commits of which only the coordinator can tell whether they can be, and why.
    """

    commits: Mapping[Item, OffsetAndMetadata]
    refused: Mapping[Item, KgctlError]
    unsure: Mapping[Item, KgctlError]
    errors: tuple[KgctlError, ...]

    @property
    def rows(self) -> dict[Item, UndoRow]:
        return {item: UndoRow(*item, self.commits.get(item)) for item in sorted({*self.commits, *self.refused})}


def _explain(item: Item, error: ItemError) -> KgctlError:
    return error.to_exception(group=item[0], partition=item[1])


def _offsets_plan(
    admin: GroupAdmin, group_ids: Sequence[str], scopes: Sequence[TopicScope], *, is_named: bool, stale: bool
) -> _OffsetsPlan:
    """What is committed there, and which of it is still read. A selected group without any is left out, a named one fails."""
    described = admin.describe_groups(group_ids)
    committed = admin.list_committed_offsets(list(described.values))
    topics = {partition.topic for commits in committed.values.values() for partition in commits} if stale else set()
    counts = admin.list_topics(sorted(topics | {scope.topic for scope in scopes}))
    check_rights_on(admin, [scope.topic for scope in scopes if scope.topic not in counts])
    found: dict[Item, OffsetAndMetadata | None] = {}
    errors = failures(group_ids, described, committed)
    for group_id, offsets in committed.values.items():
        present = {partition: commit for partition, commit in offsets.items() if commit.offset != NO_OFFSET}
        if stale:
            old, why_none = _stale(described.values[group_id], present, scopes)
            found |= {(group_id, partition): present[partition] for partition in old}
            errors += [why_none] if why_none and is_named else []
            continue
        for scope in scopes:
            named = scope.resolve(counts[scope.topic]) if is_named and scope.ranges is not None and scope.topic in counts else ()
            wanted = sorted({*named, *(partition for partition in present if partition in scope)})
            if not wanted and is_named:
                errors.append(_nothing(group_id, scope.topic, counts))
            found |= {(group_id, partition): present.get(partition) for partition in wanted}
    refused = {item: why for item, commit in found.items() if (why := _refused(item, commit, described.values[item[0]], counts))}
    commits = {item: commit for item, commit in found.items() if commit is not None and item not in refused}
    denied = lacking(admin, DELETE_OFFSETS, (group_id for group_id, _ in commits), (place.topic for _, place in commits))
    why_not = {item: denied.of(item[0], item[1].topic) for item in commits}
    refused |= {item: _explain(item, error) for item, error in why_not.items() if error}
    refused |= _in_part(commits, committed.values)
    commits = {item: commit for item, commit in commits.items() if item not in refused}
    doubts = {group_id: _doubt(described.values[group_id]) for group_id, _ in commits}
    unsure = {item: _explain(item, doubt) for item in commits if (doubt := doubts[item[0]])}
    if not errors and not is_named and not stale:
        gaps = absent(scopes, (partition for _, partition in found))
        errors += nothing_on(gaps, "none of the groups has committed offsets")
    return _OffsetsPlan(commits, refused, unsure, with_neighbours(admin, errors))


def _refused(
    item: Item, commit: OffsetAndMetadata | None, description: GroupDescription, counts: Mapping[str, int]
) -> KgctlError | None:
    group_id, partition = item
    if commit is None:
        what = f"group {group_id!r} has no committed offset on {partition}"
        return NotFoundError(what, group=group_id, topic=partition.topic, partition=partition.partition)
    code = _refusal(description, partition, counts)
    return None if code is None else _explain(item, item_error(code, group=group_id, partition=partition))


def _in_part(commits: Mapping[Item, OffsetAndMetadata], committed: Mapping[str, Committed]) -> Mapping[Item, KgctlError]:
    """The start offsets that Kafka cannot delete without others of their topic."""
    by_group: dict[str, list[TopicPartition]] = {}
    for (group_id, partition), commit in commits.items():
        if isinstance(commit, StartOffset):
            by_group.setdefault(group_id, []).append(partition)
    return {
        (group_id, partition): _explain((group_id, partition), error)
        for group_id, partitions in by_group.items()
        for partition, error in in_part(committed[group_id], partitions).items()
    }


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


def _refusal(description: GroupDescription, partition: TopicPartition, counts: Mapping[str, int]) -> ErrorCode | None:
    """Why its coordinator refuses to delete it, as far as members tell; brokers take no question about topics that are gone.

    Source: KafkaApis#handleOffsetDeleteRequest, ClassicGroup#validateOffsetDelete and #isSubscribedToTopic,
    ModernGroup#isSubscribedToTopic.
    """
    topic, number = partition
    if description.coordinator is not None and number >= counts.get(topic, 0):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    is_other = description.type is GroupType.CLASSIC and not is_consumer_group(listing_of(description))
    if description.members and (description.type.has_start_offsets or is_other):
        return ErrorCode.NON_EMPTY_GROUP
    if any(topic in (member.subscribed_topics or ()) or topic in (member.assignment or {}) for member in description.members):
        return ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    return None


_TELL_LATE = (GroupType.CLASSIC, GroupType.ZOOKEEPER)


def _doubt(description: GroupDescription) -> ItemError | None:
    """Why nobody can tell yet what a group reads: consumers of the classic protocol say it between rebalances."""
    if description.type not in _TELL_LATE or all(one.subscribed_topics is not None for one in description.members):
        return None
    what = f"group {description.group_id!r} is {description.state.value}: what its members read is not told"
    return ItemError(ErrorCode.REBALANCE_IN_PROGRESS, what)


def _nothing(group_id: str, topic: str, counts: Mapping[str, int]) -> KgctlError:
    missing = "" if topic in counts else " (nor is there such a topic that this user may see)"
    return NotFoundError(f"group {group_id!r} has no committed offsets on {topic!r}{missing}", group=group_id, topic=topic)


def _are_gone(admin: GroupAdmin, items: Sequence[Item]) -> Mapping[Item, bool]:
    committed = admin.list_committed_offsets(list(dict.fromkeys(group_id for group_id, _ in items))).values
    return {item: item[1] not in committed[item[0]] for item in items if item[0] in committed}


def _question(plan: _OffsetsPlan, cluster: object) -> str:
    of = plural(len({group_id for group_id, _ in plan.commits}), "group")
    return f"Delete {plural(len(plan.commits), 'committed offset')} of {of} ({_named(plan)}) on {cluster}?"


def _named(plan: _OffsetsPlan) -> str:
    return first_few(list(dict.fromkeys(str(partition) for _, partition in plan.commits)), 10)
