"""The differences from Kafka's coordinator that are left, each with its reason. Nothing else may differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kgctl.model.records import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupTargetAssignmentMemberValue,
    CoordinatorRecord,
)


@dataclass(frozen=True)
class KnownDifference:
    """``name`` stands in the report; ``explains`` says whether two records differ in just this way."""

    name: str
    reason: str
    explains: Callable[[CoordinatorRecord, CoordinatorRecord], bool]


def _same_partitions(ours: CoordinatorRecord, theirs: CoordinatorRecord) -> bool:
    return ours.key == theirs.key and _unordered(ours.value) == _unordered(theirs.value)


def _unordered(value: object) -> object:
    if isinstance(value, ConsumerGroupTargetAssignmentMemberValue):
        return {topic_id: frozenset(numbers) for topic_id, numbers in value.topic_partitions}
    if isinstance(value, ConsumerGroupCurrentMemberAssignmentValue):
        held = (value.assigned_partitions, value.partitions_pending_revocation)
        owned = [
            {topic.topic_id: dict(zip(topic.partitions, topic.assignment_epochs, strict=True)) for topic in topics}
            for topics in held
        ]
        return (value.member_epoch, value.previous_member_epoch, value.state, owned)
    return value


KNOWN_DIFFERENCES = (
    KnownDifference(
        "order of topics in an assignment",
        "Kafka writes the topics of a target (record 7), and what follows from it (record 8), in the order of a hash map that its"
        " uniform assignor changes in place, partition by partition. Where partitions move between members, the size of the map's"
        " table, and so the order, depends on every single move. The same partitions in another order mean the same to readers.",
        _same_partitions,
    ),
)
