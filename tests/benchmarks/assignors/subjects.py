"""kgctl's assignors, kafka-python's and aiokafka's, behind one form: prepare a group, then the call that is timed."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from kgctl.assignors import get_assignor
from kgctl.assignors.partition_space import PartitionIds, PartitionSpace
from kgctl.assignors.spec import NOTHING, GroupAssignment, GroupSpec, MemberSpec, StickyClaim, TopicSpec
from kgctl.assignors.wire_form import encode_cooperative, encode_sticky
from tests.benchmarks.assignors.groups import Group, Owned
from tests.support.assignor_leader import JoinedMember, encode_subscription, lead

Prepare = Callable[[str, Group, Owned], Callable[[], object]]


def own_answer(name: str, group: Group, owned: Owned) -> Owned:
    """kgctl's answer by name; the state from which the next step starts."""
    assignment = get_assignor(name).assign(_spec(name, group, owned))
    assert isinstance(assignment, GroupAssignment)
    return {member: assignment[member] for member in assignment}


def _spec(name: str, group: Group, owned: Owned) -> GroupSpec:
    space = PartitionSpace(group.topics)
    members = []
    for member_id, topics in group.subscriptions.items():
        has = member_id in owned
        mine = PartitionIds(space, list(space.numbers(owned[member_id]))) if has else NOTHING
        members.append(
            MemberSpec(
                member_id,
                topics,
                owned=mine,
                generation=1 if has else -1,
                user_data=StickyClaim(mine, 1) if has and name == "sticky" else None,
            )
        )
    return GroupSpec({topic: TopicSpec(count) for topic, count in group.topics.items()}, members)


def kgctl_in_memory(name: str, group: Group, owned: Owned) -> Callable[[], object]:
    """Members with their partitions as integers; the answer as integers."""
    spec = _spec(name, group, owned)
    return lambda: get_assignor(name).assign(spec)


def kgctl_bytes(name: str, group: Group, owned: Owned) -> Callable[[], object]:
    """What a leader does: members' bytes in, assignments' bytes out."""
    members = []
    for member_id, topics in group.subscriptions.items():
        mine = owned.get(member_id)
        extra: dict[str, Any] = {}
        if mine is not None and name == "sticky":
            extra = {"user_data": encode_sticky(mine, 1)}
        elif mine is not None and name == "cooperative-sticky":
            extra = {"owned": mine, "generation": 1, "user_data": encode_cooperative(1)}
        members.append(JoinedMember(member_id, encode_subscription(topics, **extra)))
    topics_ = {topic: TopicSpec(count) for topic, count in group.topics.items()}
    return lambda: lead(get_assignor(name), topics_, members)


def _cluster(group: Group) -> Any:
    partitions = {topic: set(range(count)) for topic, count in group.topics.items()}
    return SimpleNamespace(partitions_for_topic=partitions.get, topics=lambda: set(partitions))


_CLASSES = {
    "range": ("range", "RangePartitionAssignor"),
    "roundrobin": ("roundrobin", "RoundRobinPartitionAssignor"),
    "sticky": ("sticky.sticky_assignor", "StickyPartitionAssignor"),
}


def _class(library: str, name: str) -> Any:
    module, attribute = _CLASSES[name]
    return getattr(importlib.import_module(f"{library}.coordinator.assignors.{module}"), attribute)


def _listed(library: str, mine: Mapping[str, Sequence[int]]) -> list[Any]:
    topic_partition = importlib.import_module(f"{library}.structs").TopicPartition
    return [topic_partition(topic, partition) for topic, partitions in mine.items() for partition in partitions]


def kafka_python(name: str, group: Group, owned: Owned) -> Callable[[], object]:
    """kafka-python's assignor, given decoded subscriptions."""
    assignor = _class("kafka", name)
    members = []
    for member_id, topics in group.subscriptions.items():
        if name == "sticky":
            mine = _listed("kafka", owned[member_id]) if member_id in owned else None
            metadata = assignor._metadata(topics, mine, 1)
            metadata = type(metadata).decode(metadata.encode())
        else:
            metadata = assignor().metadata(topics)
        members.append(SimpleNamespace(member_id=member_id, group_instance_id=None, metadata=metadata))
    cluster = _cluster(group)
    return lambda: assignor().assign(cluster, members)


def aiokafka(name: str, group: Group, owned: Owned) -> Callable[[], object]:
    """aiokafka's assignor, given decoded subscriptions."""
    assignor = _class("aiokafka", name)
    members = {}
    for member_id, topics in group.subscriptions.items():
        if name == "sticky":
            mine = _listed("aiokafka", owned[member_id]) if member_id in owned else None
            members[member_id] = assignor._metadata(topics, mine, 1)
        else:
            members[member_id] = assignor.metadata(topics)
    cluster = _cluster(group)
    return lambda: assignor.assign(cluster, members)


PEERS: Mapping[str, Prepare] = {"kafka-python": kafka_python, "aiokafka": aiokafka}
