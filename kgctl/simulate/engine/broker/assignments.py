"""Whom the coordinator has assigned each partition to, from the records that it writes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from kgctl.member.validation import is_cooperative
from kgctl.model.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMetadataKey,
    CoordinatorRecord,
    GroupMetadataKey,
    GroupMetadataValue,
)
from kgctl.serde.consumer_protocol import decode_assignment
from kgctl.simulate.engine.recorder.causes import NOBODY

if TYPE_CHECKING:
    from kgctl.simulate.engine.broker.view import GroupView
    from kgctl.simulate.engine.world import World

_CACHED = 100_000


class Assignments:
    """``withheld``: partitions that a cooperative round has taken from their owner and given to nobody yet.

    ``doubled``: those that the leader of this generation gave to two members.
    """

    def __init__(self, world: World, view: GroupView) -> None:
        self._world = world
        self._view = view
        self.withheld: dict[int, None] = {}
        self.doubled: dict[int, None] = {}
        self.protocol = ""
        self._is_going_back = False
        self.is_changed = False
        self.is_cooperative = False
        self.largest: GroupMetadataValue | None = None
        self._largest_bytes = 0
        self._of_member: dict[str, tuple[int, ...]] = {}
        self._bytes: dict[str, bytes] = {}
        self._decoded: dict[bytes, tuple[int, ...]] = {}

    def of_member(self, member_id: str) -> tuple[int, ...]:
        """The numbers of the partitions that this member is assigned."""
        return self._of_member.get(member_id, ())

    def on_record(self, record: CoordinatorRecord) -> None:
        """A record of the group was written."""
        if isinstance(record.key, GroupMetadataKey):
            if isinstance(record.value, GroupMetadataValue):
                self._on_generation(record.value)
            else:
                self._on_end_of_classic()
        elif isinstance(record.key, ConsumerGroupMetadataKey):
            self._is_going_back = record.value is None
        elif isinstance(record.key, ConsumerGroupCurrentMemberAssignmentKey):
            value = record.value
            if isinstance(value, ConsumerGroupCurrentMemberAssignmentValue):
                numbers = self._numbers_of({topic.topic_id: topic.partitions for topic in value.assigned_partitions})
                self._set({record.key.member_id: numbers} if numbers != self._of_member.get(record.key.member_id) else {}, ())
            else:
                self._set({}, (record.key.member_id,))

    # --- classic

    def _on_generation(self, value: GroupMetadataValue) -> None:
        is_round = not self._is_going_back  # a group that goes back to the classic protocol begins with what was wanted there
        self._is_going_back = False
        self.is_cooperative = is_round and value.protocol is not None and is_cooperative((value.protocol,))
        self.protocol = value.protocol or ""
        changed: dict[str, tuple[int, ...]] = {}
        known = {} if self.doubled else self._bytes
        self.doubled.clear()
        assignments = {member.member_id: member.assignment for member in value.members}
        for member_id, assignment in assignments.items():
            if known.get(member_id) != assignment:
                changed[member_id] = self._decode(assignment)
        gone = tuple(member_id for member_id in self._of_member if member_id not in assignments)
        self._bytes = assignments
        self._set(changed, gone)
        self._measure(value)

    def _on_end_of_classic(self) -> None:
        """The group goes over to the consumer protocol, or ends. Who left it since its last generation takes nothing along."""
        members = self._view.members()
        self._bytes = {}
        self.doubled.clear()
        self._view.goes_over()
        self._set({}, tuple(member_id for member_id in self._of_member if member_id not in members))

    def _decode(self, assignment: bytes) -> tuple[int, ...]:
        numbers = self._decoded.get(assignment)
        if numbers is None:
            if len(self._decoded) > _CACHED:
                self._decoded.clear()
            partitions = decode_assignment(assignment).partitions if assignment else ()
            numbers = tuple(self._world.partitions.numbers_of(partitions))
            self._decoded[assignment] = numbers
        return numbers

    def forget(self, numbers: Iterable[int]) -> None:
        """These are gone, and bytes with their names stand for others from now on."""
        gone = set(numbers)
        self._decoded.clear()
        self._bytes = {}
        for number in gone:
            self.withheld.pop(number, None)
        for member_id, held in self._of_member.items():
            self._of_member[member_id] = tuple(number for number in held if number not in gone)

    def _measure(self, value: GroupMetadataValue) -> None:
        size = sum([len(member.subscription) + len(member.assignment) for member in value.members])
        if size > self._largest_bytes:
            self._largest_bytes, self.largest = size, value

    # --- both protocols

    def _numbers_of(self, topics: Mapping[UUID, Sequence[int]]) -> tuple[int, ...]:
        names = self._world.topic_names
        present = self._world.partitions.present
        found: list[int] = []
        for topic_id, partitions in topics.items():
            numbers = present.get(names.get(topic_id, ""), ())
            found += [numbers[partition] for partition in partitions if partition < len(numbers)]
        return tuple(found)

    def _set(self, changed: Mapping[str, tuple[int, ...]], gone: Collection[str]) -> None:
        self.is_changed = True
        if changed or gone:
            self._hand_over(changed, gone)
        self._world.changed()

    def _hand_over(self, changed: Mapping[str, tuple[int, ...]], gone: Collection[str]) -> None:
        lanes = self._world.lanes
        pods = {member_id: self._pod(member_id) for member_id in changed}
        freed: dict[int, None] = {}
        for member_id in gone:
            freed.update(dict.fromkeys(self._of_member.pop(member_id, ())))
        for member_id, numbers in changed.items():
            freed.update(dict.fromkeys(self._of_member.get(member_id, ())))
            for number in numbers:
                freed.pop(number, None)
        lanes.assign(NOBODY, freed)
        if freed and self._view.state != "Empty":
            self.withheld.update(freed)
        for member_id, numbers in changed.items():
            check = self._world.check
            if twice := check.single_owner(member_id, numbers, self._of_member, changed, assignor=self.protocol):
                self.doubled.update(dict.fromkeys(twice))
            self._of_member[member_id] = numbers
            own = tuple(number for number in numbers if number not in self.doubled) if self.doubled else numbers
            check.assigned(pods[member_id], own, is_cooperative=self.is_cooperative)
            lanes.assign(pods[member_id], own)
            for number in numbers:
                self.withheld.pop(number, None)

    def _pod(self, member_id: str) -> int:
        process = self._view.process_of(member_id)
        return NOBODY if process is None else process.pod.number
