"""Playing back a classic group: one GroupMetadata record (type 2) after the other.

Kafka writes one when a group comes to be (generation 0, no members), when the leader's SyncGroup is accepted (all members with
their assignments), when a static member is replaced in a stable group (same generation), and when a rebalance leaves nobody.
None is written when a rebalance starts or its join phase ends. So a record's time is when the generation became stable, and its
``currentStateTimestamp``, taken before the group goes to Stable, is when the join phase of that rebalance ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from kgctl.model.coordinator_records import GroupMetadataValue, MemberMetadata
from kgctl.pipeline.tables.group_history import (
    Arrival,
    Cause,
    Generation,
    GroupHistory,
    MemberInfo,
    Partition,
    Place,
    StartedBy,
    change_of_members,
)
from kgctl.serde.consumer_protocol import MalformedConsumerProtocol, decode_assignment_by_topic, decode_topics

CONSUMER = "consumer"
"""The protocol type of consumers; Kafka Connect and others put their own bytes into assignments."""

Assigned = Mapping[str, frozenset[Partition]]


class ReplayedClassicGroup:
    """The group as its last record left it. ``type``: see `Generation`."""

    type = "classic"

    def __init__(self, history: GroupHistory) -> None:
        self._history = history
        self._value: GroupMetadataValue | None = None
        self._created_ms: int | None = None
        self._assigned: dict[str, frozenset[Partition]] = {}
        self._bytes: dict[str, bytes] = {}
        self._given_up: frozenset[Partition] = frozenset()
        """What was assigned once, and is assigned to nobody now."""

    @property
    def generation(self) -> int:
        """Return the generation of the last record; -1 before the first."""
        return -1 if self._value is None else self._value.generation

    def apply(self, value: GroupMetadataValue, place: Place, arrival: Arrival | None) -> None:
        """Play back the next record. ``arrival``: if it is the first one since the group was of the other protocol."""
        before, self._value = self._value, value
        if value.generation == 0 and not value.members:
            self._created_ms = place.time_ms
        elif value != before:
            self._next(before, value, place, arrival)
            self._created_ms = None

    def deleted(self, place: Place) -> Generation | None:
        """The group's record is gone, and its members with it. A row, if anything is known of the group."""
        value, self._value = self._value, None
        self._history.all_gone(place.time_ms, 0 if value is None else value.generation)
        if value is None:
            return None
        left = sorted(member.member_id for member in value.members)
        return Generation(
            group=self._history.group,
            type="classic",
            protocol_type=value.protocol_type,
            generation_id=value.generation,
            started_ms=place.time_ms,
            stable_ms=None,
            started_by=None,
            assignor=None,
            leader=None,
            members=0,
            members_joined=[],
            members_left=left,
            cause=Cause.GROUP_DELETED,
            log_offset=place.log_offset,
        )

    def _next(self, before: GroupMetadataValue | None, value: GroupMetadataValue, place: Place, arrival: Arrival | None) -> None:
        assigned_before = self._assigned
        self._play_members(value, place)
        is_known = before is not None and (place.is_gapless or value.generation - before.generation <= 1)
        cause = self._cause(before if is_known else None, value, assigned_before) if arrival is None else arrival.cause
        started_ms, started_by = self._start(before, value, place)
        joined, left = _joined_and_left(before, value, cause, arrival)
        self._history.add(
            Generation(
                group=self._history.group,
                type="classic",
                protocol_type=value.protocol_type,
                generation_id=value.generation,
                started_ms=started_ms,
                stable_ms=place.time_ms,
                started_by=started_by,
                assignor=value.protocol,
                leader=value.leader,
                members=len(value.members),
                members_joined=joined,
                members_left=left,
                cause=cause,
                log_offset=place.log_offset,
            )
        )
        self._given_up = (self._given_up | _union(assigned_before)) - _union(self._assigned)

    def _start(
        self, before: GroupMetadataValue | None, value: GroupMetadataValue, place: Place
    ) -> tuple[int | None, StartedBy | None]:
        """When the rebalance began, or the latest moment at which it had."""
        if before is not None and before.generation == value.generation and before.members:
            return place.time_ms, None
        joined_ms = min(value.current_state_timestamp_ms, place.time_ms)
        has_static = any(member.group_instance_id is not None for member in value.members)
        if joined_ms < 0 or (has_static and (before is None or not place.is_gapless)):
            return None, None  # it may be a static member's return, long after the rebalance whose own record was compacted away
        longest_ms = max((member.rebalance_timeout_ms for member in value.members), default=0)
        if self._created_ms is not None and 0 <= joined_ms - self._created_ms <= longest_ms:
            return self._created_ms, "group_created"
        return joined_ms, "join_phase_ended"

    def _cause(self, before: GroupMetadataValue | None, value: GroupMetadataValue, assigned_before: Assigned) -> Cause:
        """Why this generation came after ``before``; None: what was before is not known."""
        if not value.members:
            return Cause.GROUP_EMPTIED
        if before is None:
            return Cause.MEMBER_JOINED if value.generation == 1 else Cause.UNKNOWN
        changed = change_of_members(*_differences(before, value))
        if changed is not None or value.generation == before.generation:
            return changed or Cause.UNKNOWN
        if _topics(value) != _topics(before):
            return Cause.SUBSCRIPTION_CHANGED
        return self._cause_in_partitions(_union(assigned_before), _union(self._assigned))

    def _cause_in_partitions(self, before: frozenset[Partition], after: frozenset[Partition]) -> Cause:
        gained = after - before
        if gained and gained <= self._given_up:
            return Cause.PARTITIONS_HANDED_OVER
        return Cause.PARTITIONS_CHANGED if gained or before - after else Cause.LEADER_REJOINED

    def _play_members(self, value: GroupMetadataValue, place: Place) -> None:
        present = {member.member_id: member for member in value.members}
        for member_id in [member_id for member_id in self._history.members if member_id not in present]:
            self._history.member_gone(member_id, place.time_ms, value.generation - 1)
        for member in value.members:
            self._history.has_member(member.member_id, _info(member), place.time_ms, value.generation)
        self._play_assignments(value, place)

    def _play_assignments(self, value: GroupMetadataValue, place: Place) -> None:
        of_consumers = value.protocol_type == CONSUMER
        known_bytes, known = self._bytes, self._assigned
        self._bytes = {member.member_id: member.assignment for member in value.members}
        self._assigned = {}
        for member in value.members:
            if of_consumers and known_bytes.get(member.member_id) == member.assignment and member.member_id in known:
                self._assigned[member.member_id] = known[member.member_id]
                continue
            partitions = _partitions(member.assignment) if of_consumers else None
            if partitions is None:
                self._history.found.counts["assignments_undecoded"] += 1
            self._assigned[member.member_id] = partitions or frozenset()
        for member_id, owned in self._assigned.items():
            if owned is not known.get(member_id) or len(owned) != len(self._history.owned_by(member_id)):
                self._history.owns(member_id, dict.fromkeys(owned, value.generation), place.time_ms)


