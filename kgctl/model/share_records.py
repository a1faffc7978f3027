"""The records that a group coordinator keeps of share groups (KIP-932), types 10 to 15."""

from __future__ import annotations

from uuid import UUID

from kgctl.model.values import frozen_in_order

TopicPartitions = tuple[tuple[UUID, tuple[int, ...]], ...]
"""(topic id, partitions) in the order of the record."""


@frozen_in_order
class ShareGroupMemberMetadataKey:
    """Key of type 10: what a member subscribes to."""

    group: str
    member_id: str


@frozen_in_order
class ShareGroupMemberMetadataValue:
    """A member's subscription; ``subscribed_topic_names`` are sorted."""

    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: tuple[str, ...] = ()


@frozen_in_order
class ShareGroupMetadataKey:
    """Key of type 11: a group and its epoch."""

    group: str


@frozen_in_order
class ShareGroupMetadataValue:
    """The group epoch, and Kafka's hash over the subscribed topics (0 for none)."""

    epoch: int
    metadata_hash: int = 0


@frozen_in_order
class ShareGroupTargetAssignmentMetadataKey:
    """Key of type 12: the epoch of a group's target assignment."""

    group: str


@frozen_in_order
class ShareGroupTargetAssignmentMetadataValue:
    """The assignment epoch, and when the target was computed (0: unknown)."""

    assignment_epoch: int
    assignment_timestamp_ms: int = 0


@frozen_in_order
class ShareGroupTargetAssignmentMemberKey:
    """Key of type 13: the target assignment of one member."""

    group: str
    member_id: str


@frozen_in_order
class ShareGroupTargetAssignmentMemberValue:
    """The partitions that the member should read; others may read them too."""

    topic_partitions: TopicPartitions = ()


@frozen_in_order
class ShareGroupCurrentMemberAssignmentKey:
    """Key of type 14: what a member reads, and its epochs."""

    group: str
    member_id: str


@frozen_in_order
class ShareGroupCurrentMemberAssignmentValue:
    """What a member reads. ``state`` is 0, STABLE: nobody has to give anything up first."""

    member_epoch: int
    previous_member_epoch: int
    state: int = 0
    assigned_partitions: TopicPartitions = ()


@frozen_in_order
class ShareGroupStatePartitionMetadataKey:
    """Key of type 15: of which partitions a group's state is kept."""

    group: str


@frozen_in_order
class NamedTopicPartitions:
    """Partitions of one topic, with its name as it was."""

    topic_id: UUID
    topic_name: str
    partitions: tuple[int, ...]


@frozen_in_order
class NamedTopic:
    """A topic, with its name as it was."""

    topic_id: UUID
    topic_name: str


@frozen_in_order
class ShareGroupStatePartitionMetadataValue:
    """Partitions whose state is being made, those whose state is there, and topics whose state is being dropped."""

    initializing_topics: tuple[NamedTopicPartitions, ...] = ()
    initialized_topics: tuple[NamedTopicPartitions, ...] = ()
    deleting_topics: tuple[NamedTopic, ...] = ()


ShareRecordKey = (
    ShareGroupMemberMetadataKey
    | ShareGroupMetadataKey
    | ShareGroupTargetAssignmentMetadataKey
    | ShareGroupTargetAssignmentMemberKey
    | ShareGroupCurrentMemberAssignmentKey
    | ShareGroupStatePartitionMetadataKey
)
ShareRecordValue = (
    ShareGroupMemberMetadataValue
    | ShareGroupMetadataValue
    | ShareGroupTargetAssignmentMetadataValue
    | ShareGroupTargetAssignmentMemberValue
    | ShareGroupCurrentMemberAssignmentValue
    | ShareGroupStatePartitionMetadataValue
)
