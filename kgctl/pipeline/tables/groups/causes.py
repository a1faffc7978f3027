"""Why a generation came about, as far as the log tells it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Cause(StrEnum):
    """The column ``cause`` of ``group_generations``."""

    MEMBER_JOINED = "member_joined"
    MEMBER_LEFT = "member_left"
    MEMBERS_CHANGED = "members_changed"
    """Some joined and some left."""
    STATIC_MEMBER_RETURNED = "static_member_returned"
    """A member came back under its group.instance.id with a new member id, and nothing else changed."""
    SUBSCRIPTION_CHANGED = "subscription_changed"
    PARTITIONS_CHANGED = "partitions_changed"
    """Topics or partitions that the group subscribes to came or went."""
    PARTITIONS_HANDED_OVER = "partitions_handed_over"
    """The second rebalance of a cooperative one: what some members gave up is given to others."""
    LEADER_REJOINED = "leader_rejoined"
    """Nothing that the log shows changed: the leader joined again, or a member with other metadata."""
    UPGRADED = "upgraded"
    """From the classic to the consumer protocol, with members inside."""
    DOWNGRADED = "downgraded"
    """From the consumer to the classic protocol, with members inside."""
    GROUP_EMPTIED = "group_emptied"
    GROUP_DELETED = "group_deleted"
    """Deleted or expired."""
    UNKNOWN = "unknown"
    """The log does not tell, or the records before this one are missing."""


Members = Mapping[str, str | None]
"""Member id to group.instance.id."""


def change_of_members(joined: Members, left: Members) -> Cause | None:
    """The cause that those who joined and left are; None where nobody did."""
    returned = {instance for instance in joined.values() if instance is not None} & set(left.values())
    has_joined = any(instance not in returned for instance in joined.values())
    has_left = any(instance not in returned for instance in left.values())
    if has_joined and has_left:
        return Cause.MEMBERS_CHANGED
    if has_joined or has_left:
        return Cause.MEMBER_JOINED if has_joined else Cause.MEMBER_LEFT
    return Cause.STATIC_MEMBER_RETURNED if joined or left else None
