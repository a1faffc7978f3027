"""What a member of the consumer protocol knows of its membership. Kafka: AbstractMembershipManager and its LocalAssignment."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias
from uuid import UUID

from kgctl.coordinator.results import TopicPartitions
from kgctl.member.api import Rng
from kgctl.model.frozen import frozen_in_order
from kgctl.model.quick_enum import quick_enum
from kgctl.serde.record_schema import uuid_text

PartitionsById: TypeAlias = dict[UUID, tuple[int, ...]]

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
STATIC_LEAVE_EPOCH = -2


@quick_enum
class Phase(Enum):
    """Kafka: MemberState."""

    UNSUBSCRIBED = "not in the group"
    JOINING = "the heartbeat that joins is due or under way"
    RECONCILING = "the assignment differs from what is owned"
    ACKNOWLEDGING = "reconciled; the heartbeat that says so is due"
    STABLE = "owns what is assigned"
    FENCED = "cast out; what is owned is being given up"
    LEAVING = "the heartbeat that leaves is due"
    STALE = "left for want of polls; joins again at the next"
    FATAL = "an error that nothing helps against"


OUTSIDE = frozenset({Phase.UNSUBSCRIBED, Phase.FENCED, Phase.STALE, Phase.FATAL})
BEATS_AT_ONCE = frozenset({Phase.JOINING, Phase.ACKNOWLEDGING, Phase.LEAVING})
TAKES_ASSIGNMENTS = frozenset({Phase.JOINING, Phase.RECONCILING, Phase.ACKNOWLEDGING, Phase.STABLE})


@frozen_in_order
class LocalAssignment:
    """Partitions by topic id, numbered: the same partitions assigned again after others are a new assignment."""

    number: int = -1
    partitions: PartitionsById = field(default_factory=dict)

    @property
    def is_none(self) -> bool:
        """Whether there was no assignment yet."""
        return self.number < 0

    def updated(self, assignment: TopicPartitions) -> LocalAssignment:
        """This one, or the next where the partitions differ."""
        partitions = {topic_id: tuple(sorted(numbers)) for topic_id, numbers in assignment if numbers}
        if not self.is_none and partitions == self.partitions:
            return self
        return LocalAssignment(self.number + 1, partitions)


NO_ASSIGNMENT = LocalAssignment()


@dataclass(slots=True)
class ConsumerMembership:
    """The mutable whole. ``target`` is what the coordinator wants, ``current`` what the member has and reports."""

    member_id: str
    phase: Phase = Phase.UNSUBSCRIBED
    epoch: int = JOIN_EPOCH
    target: LocalAssignment = NO_ASSIGNMENT
    current: LocalAssignment = NO_ASSIGNMENT

    @property
    def is_reconciled(self) -> bool:
        """Whether the member has what it should have."""
        return self.target == self.current

    def join(self) -> None:
        """Start over with epoch 0."""
        self.epoch = JOIN_EPOCH
        self.target = NO_ASSIGNMENT
        self.phase = Phase.JOINING


def new_member_id(rng: Rng) -> str:
    """16 random bytes in URL-safe base64, as Java's Uuid writes them: 22 characters, no dash in front."""
    while True:
        text = uuid_text(rng.getrandbits(128).to_bytes(16, "big"))
        if not text.startswith("-"):
            return text
