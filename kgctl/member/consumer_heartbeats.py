"""ConsumerGroupHeartbeat: what it says, when it leaves, what its answer means. Kafka: ConsumerHeartbeatRequestManager.

A beat leaves at its interval, which the coordinator names, and at once when there is something to say: joining, a reconciled
assignment, leaving. Each sent beat restarts the interval, so a member keeps its own phase whatever others do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

from kgctl.member.api import NetworkError, Rng
from kgctl.member.base import HEARTBEAT
from kgctl.member.runtime import COORDINATOR_GONE, Backoff, HeartbeatClock, MemberConnection, MemberTopics, Runtime
from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import ConsumerGroupHeartbeat, ConsumerGroupHeartbeatResult, TopicPartitions
from kgctl.model.values import frozen_in_order, quick_enum
from kgctl.serde.record_schema import uuid_text

PartitionsById: TypeAlias = dict[UUID, tuple[int, ...]]

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
STATIC_LEAVE_EPOCH = -2


@quick_enum
class MembershipPhase(Enum):
    """The phases of a membership. Kafka: the consumer's MemberState."""

    UNSUBSCRIBED = "not in the group"
    JOINING = "the heartbeat that joins is due or under way"
    RECONCILING = "the assignment differs from what is owned"
    ACKNOWLEDGING = "reconciled; the heartbeat that says so is due"
    STABLE = "owns what is assigned"
    FENCED = "cast out; what is owned is being given up"
    LEAVING = "the heartbeat that leaves is due"
    STALE = "left for want of polls; joins again at the next"
    FATAL = "an error that nothing helps against"


OUTSIDE = frozenset({MembershipPhase.UNSUBSCRIBED, MembershipPhase.FENCED, MembershipPhase.STALE, MembershipPhase.FATAL})
BEATS_AT_ONCE = frozenset({MembershipPhase.JOINING, MembershipPhase.ACKNOWLEDGING, MembershipPhase.LEAVING})
TAKES_ASSIGNMENTS = frozenset(
    {MembershipPhase.JOINING, MembershipPhase.RECONCILING, MembershipPhase.ACKNOWLEDGING, MembershipPhase.STABLE}
)


@frozen_in_order
class LocalAssignment:
    """Partitions by topic id, numbered: the same partitions assigned again after others are a new assignment."""

    number: int = -1
    partitions: PartitionsById = field(default_factory=dict)

    @property
    def is_none(self) -> bool:
        """Return whether the member has had no assignment yet."""
        return self.number < 0

    def updated(self, assignment: TopicPartitions) -> LocalAssignment:
        """Return this one, or the next where the partitions differ. Kafka: AbstractMembershipManager.LocalAssignment."""
        partitions = {topic_id: tuple(sorted(numbers)) for topic_id, numbers in assignment if numbers}
        if not self.is_none and partitions == self.partitions:
            return self
        return LocalAssignment(self.number + 1, partitions)


NO_ASSIGNMENT = LocalAssignment()


@dataclass(slots=True)
class ConsumerMembership:
    """The mutable whole. ``target`` is what the coordinator wants, ``current`` what the member has and reports."""

    member_id: str
    phase: MembershipPhase = MembershipPhase.UNSUBSCRIBED
    epoch: int = JOIN_EPOCH
    target: LocalAssignment = NO_ASSIGNMENT
    current: LocalAssignment = NO_ASSIGNMENT

    @property
    def is_reconciled(self) -> bool:
        """Return whether the member owns what it should own."""
        return self.target is self.current or self.target == self.current

    def join(self) -> None:
        """Start over with epoch 0."""
        self.epoch = JOIN_EPOCH
        self.target = NO_ASSIGNMENT
        self.phase = MembershipPhase.JOINING


def new_member_id(rng: Rng) -> str:
    """16 random bytes in URL-safe base64, as Java's Uuid writes them: 22 characters, no dash in front."""
    while True:
        text = uuid_text(rng.getrandbits(128).to_bytes(16, "big"))
        if not text.startswith("-"):
            return text


FENCED = frozenset({ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID})


