"""A classic group: who is in it, and the small steps from which the requests' handlers build.

Kafka: ClassicGroup. Nothing here replies, appends or arms a timer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from kgctl.coordinator.group import Group
from kgctl.coordinator.timers import TimerKey, TimerKind
from kgctl.errors import InvariantViolation
from kgctl.model.coordinator_records import GroupMetadataKey, GroupMetadataValue, MemberMetadata, OffsetCommitValue, RecordKey
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import GroupState, GroupType, MetadataImage, Transition
from kgctl.model.requests import JoinProtocol, OffsetCommit, OffsetFetch, TxnOffsetCommit
from kgctl.model.values import HashMap, frozen_in_order, hash_map_order
from kgctl.serde.consumer_protocol import MalformedConsumerProtocol, decode_topics

EMPTY = GroupState.EMPTY
PREPARING_REBALANCE = GroupState.PREPARING_REBALANCE
COMPLETING_REBALANCE = GroupState.COMPLETING_REBALANCE
STABLE = GroupState.STABLE
DEAD = GroupState.DEAD


@frozen_in_order
class StateFacts:
    """What is true as long as a group is in a state; `kgctl.coordinator.invariants` holds groups to it."""

    meaning: str
    may_have_members: bool = True
    may_park_joins: bool = False
    may_park_syncs: bool = False
    has_protocol: bool = False
    has_join_timer: bool = False


STATE = {
    EMPTY: StateFacts("no members; offsets may be left, and go when their retention is over", may_have_members=False),
    PREPARING_REBALANCE: StateFacts("waits for the members to join", may_park_joins=True, has_join_timer=True),
    COMPLETING_REBALANCE: StateFacts("waits for the leader's assignment", may_park_syncs=True, has_protocol=True),
    STABLE: StateFacts("every member may have its assignment", has_protocol=True),
    DEAD: StateFacts("the coordinator has given the group up", may_have_members=True),
}

TRANSITIONS = (
    Transition(EMPTY, PREPARING_REBALANCE, "first member joins"),
    Transition(PREPARING_REBALANCE, COMPLETING_REBALANCE, "all have joined, or the time is up (generation + 1)"),
    Transition(PREPARING_REBALANCE, EMPTY, "nobody is left (generation + 1)"),
    Transition(COMPLETING_REBALANCE, STABLE, "the leader syncs"),
    Transition(COMPLETING_REBALANCE, PREPARING_REBALANCE, "a member joins, leaves, expires or does not sync"),
    Transition(STABLE, PREPARING_REBALANCE, "a member joins, leaves, expires or changes its protocols"),
    Transition(EMPTY, DEAD, "the coordinator is unloaded"),
    Transition(PREPARING_REBALANCE, DEAD, "the coordinator is unloaded"),
    Transition(COMPLETING_REBALANCE, DEAD, "the coordinator is unloaded"),
    Transition(STABLE, DEAD, "the coordinator is unloaded"),
)
ALLOWED = frozenset((transition.source, transition.target) for transition in TRANSITIONS)


@frozen_in_order
class Responses:
    """What a known member of the current generation is answered in a state.

    ``sync`` None: the request is parked or gets the stored assignment. ``extends_session_on_commit``: a commit counts as a sign
    of life.
    """

    heartbeat: ErrorCode
    sync: ErrorCode | None
    commit: ErrorCode
    extends_session_on_commit: bool = False
    may_rebalance: bool = False


# As GroupMetadataManager#classicGroupHeartbeatToClassicGroup and #classicGroupSyncToClassicGroup answer, and as
# ClassicGroup#validateOffsetCommit and #canRebalance have it.
RESPONSES = {
    EMPTY: Responses(
        heartbeat=ErrorCode.UNKNOWN_MEMBER_ID,
        sync=ErrorCode.UNKNOWN_MEMBER_ID,
        commit=ErrorCode.UNKNOWN_MEMBER_ID,
        may_rebalance=True,
    ),
    # Members may still commit what they have read before they join again.
    PREPARING_REBALANCE: Responses(
        heartbeat=ErrorCode.REBALANCE_IN_PROGRESS,
        sync=ErrorCode.REBALANCE_IN_PROGRESS,
        commit=ErrorCode.NONE,
        extends_session_on_commit=True,
    ),
    # A member beats from its JoinGroup answer on; a commit comes too early until it has its assignment.
    COMPLETING_REBALANCE: Responses(
        heartbeat=ErrorCode.NONE, sync=None, commit=ErrorCode.REBALANCE_IN_PROGRESS, may_rebalance=True
    ),
    STABLE: Responses(
        heartbeat=ErrorCode.NONE, sync=None, commit=ErrorCode.NONE, extends_session_on_commit=True, may_rebalance=True
    ),
    DEAD: Responses(
        heartbeat=ErrorCode.COORDINATOR_NOT_AVAILABLE,
        sync=ErrorCode.COORDINATOR_NOT_AVAILABLE,
        commit=ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ),
}


@dataclass(slots=True)
class ClassicMember:
    """What the coordinator knows of one member. Kafka: ClassicGroupMember.

    ``parked_join`` and ``parked_sync`` are the ids of the requests that wait for an answer. ``is_new`` holds from the moment
    the member is added until the join phase ends: until then it does not know its id and cannot send heartbeats.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: tuple[JoinProtocol, ...]
    session_timer: TimerKey
    assignment: bytes = b""
    parked_join: int | None = None
    parked_sync: int | None = None
    is_new: bool = False

    @property
    def is_static(self) -> bool:
        """Return whether the member has an instance id (KIP-345)."""
        return self.group_instance_id is not None

    @property
    def is_waiting(self) -> bool:
        """Whether one of its requests is parked, which is sign of life enough."""
        return self.parked_join is not None or self.parked_sync is not None

    @property
    def protocol_names(self) -> tuple[str, ...]:
        """The names it offers, in its order, each once.

        Kafka's ClassicGroup#add counts a name that is given twice as two members'; no protocol is then common to all, and
        the join phase never ends. Here such a member is one like others.
        """
        return tuple(dict.fromkeys([protocol.name for protocol in self.protocols]))

    def metadata(self, protocol_name: str) -> bytes:
        """Return the member's metadata for a protocol that it supports. Raises `KeyError` for another."""
        for protocol in self.protocols:
            if protocol.name == protocol_name:
                return protocol.metadata
        raise KeyError(protocol_name)

    def vote(self, candidates: frozenset[str]) -> str:
        """Return the first of its protocols that everybody supports. Kafka: ClassicGroupMember#vote."""
        return next(protocol.name for protocol in self.protocols if protocol.name in candidates)


