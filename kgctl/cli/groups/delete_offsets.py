"""``kgctl delete-offsets``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import typer

from kgctl.admin.client import GroupAdmin
from kgctl.admin.execution import Account, Outcome, Step, carry_out
from kgctl.admin.plan.offset_reset import TopicScope, parse_topic_scopes
from kgctl.admin.results import ItemError, item_error
from kgctl.cli.groups.changes import (
    Backup,
    NoBackup,
    UndoRow,
    account_report,
    check_backup,
    counted,
    result_report,
    save_undo,
    settle_undo,
)
from kgctl.cli.options import GroupArguments, GroupOptions, TopicOptions, Yes, merged_groups
from kgctl.cli.report import Column, Report, Row
from kgctl.cli.selection import (
    AllGroupsOption,
    ExcludeOption,
    MatchOption,
    MaxGroupsOption,
    check_as_shown,
    check_count,
    check_selection,
    confirm,
    name_filter,
    plural,
    select_groups,
)
from kgctl.cli.session import session_of
from kgctl.errors import KgctlError, NotFoundError, UsageError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import NO_OFFSET, GroupDescription, OffsetAndMetadata, TopicPartition

COLUMNS = (Column("group"), Column("topic"), Column("partition"), Column("offset"))
EPILOG = """Examples:

