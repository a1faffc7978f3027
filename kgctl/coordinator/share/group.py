"""A share group and its members: who subscribes to what, and which partitions each is to read.

Only replay (`kgctl.coordinator.share.replay`) changes what is durable here, but for one thing that Kafka does: somebody who
joins is put in before the records are written. Kafka: ShareGroup, ShareGroupMember.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import ClassVar

from kgctl.assignors.spec import Target
from kgctl.assignors.target_order import have_same_partitions
from kgctl.coordinator.modern.group import PartitionGroup
from kgctl.coordinator.modern.member import NO_TARGET, MemberState, Refusal
from kgctl.coordinator.profile import LATEST, Profile
from kgctl.coordinator.share.records import group_tombstone_keys
from kgctl.coordinator.timers import TimerKey, TimerKind, member_timer
from kgctl.model.coordinator_records import OffsetCommitValue, RecordKey
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import GroupState, GroupType, MetadataImage, Transition
from kgctl.model.requests import OffsetCommit, OffsetFetch, TxnOffsetCommit
from kgctl.model.values import TimelineHashMap, bucket, copied_map_capacity, frozen_in_order, string_hash


def _nothing() -> Target:
    return NO_TARGET


@frozen_in_order
class ShareMember:
    """What is known of one member. A new one is at epoch 0 and reads nothing.

    ``subscribed_topics`` has the names in the order of Kafka's HashSet; two subscriptions are equal when their ``topic_set`` is.
    """

    member_id: str
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_set: frozenset[str] = frozenset()
    subscribed_topics: tuple[str, ...] = field(default=(), compare=False)
    member_epoch: int = 0
    previous_member_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: Target = field(default_factory=_nothing, compare=False)

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Whether the member reads what the target of this epoch gives it."""
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch

    def is_like(self, other: ShareMember) -> bool:
        """Whether nothing is different, but for the order of partitions at most."""
        return self == other and have_same_partitions(self.assigned, other.assigned)


SHARE_TRANSITIONS: tuple[Transition[GroupState], ...] = (
    Transition(GroupState.EMPTY, GroupState.STABLE, "a member joins"),
    Transition(GroupState.STABLE, GroupState.EMPTY, "the last member leaves or is fenced"),
)


class ShareGroup(PartitionGroup[ShareMember]):
    """The state of one group. ``topic_counts``: how many members subscribe to each topic."""

    type: ClassVar[GroupType] = GroupType.SHARE

    def __init__(self, group_id: str, profile: Profile = LATEST) -> None:
        super().__init__(group_id, profile)
        self.topic_counts: TimelineHashMap[str, int] = TimelineHashMap()

    # What any group is asked.

    @property
    def group_state(self) -> GroupState:
        """Return Stable with members and Empty without: nobody waits for anybody here."""
        return GroupState.STABLE if self.members else GroupState.EMPTY

    @property
    def listed_protocol_type(self) -> str:
        """Return the protocol type as ListGroups shows it, which is always "share"."""
        return "share"

    def offset_commit_error(self, _: OffsetCommit | TxnOffsetCommit, __: MetadataImage) -> ErrorCode:
        """Nobody commits to a share group."""
        return ErrorCode.GROUP_ID_NOT_FOUND

    def offset_fetch_error(self, _: OffsetFetch) -> ErrorCode:
        """Kafka answers a fetch as if the group did not exist."""
        return ErrorCode.NONE

    def offset_delete_error(self) -> ErrorCode:
        """Refuse: a share group has no offsets of this kind."""
        return ErrorCode.GROUP_ID_NOT_FOUND

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether a member subscribes to it."""
        return topic in self.topic_counts

    def expiry_base_ms(self, _: OffsetCommitValue) -> int | None:
        """Return None: the expiry cycle leaves share groups alone."""
        return None

    def tombstone_keys(self) -> list[RecordKey]:
        """Return the keys of all records of the group, in the order in which Kafka deletes them."""
        return group_tombstone_keys(self.group_id, self.members.java_order())

    def timer_keys(self) -> Iterable[TimerKey]:
        """Return the keys of the sessions."""
        return [self.session_timer(member_id) for member_id in self.members]

    def durable(self) -> object:
        """Return everything that the group's records say but for its partitions' state, as a value to compare."""
        assigned = {
            member_id: {topic: set(numbers) for topic, numbers in member.assigned.items()}
            for member_id, member in self.members.items()
        }
        epochs = (self.group_epoch, self.assignment_epoch, self.assignment_timestamp_ms, self.metadata_hash)
        return epochs, dict(self.members), assigned, self.durable_targets()

    # Questions of this protocol.

    def session_timer(self, member_id: str) -> TimerKey:
        """Return the key of a member's session."""
        return member_timer(TimerKind.SHARE_SESSION, self.group_id, member_id)

    def known_member(self, member_id: str) -> ShareMember:
        """Return the member. Raises `Refusal`."""
        member = self.members.get(member_id)
        if member is None:
            raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}.")
        return member

    def subscribed_names(self, old: ShareMember, new: ShareMember | None) -> list[str]:
        """All topics subscribed to with ``new`` in the place of ``old``, in the order of a HashMap copied from the group's.

        It is changed with ``compute``, which looks first whether the table is full, and puts new names in front of their buckets.
        """
        counts, names = dict(self.topic_counts), self.topic_counts.java_order()
        capacity = copied_map_capacity(len(names))
        for member, by in ((old, -1), (new, 1)):
            for name in member.subscribed_topics if member is not None else ():
                if len(names) > capacity * 3 // 4:
                    capacity *= 2
                counts[name] = counts.get(name, 0) + by
                if counts[name] == 0:
                    names.remove(name)
                elif counts[name] == by:
                    names.insert(0, name)
        names.sort(key=lambda name: bucket(string_hash(name), capacity))
        return names

    def is_homogeneous_with(self, old: ShareMember, new: ShareMember) -> bool:
        """Whether every member subscribes to every topic, with ``new`` in the place of ``old``."""
        names = self.topic_counts.keys() | new.topic_set
        counts = {name: self.topic_counts.get(name, 0) - (name in old.topic_set) + (name in new.topic_set) for name in names}
        size = len(self.members) + (new.member_id not in self.members)
        return all(count == size for count in counts.values() if count)

    # Changes.

    def get_or_create(self, member_id: str) -> ShareMember:
        """Return the member; a new one is put in."""
        if member_id not in self.members:
            self.update_member(ShareMember(member_id))
        return self.members[member_id]

    def update_member(self, member: ShareMember) -> None:
        """Put a member in, or a new version of it, and keep the counts."""
        old = self.members.get(member.member_id)
        self.members[member.member_id] = member
        self._count(old, member)

    def remove_member(self, member_id: str) -> None:
        """Take a member out; do nothing if there is none of this id."""
        old = self.members.pop(member_id, None)
        if old is not None:
            self._count(old, None)

    def _count(self, old: ShareMember | None, new: ShareMember | None) -> None:
        for member, by in ((old, -1), (new, 1)):
            for name in member.subscribed_topics if member is not None else ():
                count = self.topic_counts.get(name, 0) + by
                if count:
                    self.topic_counts[name] = count
                else:
                    del self.topic_counts[name]
        self.is_homogeneous = all(count == len(self.members) for count in self.topic_counts.values())