CONSUMER_PROTOCOL_TYPE = "consumer"


class ClassicGroup(Group):
    """Members, generation and state of a classic group.

    ``recorded`` is the group as the log has it (None for a group that only ever had commits); everything else is what a
    rebalance works with, and is taken from the record when a log has been loaded.
    """

    type = GroupType.CLASSIC

    def __init__(self, group_id: str, now_ms: int) -> None:
        self.group_id = group_id
        self.recorded: GroupMetadataValue | None = None
        self.state: GroupState = EMPTY
        self.previous_state: GroupState = EMPTY
        self.state_timestamp_ms: int | None = now_ms
        self.generation_id = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader_id: str | None = None
        self.members: HashMap[str, ClassicMember] = HashMap()
        self.static_members: dict[str, str] = {}
        self.pending_joins: dict[str, None] = {}
        """Ids handed out with MEMBER_ID_REQUIRED that have not joined yet."""
        self.pending_syncs: dict[str, None] = {}
        """Members of this generation that have not synced yet. May name an id that a static member has left behind."""
        self.parked_joins = 0
        self.supported_protocols: Counter[str] = Counter()
        self.subscribed_topics: frozenset[str] | None = None
        self.new_member_added = False
        self.initial_delay_ms = 0
        self.initial_remaining_ms = 0
        self.rebalance_started_ms: int | None = None
        self.rebalance_progress_ms: int | None = None
        self.join_timer = TimerKey(TimerKind.JOIN, group_id)
        self.sync_timer = TimerKey(TimerKind.SYNC, group_id)
        self.stuck_timer = TimerKey(TimerKind.STUCK_REBALANCE, group_id)

    # What any group is asked.

    @property
    def group_state(self) -> GroupState:
        """Return the state as ListGroups shows it."""
        return self.state

    @property
    def listed_protocol_type(self) -> str:
        """The protocol type, "" when no member ever gave one."""
        return self.protocol_type or ""

    @property
    def member_count(self) -> int:
        """How many members it has; pending ids are none."""
        return len(self.members)

    def offset_commit_error(self, request: OffsetCommit | TxnOffsetCommit, _image: MetadataImage) -> ErrorCode:
        """Whether a commit is accepted. Kafka: ClassicGroup#validateOffsetCommit."""
        transactional = isinstance(request, TxnOffsetCommit)
        anonymous = request.member_id == "" and request.group_instance_id is None
        if self.state is DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        # Producers from before KIP-447 name no member in TxnOffsetCommit, while their consumers are members: nobody can tell
        # whether they still own what they commit.
        if request.generation_id < 0 and (self.state is EMPTY or (anonymous and transactional)):
            return ErrorCode.NONE
        if request.generation_id < 0 and anonymous:
            return ErrorCode.UNKNOWN_MEMBER_ID
        error = self.identity_error(request.member_id, request.group_instance_id)
        if error:
            return error
        if request.generation_id != self.generation_id:
            return ErrorCode.ILLEGAL_GENERATION
        return ErrorCode.NONE if transactional else RESPONSES[self.state].commit

    def offset_fetch_error(self, _request: OffsetFetch) -> ErrorCode:
        """Accept every fetch: a classic group asks for nobody's identity."""
        return ErrorCode.NONE

    def offset_delete_error(self) -> ErrorCode:
        """Return the error that refuses a deletion as a whole, or NONE. Kafka: ClassicGroup#validateOffsetDelete."""
        if self.state is DEAD:
            return ErrorCode.GROUP_ID_NOT_FOUND
        # Only consumers say which topics they use, so that the others can be deleted while they run (KIP-496).
        if self.state is EMPTY or self.protocol_type == CONSUMER_PROTOCOL_TYPE:
            return ErrorCode.NONE
        return ErrorCode.NON_EMPTY_GROUP

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member subscribes to the topic; consumers of unknown topics count as subscribed to all."""
        if self.subscribed_topics is None:
            return self.protocol_type == CONSUMER_PROTOCOL_TYPE
        return topic in self.subscribed_topics

    def expiry_base_ms(self, offset: OffsetCommitValue) -> int | None:
        """Retention counts from the commit, or from when the last member went. Kafka: ClassicGroup#offsetExpirationCondition."""
        # Commits from outside only: each offset for itself.
        if self.protocol_type is None:
            return offset.commit_timestamp_ms
        # KIP-211: a group that was used keeps all its offsets for the retention after its last member.
        if self.state is EMPTY:
            return offset.commit_timestamp_ms if self.state_timestamp_ms is None else self.state_timestamp_ms
        # Of running consumers only the topics expire that nobody subscribes to; during a rebalance that is not known.
        if self.protocol_type == CONSUMER_PROTOCOL_TYPE and self.subscribed_topics is not None and self.state is STABLE:
            return offset.commit_timestamp_ms
        return None

    def tombstone_keys(self) -> list[RecordKey]:
        """Return the key of the group's one record."""
        return [GroupMetadataKey(self.group_id)]

    def timer_keys(self) -> Iterable[TimerKey]:
        """Return the group's own timers, and one for each member and each pending id."""
        yield from (self.join_timer, self.sync_timer, self.stuck_timer)
        for member in self.members.values():
            yield member.session_timer
        for member_id in self.pending_joins:
            yield self.session_timer(member_id)

    def durable(self) -> object:
        """Return the group's record, which is all that survives a reload."""
        return self.recorded

    # Members.

    def session_timer(self, member_id: str) -> TimerKey:
        """The key of the one timer of this id, member or pending."""
        return TimerKey(TimerKind.SESSION, self.group_id, member_id)

    def identity_error(self, member_id: str, group_instance_id: str | None) -> ErrorCode:
        """Whether this is a member, and the one that holds its instance id. Kafka: ClassicGroup#validateMember."""
        if group_instance_id is not None:
            holder = self.static_members.get(group_instance_id)
            if holder is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if holder != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def supports_protocols(self, protocol_type: str, protocols: tuple[JoinProtocol, ...]) -> bool:
        """Return whether a member that offers these could join. Kafka: ClassicGroup#supportsProtocols."""
        if self.state is EMPTY:
            return bool(protocol_type and protocols)
        # A protocol is common to all when as many members name it as there are.
        size = len(self.members)
        supported = self.supported_protocols
        return protocol_type == self.protocol_type and any(supported[protocol.name] == size for protocol in protocols)

    def add_member(self, member: ClassicMember, protocol_type: str) -> None:
        """Take a member in: the first one sets the protocol type, and leads when nobody does. Kafka: ClassicGroup#add."""
        if not self.members:
            self.protocol_type = protocol_type
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        self.supported_protocols.update(member.protocol_names)
        self.parked_joins += member.parked_join is not None
        self.pending_joins.pop(member.member_id, None)

    def remove(self, member_id: str) -> ClassicMember | None:
        """Take a member or a pending id out; if it led, the first one left in Kafka's order leads. None if it was no member."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self.supported_protocols.subtract(member.protocol_names)
            self.parked_joins -= member.parked_join is not None
            if member.group_instance_id is not None:
                self.static_members.pop(member.group_instance_id, None)
        # Kafka takes the next of its hash map's keys, so that the order of that map decides who leads.
        if self.leader_id == member_id:
            self.leader_id = self.members.java_order()[0] if self.members else None
        self.pending_joins.pop(member_id, None)
        self.pending_syncs.pop(member_id, None)
        return member

    def park_join(self, member: ClassicMember, request_id: int | None) -> None:
        """Remember the JoinGroup that waits; None: it is answered now. An earlier one is then never answered, as in Kafka."""
        self.parked_joins += (request_id is not None) - (member.parked_join is not None)
        member.parked_join = request_id

    def set_protocols(self, member: ClassicMember, protocols: tuple[JoinProtocol, ...]) -> None:
        """Replace what the member offers, and count the supported protocols anew."""
        if [protocol.name for protocol in member.protocols] == [protocol.name for protocol in protocols]:
            member.protocols = protocols
        else:
            self.supported_protocols.subtract(member.protocol_names)
            member.protocols = protocols
            self.supported_protocols.update(member.protocol_names)

    @property
    def has_all_members_joined(self) -> bool:
        """Whether nobody is left to wait for in the join phase. Kafka: ClassicGroup#hasAllMembersJoined."""
        return self.parked_joins == len(self.members) and not self.pending_joins

    @property
    def is_initial_rebalance(self) -> bool:
        """Return whether the group waits for its first members, until `group.initial.rebalance.delay.ms` is over (KIP-134)."""
        return self.state is PREPARING_REBALANCE and self.previous_state is EMPTY

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest that a member asks to be waited for; 0 without members. Kafka: ClassicGroup#rebalanceTimeoutMs."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def transition_to(self, state: GroupState, now_ms: int) -> None:
        """Change the state. A change that is not in TRANSITIONS is a bug: `InvariantViolation`."""
        if (self.state, state) not in ALLOWED:
            raise InvariantViolation(f"group {self.group_id!r} cannot go from {self.state} to {state}", group=self.group_id)
        self.previous_state, self.state = self.state, state
        self.state_timestamp_ms = now_ms

    def replace_static_member(self, old: ClassicMember, new_id: str) -> ClassicMember:
        """Put a copy of a static member under a new id into its place. Kafka: ClassicGroup#replaceStaticMember.

        The old id stays among the pending syncs if it is there, as in Kafka: the sync timer then finds a member that is gone.
        """
        del self.members[old.member_id]
        member = replace(
            old, member_id=new_id, session_timer=self.session_timer(new_id), parked_join=None, parked_sync=None, is_new=False
        )
        self.members[new_id] = member
        if self.leader_id == old.member_id:
            self.leader_id = new_id
        self.static_members[member.group_instance_id or ""] = new_id
        return member


