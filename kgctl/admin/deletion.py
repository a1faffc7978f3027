"""Deletion of groups: which can be deleted is decided once, for the preview and for the deed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kgctl.admin.client import GroupAdmin
from kgctl.admin.execution import Account, Step, Stop, carry_out
from kgctl.admin.results import ItemError, item_error
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import GroupListing, GroupState

_GROUPS_PER_STEP = 50

Decision = GroupListing | ItemError
"""The group as it is listed, which can be deleted; or why it cannot."""


def decide_deletion(admin: GroupAdmin, group_ids: Sequence[str]) -> dict[str, Decision]:
    """Which of these groups can be deleted now: those of every type that are Empty, as a broker sees it.

    Source: Group#validateDeleteGroup of the classic, consumer, share and streams groups: anything but Empty is NON_EMPTY_GROUP.
    """
    listed = admin.list_groups()
    found = {group_id: listed.values.get(group_id) for group_id in group_ids}
    unlisted = [group_id for group_id, listing in found.items() if listing is None]
    described = admin.describe_groups(unlisted).errors if unlisted else {}
    return {group_id: _decision(group_id, listing, described.get(group_id)) for group_id, listing in found.items()}


def _decision(group_id: str, listing: GroupListing | None, error: ItemError | None) -> Decision:
    if listing is None:
        return error or item_error(ErrorCode.GROUP_ID_NOT_FOUND, group=group_id)
    if listing.state in (GroupState.EMPTY, GroupState.UNKNOWN):  # of an unknown state, only the broker can tell
        return listing
    if listing.state is GroupState.DEAD:
        return item_error(ErrorCode.GROUP_ID_NOT_FOUND, group=group_id)
    return ItemError(ErrorCode.NON_EMPTY_GROUP, f"group '{group_id}' is active ({listing.state.value}): it has members")


def execute_deletion(admin: GroupAdmin, decisions: Mapping[str, Decision], stop: Stop | None = None) -> Account[str]:
    """Delete the groups that were decided to be deletable, and tell what became of each of these, whatever ends it."""
    wanted = [group_id for group_id, decision in decisions.items() if isinstance(decision, GroupListing)]
    batches = [wanted[start : start + _GROUPS_PER_STEP] for start in range(0, len(wanted), _GROUPS_PER_STEP)]
    return carry_out([_step(admin, batch) for batch in batches], lambda items: _are_gone(admin, items), stop)


def _step(admin: GroupAdmin, batch: list[str]) -> Step[str]:
    return Step.of_one_request(batch, lambda: admin.delete_groups(batch).errors)


def _are_gone(admin: GroupAdmin, group_ids: Sequence[str]) -> Mapping[str, bool]:
    """Nothing where a broker does not tell its groups: the missing ones may be there."""
    listed = admin.list_groups()
    return {} if listed.unreachable else {group_id: group_id not in listed.values for group_id in group_ids}
