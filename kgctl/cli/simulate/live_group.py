"""Groups of a cluster that a simulation begins with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kgctl.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from kgctl.admin.client import GroupAdmin
    from kgctl.model.groups import GroupDescription


def group_with_members(admin: GroupAdmin, group_id: str, purpose: str) -> GroupDescription:
    """The group as it is now. ``purpose``: what its members are needed for, in words.

    Raises:
        NotFoundError: there is no such group. UsageError: it has no members. KgctlError: the cluster does not tell.
    """
    from kgctl.model.groups import GroupState

    described = admin.describe_groups([group_id])
    if group_id in described.errors:
        raise described.errors[group_id].to_exception(group=group_id)
    group = described.values[group_id]
    if group.state is GroupState.DEAD:
        raise NotFoundError(f"group {group_id!r} does not exist", group=group_id)
    if not group.members:
        raise UsageError(f"group {group_id!r} has no members {purpose}", group=group_id)
    return group
