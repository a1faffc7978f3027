"""A classic group: who is in it, and the small steps from which the requests' handlers build.

Kafka: ClassicGroup. Nothing here replies, appends or arms a timer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from kgctl.coordinator.classic.member import ClassicMember
from kgctl.coordinator.classic.states import ALLOWED, DEAD, EMPTY, PREPARING_REBALANCE, RESPONSES, STABLE
from kgctl.coordinator.group import Group
from kgctl.coordinator.requests import JoinProtocol, OffsetCommit, OffsetFetch, TxnOffsetCommit
from kgctl.coordinator.timers import TimerKey, TimerKind
from kgctl.errors import InvariantViolation
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import GroupState, GroupType
from kgctl.model.java_order import HashMap
from kgctl.model.partitions import MetadataImage
from kgctl.model.records import GroupMetadataKey, GroupMetadataValue, OffsetCommitValue, RecordKey

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
        """The state."""
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
        """Nobody's identity is looked at."""
        return ErrorCode.NONE

    def offset_delete_error(self) -> ErrorCode:
        """Only of consumers it is known which topics they use."""
        if self.state is DEAD:
            return ErrorCode.GROUP_ID_NOT_FOUND
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
        if self.protocol_type is None:
            return offset.commit_timestamp_ms
        if self.state is EMPTY:
            return offset.commit_timestamp_ms if self.state_timestamp_ms is None else self.state_timestamp_ms
        if self.protocol_type == CONSUMER_PROTOCOL_TYPE and self.subscribed_topics is not None and self.state is STABLE:
            return offset.commit_timestamp_ms
        return None

    def tombstone_keys(self) -> list[RecordKey]:
        """One record is all a classic group has."""
        return [GroupMetadataKey(self.group_id)]

    def timer_keys(self) -> Iterable[TimerKey]:
        """Its own, and one for each member and each pending id."""
        yield from (self.join_timer, self.sync_timer, self.stuck_timer)
        for member in self.members.values():
            yield member.session_timer
        for member_id in self.pending_joins:
            yield self.session_timer(member_id)

    def durable(self) -> object:
        """The group's record."""
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
        """Whether a member that offers these could join."""
        if self.state is EMPTY:
            return bool(protocol_type and protocols)
        size = len(self.members)
        return protocol_type == self.protocol_type and any(self.supported_protocols[p.name] == size for p in protocols)

    def add_member(self, member: ClassicMember, protocol_type: str) -> None:
        """Take a member in: the first one sets the protocol type, and leads when nobody does."""
        if not self.members:
            self.protocol_type = protocol_type
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        self.supported_protocols.update(protocol.name for protocol in member.protocols)
        self.parked_joins += member.parked_join is not None
        self.pending_joins.pop(member.member_id, None)

    def remove(self, member_id: str) -> ClassicMember | None:
        """Take a member or a pending id out; if it led, the first one left in Kafka's order leads. None if it was no member."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self.supported_protocols.subtract(protocol.name for protocol in member.protocols)
            self.parked_joins -= member.parked_join is not None
            if member.group_instance_id is not None:
                self.static_members.pop(member.group_instance_id, None)
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
        """What the member offers from now on."""
        before, member.protocols = member.protocols, protocols
        if [protocol.name for protocol in before] != [protocol.name for protocol in protocols]:
            self.supported_protocols.subtract(protocol.name for protocol in before)
            self.supported_protocols.update(protocol.name for protocol in protocols)

    @property
    def has_all_members_joined(self) -> bool:
        """Whether nobody is left to wait for in the join phase."""
        return self.parked_joins == len(self.members) and not self.pending_joins

    @property
    def is_initial_rebalance(self) -> bool:
        """Whether it collects its first members."""
        return self.state is PREPARING_REBALANCE and self.previous_state is EMPTY

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest that a member asks to be waited for; 0 without members."""
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
