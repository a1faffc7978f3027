"""A streams group: its members, the tasks that each should have, and the topology of the application that they run.

Only replay (`kgctl.coordinator.streams.replay`) changes what is durable here. Kafka: StreamsGroup.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar

from kgctl.coordinator.modern.commits import commit_error, fetch_error
from kgctl.coordinator.modern.group import ModernGroup
from kgctl.coordinator.modern.member import LEAVE_EPOCH, Refusal
from kgctl.coordinator.profile import LATEST, Profile
from kgctl.coordinator.streams.member import NO_TASKS, StreamsMember, StreamsTarget
from kgctl.coordinator.streams.processes import TaskProcesses
from kgctl.coordinator.streams.records import group_tombstone_keys
from kgctl.coordinator.streams.topology.configured import ConfiguredTopology, partitions_of_tasks
from kgctl.coordinator.streams.topology.known import KnownTopology
from kgctl.coordinator.timers import TimerKey, TimerKind, member_timer
from kgctl.model.coordinator_records import OffsetCommitValue, RecordKey
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import GroupState, GroupType, MetadataImage, Transition
from kgctl.model.requests import OffsetCommit, OffsetFetch, TxnOffsetCommit
from kgctl.model.streams_results import EndpointPartitions

STREAMS_TRANSITIONS: tuple[Transition[GroupState], ...] = (
    Transition(GroupState.EMPTY, GroupState.NOT_READY, "a member joins, and topics are missing or do not fit"),
    Transition(GroupState.EMPTY, GroupState.ASSIGNING, "a member joins, and others are waited for"),
    Transition(GroupState.EMPTY, GroupState.STABLE, "a member joins and gets its tasks"),
    Transition(GroupState.NOT_READY, GroupState.ASSIGNING, "the topics are there, and others are waited for"),
    Transition(GroupState.NOT_READY, GroupState.RECONCILING, "the topics are there: a new target"),
    Transition(GroupState.NOT_READY, GroupState.STABLE, "the topics are there: all tasks go to who asks"),
    Transition(GroupState.ASSIGNING, GroupState.NOT_READY, "a topic is gone or does not fit any more"),
    Transition(GroupState.ASSIGNING, GroupState.RECONCILING, "a new target"),
    Transition(GroupState.ASSIGNING, GroupState.STABLE, "a new target, which all members have"),
    Transition(GroupState.RECONCILING, GroupState.NOT_READY, "a topic is gone or does not fit any more"),
    Transition(GroupState.RECONCILING, GroupState.ASSIGNING, "a member leaves, is fenced or tells something new"),
    Transition(GroupState.RECONCILING, GroupState.STABLE, "the last member has its target"),
    Transition(GroupState.STABLE, GroupState.NOT_READY, "a topic is gone or does not fit any more"),
    Transition(GroupState.STABLE, GroupState.ASSIGNING, "a member leaves, is fenced or tells something new"),
    Transition(GroupState.STABLE, GroupState.RECONCILING, "a new target"),
    Transition(GroupState.NOT_READY, GroupState.EMPTY, "the last member leaves or is fenced"),
    Transition(GroupState.ASSIGNING, GroupState.EMPTY, "the last member leaves or is fenced"),
    Transition(GroupState.RECONCILING, GroupState.EMPTY, "the last member leaves or is fenced"),
    Transition(GroupState.STABLE, GroupState.EMPTY, "the last member leaves or is fenced"),
)


class StreamsGroup(ModernGroup[StreamsMember, StreamsTarget]):
    """The state of one group.

    ``configured``, ``shutdown_member_id``, ``endpoint_epoch`` and ``endpoints`` are not durable: the topology laid out on the
    topics of the cluster, who has asked for the end of the application, how often what is at the endpoints has changed, and what
    is at each (as far as `Profile.caches_endpoints`). ``has_loose_timers``: a heartbeat was refused after it had set the member's
    time to give tasks up, or stopped it, as in Kafka.
    """

    type: ClassVar[GroupType] = GroupType.STREAMS

    def __init__(self, group_id: str, profile: Profile = LATEST) -> None:
        super().__init__(group_id, profile)
        self.topology: KnownTopology | None = None
        self.validated_topology_epoch = 0
        self.last_assignment_configs: dict[str, str] = {}
        self.processes = TaskProcesses()
        self.configured: ConfiguredTopology | None = None
        self.shutdown_member_id: str | None = None
        self.endpoint_epoch = 0
        self.endpoints: dict[str, EndpointPartitions] = {}
        self.has_loose_timers = False

    # What any group is asked.

    @property
    def group_state(self) -> GroupState:
        """Return the state. Kafka: StreamsGroup#maybeUpdateGroupState."""
        if not self.members:
            return GroupState.EMPTY
        if self.topology is None or self.topology.epoch != self.validated_topology_epoch:
            return GroupState.NOT_READY
        if self.group_epoch > self.assignment_epoch:
            return GroupState.ASSIGNING
        is_stable = all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values())
        return GroupState.STABLE if is_stable else GroupState.RECONCILING

    @property
    def state_filter(self) -> str:
        """Return the state as a filter has to name it: Kafka knows NotReady by "not_ready" alone."""
        state = self.group_state
        return "not_ready" if state is GroupState.NOT_READY else state.value.lower()

    @property
    def listed_protocol_type(self) -> str:
        """Return the protocol type as ListGroups shows it, which is always "streams"."""
        return "streams"

    def offset_commit_error(self, request: OffsetCommit | TxnOffsetCommit, image: MetadataImage) -> ErrorCode:
        """Whether a commit is accepted: by the member's epoch, or by the epochs of the tasks that read the partitions."""
        error = commit_error(self.members, request, lambda member: self._has_owned_all(member, request, image))
        if error is not ErrorCode.UNSUPPORTED_VERSION and self._is_nowhere(request.member_id):
            return ErrorCode.UNKNOWN_SERVER_ERROR
        return error

    def _is_nowhere(self, member_id: str | None) -> bool:
        """Whether the log lacks the member's epoch, of which Kafka thinks as little as of any record that is missing."""
        member = self.members.get(member_id or "")
        return member is not None and not member.has_assignment

    def _has_owned_all(self, member: StreamsMember, request: OffsetCommit | TxnOffsetCommit, image: MetadataImage) -> bool:
        """Kafka: StreamsGroup#createAssignmentEpochValidator."""
        if self.topology is None:
            return False
        readers = self.topology.source_topic_map()
        for partition in request.partitions:
            reader = readers.get(partition.topic)
            is_gone = self._looks_up_topics and isinstance(request, TxnOffsetCommit) and partition.topic not in image.topics
            if reader is None or is_gone:
                return False
            key, number = reader.subtopology_id, partition.partition
            since = member.assigned.active.get(key, {}).get(number)
            if since is None:
                since = member.pending_revocation.active.get(key, {}).get(number)
            if since is None or request.generation_id < since:
                return False
        return True

    @property
    def _looks_up_topics(self) -> bool:
        return self.profile.has_partition_epochs

    def offset_fetch_error(self, request: OffsetFetch) -> ErrorCode:
        """Whether a fetch is accepted: a member has to be up to date."""
        return ErrorCode.UNKNOWN_SERVER_ERROR if self._is_nowhere(request.member_id) else fetch_error(self.members, request)

    def offset_delete_error(self) -> ErrorCode:
        """Always possible; what is read is seen topic by topic."""
        return ErrorCode.NONE

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a subtopology reads it, as long as there are members."""
        return bool(self.members) and self.topology is not None and topic in self.topology.source_topic_map()

    def depends_on(self, topic: str) -> bool:
        """Whether the application reads it or keeps its state in it."""
        return self.topology is not None and topic in self.topology.required_topics()

    def expiry_base_ms(self, offset: OffsetCommitValue) -> int | None:
        """Return the commit's time, from which the retention counts."""
        return offset.commit_timestamp_ms

    def tombstone_keys(self) -> list[RecordKey]:
        """Return the keys of all records of the group, in the order in which Kafka deletes them."""
        return group_tombstone_keys(self.group_id, self.members.java_order())

    def timer_keys(self) -> Iterable[TimerKey]:
        """Return the keys of the group's own timer and of those that each member may have."""
        return [self.initial_timer, *(key for member_id in self.members for key in self.member_timers(member_id))]

    def durable(self) -> object:
        """Return everything that the group's records say, as a value to compare."""
        return (
            (self.group_epoch, self.assignment_epoch, self.assignment_timestamp_ms, self.metadata_hash),
            (self.validated_topology_epoch, self.last_assignment_configs, self.topology),
            dict(self.members),
            {member_id: target.as_sets() for member_id, target in self.targets.items()},
        )

    # Questions of this protocol.

    @property
    def initial_timer(self) -> TimerKey:
        """Return the key of the wait for others that join a group without members."""
        return TimerKey(TimerKind.STREAMS_INITIAL_REBALANCE, self.group_id)

    def member_timers(self, member_id: str) -> tuple[TimerKey, TimerKey]:
        """Return the keys of a member's session, and of its time to give tasks up."""
        session = member_timer(TimerKind.STREAMS_SESSION, self.group_id, member_id)
        return session, member_timer(TimerKind.STREAMS_REBALANCE, self.group_id, member_id)

    def known_member(self, member_id: str) -> StreamsMember:
        """Return the member. Raises `Refusal`."""
        member = self.members.get(member_id)
        if member is None:
            raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}.")
        return member

    def endpoints_with(self, new: StreamsMember, image: MetadataImage) -> tuple[EndpointPartitions, ...]:
        """What is at each member's endpoint, ``new`` last. Raises `Refusal` where a topic is gone: a failure of Kafka's own."""
        others = (member for member in self.members.java_values() if member.member_id != new.member_id)
        return tuple(found for member in (*others, new) if (found := self._endpoint_of(member, image)) is not None)

    def _endpoint_of(self, member: StreamsMember, image: MetadataImage) -> EndpointPartitions | None:
        member.check_metadata()
        if member.user_endpoint is None:
            return None
        found = self.endpoints.get(member.member_id)
        if found is None:
            subtopologies = None if self.configured is None else self.configured.subtopologies
            if subtopologies is None or any(key not in subtopologies for kind in member.assigned[:2] for key in kind):
                raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
            kinds = (partitions_of_tasks(kind, subtopologies, image) for kind in member.assigned[:2])
            found = EndpointPartitions(member.user_endpoint, *kinds)
            if self.profile.caches_endpoints:
                self.endpoints[member.member_id] = found
        return found

    # Changes.

    def configure(self, topology: ConfiguredTopology) -> None:
        """The topology has been laid out anew."""
        self.configured = topology
        self.endpoints.clear()

    def update_member(self, member: StreamsMember) -> None:
        """Put a member in, or a new version of it."""
        self.processes.replace(self.members.get(member.member_id), member)
        self.members[member.member_id] = member
        self.endpoints.pop(member.member_id, None)

    def empty_member(self, member_id: str) -> None:
        """A member has no assignment any more: it goes in a moment, with its other records."""
        member = self.members.get(member_id)
        if member is not None:
            left = replace(
                member,
                member_epoch=LEAVE_EPOCH,
                previous_member_epoch=LEAVE_EPOCH,
                assigned=NO_TASKS,
                pending_revocation=NO_TASKS,
            )
            self.update_member(left)

    def remove_member(self, member_id: str) -> None:
        """Take a member out; do nothing if there is none of this id. With the last one the end of the application is over."""
        old = self.members.pop(member_id, None)
        if old is None:
            return
        self.processes.replace(old, None)
        self.endpoints.pop(member_id, None)
        if not self.members:
            self.shutdown_member_id = None
