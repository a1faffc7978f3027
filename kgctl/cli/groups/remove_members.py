"""``kgctl remove-members``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated

from kgctl.admin import NO_LEAVING, GroupAdmin, ItemError, check_supports, item_error, lacking, unfit
from kgctl.admin.changes import ChangeStep, carry_out
from kgctl.admin.notation import named_groups
from kgctl.admin.rights import REMOVE_MEMBERS
from kgctl.cli.columns import BY_RESULT, CONSUMER_ID, GROUP, INSTANCE_ID
from kgctl.cli.completion import complete_instances, complete_members
from kgctl.cli.groups.changes import RESULT_AND_ERROR, AtOnce, ItemChange, is_answered
from kgctl.cli.options import Yes
from kgctl.cli.parameters import flag, option
from kgctl.cli.report import Report, shows
from kgctl.cli.selection import ChangedGroups, confirm, with_neighbours
from kgctl.cli.session import Session
from kgctl.errors import KgctlError, NotFoundError, UsageError, plural
from kgctl.model.error_codes import ErrorCode
from kgctl.model.values import frozen_in_order

COLUMNS = (
    GROUP.of("of.group_id"),
    CONSUMER_ID.of(lambda row: None if row.of.is_static else row.of.name),
    INSTANCE_ID.of(lambda row: row.of.name if row.of.is_static else None, if_any=False),
)
NAMES = ("consumer_id", "group_instance_id")
EXAMPLES = """
kgctl remove-members payments --instance worker-7
kgctl remove-members payments --all --dry-run
"""


@frozen_in_order
class _Member:
    """A member to remove: by group instance id where it is static, else by member id."""

    group_id: str
    name: str
    is_static: bool


@shows((*COLUMNS, *RESULT_AND_ERROR), summary=BY_RESULT, examples=EXAMPLES)
def remove_members(
    session: Session,
    *,
    groups: ChangedGroups,
    member: Annotated[list[str] | None, option("ID", "A member id (CONSUMER-ID); repeatable.", complete=complete_members)] = None,
    instance: Annotated[list[str] | None, option("ID", "A group instance id; repeatable.", complete=complete_instances)] = None,
    all_members: Annotated[bool, flag("--all", "Every member of the groups.")] = False,
    reason: Annotated[str | None, option("TEXT", "Why, for the broker's log.")] = None,
    execute: AtOnce = False,
    yes: Yes = False,
    dry_run: Annotated[bool, flag("--dry-run", "Only show which members would be removed.")] = False,
) -> Report:
    """Make members leave groups, which then rebalance. Asks first, unless --execute or --yes.

    A consumer that still runs joins again: stop it first. It is meant for members that are gone and whose session, a static
    member's above all, has long to run.
    """
    yes = is_answered(groups, execute=execute, dry_run=dry_run, yes=yes)
    if bool(member or instance) == all_members:
        raise UsageError("say which members: --member ID, --instance ID, or --all")
    if not all_members and len(groups.ids) != 1:
        raise UsageError("--member and --instance need exactly one group, by name")
    with session.connect() as admin:
        cluster = session.cluster(admin)
        chosen = groups.select(admin)
        check_supports(admin, REMOVE_MEMBERS)
        present, failed = _members(admin, chosen.group_ids)
        errors = [*chosen.errors, *_told(admin, chosen.group_ids, present, failed, is_named=bool(groups.ids))]
        members = present if all_members else _named(chosen.group_ids[0], member or [], instance or [])
        if not members:
            return Report(COLUMNS, (), errors, () if errors else ("No group has members: nothing to remove.",))
        items = {one: one for one in members}
        change = ItemChange(session, cluster, COLUMNS, NAMES, items, "removable", "removed", _explain, errors=errors)
        if dry_run:
            refused = {one: _missing(one, failed) for one in members if one not in present}
            return _each_once(replace(change, refused=refused).show(), errors)

        def is_as_shown() -> bool:
            return not all_members or members == _members(admin, chosen.group_ids)[0]

        confirm(session, _question(members, cluster), yes=yes, cluster=cluster, is_as_shown=is_as_shown)
        report = change.execute(
            admin,
            lambda stop: carry_out(_steps(admin, members, reason), lambda items: _are_gone(admin, items), stop, admin=admin),
            groups=dict.fromkeys(one.group_id for one in members),
            progress=(members, "member"),
        )
    return _each_once(report, errors)


def _each_once(report: Report, errors: Sequence[KgctlError]) -> Report:
    """What is wrong with a group is told once, not for each member."""
    known = {(error.group, error.code) for error in errors}
    others = (error for error in report.errors[len(errors) :] if (error.group, error.code) not in known)
    return replace(report, errors=(*errors, *others))


def _missing(member: _Member, failed: Mapping[str, ItemError]) -> KgctlError:
    unknown = item_error(ErrorCode.UNKNOWN_MEMBER_ID, group=member.group_id, member=member.name)
    return _explain(member, failed.get(member.group_id, unknown))


def _question(members: Sequence[_Member], cluster: object) -> str:
    of = named_groups(list(dict.fromkeys(one.group_id for one in members)), 10)
    return f"Remove {plural(len(members), 'member')} ({named_groups([one.name for one in members], 10)}) from {of} on {cluster}?"


def _named(group_id: str, member_ids: Sequence[str], instances: Sequence[str]) -> list[_Member]:
    return [
        *(_Member(group_id, name, is_static=False) for name in dict.fromkeys(member_ids)),
        *(_Member(group_id, name, is_static=True) for name in dict.fromkeys(instances)),
    ]


def _members(admin: GroupAdmin, group_ids: Sequence[str]) -> tuple[list[_Member], dict[str, ItemError]]:
    """The members there are that can be removed, static ones by their instance; and the groups that failed."""
    described = admin.describe_groups(group_ids)
    groups = described.values
    denied = lacking(admin, REMOVE_MEMBERS, groups).groups
    failed = {group_id: error for group_id, each in groups.items() if (error := unfit(group_id, each.type, NO_LEAVING))}
    failed = {**denied, **failed}
    found = [
        _Member(group_id, one.group_instance_id or one.member_id, one.group_instance_id is not None)
        for group_id, each in groups.items()
        if group_id not in failed
        for one in each.members
    ]
    return sorted(found, key=lambda one: (one.group_id, one.is_static, one.name)), {**described.errors, **failed}


def _told(
    admin: GroupAdmin, group_ids: Sequence[str], present: Sequence[_Member], failed: Mapping[str, ItemError], *, is_named: bool
) -> Sequence[KgctlError]:
    """What is wrong with groups; a named one without members is."""
    errors = [failed[group_id].to_exception(group=group_id) for group_id in group_ids if group_id in failed]
    bare = {*group_ids} - {*failed} - {one.group_id for one in present} if is_named else ()
    errors += [NotFoundError(f"group {group_id!r} has no members", group=group_id) for group_id in group_ids if group_id in bare]
    return with_neighbours(admin, errors)


def _steps(admin: GroupAdmin, members: Sequence[_Member], reason: str | None) -> list[ChangeStep[_Member]]:
    by_group: dict[str, list[_Member]] = {}
    for one in members:
        by_group.setdefault(one.group_id, []).append(one)
    return [_step(admin, group_id, found, reason) for group_id, found in by_group.items()]


def _step(admin: GroupAdmin, group_id: str, members: Sequence[_Member], reason: str | None) -> ChangeStep[_Member]:
    def act(wanted: Sequence[_Member]) -> Mapping[_Member, ItemError]:
        dynamic = [one.name for one in wanted if not one.is_static]
        static = [one.name for one in wanted if one.is_static]
        errors = admin.remove_members(group_id, member_ids=dynamic, group_instance_ids=static, reason=reason).errors
        return {one: errors[one.name] for one in wanted if one.name in errors}

    return ChangeStep.of_one_request(members, act)


def _are_gone(admin: GroupAdmin, members: Sequence[_Member]) -> Mapping[_Member, bool]:
    """By one look: a second might not be answered for a group that the first one was."""
    present, failed = _members(admin, list(dict.fromkeys(one.group_id for one in members)))
    return {one: one not in present for one in members if one.group_id not in failed}


def _explain(member: _Member, error: ItemError) -> KgctlError:
    return error.to_exception(group=member.group_id)
