"""A consumer-protocol group: its members, their targets, and what is counted beside them so that questions are cheap.
`HeartbeatContext` is what one member's request changes in its group, step by step, before anything is written.

Only replay (`kgctl.coordinator.shard`) changes what is durable here. Kafka: ModernGroup and ConsumerGroup.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar
from uuid import UUID

from kgctl.assignors.spec import Target
from kgctl.coordinator.consumer.member import (
    GROUP_STATES,
    WITH_EPOCHS,
    WITHOUT_EPOCHS,
    ConsumerMember,
    Partitions,
    has_owned_all,
)
from kgctl.coordinator.consumer.records import group_tombstone_keys
from kgctl.coordinator.modern.commits import commit_error, fetch_error
from kgctl.coordinator.modern.group import PartitionGroup
from kgctl.coordinator.modern.member import Refusal
from kgctl.coordinator.profile import LATEST, Profile
from kgctl.coordinator.timers import TimerKey, TimerKind
from kgctl.errors import InvariantViolation
from kgctl.model.coordinator_records import CoordinatorRecord, OffsetCommitValue, RecordKey
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import GroupState, GroupType, MetadataImage
from kgctl.model.requests import OffsetCommit, OffsetFetch, TxnOffsetCommit
from kgctl.model.values import TimelineHashMap, frozen_in_order
from kgctl.serde.partition_metadata import SubscribedTopic

FREE = -1
"""The epoch of a partition that nobody owns."""
_UNKNOWN_EPOCH = -(1 << 62)
MEMBER_TIMERS = (
    TimerKind.CONSUMER_SESSION,
    TimerKind.CONSUMER_REBALANCE,
    TimerKind.CONSUMER_JOIN,
    TimerKind.CONSUMER_SYNC,
)
K = TypeVar("K", str, UUID)


@frozen_in_order
class ResolvedRegex:
    """The topics that an expression stood for when it was last resolved."""

    topics: tuple[str, ...]
    version: int
    timestamp_ms: int


@dataclass(slots=True)
class TopicCount:
    """How many members subscribe to a topic by its name, and how many of the group's expressions stand for it."""

    by_name: int = 0
    by_regex: int = 0


