"""A stream thread of Kafka Streams that speaks the streams protocol (KIP-1071): the coordinator hands out tasks.

Kafka: AsyncKafkaConsumer with StreamsMembershipManager and StreamsGroupHeartbeatRequestManager; much as for consumers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kgctl.assignors.high_availability import NumberedTask
from kgctl.member.api import MemberIdentity, PositionsOf, Rng
from kgctl.member.config import MemberConfig
from kgctl.member.consumer_heartbeats import Heartbeats, LocalAssignment, MembershipPhase, PartitionsById
from kgctl.member.consumer_member import ConsumerMember, MemberReconciliation
from kgctl.member.streams_api import TaskHost
from kgctl.model.groups import TopicPartition
from kgctl.model.streams_records import TaskIds
from kgctl.model.streams_requests import StreamsGroupHeartbeat
from kgctl.model.streams_results import StreamsGroupHeartbeatResult
from kgctl.model.streams_topology import DeclaredSubtopology, StreamsTopology, TopicInfo

KINDS = ("active_tasks", "standby_tasks", "warmup_tasks")
"""The fields of requests and answers, and the first half of what an assignment is kept under; the other is the subtopology."""


def declared(host: TaskHost, group_id: str) -> StreamsTopology:
    """The topology as a member declares it: a part with stores has a changelog, of one partition for each task."""
    parts = [
        DeclaredSubtopology(
            str(number),
            tuple(sorted(topics)),
            state_changelog_topics=(TopicInfo(changelog_name(group_id, number)),) if number in host.topology.stateful else (),
        )
        for number, topics in enumerate(host.topology.sources)
    ]
    return StreamsTopology(0, tuple(parts))


def changelog_name(group_id: str, subtopology: int) -> str:
    """The name of the one changelog that stands for those of a part."""
    return f"{group_id}-store-{subtopology}-changelog"


class StreamsHeartbeats(Heartbeats):
    """StreamsGroupHeartbeat: the topology when joining, then the tasks where they have changed."""

    __slots__ = ("_endpoint_epoch", "host")

    host: TaskHost
    _endpoint_epoch: int

    def _send(self, fields: dict[str, Any], handler: Callable[[Any], None]) -> None:
        identity = self._runtime.identity
        self._connection.send(
            StreamsGroupHeartbeat,
            handler,
            group_id=identity.group_id,
            member_id=self._membership.member_id,
            member_epoch=self._membership.epoch,
            endpoint_information_epoch=self._endpoint_epoch,
            **fields,
        )

    def _fields(self) -> dict[str, Any]:
        current = self._membership.current
        if self._membership.phase is MembershipPhase.JOINING:
            self._sent = self._sent._replace(assignment=None)
            return {
                **dict.fromkeys(KINDS, ()),
                "topology": declared(self.host, self._runtime.identity.group_id),
                "rebalance_timeout_ms": self._runtime.config.effective_rebalance_timeout_ms,
                "process_id": str(self.host.process_id),
                "client_tags": (),
            }
        if current == self._sent.assignment:
            return {}
        self._sent = self._sent._replace(assignment=current)
        return {kind: _tasks_of(kind, current) for kind in KINDS}

    def assignment_in(self, result: StreamsGroupHeartbeatResult) -> Any:
        """The tasks that the answer brings, by kind and subtopology; None: none are told."""
        self._endpoint_epoch = result.endpoint_information_epoch
        if result.active_tasks is None:
            return None
        told = ((kind, getattr(result, kind) or ()) for kind in KINDS)
        return tuple(((kind, each.subtopology_id), each.partitions) for kind, tasks in told for each in tasks)


def _tasks_of(kind: str, assignment: LocalAssignment) -> tuple[TaskIds, ...]:
    keys: Any = assignment.partitions
    return tuple(TaskIds(key[1], numbers) for key, numbers in keys.items() if key[0] == kind)


class TaskReconciliation(MemberReconciliation):
    """What is assigned are tasks: the instance has them before the partitions of new ones are read."""

    __slots__ = ("host",)

    host: TaskHost

    def _resolved(self) -> tuple[PartitionsById, set[TopicPartition]]:
        image, target = self._member.topics.image, self._member.membership.target
        counts = {} if image is None else {name: topic.partition_count for name, topic in image.topics.items()}
        tasks = self.host.topology.tasks(counts)
        active = _numbered(target.partitions, "active_tasks")
        return target.partitions, {partition for task in active for partition in tasks.get(task, ())}

    def on_assigned(self, resolved: LocalAssignment) -> None:
        """Kafka: DefaultStreamsRebalanceListener#onTasksAssigned."""
        tasks = resolved.partitions
        copies = (*_numbered(tasks, "standby_tasks"), *_numbered(tasks, "warmup_tasks"))
        self.host.assigned(dict.fromkeys(_numbered(tasks, "active_tasks")), copies, self._member.runtime.now_us)


def _numbered(partitions: Any, kind: str) -> list[NumberedTask]:
    return [NumberedTask(int(key[1]), number) for key, numbers in partitions.items() if key[0] == kind for number in numbers]


class StreamsProtocolMember(ConsumerMember):
    """See `kgctl.member.api.Member`."""

    __slots__ = ()

    def __init__(
        self,
        config: MemberConfig,
        identity: MemberIdentity,
        rng: Rng,
        positions_of: PositionsOf,
        request_ids: Iterator[int],
        *,
        host: TaskHost,
    ) -> None:
        super().__init__(config, identity, rng, positions_of, request_ids)
        self.heartbeats = beats = StreamsHeartbeats(
            self.runtime, self.connection, self.topics, self.membership, on_fenced=self._on_fenced, on_fatal=self._on_fatal
        )
        beats.host, beats._endpoint_epoch = host, -1
        self.reconciliation = rounds = TaskReconciliation(self)
        rounds.host = host
