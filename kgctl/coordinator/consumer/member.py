"""A member of a consumer-protocol group: an immutable value that a heartbeat replaces by the next.

Kafka: ConsumerGroupMember.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from enum import Enum
from functools import lru_cache
from types import MappingProxyType
from typing import Protocol
from uuid import UUID

from kgctl.coordinator.modern.member import MemberState, topic_order
from kgctl.model.coordinator_records import (
    AssignedTopicPartitions,
    ClassicMemberMetadata,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
)
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import ZERO_UUID, GroupState, MetadataImage, Transition
from kgctl.model.requests import OffsetCommit, OffsetCommitPartition, TxnOffsetCommit
from kgctl.model.values import (
    copied_map_capacity,
    copied_map_order,
    copied_set_capacity,
    copied_set_order,
    frozen_in_order,
    hash_map_order,
    integer_hash,
    quick_enum,
    uuid_hash,
)

EMPTY = GroupState.EMPTY
ASSIGNING = GroupState.ASSIGNING
RECONCILING = GroupState.RECONCILING
STABLE = GroupState.STABLE


class StateBasis(Protocol):
    """The part of a group that its state is computed from."""

    group_epoch: int
    assignment_epoch: int

    @property
    def member_count(self) -> int:
        """Return how many members the group has."""

    @property
    def is_reconciled(self) -> bool:
        """Whether every member is STABLE at the assignment epoch."""


@frozen_in_order
class GroupStateFacts:
    """What a group state stands for, and when a group is in it."""

    state: GroupState
    meaning: str
    when: str
    holds: Callable[[StateBasis], bool]


GROUP_STATES = (
    GroupStateFacts(EMPTY, "no members; offsets may be left", "there are no members", lambda group: not group.member_count),
    GroupStateFacts(
        ASSIGNING,
        "a new target assignment has to be computed, on somebody's next heartbeat",
        "the group epoch is above the assignment epoch",
        lambda group: group.group_epoch > group.assignment_epoch,
    ),
    GroupStateFacts(
        STABLE,
        "every member owns its target",
        "every member is STABLE at the assignment epoch",
        lambda group: group.is_reconciled,
    ),
    GroupStateFacts(RECONCILING, "members are on the way to their targets", "otherwise", lambda _: True),
)
"""The first that holds is the state. A group that does not exist is described as Dead."""

GROUP_TRANSITIONS = (
    Transition(EMPTY, ASSIGNING, "a member joins, within the assignment interval"),
    Transition(EMPTY, STABLE, "a member joins and gets its target"),
    Transition(ASSIGNING, RECONCILING, "a heartbeat computes the target (assignment epoch = group epoch)"),
    Transition(ASSIGNING, STABLE, "the new target is what everybody owns"),
    Transition(RECONCILING, STABLE, "the last member has given up and got what it should"),
    Transition(RECONCILING, ASSIGNING, "subscriptions, topics or members change (group epoch + 1)"),
    Transition(STABLE, ASSIGNING, "subscriptions, topics or members change (group epoch + 1)"),
    Transition(STABLE, RECONCILING, "a change whose target is computed at once"),
    Transition(ASSIGNING, EMPTY, "the last member leaves or is fenced"),
    Transition(RECONCILING, EMPTY, "the last member leaves or is fenced"),
    Transition(STABLE, EMPTY, "the last member leaves or is fenced"),
)


@quick_enum
class ReconciliationStep(Enum):
    """What reconciliation does with a member on its heartbeat."""

    NOTHING = "nothing"
    TRIM = "topics it no longer subscribes to are taken away"
    COMPUTE_NEXT = "its next assignment is computed"


@frozen_in_order
class MemberRules:
    """The steps of a member in one state, by what its request says.

    ``at_target``: it is at the target's epoch; ``behind``: it is not. ``holding``: it has not given up everything it has to.
    The steps of ``changed_*`` count when the request changed the subscription.
    """

    behind: ReconciliationStep = ReconciliationStep.COMPUTE_NEXT
    at_target: ReconciliationStep = ReconciliationStep.COMPUTE_NEXT
    changed_at_target: ReconciliationStep = ReconciliationStep.COMPUTE_NEXT
    holding: ReconciliationStep = ReconciliationStep.COMPUTE_NEXT
    changed_holding: ReconciliationStep = ReconciliationStep.COMPUTE_NEXT


MEMBER_RULES = {
    MemberState.STABLE: MemberRules(at_target=ReconciliationStep.NOTHING, changed_at_target=ReconciliationStep.TRIM),
    MemberState.UNREVOKED_PARTITIONS: MemberRules(holding=ReconciliationStep.NOTHING, changed_holding=ReconciliationStep.TRIM),
    MemberState.UNRELEASED_PARTITIONS: MemberRules(),
}
"""``holding`` can only be asked of a member that has partitions to revoke."""

_S, _V, _L = MemberState.STABLE, MemberState.UNREVOKED_PARTITIONS, MemberState.UNRELEASED_PARTITIONS
MEMBER_TRANSITIONS = (
    Transition(_S, _V, "it owns partitions that its target lacks"),
    Transition(_S, _L, "partitions of its target still belong to others"),
    Transition(_V, _S, "it has given them up, and gets its whole target"),
    Transition(_V, _L, "it has given them up, and waits for partitions of others"),
    Transition(_L, _S, "the last partition it waited for is free"),
    Transition(_L, _V, "a newer target takes partitions away"),
)


@frozen_in_order
class ClassicResponses:
    """What a member that uses the classic protocol is answered when it is at the assignment epoch, and when behind."""

    heartbeat: ErrorCode = ErrorCode.NONE
    heartbeat_behind: ErrorCode = ErrorCode.REBALANCE_IN_PROGRESS
    sync: ErrorCode = ErrorCode.NONE
    sync_behind: ErrorCode = ErrorCode.REBALANCE_IN_PROGRESS


CLASSIC_RESPONSES = {
    MemberState.STABLE: ClassicResponses(),
    # It has to revoke first: it syncs the smaller assignment and is then told to join again.
    MemberState.UNREVOKED_PARTITIONS: ClassicResponses(heartbeat=ErrorCode.REBALANCE_IN_PROGRESS, sync_behind=ErrorCode.NONE),
    # REBALANCE_IN_PROGRESS also as soon as nothing of its target is blocked any more.
    MemberState.UNRELEASED_PARTITIONS: ClassicResponses(),
    MemberState.UNKNOWN: ClassicResponses(),
}


Partitions = Mapping[UUID, Mapping[int, int]]


class RecordedPartitions(dict[UUID, Mapping[int, int]]):
    """Partitions that a record holds, with what it says of them: ``record`` is what the next record says if nothing changes.

    ``kept_for``: the target, the topics' names and the topics that reconciliation found last to leave them as they are.
    """

    __slots__ = ("kept_for", "record")

    record: tuple[AssignedTopicPartitions, ...]
    kept_for: tuple[object, object, object]

    def __init__(self, partitions: Partitions, record: tuple[AssignedTopicPartitions, ...]) -> None:
        super().__init__(partitions)
        self.kept_for = (None, None, None)
        self.record = record


"""Topic id -> partition -> the epoch at which the member got it (KIP-1251); both in the order of Kafka's hash maps."""

