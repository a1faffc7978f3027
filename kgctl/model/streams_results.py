"""What the coordinator answers about streams groups (KIP-1071), to the requests of `kgctl.model.streams_requests`.

Errors are values; an error without a text of its own has Kafka's usual one on the wire.
"""

from __future__ import annotations

from kgctl.model.error_codes import ErrorCode
from kgctl.model.streams_records import ClientTags, TaskIds, UserEndpoint
from kgctl.model.streams_topology import CreatableTopic, StreamsStatus, StreamsTopology
from kgctl.model.values import frozen, frozen_in_order

TopicPartitionNumbers = tuple[tuple[str, tuple[int, ...]], ...]
"""(topic, partitions)."""


@frozen_in_order
class EndpointPartitions:
    """What can be queried at one member's endpoint."""

    user_endpoint: UserEndpoint
    active_partitions: TopicPartitionNumbers = ()
    standby_partitions: TopicPartitionNumbers = ()


@frozen
class StreamsGroupHeartbeatResult:
    """``active_tasks`` and the two after it None: unchanged, not sent. Error replies: member id None, epoch 0, ``status`` None.

    ``creatable_topics`` does not travel: the internal topics that somebody has to make, in the order of Kafka's map. Kafka 4.3
    has fields for an acceptable lag and an interval of offsets too, and leaves them 0.
    """

    error: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    status: tuple[tuple[StreamsStatus, str], ...] | None = None
    active_tasks: tuple[TaskIds, ...] | None = None
    standby_tasks: tuple[TaskIds, ...] | None = None
    warmup_tasks: tuple[TaskIds, ...] | None = None
    endpoint_information_epoch: int = 0
    partitions_by_user_endpoint: tuple[EndpointPartitions, ...] | None = None
    creatable_topics: tuple[CreatableTopic, ...] = ()


@frozen_in_order
class StreamsAssignment:
    """Tasks of one member, sorted."""

    active_tasks: tuple[TaskIds, ...] = ()
    standby_tasks: tuple[TaskIds, ...] = ()
    warmup_tasks: tuple[TaskIds, ...] = ()


@frozen
class StreamsGroupDescribedMember:
    """A member in StreamsGroupDescribe."""

    member_id: str
    member_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topology_epoch: int = 0
    process_id: str = ""
    user_endpoint: UserEndpoint | None = None
    client_tags: ClientTags = ()
    assignment: StreamsAssignment = StreamsAssignment()
    target_assignment: StreamsAssignment = StreamsAssignment()


@frozen
class StreamsGroupDescribedGroup:
    """A group as StreamsGroupDescribe shows it. ``topology``: everything in it sorted, without groups of copartitioned topics."""

    group_id: str
    error: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    topology: StreamsTopology | None = None
    members: tuple[StreamsGroupDescribedMember, ...] = ()


@frozen
class StreamsGroupDescribeResult:
    """Groups in the order of the request."""

    groups: tuple[StreamsGroupDescribedGroup, ...]
