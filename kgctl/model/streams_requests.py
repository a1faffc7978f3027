"""What the coordinator can be asked about streams groups (KIP-1071)."""

from __future__ import annotations

from typing import NamedTuple

from kgctl.model.requests import Request
from kgctl.model.streams_records import ClientTags, TaskIds, UserEndpoint
from kgctl.model.streams_topology import StreamsTopology
from kgctl.model.values import frozen


class TaskOffset(NamedTuple):
    """How far a task's copy of its state is."""

    subtopology_id: str
    partition: int
    offset: int


@frozen
class StreamsGroupHeartbeat(Request):
    """StreamsGroupHeartbeat. None means "unchanged since the last heartbeat", as on the wire."""

    group_id: str
    member_id: str = ""
    member_epoch: int = 0
    endpoint_information_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topology: StreamsTopology | None = None
    active_tasks: tuple[TaskIds, ...] | None = None
    standby_tasks: tuple[TaskIds, ...] | None = None
    warmup_tasks: tuple[TaskIds, ...] | None = None
    process_id: str | None = None
    user_endpoint: UserEndpoint | None = None
    client_tags: ClientTags | None = None
    task_offsets: tuple[TaskOffset, ...] | None = None
    task_end_offsets: tuple[TaskOffset, ...] | None = None
    shutdown_application: bool = False


@frozen
class StreamsGroupDescribe(Request):
    """Describe streams groups."""

    group_ids: tuple[str | None, ...]