def elect_leader_that_joined(group: ClassicGroup) -> bool:
    """Keep the leader, or make the first member that joined lead. False: nobody has joined.

    Kafka: ClassicGroup#maybeElectNewJoinedLeader.
    """
    if group.leader_id is None:
        return False
    if group.members[group.leader_id].parked_join is not None:
        return True
    for member in group.members.java_values() if group.parked_joins else ():
        if member.parked_join is not None:
            group.leader_id = member.member_id
            return True
    return False


def elect_protocol(group: ClassicGroup) -> str:
    """The protocol with most votes among those that all members support; a tie goes to the first in the order of a Java HashMap.

    Kafka: ClassicGroup#selectProtocol. There must be members.
    """
    size = len(group.members)
    candidates = frozenset(name for name, count in group.supported_protocols.items() if count == size)
    votes = Counter(member.vote(candidates) for member in group.members.java_values())
    return max(hash_map_order(votes), key=votes.__getitem__)


def start_next_generation(group: ClassicGroup, now_ms: int) -> None:
    """End the join phase: Empty, or CompletingRebalance with a protocol. Kafka: ClassicGroup#initNextGeneration."""
    count_generation(group)
    group.transition_to(COMPLETING_REBALANCE if group.members else EMPTY, now_ms)


def count_generation(group: ClassicGroup) -> None:
    """Begin a generation: its number, its protocol (none without members), the topics that its members subscribe to."""
    group.generation_id += 1
    group.protocol_name = elect_protocol(group) if group.members else None
    group.subscribed_topics = compute_subscribed_topics(group)


