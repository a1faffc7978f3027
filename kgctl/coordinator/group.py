"""What the coordinator asks of a group whatever protocol it speaks; and streams groups, which are only carried."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from struct import pack
from typing import ClassVar

from kgctl.coordinator.consumer.member import fetch_error
from kgctl.coordinator.timers import TimerKey
from kgctl.model.coordinator_records import OffsetCommitValue, OpaqueKey, RecordKey, RecordType
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import GroupState, GroupType, MetadataImage
from kgctl.model.requests import OffsetCommit, OffsetFetch, TxnOffsetCommit


class Group(ABC):
    """A group in the coordinator's registry. Questions only: whoever asks does what follows from the answer.

    Kafka: org.apache.kafka.coordinator.group.Group.
    """

    type: ClassVar[GroupType]
    group_id: str

    @property
    @abstractmethod
    def group_state(self) -> GroupState:
        """Return the state as ListGroups shows it."""

    @property
    @abstractmethod
    def listed_protocol_type(self) -> str:
        """The protocol type as ListGroups shows it; "" for a group that only ever had commits."""

    @property
    @abstractmethod
    def member_count(self) -> int:
        """How many members it has; pending ids are none."""

    @property
    def is_empty(self) -> bool:
        """Return whether the group may be deleted."""
        return self.group_state is GroupState.EMPTY

    @abstractmethod
    def offset_commit_error(self, request: OffsetCommit | TxnOffsetCommit, image: MetadataImage) -> ErrorCode:
        """Return the error that refuses this commit as a whole, or NONE."""

    @abstractmethod
    def offset_fetch_error(self, request: OffsetFetch) -> ErrorCode:
        """Return the error that refuses this fetch as a whole, or NONE."""

    @abstractmethod
    def offset_delete_error(self) -> ErrorCode:
        """Whether offsets may be deleted at all; topics subscribed to are looked at one by one."""

    @abstractmethod
    def is_subscribed_to(self, topic: str) -> bool:
        """Whether offsets of this topic are in use; True where that is not known."""

    @abstractmethod
    def expiry_base_ms(self, offset: OffsetCommitValue) -> int | None:
        """The time from which the retention of this offset counts; None while the group's offsets do not expire."""

    @abstractmethod
    def tombstone_keys(self) -> list[RecordKey]:
        """The keys whose tombstones remove the group, in Kafka's order; its offsets not among them."""

    @abstractmethod
    def timer_keys(self) -> Iterable[TimerKey]:
        """Return the keys under which the group may have timers."""

    @abstractmethod
    def durable(self) -> object:
        """Everything that survives a reload, as a value to compare."""


_REMOVED = (
    RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA,
    RecordType.STREAMS_GROUP_METADATA,
    RecordType.STREAMS_GROUP_TOPOLOGY,
)
"""What Kafka writes tombstones of for an empty group, in this order, whether the records are there or not."""


class OpaqueGroup(Group):
    """A streams group: its records by key."""

    type = GroupType.STREAMS

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.records: dict[OpaqueKey, bytes] = {}

    @property
    def group_state(self) -> GroupState:
        """Empty without members; the finer states would need the records' contents."""
        return GroupState.STABLE if self.member_count else GroupState.EMPTY

    @property
    def listed_protocol_type(self) -> str:
        """Return the protocol type that ListGroups shows, which is the group's type."""
        return self.type.value

    @property
    def member_count(self) -> int:
        """Return how many records of members the log has."""
        return sum(1 for key in self.records if key.record_type == RecordType.STREAMS_GROUP_MEMBER_METADATA)

    def offset_commit_error(self, request: OffsetCommit | TxnOffsetCommit, _image: MetadataImage) -> ErrorCode:
        """A streams group takes commits from outside while it is empty."""
        if self.is_empty and request.generation_id < 0:
            return ErrorCode.NONE
        return ErrorCode.UNKNOWN_MEMBER_ID

    def offset_fetch_error(self, request: OffsetFetch) -> ErrorCode:
        """Anybody may look, unless they claim to be a member."""
        return fetch_error({}, request)

    def offset_delete_error(self) -> ErrorCode:
        """Always possible."""
        return ErrorCode.NONE

    def is_subscribed_to(self, _topic: str) -> bool:
        """Return whether the group has members: which topics they subscribe to is not known here."""
        return not self.is_empty

    def expiry_base_ms(self, offset: OffsetCommitValue) -> int | None:
        """Return the commit's time."""
        return offset.commit_timestamp_ms

    def tombstone_keys(self) -> list[RecordKey]:
        """Return the keys that an empty group has."""
        group = self.group_id.encode()
        return [OpaqueKey(number, pack(f">hh{len(group)}s", number, len(group), group), self.group_id) for number in _REMOVED]

    def timer_keys(self) -> Iterable[TimerKey]:
        """Return nothing: a group that is only carried has no timers."""
        return ()

    def durable(self) -> object:
        """Return the records, as a value to compare."""
        return dict(self.records)
