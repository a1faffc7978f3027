"""A member of a consumer-protocol group: an immutable value that a heartbeat replaces by the next.

Kafka: ConsumerGroupMember.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from types import MappingProxyType
from uuid import UUID

from kgctl.coordinator.consumer.states import MemberState
from kgctl.model.frozen import frozen_in_order
from kgctl.model.java_order import copied_set_order, hash_map_order, integer_hash, uuid_hash
from kgctl.model.records import (
    AssignedTopicPartitions,
    ClassicMemberMetadata,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
)

Partitions = Mapping[UUID, Mapping[int, int]]
"""Topic id -> partition -> the epoch at which the member got it (KIP-1251); both in the order of Kafka's hash maps."""
Target = Mapping[UUID, Sequence[int]]
"""Topic id -> partitions of a target assignment."""

NOTHING: Mapping[UUID, Mapping[int, int]] = MappingProxyType({})
NO_TARGET: Target = MappingProxyType({})

LEAVE_EPOCH = -1
STATIC_LEAVE_EPOCH = -2


def _nothing() -> Partitions:
    return NOTHING


@frozen_in_order
class ConsumerMember:
    """What is known of one member. A new one is at epoch 0 and owns nothing.

    ``subscribed_topics`` has the names in the order of Kafka's HashSet; two subscriptions are equal when their ``topic_set`` is.
    ``classic`` is set for a member that uses the classic protocol. A regular expression of "" or None is none.
    """

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topic_set: frozenset[str] = frozenset()
    subscribed_topics: tuple[str, ...] = field(default=(), compare=False)
    subscribed_regex: str | None = ""
    server_assignor: str | None = None
    classic: ClassicMemberMetadata | None = None
    member_epoch: int = 0
    previous_member_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: Partitions = field(default_factory=_nothing)
    pending_revocation: Partitions = field(default_factory=_nothing)

    @property
    def uses_classic_protocol(self) -> bool:
        """Whether it speaks JoinGroup and SyncGroup."""
        return self.classic is not None

    @property
    def regex(self) -> str | None:
        """The regular expression it subscribes by, or None."""
        return self.subscribed_regex or None

    @property
    def session_timeout_ms(self) -> int:
        """Its own session timeout; only members of the classic protocol have one."""
        assert self.classic is not None
        return self.classic.session_timeout_ms

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Whether it owns what the target of this epoch gives it."""
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch

    def moved(
        self, member_epoch: int, previous_member_epoch: int, state: MemberState, assigned: Partitions, pending: Partitions
    ) -> ConsumerMember:
        """A copy with these epochs and partitions. What `replace` would do, at half the price: the heartbeats' usual change."""
        return ConsumerMember(
            self.member_id,
            self.instance_id,
            self.rack_id,
            self.client_id,
            self.client_host,
            self.rebalance_timeout_ms,
            self.topic_set,
            self.subscribed_topics,
            self.subscribed_regex,
            self.server_assignor,
            self.classic,
            member_epoch,
            previous_member_epoch,
            state,
            assigned,
            pending,
        )

    def at_epoch(self, member_epoch: int, **changes: object) -> ConsumerMember:
        """A copy at this epoch, remembering the present one as the previous epoch."""
        return replace(self, member_epoch=member_epoch, previous_member_epoch=self.member_epoch, **changes)  # type: ignore[arg-type]

    def assignment_epoch(self, topic_id: UUID, partition: int) -> int | None:
        """The epoch at which it got this partition; None if it neither owns it nor still has to revoke it."""
        for partitions in (self.assigned, self.pending_revocation):
            epoch = partitions.get(topic_id, _NO_PARTITIONS).get(partition)
            if epoch is not None:
                return epoch
        return None


_NO_PARTITIONS: Mapping[int, int] = MappingProxyType({})


def topic_order(names: Sequence[str]) -> tuple[str, ...]:
    """A list of names as the ``HashSet`` copied from it iterates over them."""
    return tuple(copied_set_order(names))


def with_metadata(member: ConsumerMember, value: ConsumerGroupMemberMetadataValue) -> ConsumerMember:
    """The member with the subscription of a record."""
    return replace(
        member,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        topic_set=frozenset(value.subscribed_topic_names),
        subscribed_topics=topic_order(value.subscribed_topic_names),
        subscribed_regex=value.subscribed_topic_regex,
        server_assignor=value.server_assignor,
        classic=value.classic_member_metadata,
    )


def with_current_assignment(member: ConsumerMember, value: ConsumerGroupCurrentMemberAssignmentValue) -> ConsumerMember:
    """The member with the epochs and partitions of a record."""
    return member.moved(
        value.member_epoch,
        value.previous_member_epoch,
        MemberState.of_record(value.state),
        partitions_of_record(value.assigned_partitions, value.member_epoch),
        partitions_of_record(value.partitions_pending_revocation, value.member_epoch),
    )


def partitions_of_record(topics: Sequence[AssignedTopicPartitions], member_epoch: int) -> Partitions:
    """Partitions with their epochs. Records of before 4.3 have none: each partition counts as got at the member's epoch."""
    if not topics:
        return NOTHING
    found: dict[UUID, Mapping[int, int]] = {}
    for topic in topics:
        epochs: Sequence[int] = topic.assignment_epochs
        if len(epochs) != len(topic.partitions):
            epochs = [max(member_epoch, 0)] * len(topic.partitions)
        by_partition = dict(zip(topic.partitions, epochs, strict=True))
        found[topic.topic_id] = {number: by_partition[number] for number in hash_map_order(by_partition, hash_of=integer_hash)}
    return {topic_id: found[topic_id] for topic_id in hash_map_order(found, hash_of=uuid_hash)}


def record_of_partitions(partitions: Partitions) -> tuple[AssignedTopicPartitions, ...]:
    """Partitions as a record has them, in the order of the maps."""
    return tuple(
        AssignedTopicPartitions(topic_id, tuple(epochs), tuple(epochs.values())) for topic_id, epochs in partitions.items()
    )
