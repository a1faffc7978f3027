"""Steps in which static members change between the two protocols, time and again (KIP-848's online migration and back)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kgctl.coordinator.classic.group import ClassicGroup
from kgctl.coordinator.consumer.group import ConsumerGroup
from kgctl.coordinator.group import Group
from tests.differential.choices import INSTANCES, PROTOCOLS

if TYPE_CHECKING:
    from tests.differential.sequences import SequenceBuilder

Step = dict[str, Any]


def move(builder: SequenceBuilder, group: Group | None) -> Step:
    """A static member joins by the other protocol, after it has said that it goes for a while if it has to."""
    choice = builder.choice
    instances = dict(group.static_members) if isinstance(group, ClassicGroup | ConsumerGroup) else {}
    instance = choice.of(sorted(instances)) if instances and not choice.chance(5) else choice.of(INSTANCES)
    if isinstance(group, ConsumerGroup) and instances.get(instance) in group.members:
        member = group.members[instances[instance]]
        if member.classic is None and member.member_epoch >= 0 and not choice.chance(6):
            return {"op": "cg_heartbeat", "member": member.member_id, "epoch": -2, "instance": instance}
        if member.classic is None and not choice.chance(4):
            return _join(builder, instance)
    return _consumer_join(builder, instance) if choice.chance(2) else _join(builder, instance)


def _join(builder: SequenceBuilder, instance: str) -> Step:
    choice = builder.choice
    step: Step = {"op": "join", "v": choice.of((9, 5)), "member": "", "instance": instance, "protocols": choice.of(PROTOCOLS[:3])}
    step |= {"topics": choice.of((["T1"], ["T1", "T2"])), "session": choice.of((30_000, 10_000))}
    return step | {"rebalance": choice.of((20_000, 60_000, 5000))}


def _consumer_join(builder: SequenceBuilder, instance: str) -> Step:
    choice = builder.choice
    number = len(builder.case["steps"])
    step: Step = {"op": "cg_heartbeat", "member": f"moved-{number}", "epoch": 0, "instance": instance, "owned": []}
    return step | {"rebalance": choice.of((20_000, 60_000, 5000)), "topics": choice.of((["T1"], ["T1", "T2"]))}
