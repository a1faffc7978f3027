"""Steps of the classic protocol, in groups of either protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kgctl.coordinator.classic.group import ClassicGroup
from kgctl.coordinator.consumer.group import ConsumerGroup
from kgctl.coordinator.group import Group
from kgctl.coordinator.streams.group import StreamsGroup
from kgctl.model.groups import ConsumerAssignment, ConsumerSubscription, TopicPartition
from kgctl.serde.consumer_protocol import encode_assignment, encode_subscription
from tests.differential.choices import INSTANCES, PROTOCOLS

if TYPE_CHECKING:
    from tests.differential.sequences import SequenceBuilder

Step = dict[str, Any]

# None that ends inside a text or a list: reading that, Kafka fails with an exception that it does not expect.
_OTHER_METADATA = (
    *(encode_subscription(ConsumerSubscription(("T1",), version=version)).hex() for version in (0, 1, 2)),
    encode_subscription(ConsumerSubscription(("T1", "T2"), b"u", (TopicPartition("T1", 0),), 3, "r1")).hex(),
    "",
    "00",
    "0003ffff",
    encode_subscription(ConsumerSubscription(("T2",))).hex() + "ffff",
)
_OTHER_ASSIGNMENTS = (
    encode_assignment(ConsumerAssignment((TopicPartition("T1", 0),), b"mine")).hex(),
    encode_assignment(ConsumerAssignment((TopicPartition("gone", 0), TopicPartition("T1", 99)))).hex(),
    "",
    "0001",
)


def join(builder: SequenceBuilder, group: Group | None) -> Step:
    """JoinGroup, of somebody new or somebody known."""
    choice = builder.choice
    known = list(group.members) if isinstance(group, ClassicGroup | ConsumerGroup) else []
    pending = list(group.pending_joins) if isinstance(group, ClassicGroup) else []
    member_id = choice.of(["", "", *pending, *pending, *known, *known, *(["ghost"] * (not known or choice.chance(6)))])
    if isinstance(group, StreamsGroup):
        # With an id, Kafka forgets an empty streams group but leaves its records, and cannot read its own log any more if another
        # group takes the name.
        member_id = ""
    step: Step = {"op": "join", "v": choice.of((9, 5, 4, 3)), "member": member_id, "protocols": choice.of(PROTOCOLS)}
    step |= {"topics": choice.of((["T1"], ["T1", "T2"], ["T3", "gone"], [])), "session": choice.often(10_000, 30_000, 6000)}
    step["rebalance"] = choice.often(20_000, 5000, 60_000)
    instance = _instance_of(group, member_id)
    if step["v"] >= 5 and (instance or (not member_id and choice.chance(3))):
        step["instance"] = instance or choice.of(INSTANCES)
    if isinstance(group, ConsumerGroup) and member_id in group.members and choice.chance(2):
        step["owned"] = [name for name in builder.names(group.members[member_id].assigned) if not choice.chance(6)]
    if choice.chance(15):
        step["metadata_hex"] = choice.of(_OTHER_METADATA)
    if builder.protocol_type != "consumer":
        step["protocol_type"] = builder.protocol_type
    if choice.chance(30):
        step.update(choice.of(({"session": 5999}, {"protocol_type": "connect"}, {"protocols": []}, {"protocol_type": ""})))
    return step


def _instance_of(group: Group | None, member_id: str) -> str | None:
    if isinstance(group, ClassicGroup):
        member = group.members.get(member_id)
        return None if member is None else member.group_instance_id
    if isinstance(group, ConsumerGroup) and member_id in group.members:
        return group.members[member_id].instance_id
    return None


def _speakers(builder: SequenceBuilder, group: Group | None) -> list[str]:
    """Those who may speak the classic protocol: in a consumer group mostly its classic members."""
    if isinstance(group, ClassicGroup):
        return list(group.members)
    if not isinstance(group, ConsumerGroup):
        return []
    classic = [member.member_id for member in group.members.values() if member.classic is not None]
    return classic if classic and not builder.choice.chance(4) else list(group.members)


def identity(builder: SequenceBuilder, group: Group | None) -> Step:
    """A member with its generation, right or wrong."""
    choice = builder.choice
    members = _speakers(builder, group)
    member_id = choice.of(members) if members and not choice.chance(12) else "ghost"
    generation = group.generation_id if isinstance(group, ClassicGroup) else 1
    if isinstance(group, ConsumerGroup) and member_id in group.members:
        generation = group.members[member_id].member_epoch
    step: Step = {
        "member": member_id,
        "generation": choice.often(generation, generation, generation, generation - 1, generation + 1),
    }
    instance = _instance_of(group, member_id)
    if instance is not None and not choice.chance(12):
        step["instance"] = instance
    elif choice.chance(25):
        step["instance"] = choice.of(INSTANCES)
    return step


def sync(builder: SequenceBuilder, group: Group | None) -> Step:
    """SyncGroup; the leader hands partitions out, evenly or not."""
    choice = builder.choice
    if not _speakers(builder, group) and not choice.chance(6):
        return join(builder, group)
    step: Step = {"op": "sync", **identity(builder, group)}
    if isinstance(group, ClassicGroup) and group.leader_id in group.members and choice.chance(2):
        step |= {"member": group.leader_id, "generation": group.generation_id}
        step.pop("instance", None)
    if isinstance(group, ClassicGroup) and (step["member"] == group.leader_id or choice.chance(6)):
        step["assignments"] = _assignments(builder, group)
    if choice.chance(15):
        step.update(choice.of(({"protocol": "range"}, {"protocol_type": "consumer"}, {"protocol": "other"})))
    return step


def _assignments(builder: SequenceBuilder, group: ClassicGroup) -> dict[str, list[str] | str]:
    choice, members = builder.choice, sorted(group.members)
    if not members or choice.chance(8):
        return {}
    partitions = [name for name in builder.existing if name.startswith(("T1", "T2"))]
    if choice.chance(15):
        partitions += partitions[:1]
    assignments: dict[str, list[str] | str] = {member: partitions[place :: len(members)] for place, member in enumerate(members)}
    if choice.chance(12):
        assignments[choice.of(members)] = choice.of(_OTHER_ASSIGNMENTS)
    return assignments


def heartbeat(builder: SequenceBuilder, group: Group | None) -> Step:
    """Heartbeat."""
    if not _speakers(builder, group) and not builder.choice.chance(6):
        return join(builder, group)
    return {"op": "heartbeat", **identity(builder, group)}


def leave(builder: SequenceBuilder, group: Group | None) -> Step:
    """LeaveGroup, of one or several members of either protocol, or of one that has only got its id."""
    choice = builder.choice
    version = choice.of((5, 4, 3, 2))
    identities = [identity(builder, group) for _ in range(1 if version < 3 else choice.number(1, 3))]
    entries = [{key: value for key, value in one.items() if key != "generation"} for one in identities]
    if isinstance(group, ClassicGroup) and group.pending_joins and choice.chance(3):
        entries[0] = {"member": choice.of(list(group.pending_joins))}
    if version < 3:
        return {"op": "leave", "v": version, "member": entries[0]["member"]}
    for entry in entries:
        if "instance" in entry and choice.chance(2):
            entry["member"] = ""
    return {"op": "leave", "v": version, "members": entries}