NOTHING: Mapping[UUID, Mapping[int, int]] = MappingProxyType({})

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
        """Return whether the member speaks JoinGroup and SyncGroup inside this group."""
        return self.classic is not None

    @property
    def regex(self) -> str | None:
        """The regular expression it subscribes by, or None."""
        return self.subscribed_regex or None

    @property
    def session_timeout_ms(self) -> int:
        """Return the member's own session timeout; only members of the classic protocol have one."""
        assert self.classic is not None
        return self.classic.session_timeout_ms

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Whether the member owns what the target of this epoch gives it."""
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

    def assignment_epoch(self, topic_id: UUID, partition: int) -> int | None:
        """The epoch at which it got this partition; None if it neither owns it nor still has to revoke it."""
        for partitions in (self.assigned, self.pending_revocation):
            epoch = partitions.get(topic_id, _NO_PARTITIONS).get(partition)
            if epoch is not None:
                return epoch
        return None


_NO_PARTITIONS: Mapping[int, int] = MappingProxyType({})


def with_metadata(member: ConsumerMember, value: ConsumerGroupMemberMetadataValue) -> ConsumerMember:
    """Return the member with the subscription that a record of type 5 holds."""
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


def with_current_assignment(
    member: ConsumerMember, value: ConsumerGroupCurrentMemberAssignmentValue, form: PartitionForm
) -> ConsumerMember:
    """The member with the epochs and partitions of a record."""
    assigned = member.assigned
    if type(assigned) is not RecordedPartitions or assigned.record is not value.assigned_partitions:
        assigned = form.of_record(value.assigned_partitions, value.member_epoch)
    return member.moved(
        value.member_epoch,
        value.previous_member_epoch,
        MemberState.of_record(value.state),
        assigned,
        form.of_record(value.partitions_pending_revocation, value.member_epoch),
    )


class PartitionForm:
    """How a version records the partitions of members, and the order in which Java iterates over them.

    With their epochs they are the keys of hash maps; without them, before 4.3, they are in hash sets, whose copies have tables of
    other sizes. Here they are maps all the same, of epochs that say nothing.
    """

    def __init__(self, *, with_epochs: bool) -> None:
        self.with_epochs = with_epochs
        self.copied_order = copied_map_order if with_epochs else copied_set_order
        self.copied_capacity = copied_map_capacity if with_epochs else copied_set_capacity
        self._known = lru_cache(maxsize=4096)(self._read)
        """By what the record says: most records of a member repeat what the one before said, but for the member's epoch."""

    def of_record(self, topics: Sequence[AssignedTopicPartitions], member_epoch: int) -> Partitions:
        """Partitions with their epochs. Where the record has none, each counts as got at the member's epoch."""
        if not topics:
            return NOTHING
        if not self.with_epochs or all(len(topic.assignment_epochs) == len(topic.partitions) for topic in topics):
            return self._known(tuple(topics))
        epoch = max(member_epoch, 0)
        return self._known(
            tuple(AssignedTopicPartitions(topic.topic_id, topic.partitions, (epoch,) * len(topic.partitions)) for topic in topics)
        )

    def _read(self, topics: tuple[AssignedTopicPartitions, ...]) -> Partitions:
        found: dict[UUID, Mapping[int, int]] = {}
        for topic in topics:
            if self.with_epochs:
                epochs = dict(zip(topic.partitions, topic.assignment_epochs, strict=True))
                order = hash_map_order(epochs, hash_of=integer_hash)
                found[topic.topic_id] = {number: epochs[number] for number in order}
            else:
                found[topic.topic_id] = dict.fromkeys(copied_set_order(topic.partitions, hash_of=integer_hash), 0)
        partitions = {topic_id: found[topic_id] for topic_id in hash_map_order(found, hash_of=uuid_hash)}
        return RecordedPartitions(partitions, self._written_out(partitions))

    def record_of(self, partitions: Partitions) -> tuple[AssignedTopicPartitions, ...]:
        """Partitions as a record has them, in the order of the maps."""
        if type(partitions) is RecordedPartitions:
            return partitions.record
        return self._written_out(partitions) if partitions else ()

    def _written_out(self, partitions: Partitions) -> tuple[AssignedTopicPartitions, ...]:
        return tuple(
            AssignedTopicPartitions(topic_id, tuple(epochs), tuple(epochs.values()) if self.with_epochs else ())
            for topic_id, epochs in partitions.items()
        )


WITH_EPOCHS = PartitionForm(with_epochs=True)
WITHOUT_EPOCHS = PartitionForm(with_epochs=False)


def has_owned_all(member: ConsumerMember, request: OffsetCommit | TxnOffsetCommit, image: MetadataImage) -> bool:
    """Whether the member has owned each of these partitions since the epoch it names."""
    for partition in request.partitions:
        topic_id = partition.topic_id if isinstance(request, OffsetCommit) else _resolve(partition, image)
        epoch = member.assignment_epoch(topic_id, partition.partition)
        if epoch is None or request.generation_id < epoch:
            return False
    return True


def _resolve(partition: OffsetCommitPartition, image: MetadataImage) -> UUID:
    topic = image.topics.get(partition.topic)
    return ZERO_UUID if topic is None else topic.topic_id
