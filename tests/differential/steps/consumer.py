"""Steps of the consumer protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kgctl.coordinator.consumer.group import ConsumerGroup
from kgctl.coordinator.consumer.member import ConsumerMember
from kgctl.coordinator.group import Group
from tests.differential.choices import IDS, INSTANCES, REGEXES

if TYPE_CHECKING:
    from tests.differential.sequences import SequenceBuilder

Step = dict[str, Any]

_BAD_JOINS: tuple[Step, ...] = (
    {"rebalance": -1},
    {"owned": ["T1-0"]},
    {"owned": None},
    {"topics": None, "regex": None},
    {"assignor": "best"},
    {"instance": " "},
    {"rack": " "},
    {"member": ""},
    {"member": "", "v": 0},
    {"v": 0},
)


def consumer_join(builder: SequenceBuilder, group: Group | None) -> Step:
    """A member comes, starts over, or comes back as another one with the instance id of one that has gone for a while."""
    choice = builder.choice
    members = list(group.members.values()) if isinstance(group, ConsumerGroup) else []
    step: Step = {"op": "cg_heartbeat", "member": choice.of([*IDS, *(member.member_id for member in members)]), "epoch": 0}
    step |= {"rebalance": choice.often(5000, 60_000, 10_000), "owned": []}
    if choice.chance(5):
        step["regex"] = choice.of(REGEXES)
    if "regex" not in step or choice.chance(2):
        step["topics"] = builder.some_topics()
    away = [member.instance_id for member in members if member.member_epoch == -2]
    if away and choice.chance(2):
        step["instance"] = choice.of(away)
    elif choice.chance(3):
        step["instance"] = choice.of(INSTANCES)
    if choice.chance(3):
        step["assignor"] = choice.of(("uniform", "range"))
    if choice.chance(12):
        step.update(choice.of(_BAD_JOINS))
    return step


def consumer_heartbeat(builder: SequenceBuilder, group: Group | None) -> Step:
    """A member stays, with the right epoch or a wrong one."""
    members = list(group.members.values()) if isinstance(group, ConsumerGroup) else []
    if not members:
        return consumer_join(builder, group)
    choice, member = builder.choice, builder.choice.of(members)
    epoch, before = member.member_epoch, member.previous_member_epoch
    step: Step = {
        "op": "cg_heartbeat",
        "member": member.member_id,
        "epoch": choice.often(epoch, epoch, epoch, before, epoch - 1, epoch + 1),
    }
    if member.instance_id is not None and not choice.chance(10):
        step["instance"] = member.instance_id
    owned = _owned(builder, member)
    if owned is not None:
        step["owned"] = owned
    _say_more(builder, step)
    return step


def _say_more(builder: SequenceBuilder, step: Step) -> None:
    choice = builder.choice
    if choice.chance(6):
        step["topics"] = builder.some_topics()
    if choice.chance(10):
        step["regex"] = choice.of(REGEXES)
    if choice.chance(12):
        step["assignor"] = choice.of(("range", "uniform", "best"))
    if choice.chance(8):
        step["rebalance"] = choice.of((5000, 20_000))
    if choice.chance(25):
        step["rack"] = choice.of(("r1", " "))
    if choice.chance(25):
        step["instance"] = choice.of(INSTANCES)


def _owned(builder: SequenceBuilder, member: ConsumerMember) -> list[str] | None:
    """What it says it owns: what it should, nothing, all it had, less, or what was never its own."""
    assigned, pending = builder.names(member.assigned), builder.names(member.pending_revocation)
    options: list[list[str] | None] = [assigned, assigned, assigned, None, [*assigned, *pending], assigned[1:], [], ["T1-0"]]
    return builder.choice.of(options)


def consumer_leave(builder: SequenceBuilder, group: Group | None) -> Step:
    """A member goes, for good or for a restart."""
    choice = builder.choice
    members = list(group.members.values()) if isinstance(group, ConsumerGroup) else []
    if not members or choice.chance(10):
        step: Step = {"op": "cg_heartbeat", "member": choice.of(IDS), "epoch": choice.of((-1, -2, -3))}
        return step | ({"instance": choice.of(INSTANCES)} if choice.chance(3) else {})
    member = choice.of(members)
    step = {"op": "cg_heartbeat", "member": member.member_id, "epoch": -1}
    if member.instance_id is not None:
        step |= {"instance": member.instance_id, "epoch": choice.of((-2, -2, -1))}
        if choice.chance(8):
            step["instance"] = choice.of(INSTANCES)
    return step