class ConsumerGroup(PartitionGroup[ConsumerMember]):
    """The state of one group, as the broker version of ``profile`` has it.

    ``resolution_started_ms`` says that a resolution of expressions is under way: it is not durable.
    ``is_homogeneous`` is as of the last change of a member: an expression that is resolved or dropped later does not change it.
    ``has_had_classic_members``: a member that changed its protocol while it had to revoke has no limit for that, as in Kafka.
    """

    type = GroupType.CONSUMER

    def __init__(self, group_id: str, profile: Profile = LATEST) -> None:
        super().__init__(group_id, profile)
        self.partition_form = WITH_EPOCHS if profile.has_partition_epochs else WITHOUT_EPOCHS
        self.static_members: dict[str, str] = {}
        self.resolved_regexes: TimelineHashMap[str, ResolvedRegex] = TimelineHashMap()
        self.partition_owners: dict[UUID, dict[int, str]] = {}
        """Who owns each partition or still has to revoke it, by the member's id: its epoch is the partition's."""
        self._overtaken: set[str] = set()
        """Members one of whose partitions somebody at a later epoch has taken: only an odd log has that."""
        self.topic_counts: dict[str, TopicCount] = {}
        self.regex_subscribers: TimelineHashMap[str, int] = TimelineHashMap()
        self.assignor_counts: TimelineHashMap[str, int] = TimelineHashMap()
        self.classic_member_count = 0
        self.classic_protocols: dict[str, int] = {}
        self.has_partition_metadata_record = False
        self.subscribed_topics: tuple[SubscribedTopic, ...] = ()
        """The topics for which the group epoch was made, by name: what brokers keep before 4.1, instead of ``metadata_hash``."""
        self.resolution_started_ms: int | None = None
        self.has_had_classic_members = False
        self._behind_epoch = _UNKNOWN_EPOCH
        self._behind: set[str] = set()
        """Members that do not own their target of that epoch: kept as they change, so that nobody has to look at all of them."""

    # What any group is asked.

    @property
    def group_state(self) -> GroupState:
        """Return the state: the first row of `GROUP_STATES` whose condition holds."""
        for row in GROUP_STATES:
            if row.holds(self):
                return row.state
        raise AssertionError("the last row holds always")

    @property
    def is_reconciled(self) -> bool:
        """Whether every member owns what its target gives it."""
        epoch = self.assignment_epoch
        if self._behind_epoch != epoch:
            self._behind_epoch = epoch
            self._behind = {member_id for member_id, member in self.members.items() if not member.is_reconciled_to(epoch)}
        return not self._behind

    @property
    def listed_protocol_type(self) -> str:
        """Return the protocol type as ListGroups shows it, which is always "consumer"."""
        return "consumer"

    def offset_commit_error(self, request: OffsetCommit | TxnOffsetCommit, image: MetadataImage) -> ErrorCode:
        """Whether a commit is accepted: by the member's epoch, or by the epochs of its partitions (KIP-1251)."""
        since = self.profile.has_partition_epochs
        return commit_error(self.members, request, lambda member: since and has_owned_all(member, request, image))

    def offset_fetch_error(self, request: OffsetFetch) -> ErrorCode:
        """Whether a fetch is accepted: a member has to be up to date."""
        return fetch_error(self.members, request)

    def offset_delete_error(self) -> ErrorCode:
        """Always possible; what is subscribed to is seen topic by topic."""
        return ErrorCode.NONE

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member subscribes to it, by name or by an expression that has been resolved."""
        return topic in self.topic_counts

    def expiry_base_ms(self, offset: OffsetCommitValue) -> int | None:
        """Return the commit's time, from which the retention counts."""
        return offset.commit_timestamp_ms

    def tombstone_keys(self) -> list[RecordKey]:
        """Return the keys of all records of the group, in the order in which Kafka deletes them."""
        return group_tombstone_keys(self.group_id, self.members.java_order(), self.resolved_regexes.java_order())

    def timer_keys(self) -> Iterable[TimerKey]:
        """Return the keys of the four timers that each member may have."""
        return [key for member_id in self.members for key in self.member_timers(member_id)]

    def durable(self) -> object:
        """Return everything that the group's records say, as a value to compare."""
        return (
            (self.group_epoch, self.assignment_epoch, self.assignment_timestamp_ms, self.metadata_hash),
            dict(self.members),
            self.durable_targets(),
            dict(self.resolved_regexes),
            self.has_partition_metadata_record,
            self.subscribed_topics,
        )

    # Questions of this protocol.

    def member_timers(self, member_id: str) -> list[TimerKey]:
        """Return the keys of the timers that a member may have."""
        return [TimerKey(kind, self.group_id, member_id) for kind in MEMBER_TIMERS]

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        """The member that holds this instance id.

        A member that changes its instance id leaves the old one pointing to it, also when it is gone, as in Kafka: whoever claims
        that one is refused.
        """
        member_id = None if instance_id is None else self.static_members.get(instance_id)
        if member_id is None:
            return None
        member = self.members.get(member_id)
        if member is None:
            raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}.")
        return member

    def target_of(self, member_id: str, instance_id: str | None = None) -> Target:
        """What the member should own; for a static one, what the holder of its instance id should."""
        if instance_id is not None:
            member_id = self.static_members.get(instance_id, "")
        return self.recorded_target(member_id)

    def partition_epoch(self, topic_id: UUID, partition: int) -> int:
        """The epoch of the member that owns the partition or still has to revoke it; `FREE` if nobody does."""
        owner = self.partition_owners.get(topic_id, {}).get(partition)
        return FREE if owner is None else self.members[owner].member_epoch

    def is_waiting_for_partitions(self, member: ConsumerMember) -> bool:
        """Whether a partition of the member's target still belongs to somebody else."""
        return any(
            partition not in member.assigned.get(topic_id, {}) and self.partition_epoch(topic_id, partition) != FREE
            for topic_id, partitions in self.target_of(member.member_id).items()
            for partition in partitions
        )

    # Changes, by replay.

    def update_member(self, member: ConsumerMember) -> None:
        """Put a member in, or a new version of it, and keep the counts."""
        old = self.members.get(member.member_id)
        if old is not None and _count_alike(old, member):
            self._move(old, member)
            return
        if old is not None:
            self._discount(old)
        self._put(member)
        self._count(member)
        self.is_homogeneous = have_same_topics(self.regex_subscribers, self.topic_counts, len(self.members))

    def _move(self, old: ConsumerMember, new: ConsumerMember) -> None:
        """A new version that has got another epoch, state or assignment: nothing else is counted anew."""
        moves_on = new.assigned is old.assigned and not old.pending_revocation and not new.pending_revocation
        if moves_on and new.member_id not in self._overtaken:
            self._put(new)
            return
        self._disown(old, old.assigned)
        self._disown(old, old.pending_revocation)
        self._put(new)
        self._own(new, new.assigned)
        self._own(new, new.pending_revocation)

    def _put(self, member: ConsumerMember) -> None:
        self.members[member.member_id] = member
        if member.is_reconciled_to(self._behind_epoch):
            self._behind.discard(member.member_id)
        else:
            self._behind.add(member.member_id)

    def remove_member(self, member_id: str) -> None:
        """Take a member out; do nothing if there is none of this id."""
        old = self.members.pop(member_id, None)
        if old is not None:
            self._behind.discard(member_id)
            self._overtaken.discard(member_id)
            self._discount(old)
            self.is_homogeneous = have_same_topics(self.regex_subscribers, self.topic_counts, len(self.members))

    def set_resolved_regex(self, regex: str, resolved: ResolvedRegex | None) -> None:
        """Remember what an expression stands for; None: forget it."""
        old = self.resolved_regexes.pop(regex, None)
        for topic in old.topics if old is not None else ():
            self._count_topic(topic, by_regex=-1)
        if resolved is not None:
            self.resolved_regexes[regex] = resolved
            for topic in resolved.topics:
                self._count_topic(topic, by_regex=1)

    def _count(self, member: ConsumerMember) -> None:
        for topic in member.subscribed_topics:
            self._count_topic(topic, by_name=1)
        if member.regex is not None:
            add(self.regex_subscribers, member.regex, 1)
        if member.server_assignor is not None:
            add(self.assignor_counts, member.server_assignor, 1)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        if member.classic is not None:
            self.classic_member_count += 1
            self.has_had_classic_members = True
            for protocol in member.classic.supported_protocols:
                add(self.classic_protocols, protocol.name, 1)
        self._own(member, member.assigned)
        self._own(member, member.pending_revocation)

    def _discount(self, member: ConsumerMember) -> None:
        for topic in member.subscribed_topics:
            self._count_topic(topic, by_name=-1)
        if member.regex is not None:
            add(self.regex_subscribers, member.regex, -1)
        if member.server_assignor is not None:
            add(self.assignor_counts, member.server_assignor, -1)
        if member.instance_id is not None and member.member_id not in self.members:
            self.static_members.pop(member.instance_id, None)
        if member.classic is not None:
            self.classic_member_count -= 1
            for protocol in member.classic.supported_protocols:
                add(self.classic_protocols, protocol.name, -1)
        self._disown(member, member.assigned)
        self._disown(member, member.pending_revocation)

    def _count_topic(self, topic: str, *, by_name: int = 0, by_regex: int = 0) -> None:
        count = self.topic_counts.get(topic)
        if count is None:
            count = self.topic_counts[topic] = TopicCount()
        count.by_name += by_name
        count.by_regex += by_regex
        if count.by_name <= 0 and count.by_regex <= 0:
            del self.topic_counts[topic]

    def _own(self, member: ConsumerMember, partitions: Partitions) -> None:
        """Kafka: ConsumerGroup#addPartitionEpochs. A partition whose old owner is at the same epoch or above has two owners."""
        for topic_id, epochs in partitions.items():
            owners = self.partition_owners.setdefault(topic_id, {})
            for partition in epochs:
                other = owners.get(partition)
                if other is not None:
                    epoch = self.members[other].member_epoch
                    if epoch >= member.member_epoch or not self.profile.tolerates_two_owners:
                        what = f"partition {partition} of {topic_id} goes to {member.member_id!r} while it has an owner at epoch"
                        raise InvariantViolation(f"group {self.group_id!r}: {what} {epoch}", group=self.group_id)
                    self._overtaken.add(other)
                owners[partition] = member.member_id

    def _disown(self, member: ConsumerMember, partitions: Partitions) -> None:
        for topic_id, epochs in partitions.items():
            owners = self.partition_owners.get(topic_id, {})
            for partition in epochs:
                if owners.get(partition) == member.member_id:
                    del owners[partition]
            if not owners:
                self.partition_owners.pop(topic_id, None)