@lru_cache(maxsize=1_024)
def _partitions(assignment: bytes) -> frozenset[Partition] | None:
    """What the bytes assign; None where they are no assignment of the consumer protocol."""
    if not assignment:
        return frozenset()
    try:
        topics = decode_assignment_by_topic(assignment)
    except MalformedConsumerProtocol:
        return None
    return frozenset((topic, partition) for topic, partitions in topics.items() for partition in partitions)


def _info(member: MemberMetadata) -> MemberInfo:
    return MemberInfo(
        member.group_instance_id,
        member.client_id,
        member.client_host,
        member.session_timeout_ms,
        member.rebalance_timeout_ms if member.rebalance_timeout_ms >= 0 else None,
    )


def _differences(
    before: GroupMetadataValue | None, value: GroupMetadataValue
) -> tuple[dict[str, str | None], dict[str, str | None]]:
    """Who is in ``value`` only, and who in ``before`` only, with their instances."""
    old = {} if before is None else {member.member_id: member.group_instance_id for member in before.members}
    new = {member.member_id: member.group_instance_id for member in value.members}
    joined = {member_id: instance for member_id, instance in new.items() if member_id not in old}
    left = {member_id: instance for member_id, instance in old.items() if member_id not in new}
    return joined, left


def _joined_and_left(
    before: GroupMetadataValue | None, value: GroupMetadataValue, cause: Cause, arrival: Arrival | None
) -> tuple[list[str] | None, list[str] | None]:
    """The columns of a row; None where there is nothing to compare with."""
    if arrival is not None:
        now = [member.member_id for member in value.members]
        return arrival.joined(now), arrival.left(now)
    if before is None and cause is not Cause.MEMBER_JOINED:
        return None, None
    joined, left = _differences(before, value)
    return sorted(joined), sorted(left)


def _topics(value: GroupMetadataValue) -> list[tuple[str, ...] | bytes]:
    """What each member subscribes to, by member; the bytes themselves where they are no subscription."""
    return [_subscribed(member.subscription) for member in sorted(value.members, key=lambda member: member.member_id)]


@lru_cache(maxsize=1_024)
def _subscribed(subscription: bytes) -> tuple[str, ...] | bytes:
    try:
        return tuple(sorted(decode_topics(subscription)))
    except MalformedConsumerProtocol:
        return subscription


def _union(assigned: Assigned) -> frozenset[Partition]:
    return frozenset().union(*assigned.values())
