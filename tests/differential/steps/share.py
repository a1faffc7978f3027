"""Steps of share groups, and what comes of the state of their partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kgctl.coordinator.group import Group
from kgctl.coordinator.share.group import ShareGroup
from tests.differential.choices import IDS

if TYPE_CHECKING:
    from tests.differential.sequences import SequenceBuilder

Step = dict[str, Any]
_BAD_JOINS: tuple[Step, ...] = (
    {"topics": []},
    {"topics": None},
    {"member": " "},
    {"member": ""},
    {"rack": " "},
    {"epoch": -2},
    {"group": " "},
)
_ERRORS = ("COORDINATOR_NOT_AVAILABLE", "FENCED_STATE_EPOCH", "UNKNOWN_SERVER_ERROR", "INVALID_REQUEST")


def share_join(builder: SequenceBuilder, group: Group | None) -> Step:
    """A member comes, or starts over."""
    choice = builder.choice
    known = list(group.members) if isinstance(group, ShareGroup) else []
    step: Step = {"op": "share_heartbeat", "member": choice.of([*IDS, *known]), "epoch": 0}
    if builder.world.driver.coordinator.forgotten:
        # Kafka cannot load the log that would follow.
        step["epoch"] = 1
    step["topics"] = builder.some_topics() or ["T1"]
    if choice.chance(8):
        step["rack"] = "r1"
    if choice.chance(15):
        step.update(choice.of(_BAD_JOINS))
    return step


def share_heartbeat(builder: SequenceBuilder, group: Group | None) -> Step:
    """A member stays, with the right epoch or a wrong one."""
    members = list(group.members.values()) if isinstance(group, ShareGroup) else []
    if not members:
        return share_join(builder, group)
    choice, member = builder.choice, builder.choice.of(members)
    epoch, before = member.member_epoch, member.previous_member_epoch
    step: Step = {
        "op": "share_heartbeat",
        "member": member.member_id,
        "epoch": choice.often(epoch, epoch, epoch, before, epoch - 1, epoch + 1),
    }
    if choice.chance(6):
        step["topics"] = builder.some_topics()
    if choice.chance(15):
        step["rack"] = choice.of(("r1", "r2", " "))
    return step


def share_leave(builder: SequenceBuilder, group: Group | None) -> Step:
    """A member goes."""
    choice = builder.choice
    members = list(group.members) if isinstance(group, ShareGroup) else []
    member_id = choice.of(members) if members and not choice.chance(10) else choice.of(IDS)
    return {"op": "share_heartbeat", "member": member_id, "epoch": -1}


def persister(builder: SequenceBuilder, group: Group | None) -> Step:
    """A call is answered, well or ill, in its turn or before another one."""
    choice = builder.choice
    if not builder.world.elsewhere.is_waited_for and not choice.chance(8):
        return share_heartbeat(builder, group)
    step: Step = {"op": "persister", "which": choice.often(0, 1, 2)}
    if choice.chance(5):
        step |= {"outcome": "fail", "error": choice.of(_ERRORS)}
    elif choice.chance(4):
        step |= {"error": choice.of(_ERRORS), "some": choice.some(builder.existing[:6])}
    if choice.chance(4):
        step["start"] = choice.of((-1, 0, 12))
    if choice.chance(4):
        step["done"] = choice.of((-1, 0, 5))
    return step


def look_at_shares(builder: SequenceBuilder, _: Group | None) -> Step:
    """ShareGroupDescribe, DescribeShareGroupOffsets of some partitions or of all."""
    choice = builder.choice
    if choice.chance(2):
        return {"op": "describe_share_groups", "groups": choice.some(builder.groups)}
    step: Step = {"op": "describe_share_offsets"}
    if choice.chance(2):
        step["topics"] = {name: choice.some((0, 1, 2, 7)) for name in choice.some(builder.topics)}
    return step


def alter_offsets(builder: SequenceBuilder, group: Group | None) -> Step:
    """AlterShareGroupOffsets."""
    choice = builder.choice
    if builder.world.driver.coordinator.forgotten:
        return share_leave(builder, group)  # as above
    names = choice.some(builder.topics) or ["T1"]
    numbers = (0, 1, 2, 3, 17, 1, 16, 32, 99)
    return {
        "op": "alter_share_offsets",
        "topics": {name: [[number, choice.of((0, 4, 9))] for number in dict.fromkeys(choice.some(numbers))] for name in names},
    }


def delete_share_offsets(builder: SequenceBuilder, _: Group | None) -> Step:
    """DeleteShareGroupOffsets."""
    names = builder.choice.some(builder.topics) or ["T1"]
    return {"op": "delete_share_offsets", "topics": names[::-1] if builder.choice.chance(2) else names}
