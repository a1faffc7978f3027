"""The records that a group coordinator keeps, by the versions of `RecordType`. Bytes: `kgctl.serde.coordinator_records`."""

from __future__ import annotations

from enum import IntEnum
from uuid import UUID

from kgctl.model.groups import ZERO_UUID
from kgctl.model.share_records import ShareRecordKey, ShareRecordValue
from kgctl.model.streams_records import StreamsRecordKey, StreamsRecordValue
from kgctl.model.values import frozen_in_order

TopicPartitions = tuple[tuple[UUID, tuple[int, ...]], ...]
"""(topic id, partitions) in the order of the record."""


class RecordType(IntEnum):
    """The int16 with which a record's key begins. Kafka: CoordinatorRecordType."""

    LEGACY_OFFSET_COMMIT = 0
    OFFSET_COMMIT = 1
    GROUP_METADATA = 2
    CONSUMER_GROUP_METADATA = 3
    CONSUMER_GROUP_PARTITION_METADATA = 4
    CONSUMER_GROUP_MEMBER_METADATA = 5
    CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA = 6
    CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER = 7
    CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT = 8
    SHARE_GROUP_MEMBER_METADATA = 10
    SHARE_GROUP_METADATA = 11
    SHARE_GROUP_TARGET_ASSIGNMENT_METADATA = 12
    SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER = 13
    SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT = 14
    SHARE_GROUP_STATE_PARTITION_METADATA = 15
    CONSUMER_GROUP_REGULAR_EXPRESSION = 16
    STREAMS_GROUP_METADATA = 17
    STREAMS_GROUP_MEMBER_METADATA = 19
    STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA = 20
    STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER = 21
    STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT = 22
    STREAMS_GROUP_TOPOLOGY = 23


@frozen_in_order
class OffsetCommitKey:
    """Key of type 1, a committed offset; type 0 is read as 1."""

    group: str
    topic: str
    partition: int


@frozen_in_order
class OffsetCommitValue:
    """Written as version 4, or as version 1 when ``expire_timestamp_ms`` is given (leader epoch and topic id are then lost)."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp_ms: int = 0
    expire_timestamp_ms: int = -1
    topic_id: UUID = ZERO_UUID


@frozen_in_order
class GroupMetadataKey:
    """Key of type 2: a classic group."""

    group: str


@frozen_in_order
class MemberMetadata:
    """One member inside a `GroupMetadataValue`."""

    member_id: str
    group_instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    session_timeout_ms: int = 0
    subscription: bytes = b""
    assignment: bytes = b""


@frozen_in_order
class GroupMetadataValue:
    """Written as version 3. ``current_state_timestamp_ms`` is -1 for none."""

    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    current_state_timestamp_ms: int = -1
    members: tuple[MemberMetadata, ...] = ()


@frozen_in_order
class ConsumerGroupMetadataKey:
    """Key of type 3: a consumer-protocol group and its epoch."""

    group: str


@frozen_in_order
class ConsumerGroupMetadataValue:
    """The group epoch, and Kafka's hash over the subscribed topics (0 for none)."""

    epoch: int
    metadata_hash: int = 0


@frozen_in_order
class ConsumerGroupPartitionMetadataKey:
    """Type 4: only tombstones are written since Kafka 4.1; older values are kept as raw bytes."""

    group: str


@frozen_in_order
class ConsumerGroupMemberMetadataKey:
    """Key of type 5: what a consumer-protocol member subscribes to."""

    group: str
    member_id: str


@frozen_in_order
class ClassicProtocol:
    """One protocol that a member of the classic protocol offers."""

    name: str
    metadata: bytes


@frozen_in_order
class ClassicMemberMetadata:
    """What a classic member inside a consumer-protocol group needs besides."""

    session_timeout_ms: int
    supported_protocols: tuple[ClassicProtocol, ...] = ()


