"""ConsumerGroupHeartbeat: what it says, when it leaves, what its answer means. Kafka: ConsumerHeartbeatRequestManager.

A beat leaves at its interval, which the coordinator names, and at once when there is something to say: joining, a reconciled
assignment, leaving. Each sent beat restarts the interval, so a member keeps its own phase whatever others do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kgctl.coordinator.requests import ConsumerGroupHeartbeat
from kgctl.coordinator.results import ConsumerGroupHeartbeatResult, TopicPartitions
from kgctl.member.api import NetworkError
from kgctl.member.backoff import Backoff
from kgctl.member.connection import COORDINATOR_GONE, Connection
from kgctl.member.consumer.membership import (
    BEATS_AT_ONCE,
    OUTSIDE,
    TAKES_ASSIGNMENTS,
    ConsumerMembership,
    LocalAssignment,
    Phase,
)
from kgctl.member.heartbeat_clock import HeartbeatClock
from kgctl.member.parts import HEARTBEAT
from kgctl.member.runtime import Runtime
from kgctl.model.error_codes import ErrorCode

FENCED = frozenset({ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID})


@dataclass(slots=True)
class _Sent:
    """What the coordinator was told last, so that only changes are sent."""

    rebalance_timeout_ms: int = -1
    topics: tuple[str, ...] | None = None
    regex: str | None = None
    assignor: str | None = None
    assignment: LocalAssignment | None = None


class Heartbeats:
    """The heartbeats of one member. ``on_fenced`` and ``on_fatal`` are told of errors that end the membership."""

    def __init__(
        self,
        runtime: Runtime,
        connection: Connection,
        membership: ConsumerMembership,
        on_fenced: Callable[[], None],
        on_fatal: Callable[[ErrorCode, str], None],
    ) -> None:
        self.clock = HeartbeatClock(runtime.config.behaviour.consumer_drift, runtime.rng)
        self.is_under_way = False
        self._runtime = runtime
        self._connection = connection
        self._membership = membership
        self._on_fenced = on_fenced
        self._on_fatal = on_fatal
        self._backoff = Backoff(runtime.config, runtime.rng)
        self._interval_ms = 0
        self._not_before_us = 0
        self._sent = _Sent()

    def run(self) -> None:
        """Send a beat if one is due now. Kafka: ``AbstractHeartbeatRequestManager#poll``."""
        if self._membership.phase in OUTSIDE or self.is_under_way:
            return
        if not self._connection.is_known:
            self._connection.find()
            return
        now_us = self._runtime.now_us
        is_urgent = self._membership.phase in BEATS_AT_ONCE
        if self._not_before_us > now_us:
            self._runtime.deadlines.arm(HEARTBEAT, self._not_before_us)
        elif is_urgent or not self._runtime.deadlines.is_armed(HEARTBEAT):
            self._beat(is_urgent)

    def leave(self, epoch: int, *, done: Callable[[], None] | None = None) -> None:
        """The last beat; nothing depends on its answer but ``done``."""
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
        if membership.phase is Phase.ACKNOWLEDGING:
            membership.phase = Phase.STABLE if membership.is_reconciled else Phase.RECONCILING

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
        is_joining = self._membership.phase is Phase.JOINING
        current = self._membership.current
        told = _Sent(
            config.effective_rebalance_timeout_ms, identity.topics, identity.pattern, config.group_remote_assignor, current
        )
        self._sent = told
        fields: dict[str, Any] = {}
        if is_joining or told.rebalance_timeout_ms != sent.rebalance_timeout_ms:
            fields["rebalance_timeout_ms"] = told.rebalance_timeout_ms
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
        if membership.phase not in TAKES_ASSIGNMENTS or result.member_epoch < 0:
            return
        membership.epoch = result.member_epoch
        if result.assignment is not None:
            membership.target = membership.target.updated(result.assignment)
            if not membership.is_reconciled:
                membership.phase = Phase.RECONCILING
            elif membership.phase in (Phase.RECONCILING, Phase.JOINING):
                membership.phase = Phase.STABLE

    def _refused(self, result: ConsumerGroupHeartbeatResult) -> None:
        """Kafka: ``AbstractHeartbeatRequestManager#onErrorResponse``."""
        error = result.error
        self._sent = _Sent()
        if error in COORDINATOR_GONE:
            self._connection.lose()
        elif error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            self._not_before_us = self._runtime.now_us + self._backoff.next_us()
        elif self._membership.phase in OUTSIDE or self._membership.phase is Phase.LEAVING:
            return
        elif error in FENCED:
            self._on_fenced()
        else:
            self._on_fatal(error, result.error_message or "")
        self._runtime.deadlines.cancel(HEARTBEAT)


def _on_wire(assignment: LocalAssignment) -> TopicPartitions:
    return tuple(sorted(assignment.partitions.items()))
