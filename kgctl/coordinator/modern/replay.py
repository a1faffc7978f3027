"""What records do to any group that makes targets. Kafka: GroupMetadataManager#replay."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kgctl.coordinator.group import Group
from kgctl.coordinator.modern.group import ModernGroup

_NO_ASSIGNMENT_EPOCH = -1

AnyGroup = ModernGroup[Any, Any]
Applier = Callable[[Any, Any, Any], None]
"""Does to a group what a record of it says: the group, the record's key, its value or None."""


def _has_no_members(group: Group) -> bool:
    """It was dropped from memory only (`Shard.forget_group`). Kafka cannot load such a log."""
    return not group.member_count


class GroupRecords(NamedTuple):
    """The records of one type of groups, by the classes of their keys; a tombstone of ``group_key`` removes the group."""

    kind: type[AnyGroup]
    group_key: type[Any]
    appliers: Mapping[type[Any], Applier]
    gives_way: Callable[[Group], bool] = _has_no_members
    """Whether a group of another type leaves its name to the one that a record tells of."""


def apply_target_metadata(group: AnyGroup, _: object, value: Any) -> None:
    """The epoch of the targets, and when they were computed."""
    group.assignment_epoch = _NO_ASSIGNMENT_EPOCH if value is None else value.assignment_epoch
    group.assignment_timestamp_ms = 0 if value is None else value.assignment_timestamp_ms


def target_applier(read: Callable[[Any], object]) -> Applier:
    """A member's target, as ``read`` makes it of the record's value."""

    def apply(group: AnyGroup, key: Any, value: Any) -> None:
        if value is None:
            group.targets.pop(key.member_id, None)
        else:
            group.targets[key.member_id] = read(value)

    return apply