@frozen_in_order
class ConsumerGroupMemberMetadataValue:
    """A member's subscription.

    ``subscribed_topic_names`` are sorted; ``classic_member_metadata`` is None for consumer-protocol members.
    """

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: tuple[str, ...] = ()
    subscribed_topic_regex: str | None = None
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    classic_member_metadata: ClassicMemberMetadata | None = None


@frozen_in_order
class ConsumerGroupTargetAssignmentMetadataKey:
    """Key of type 6: the epoch of a group's target assignment."""

    group: str


@frozen_in_order
class ConsumerGroupTargetAssignmentMetadataValue:
    """The assignment epoch, and when the target was computed (0: unknown)."""

    assignment_epoch: int
    assignment_timestamp_ms: int = 0


@frozen_in_order
class ConsumerGroupTargetAssignmentMemberKey:
    """Key of type 7: the target assignment of one member."""

    group: str
    member_id: str


@frozen_in_order
class ConsumerGroupTargetAssignmentMemberValue:
    """The partitions that the member should own."""

    topic_partitions: TopicPartitions = ()


@frozen_in_order
class ConsumerGroupCurrentMemberAssignmentKey:
    """Key of type 8: what a member owns and has to give up, and its epochs."""

    group: str
    member_id: str


@frozen_in_order
class AssignedTopicPartitions:
    """Partitions of one topic with the epoch at which each was assigned (KIP-1251); empty epochs: a record of before 4.3."""

    topic_id: UUID
    partitions: tuple[int, ...]
    assignment_epochs: tuple[int, ...] = ()


@frozen_in_order
class ConsumerGroupCurrentMemberAssignmentValue:
    """What a member owns. ``state``: 0 STABLE, 1 UNREVOKED_PARTITIONS, 2 UNRELEASED_PARTITIONS."""

    member_epoch: int
    previous_member_epoch: int
    state: int
    assigned_partitions: tuple[AssignedTopicPartitions, ...] = ()
    partitions_pending_revocation: tuple[AssignedTopicPartitions, ...] = ()


@frozen_in_order
class ConsumerGroupRegularExpressionKey:
    """Key of type 16: a regular expression of a group and the topics it stands for."""

    group: str
    regular_expression: str


@frozen_in_order
class ConsumerGroupRegularExpressionValue:
    """The topics, sorted, that a regular expression stood for at ``timestamp_ms`` and metadata ``version``."""

    topics: tuple[str, ...]
    version: int
    timestamp_ms: int


@frozen_in_order
class OpaqueKey:
    """A key that kgctl carries but does not interpret: types of newer brokers."""

    record_type: int
    raw: bytes
    group: str | None = None


RecordKey = (
    OffsetCommitKey
    | GroupMetadataKey
    | ConsumerGroupMetadataKey
    | ConsumerGroupPartitionMetadataKey
    | ConsumerGroupMemberMetadataKey
    | ConsumerGroupTargetAssignmentMetadataKey
    | ConsumerGroupTargetAssignmentMemberKey
    | ConsumerGroupCurrentMemberAssignmentKey
    | ConsumerGroupRegularExpressionKey
    | ShareRecordKey
    | StreamsRecordKey
    | OpaqueKey
)
RecordValue = (
    OffsetCommitValue
    | GroupMetadataValue
    | ConsumerGroupMetadataValue
    | ConsumerGroupMemberMetadataValue
    | ConsumerGroupTargetAssignmentMetadataValue
    | ConsumerGroupTargetAssignmentMemberValue
    | ConsumerGroupCurrentMemberAssignmentValue
    | ConsumerGroupRegularExpressionValue
    | ShareRecordValue
    | StreamsRecordValue
    | bytes
)


@frozen_in_order
class CoordinatorRecord:
    """A key with its value, or with None: a tombstone."""

    key: RecordKey
    value: RecordValue | None


@frozen_in_order
class TransactionMarker:
    """The control record that ends a transaction on the coordinator's partition."""

    producer_id: int
    producer_epoch: int
    committed: bool
    coordinator_epoch: int = 0