def _count_alike(old: ConsumerMember, new: ConsumerMember) -> bool:
    """Whether only the names of the topics count beside the partitions, and they are the same."""
    return old.subscribed_topics is new.subscribed_topics and not (
        old.subscribed_regex
        or new.subscribed_regex
        or old.server_assignor
        or new.server_assignor
        or old.instance_id
        or new.instance_id
        or old.classic
        or new.classic
    )


def add(counts: dict[K, int], key: K, by: int) -> None:
    """Change a count; what is counted zero times is not in the map."""
    count = counts.get(key, 0) + by
    if count > 0:
        counts[key] = count
    else:
        counts.pop(key, None)


def have_same_topics(regexes: Mapping[str, int], counts: Mapping[str, TopicCount], member_count: int) -> bool:
    """Whether every member subscribes to every topic: all by name, or all by one and the same expression."""
    if not regexes:
        return all(count.by_name == member_count for count in counts.values())
    if next(iter(regexes.values())) != member_count:
        return False
    return all(count.by_regex == 1 and count.by_name == 0 for count in counts.values())


@dataclass(slots=True)
class HeartbeatContext:
    """The group as it was, the member as it was (``old``) and as it is so far (``new``), and the records to write at the end.

    Every step looks at the group as it was before the request; none sees what an earlier one has put into ``records``.
    """

    group: ConsumerGroup
    old: ConsumerMember
    new: ConsumerMember
    records: list[CoordinatorRecord] = field(default_factory=list)

    @property
    def names_changed(self) -> bool:
        """Whether the member subscribes to other names than before."""
        return self.new.topic_set != self.old.topic_set