class _Sent(NamedTuple):
    """What the coordinator was told last, so that only changes are sent."""

    rebalance_timeout_ms: int = -1
    topics: tuple[str, ...] | None = None
    regex: str | None = None
    assignor: str | None = None
    assignment: LocalAssignment | None = None


class Heartbeats:
    """The heartbeats of one member. ``on_fenced`` and ``on_fatal`` are told of errors that end the membership."""

    __slots__ = (
        "_backoff", "_connection", "_interval_ms", "_matches", "_membership", "_not_before_us", "_on_fatal", "_on_fenced",
        "_runtime", "_sent", "_topics", "clock", "is_under_way",
    )  # fmt: skip

    def __init__(
        self,
        runtime: Runtime,
        connection: MemberConnection,
        topics: MemberTopics,
        membership: ConsumerMembership,
        *,
        on_fenced: Callable[[], None],
        on_fatal: Callable[[ErrorCode, str], None],
    ) -> None:
        self.clock = HeartbeatClock(runtime.config.behaviour.consumer_drift, runtime.rng)
        self.is_under_way = False
        self._runtime = runtime
        self._connection = connection
        self._topics = topics
        self._matches = runtime.identity.pattern is not None and runtime.identity.matches_pattern
        self._membership = membership
        self._on_fenced = on_fenced
        self._on_fatal = on_fatal
        self._backoff = Backoff(runtime.config, runtime.rng)
        self._interval_ms = 0
        self._not_before_us = 0
        self._sent = _Sent()

    @property
    def has_told(self) -> bool:
        """Whether the coordinator knows the topics that the client has matched. The next beat, at its time, tells it."""
        return not self._matches or self._sent.topics == self._topics.subscription

    def run(self) -> None:
        """Send a beat if one is due now. Kafka: ``AbstractHeartbeatRequestManager#poll``."""
        if self._membership.phase in OUTSIDE or self.is_under_way:
            return
        if self._matches and not self._topics.is_ready:
            return
        if not self._connection.is_known:
            self._connection.find()
            return
        now_us = self._runtime.now_us
        is_urgent = self._membership.phase in BEATS_AT_ONCE
        # A failed beat is repeated after a backoff only, however urgent.
        if self._not_before_us > now_us:
            self._runtime.deadlines.arm(HEARTBEAT, self._not_before_us)
        elif is_urgent or HEARTBEAT not in self._runtime.deadlines.armed:
            self._beat(is_urgent)

    def leave(self, epoch: int, *, done: Callable[[], None] | None = None) -> None:
        """Send the last beat, with -1 or -2 as ``epoch``; nothing depends on its answer but ``done``."""
        self._membership.epoch = epoch
        self._runtime.deadlines.cancel(HEARTBEAT)
        self._sent = _Sent()
        if self._connection.is_known:
            self._send({}, lambda _: None if done is None else done())
        elif done is not None:
            done()

    def _beat(self, is_urgent: bool) -> None:  # noqa: FBT001
        membership = self._membership
        if is_urgent or not self._interval_ms:
            self.clock.restart(self._runtime.now_us, self._interval_ms * 1000)
        else:
            self.clock.beat(self._runtime.now_us)
        self._runtime.deadlines.arm(HEARTBEAT, self.clock.next_us)
        self.is_under_way = True
        self._send(self._fields(), self._on_answer)
        # Sent is told: a beat that gets lost says everything again (AbstractMembershipManager#onHeartbeatRequestGenerated).
        if membership.phase is MembershipPhase.ACKNOWLEDGING:
            membership.phase = MembershipPhase.STABLE if membership.is_reconciled else MembershipPhase.RECONCILING

    def _send(self, fields: dict[str, Any], handler: Callable[[Any], None]) -> None:
        identity = self._runtime.identity
        self._connection.send(
            ConsumerGroupHeartbeat,
            handler,
            group_id=identity.group_id,
            member_id=self._membership.member_id,
            member_epoch=self._membership.epoch,
            instance_id=identity.group_instance_id,
            **fields,
        )

    def _fields(self) -> dict[str, Any]:
        """Everything when joining, else what has changed since the last beat."""
        identity, config, sent = self._runtime.identity, self._runtime.config, self._sent
        is_joining = self._membership.phase is MembershipPhase.JOINING
        current = self._membership.current
        topics, regex = (self._topics.subscription, None) if self._matches else (identity.topics, identity.pattern)
        told = _Sent(config.effective_rebalance_timeout_ms, topics, regex, config.group_remote_assignor, current)
        if told == sent and not is_joining:
            return {}
        self._sent = told
        fields: dict[str, Any] = {}
        if is_joining or told.rebalance_timeout_ms != sent.rebalance_timeout_ms:
            fields["rebalance_timeout_ms"] = told.rebalance_timeout_ms
        # Null says "as before": the coordinator keeps what it was told, so that most beats are a few bytes (KIP-848).
        if is_joining or told.topics != sent.topics:
            fields["subscribed_topic_names"] = told.topics
        if told.regex is not None and (is_joining or told.regex != sent.regex):
            fields["subscribed_topic_regex"] = told.regex
        if told.assignor is not None and (is_joining or told.assignor != sent.assignor):
            fields["server_assignor"] = told.assignor
        if is_joining or told.assignment != sent.assignment:
            fields["topic_partitions"] = _on_wire(current)
        if is_joining:
            fields["rack_id"] = identity.rack_id
        return fields

    # --- answers

    def _on_answer(self, result: ConsumerGroupHeartbeatResult | NetworkError) -> None:
        self.is_under_way = False
        if isinstance(result, NetworkError):
            # Nobody knows what has arrived: the next beat says everything again.
            self._sent = _Sent()
            self._not_before_us = self._runtime.now_us + self._backoff.next_us()
            self._runtime.deadlines.arm(HEARTBEAT, self._not_before_us)
        elif result.error is ErrorCode.NONE:
            self._accepted(result)
        else:
            self._refused(result)

    def _accepted(self, result: ConsumerGroupHeartbeatResult) -> None:
        membership = self._membership
        self._backoff.reset()
        if result.heartbeat_interval_ms != self._interval_ms:
            self._interval_ms = result.heartbeat_interval_ms
            self.clock.restart(self._runtime.now_us, self._interval_ms * 1000)
            self._runtime.deadlines.arm(HEARTBEAT, self.clock.next_us)
        # An answer to a beat from before the member left: ConsumerMembershipManager#onHeartbeatSuccess ignores it.
        if membership.phase not in TAKES_ASSIGNMENTS or result.member_epoch < 0:
            return
        membership.epoch = result.member_epoch
        if (assignment := self.assignment_in(result)) is not None:
            membership.target = membership.target.updated(assignment)
            if not membership.is_reconciled:
                membership.phase = MembershipPhase.RECONCILING
            elif membership.phase in (MembershipPhase.RECONCILING, MembershipPhase.JOINING):
                membership.phase = MembershipPhase.STABLE

    def assignment_in(self, result: Any) -> Any:
        """What the answer to a beat assigns, as `LocalAssignment.updated` takes it; None: it says nothing of that."""
        return result.assignment

    def _refused(self, result: ConsumerGroupHeartbeatResult) -> None:
        """Act on an error: find the coordinator, wait, join anew or give up.

        Kafka: ``AbstractHeartbeatRequestManager#onErrorResponse``.
        """
        error = result.error
        # The coordinator that answers next may never have heard of the member: it is told everything.
        self._sent = _Sent()
        if error in COORDINATOR_GONE:
            self._connection.lose()
        elif error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            self._not_before_us = self._runtime.now_us + self._backoff.next_us()
        elif self._membership.phase in OUTSIDE or self._membership.phase is MembershipPhase.LEAVING:
            return
        elif error in FENCED:
            self._on_fenced()
        else:
            self._on_fatal(error, result.error_message or "")
        self._runtime.deadlines.cancel(HEARTBEAT)


def _on_wire(assignment: LocalAssignment) -> TopicPartitions:
    return tuple(sorted(assignment.partitions.items()))