def compute_subscribed_topics(group: ClassicGroup) -> frozenset[str] | None:
    """The union of what the members' metadata for the elected protocol says; None where only the members can know.

    Kafka: ClassicGroup#computeSubscribedTopics.
    """
    if group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        return None
    protocol = group.protocol_name or ""
    topics: set[str] = set()
    for metadata in {member.metadata(protocol) for member in group.members.values()}:
        try:
            topics.update(decode_topics(metadata))
        except MalformedConsumerProtocol:
            return None
    return frozenset(topics)


def record_value(group: ClassicGroup, assignments: Mapping[str, bytes] | None = None) -> GroupMetadataValue:
    """The group as its record says it, with these assignments (nothing for a member they lack) or the ones that the members have.

    Kafka: GroupCoordinatorRecordHelpers#newGroupMetadataRecord.
    """
    protocol = group.protocol_name or ""
    members = tuple(
        MemberMetadata(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            session_timeout_ms=member.session_timeout_ms,
            subscription=member.metadata(protocol),
            assignment=member.assignment if assignments is None else assignments.get(member.member_id, b""),
        )
        for member in group.members.java_values()
    )
    return GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation_id,
        protocol=group.protocol_name,
        leader=group.leader_id,
        current_state_timestamp_ms=-1 if group.state_timestamp_ms is None else group.state_timestamp_ms,
        members=members,
    )
