"""A group that makes one target for each of its epochs, towards which its members go. Kafka: ModernGroup.

Members are values of `M` and targets of `T`: what differs between the protocols.
"""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

from kgctl.assignors.spec import Target
from kgctl.assignors.target_order import have_same_partitions
from kgctl.coordinator.group import Group
from kgctl.coordinator.modern.member import NO_TARGET
from kgctl.coordinator.modern.topics import METADATA_REFRESH_MS
from kgctl.coordinator.profile import LATEST, Profile
from kgctl.model.values import TimelineHashMap, hash_map_order


class ModernMember(Protocol):
    """What a group asks of a member of any of these protocols."""

    @property
    def member_id(self) -> str:
        """Return its id."""
        ...


M = TypeVar("M", bound=ModernMember)
T = TypeVar("T")


class ModernGroup(Group, Generic[M, T]):
    """The state of one group, as the broker version of ``profile`` has it.

    ``metadata_deadline_ms`` and ``metadata_deadline_epoch`` say when the topics' hash has to be looked at again: they are not
    durable.
    """

    def __init__(self, group_id: str, profile: Profile = LATEST) -> None:
        self.group_id = group_id
        self.profile = profile
        self.group_epoch = self.assignment_epoch = 1 if profile.begins_at_epoch_1 else 0
        self.assignment_timestamp_ms = 0
        self.metadata_hash = 0
        self.members: TimelineHashMap[str, M] = TimelineHashMap()
        self.targets: TimelineHashMap[str, T] = TimelineHashMap()
        self.metadata_deadline_ms = 0
        self.metadata_deadline_epoch = 0
        self.is_homogeneous = True

    @property
    def is_empty(self) -> bool:
        """Return whether the group has no members."""
        return not self.members

    @property
    def member_count(self) -> int:
        """Return how many members the group has."""
        return len(self.members)

    def is_metadata_due(self, now_ms: int) -> bool:
        """Whether the topics' hash has to be computed again."""
        return now_ms >= self.metadata_deadline_ms or self.group_epoch < self.metadata_deadline_epoch

    def put_metadata_off(self, now_ms: int, group_epoch: int) -> None:
        """The topics have been looked at for this epoch."""
        self.metadata_deadline_ms = now_ms + METADATA_REFRESH_MS
        self.metadata_deadline_epoch = group_epoch

    def ask_for_metadata(self) -> None:
        """Have the topics' hash computed again: the next heartbeat does."""
        self.metadata_deadline_ms = self.metadata_deadline_epoch = 0

    def members_with(self, new: M | None) -> dict[str, M]:
        """All members with ``new``, in the order of the HashMap in which Kafka gathers them for an assignor."""
        members = {member_id: self.members[member_id] for member_id in self.members.java_order()}
        if new is not None:
            members[new.member_id] = new
        return {member_id: members[member_id] for member_id in hash_map_order(members)}

    def may_compute_target(self, interval_ms: int, now_ms: int) -> bool:
        """The interval between two targets keeps a burst of joins from making one target each (new in Kafka 4.3)."""
        last_ms = self.assignment_timestamp_ms
        return last_ms == 0 or interval_ms == 0 or now_ms >= last_ms + interval_ms

    def depends_on(self, topic: str) -> bool:
        """Whether the group's topics are to be looked at again when this one has changed."""
        return self.is_subscribed_to(topic)


class PartitionGroup(ModernGroup[M, Target]):
    """A group whose members are to read partitions of topics."""

    def durable_targets(self) -> object:
        """Return the targets of all members, as a value to compare."""
        return {
            member_id: {topic: set(numbers) for topic, numbers in target.items()} for member_id, target in self.targets.items()
        }

    def has_target(self, member_id: str, target: Target) -> bool:
        """Whether this is recorded to be the member's target; "nothing" counts only if it is recorded as well."""
        recorded = self.targets.get(member_id)
        return recorded is not None and have_same_partitions(target, recorded)

    def recorded_target(self, member_id: str) -> Target:
        """What the member should own, as far as it is recorded."""
        return self.targets.get(member_id, NO_TARGET)
