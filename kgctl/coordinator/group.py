"""What the coordinator asks of a group, whatever protocol it speaks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import ClassVar

from kgctl.coordinator.timers import TimerKey
from kgctl.model.coordinator_records import OffsetCommitValue, RecordKey
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
    def state_filter(self) -> str:
        """Return the state as a filter of ListGroups has to name it, in small letters."""
        return self.group_state.value.lower()

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
