"""The records that a group coordinator keeps of streams groups (KIP-1071), types 17 and 19 to 23.

The value of type 23 is `kgctl.model.streams_topology.StreamsTopology`, as the member declared it.
"""

from __future__ import annotations

from typing import NamedTuple

from kgctl.model.streams_topology import StreamsTopology
from kgctl.model.values import frozen_in_order


class TaskIds(NamedTuple):
    """Tasks of one subtopology, by the numbers of the partitions that they read; requests and answers have them so too."""

    subtopology_id: str
    partitions: tuple[int, ...]


class AssignedTaskIds(NamedTuple):
    """Tasks of one subtopology that a member has. ``assignment_epochs``: since when, of active tasks, if that is recorded."""

    subtopology_id: str
    partitions: tuple[int, ...]
    assignment_epochs: tuple[int, ...] = ()


class UserEndpoint(NamedTuple):
    """Where a member answers interactive queries; ``port`` 0 to 65,535."""

    host: str
    port: int


ClientTags = tuple[tuple[str, str], ...]
"""(key, value)."""


@frozen_in_order
class StreamsGroupMetadataKey:
    """Key of type 17: a group and its epoch."""

    group: str


@frozen_in_order
class StreamsGroupMetadataValue:
    """The group epoch, and Kafka's hash over the topics of the topology (0 for none).

    ``validated_topology_epoch`` -1: topics are missing or do not fit.
    """

    epoch: int
    metadata_hash: int = 0
    validated_topology_epoch: int = -1
    last_assignment_configs: tuple[tuple[str, str], ...] = ()


@frozen_in_order
class StreamsGroupMemberMetadataKey:
    """Key of type 19: what a member is."""

    group: str
    member_id: str


@frozen_in_order
class StreamsGroupMemberMetadataValue:
    """What a member has told of itself; ``client_tags`` are sorted."""

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = 0
    process_id: str = ""
    user_endpoint: UserEndpoint | None = None
    client_tags: ClientTags = ()


@frozen_in_order
class StreamsGroupTargetAssignmentMetadataKey:
    """Key of type 20: the epoch of a group's target assignment."""

    group: str


@frozen_in_order
class StreamsGroupTargetAssignmentMetadataValue:
    """The assignment epoch, and when the target was computed (0: unknown)."""

    assignment_epoch: int
    assignment_timestamp_ms: int = 0


@frozen_in_order
class StreamsGroupTargetAssignmentMemberKey:
    """Key of type 21: the target assignment of one member."""

    group: str
    member_id: str


@frozen_in_order
class StreamsGroupTargetAssignmentMemberValue:
    """The tasks that the member should have."""

    active_tasks: tuple[TaskIds, ...] = ()
    standby_tasks: tuple[TaskIds, ...] = ()
    warmup_tasks: tuple[TaskIds, ...] = ()


@frozen_in_order
class StreamsGroupCurrentMemberAssignmentKey:
    """Key of type 22: the tasks that a member has, and its epochs."""

    group: str
    member_id: str


@frozen_in_order
class StreamsGroupCurrentMemberAssignmentValue:
    """The tasks that a member has and those that it has to give up.

    ``state``: 1 STABLE, 2 UNREVOKED_TASKS, 3 UNRELEASED_TASKS.
    """

    member_epoch: int
    previous_member_epoch: int
    state: int = 1
    active_tasks: tuple[AssignedTaskIds, ...] = ()
    standby_tasks: tuple[AssignedTaskIds, ...] = ()
    warmup_tasks: tuple[AssignedTaskIds, ...] = ()
    active_tasks_pending_revocation: tuple[AssignedTaskIds, ...] = ()
    standby_tasks_pending_revocation: tuple[AssignedTaskIds, ...] = ()
    warmup_tasks_pending_revocation: tuple[AssignedTaskIds, ...] = ()


@frozen_in_order
class StreamsGroupTopologyKey:
    """Key of type 23: what the application does, as a graph of topics."""

    group: str


StreamsRecordKey = (
    StreamsGroupMetadataKey
    | StreamsGroupMemberMetadataKey
    | StreamsGroupTargetAssignmentMetadataKey
    | StreamsGroupTargetAssignmentMemberKey
    | StreamsGroupCurrentMemberAssignmentKey
    | StreamsGroupTopologyKey
)
StreamsRecordValue = (
    StreamsGroupMetadataValue
    | StreamsGroupMemberMetadataValue
    | StreamsGroupTargetAssignmentMetadataValue
    | StreamsGroupTargetAssignmentMemberValue
    | StreamsGroupCurrentMemberAssignmentValue
    | StreamsTopology
)
