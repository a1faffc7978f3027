"""What playing back makes: the generations of a group, the spans of its members and their assignments, and their causes."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal

from kgctl.model.values import frozen_in_order

if TYPE_CHECKING:
    import pyarrow as pa


class Cause(StrEnum):
    """The column ``cause`` of ``group_generations``."""

    MEMBER_JOINED = "member_joined"
    MEMBER_LEFT = "member_left"
    MEMBERS_CHANGED = "members_changed"
    """Some joined and some left."""
    STATIC_MEMBER_RETURNED = "static_member_returned"
    """A member came back under its group.instance.id with a new member id, and nothing else changed."""
    SUBSCRIPTION_CHANGED = "subscription_changed"
    PARTITIONS_CHANGED = "partitions_changed"
    """Topics or partitions that the group subscribes to came or went."""
    PARTITIONS_HANDED_OVER = "partitions_handed_over"
    """The second rebalance of a cooperative one: what some members gave up is given to others."""
    LEADER_REJOINED = "leader_rejoined"
    """Nothing that the log shows changed: the leader joined again, or a member with other metadata."""
    UPGRADED = "upgraded"
    """From the classic to the consumer protocol, with members inside."""
    DOWNGRADED = "downgraded"
    """From the consumer to the classic protocol, with members inside."""
    GROUP_EMPTIED = "group_emptied"
    GROUP_DELETED = "group_deleted"
    """Deleted or expired."""
    UNKNOWN = "unknown"
    """The log does not tell, or the records before this one are missing."""


Members = Mapping[str, str | None]
"""Member id to group.instance.id."""


def change_of_members(joined: Members, left: Members) -> Cause | None:
    """The cause that those who joined and left are; None where nobody did."""
    returned = {instance for instance in joined.values() if instance is not None} & set(left.values())
    has_joined = any(instance not in returned for instance in joined.values())
    has_left = any(instance not in returned for instance in left.values())
    if has_joined and has_left:
        return Cause.MEMBERS_CHANGED
    if has_joined or has_left:
        return Cause.MEMBER_JOINED if has_joined else Cause.MEMBER_LEFT
    return Cause.STATIC_MEMBER_RETURNED if joined or left else None


GroupType = Literal["classic", "consumer", "share", "streams"]
StartedBy = Literal["epoch_bump", "group_created", "join_phase_ended"]
"""What ``started_ms`` is the time of. Only ``join_phase_ended`` is later than the start: classic groups log no earlier sign."""
Partition = tuple[str, int]
"""Topic (its id in Kafka's base64 form where the log has no name for it; of a streams group the subtopology) and number."""


@dataclass(slots=True)
class Generation:
    """A row of ``group_generations``."""

    group: str
    type: GroupType
    protocol_type: str
    generation_id: int
    started_ms: int | None
    stable_ms: int | None
    started_by: StartedBy | None
    assignor: str | None
    leader: str | None
    members: int
    members_joined: Sequence[str] | None
    members_left: Sequence[str] | None
    cause: Cause
    log_offset: int

    @property
    def time_ms(self) -> int:
        """When the record that made the row was written."""
        times = (self.stable_ms, self.started_ms) if self.type == "classic" else (self.started_ms, self.stable_ms)
        return next((time for time in times if time is not None), 0)

    @property
    def duration_ms(self) -> int | None:
        """From its start to stability; None where one of them is not known."""
        if self.started_ms is None or self.stable_ms is None or self.cause is Cause.GROUP_DELETED:
            return None
        return self.stable_ms - self.started_ms


@frozen_in_order
class MemberInfo:
    """What the log says of a member."""

    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int | None
    rebalance_timeout_ms: int | None
    is_closed: bool = False
    """A static member of the consumer protocol that has closed: it stays one until its session ends, or it is back."""


@dataclass(slots=True)
class MemberSpan:
    """A member for as long as it was one without interruption. ``infos``: what the log says of it, and since when (time, log
    offset, generation)."""

    group: str
    member_id: str
    infos: list[tuple[int, int, int, MemberInfo]]
    from_ms: int
    first_generation: int
    to_ms: int | None = None
    last_generation: int = 0
    to_offset: int = -1
    told: int = 0
    """How many of its rows (`infos`, and its end) a build has written for good."""

    @property
    def info(self) -> MemberInfo:
        """Return what the log said of the member last."""
        return self.infos[-1][3]


@dataclass(slots=True)
class AssignmentSpan:
    """A partition that a member had without interruption."""

    group: str
    partition: Partition
    member_id: str
    generation_id: int
    from_ms: int
    to_ms: int | None = None
    from_offset: int = -1
    to_offset: int = -1
    told: int = 0
    """How many of its rows (its begin, its end) a build has written for good."""


@dataclass
class Spans:
    """All that was found of the groups that have new records. ``unsettled``: generations that may still change or go; ``states``
    gives, of each group, what a later build goes on from, and whether rows of it wait for a topic's name; it is called last."""

    generations: list[Generation] = field(default_factory=list)
    members: list[MemberSpan] = field(default_factory=list)
    assignments: list[AssignmentSpan] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    unsettled: list[Generation] = field(default_factory=list)
    states: Callable[[], Mapping[str, tuple[str, bool]]] = dict
    open_members: list[tuple[MemberSpan, int]] = field(default_factory=list)
    """Those that may still get rows, and how many of the rows they have are for good."""
    open_assignments: list[tuple[AssignmentSpan, int]] = field(default_factory=list)


@frozen_in_order
class Arrival:
    """A group changed its protocol: the cause of its first row, and the members that it had before."""

    cause: Cause
    members: frozenset[str]

    def joined(self, now: Iterable[str]) -> list[str]:
        """Who of those that are there now was not there before."""
        return sorted(set(now) - self.members)

    def left(self, now: Iterable[str]) -> list[str]:
        """Return the members that were there before and are gone."""
        return sorted(self.members - set(now))


class GroupHistory:
    """One group, as far as it was played back.

    A span that ends and begins again in the same millisecond is one span: so a change of the protocol, which removes all records
    of one kind and writes those of the other, does not interrupt its members. No span ends before it begins, also where the
    broker's clock went back.
    """

    def __init__(self, group: str, found: Spans, is_sure: Callable[[str], bool] = lambda _: True) -> None:
        """``is_sure``: whether what a topic is called is for good."""
        self.group = group
        self.found = found
        self._is_sure = is_sure
        self.members: dict[str, MemberSpan] = {}
        self._owned: dict[str, dict[Partition, AssignmentSpan]] = {}
        self._closed_members: dict[str, MemberSpan] = {}
        self._closed_owned: dict[tuple[str, Partition], AssignmentSpan] = {}
        self._unnamed: list[AssignmentSpan] = []
        """Those that have ended, of topics whose names may still change."""
        self._closed_ms: int | None = None
        self.log_offset = -1
        """Of the record that is played back now."""

    def state(self) -> dict[str, Any]:
        """Return what `restore` needs."""
        return {
            "members": self.members,
            "owned": self._owned,
            "closed_members": self._closed_members,
            "closed_owned": self._closed_owned,
            "unnamed": self._unnamed,
            "closed_ms": self._closed_ms,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from there; spans that may still get rows are found again."""
        self.members, self._owned = state["members"], state["owned"]
        self._closed_members, self._closed_owned = state["closed_members"], state["closed_owned"]
        self._unnamed, self._closed_ms = state["unnamed"], state["closed_ms"]
        self.found.members += [*self.members.values(), *self._closed_members.values()]
        self.found.assignments += [span for owned in self._owned.values() for span in owned.values()]
        self.found.assignments += [*self._closed_owned.values(), *self._unnamed]

    def rename(self, topics: Mapping[str, str]) -> None:
        """Topics are called something else than they were."""

        def now(partition: Partition) -> Partition:
            return topics.get(partition[0], partition[0]), partition[1]

        self._owned = {member: {now(place): span for place, span in owned.items()} for member, owned in self._owned.items()}
        self._closed_owned = {(member, now(place)): span for (member, place), span in self._closed_owned.items()}
        for span in [*(span for owned in self._owned.values() for span in owned.values()), *self._closed_owned.values()]:
            span.partition = now(span.partition)
        for span in self._unnamed:
            span.partition = now(span.partition)

    @property
    def is_waiting(self) -> bool:
        """Return whether rows wait for the name of a topic."""
        spans = [*self._closed_owned.values(), *(span for owned in self._owned.values() for span in owned.values())]
        return bool(self._unnamed) or not all(self._is_sure(span.partition[0]) for span in spans)

    def note_open(self, fresh: Collection[str]) -> None:
        """Note the spans that go on, with the rows of them that are for good. ``fresh``: members whose first row may change."""
        found = self.found
        for span in self.members.values():
            found.open_members.append((span, 0 if span.member_id in fresh else len(span.infos)))
        found.open_members += [(span, len(span.infos)) for span in self._closed_members.values()]
        self._unnamed = [span for span in self._unnamed if not self._is_sure(span.partition[0])]
        found.open_assignments += [(span, 0) for span in self._unnamed]
        spans = [*self._closed_owned.values(), *(span for owned in self._owned.values() for span in owned.values())]
        found.open_assignments += [(span, int(self._is_sure(span.partition[0]))) for span in spans]

    def add(self, row: Generation) -> None:
        """Add the next generation."""
        self.found.generations.append(row)

    def has_member(self, member_id: str, info: MemberInfo, now_ms: int, generation: int) -> bool:
        """It is a member from now on, or still; whether it is a new one."""
        span = self.members.get(member_id) or self._reopened_member(member_id, now_ms)
        is_new = span is None
        if span is None:
            span = MemberSpan(self.group, member_id, [(now_ms, self.log_offset, generation, info)], now_ms, generation)
            self.found.members.append(span)
        if span.info != info:
            span.infos.append((now_ms, self.log_offset, generation, info))
        span.last_generation = max(generation, span.first_generation)
        self.members[member_id] = span
        return is_new

    def member_gone(self, member_id: str, now_ms: int, generation: int) -> None:
        """End a member, and what it owned."""
        self.owns(member_id, {}, now_ms)
        span = self.members.pop(member_id, None)
        if span is not None:
            self._forget_closed(now_ms)
            span.to_ms, span.last_generation = max(now_ms, span.from_ms), max(generation, span.first_generation)
            span.to_offset = self.log_offset
            self._closed_members[member_id] = span

    def all_gone(self, now_ms: int, generation: int) -> None:
        """End all members of the group."""
        for member_id in list(self.members):
            self.member_gone(member_id, now_ms, generation)

    def owns(self, member_id: str, partitions: Mapping[Partition, int], now_ms: int) -> None:
        """What the member owns from now on, with the generation at which it got each."""
        owned = self._owned.setdefault(member_id, {})
        for partition in [partition for partition in owned if partition not in partitions]:
            self._forget_closed(now_ms)
            span = owned.pop(partition)
            span.to_ms, span.to_offset = max(now_ms, span.from_ms), self.log_offset
            self._closed_owned[member_id, partition] = span
        for partition, generation in partitions.items():
            if partition not in owned:
                owned[partition] = self._assigned(member_id, partition, generation, now_ms)

    def owned_by(self, member_id: str) -> Mapping[Partition, AssignmentSpan]:
        """Return what the member owns now."""
        return self._owned.get(member_id, {})

    def _assigned(self, member_id: str, partition: Partition, generation: int, now_ms: int) -> AssignmentSpan:
        span = self._closed_owned.pop((member_id, partition), None)
        if span is not None and span.to_ms == now_ms:
            span.to_ms = None
            return span
        span = AssignmentSpan(self.group, partition, member_id, generation, now_ms, from_offset=self.log_offset)
        self.found.assignments.append(span)
        return span

    def _reopened_member(self, member_id: str, now_ms: int) -> MemberSpan | None:
        span = self._closed_members.pop(member_id, None)
        if span is None or span.to_ms != now_ms:
            return None
        span.to_ms = None
        return span

    def _forget_closed(self, now_ms: int) -> None:
        """Drop the spans that ended before now: they cannot go on."""
        if self._closed_ms != now_ms:
            self._closed_members.clear()
            self._unnamed += [span for span in self._closed_owned.values() if not self._is_sure(span.partition[0])]
            self._closed_owned.clear()
            self._closed_ms = now_ms


@frozen_in_order
class Place:
    """``is_gapless``: nothing is missing between the group's record before and this one, so that comparing them tells a cause."""

    time_ms: int
    log_offset: int
    is_gapless: bool = True


class Coverage:
    """The runs of log offsets without a hole (rows of ``coverage``)."""

    def __init__(self, coverage: pa.Table) -> None:
        self._first: list[int] = coverage.column("first_offset").to_pylist()
        self._last: list[int] = coverage.column("last_offset").to_pylist()

    def holds(self, first_offset: int, last_offset: int) -> bool:
        """Whether all that was between these two was collected."""
        run = bisect_right(self._first, first_offset) - 1
        return run >= 0 and self._last[run] >= last_offset