\b
kgctl delete-offsets payments --topic orders:0,2-5 --dry-run
kgctl delete-offsets --match '^payments' --topic orders-old --yes
"""

Item = tuple[str, TopicPartition]


def register(app: typer.Typer) -> None:
    app.command(epilog=EPILOG)(delete_offsets)


def delete_offsets(
    ctx: typer.Context,
    groups: GroupArguments = None,
    *,
    group: GroupOptions = None,
    all_groups: AllGroupsOption = False,
    match: MatchOption = None,
    exclude: ExcludeOption = None,
    max_groups: MaxGroupsOption = None,
    topic: TopicOptions = None,
    backup: Backup = None,
    no_backup: NoBackup = False,
    yes: Yes = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show which offsets can be deleted now.")] = False,
) -> Report:
    """Delete groups' committed offsets on topics or partitions. Asks first, unless --yes.

    Works on active groups too, for topics that none of their members reads; partitions of the others fail, each named. A
    partition that is named and has no commit fails as not found. The offsets are saved first, and kgctl undo brings them back.
    """
    group_ids = merged_groups(groups, group)
    names = name_filter(match, exclude)
    check_selection(group_ids, all_groups=all_groups, names=names)
    check_backup(backup, no_backup=no_backup)
    scopes = parse_topic_scopes(topic or ())
    if not scopes:
        raise UsageError("no scope given: use --topic TOPIC or --topic TOPIC:0,2-5")
    session = session_of(ctx)
    with session.connect() as admin:
        cluster = session.cluster(admin)
        chosen = select_groups(admin, group_ids, names)
        check_count(len(chosen.group_ids), max_groups)
        plan = _plan(admin, chosen.group_ids, scopes, is_named=bool(group_ids))
        errors = (*chosen.errors, *plan.errors)
        if not plan.commits and not plan.refused and errors:
            return Report(COLUMNS, (), errors)
        if dry_run:
            rows = [(plan.row(item), plan.refused.get(item)) for item in plan.items()]
            report = result_report(COLUMNS, rows, "deletable", ("group", "topic", "partition"))
            told = (*report.notices, f"Dry run on {cluster}: nothing was changed.")
            return replace(report, errors=(*errors, *report.errors), notices=told)
        saved: list[UndoRow] = [(*item, commit) for item, commit in plan.commits.items()]
        if saved and confirm(session, _question(plan, cluster), yes=yes):
            now = _plan(admin, chosen.group_ids, scopes, is_named=bool(group_ids))
            check_as_shown(plan.commits, now.commits, cluster)
        stop = session.stop_signals()
        file = None if no_backup else save_undo(session, cluster, saved, backup)
        account = carry_out(list(_steps(admin, plan)), lambda items: _are_gone(admin, items), stop)
    settle_undo(session, file, saved, {*account.having(Outcome.DONE), *account.having(Outcome.UNKNOWN)})
    return _report(plan, account, errors, str(cluster))


@dataclass(frozen=True, slots=True)
class _Plan:
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


def _plan(admin: GroupAdmin, group_ids: Sequence[str], scopes: Sequence[TopicScope], *, is_named: bool) -> _Plan:
    """What is committed there, and which of it is still read. A selected group without any is left out, a named one fails."""
    described = admin.describe_groups(group_ids)
    committed = admin.list_committed_offsets(list(described.values))
    counts = admin.list_topics([scope.topic for scope in scopes])
    commits: dict[Item, OffsetAndMetadata] = {}
    refused: dict[Item, KgctlError] = {}
    failed = {**described.errors, **committed.errors}
    errors = [failed[group_id].to_exception(group=group_id) for group_id in group_ids if group_id in failed]
    errors += [flaw for flaws in (described.flaws, committed.flaws) for group_id in sorted(flaws) for flaw in flaws[group_id]]
    for group_id, offsets in committed.values.items():
        present = {partition: commit for partition, commit in offsets.items() if commit.offset != NO_OFFSET}
        for scope in scopes:
            named = scope.resolve(counts[scope.topic]) if is_named and scope.ranges is not None and scope.topic in counts else ()
            wanted = sorted({*named, *(partition for partition in present if partition in scope)})
            if not wanted and is_named:
                errors.append(_nothing(group_id, scope.topic, counts))
            for partition in wanted:
                _decide((group_id, partition), described.values[group_id], present, commits, refused)
    return _Plan(commits, refused, tuple(errors))


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


def _steps(admin: GroupAdmin, plan: _Plan) -> Iterator[Step[Item]]:
    by_group: dict[str, list[TopicPartition]] = {}
    for group_id, partition in plan.commits:
        by_group.setdefault(group_id, []).append(partition)
    for group_id, partitions in by_group.items():
        yield _step(admin, group_id, partitions)


def _step(admin: GroupAdmin, group_id: str, partitions: list[TopicPartition]) -> Step[Item]:
    def act() -> Mapping[Item, ItemError]:
        return {(group_id, partition): error for partition, error in admin.delete_offsets(group_id, partitions).errors.items()}

    return Step.of_one_request([(group_id, partition) for partition in partitions], act)


def _are_gone(admin: GroupAdmin, items: Sequence[Item]) -> Mapping[Item, bool]:
    committed = admin.list_committed_offsets(list(dict.fromkeys(group_id for group_id, _ in items))).values
    return {item: item[1] not in committed[item[0]] for item in items if item[0] in committed}


def _report(plan: _Plan, account: Account[Item], errors: Sequence[KgctlError], cluster: str) -> Report:
    rows = {item: plan.row(item) for item in plan.items()}
    names = ("group", "topic", "partition")
    report = account_report(COLUMNS, rows, account, "deleted", name_keys=names, explain=_explain, refused=plan.refused)
    told = f"Executed on {cluster}: {counted(report.summary or {})}." if account.may_have_changed else "Nothing was changed."
    return replace(report, errors=(*errors, *report.errors), notices=(told,))


def _question(plan: _Plan, cluster: object) -> str:
    of = plural(len({group_id for group_id, _ in plan.commits}), "group")
    return f"Delete {plural(len(plan.commits), 'committed offset')} of {of} ({_named(plan)}) on {cluster}?"


def _named(plan: _Plan) -> str:
    shown = list(dict.fromkeys(partition for _, partition in plan.commits))
    text = ", ".join(map(str, shown[:10]))
    return text if len(shown) <= 10 else f"{text} and {len(shown) - 10} more"
