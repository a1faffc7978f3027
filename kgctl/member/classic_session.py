"""The heartbeat thread of a classic member. Kafka: AbstractCoordinator.HeartbeatThread and Heartbeat.

It runs from the answer to JoinGroup until the next JoinGroup is sent; with each start its timer starts anew, which is what makes
all members of a group beat together. What it learns (a rebalance, being fenced) the application acts on at its next poll().
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from kgctl.member.api import NetworkError
from kgctl.member.base import HEARTBEAT, SESSION
from kgctl.member.runtime import COORDINATOR_GONE, Backoff, HeartbeatClock, MemberConnection, Runtime
from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import Heartbeat, HeartbeatResult, LeaveGroup
from kgctl.model.requests import MemberIdentity as Leaver
from kgctl.model.values import frozen_in_order, quick_enum

NO_GENERATION_ID = -1


@frozen_in_order
class SessionGeneration:
    """A generation as the member was told of it."""

    generation_id: int = NO_GENERATION_ID
    member_id: str = ""
    protocol_name: str | None = None


NO_GENERATION = SessionGeneration()


@quick_enum
class JoinPhase(Enum):
    """How far the member is in the way into a generation."""

    UNJOINED = "not in the group"
    PREPARING = "JoinGroup is sent"
    COMPLETING = "JoinGroup is answered, SyncGroup is not"
    STABLE = "in the generation"


@dataclass(slots=True)
class Membership:
    """The mutable whole. ``needs_prepare``: partitions have to be given up (as the protocol has it) before the next JoinGroup."""

    generation: SessionGeneration = NO_GENERATION
    phase: JoinPhase = JoinPhase.UNJOINED
    rejoin_needed: bool = True
    needs_prepare: bool = True
    rejoin_reason: str = ""
    TOPICS_CHANGED: ClassVar = ("cached metadata has changed", "subscription has changed")
    TO_REVOKE: ClassVar = "need to revoke partitions and re-join"
    OWN_REASONS: ClassVar = (*TOPICS_CHANGED, TO_REVOKE)
    """Why a member that is well in its group joins again of itself."""

    @property
    def is_rebalancing(self) -> bool:
        """Return whether a join is under way."""
        return self.phase in (JoinPhase.PREPARING, JoinPhase.COMPLETING)

    @property
    def is_outside(self) -> bool:
        """Return whether it is in no generation, so that others may own what it did."""
        return self.generation.generation_id == NO_GENERATION_ID or not self.generation.member_id

    def request_rejoin(self, reason: str) -> None:
        """Ask for joining again at the next poll()."""
        self.rejoin_needed = True
        self.rejoin_reason = reason

    def reset(self, reason: str, *, keeps_member_id: bool = False) -> None:
        """Note that the member is out of the group: whatever is still owned is lost, then it joins anew.

        Kafka: AbstractCoordinator#resetStateAndRejoin.
        """
        self.phase = JoinPhase.UNJOINED
        self.generation = SessionGeneration(member_id=self.generation.member_id) if keeps_member_id else NO_GENERATION
        self.request_rejoin(reason)
        self.needs_prepare = True


OUTSIDE = frozenset({ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID})


class ClassicSession:
    """Heartbeats, the client's own view of the session timeout, and leaving. ``fatal`` is what the next poll() will throw."""

    __slots__ = (
        "_backoff", "_connection", "_membership", "_on_reset", "_runtime", "clock", "fatal", "is_enabled", "is_locked",
        "woken_us",
    )  # fmt: skip

    def __init__(
        self, runtime: Runtime, connection: MemberConnection, membership: Membership, on_reset: Callable[[], None]
    ) -> None:
        self.is_enabled = False
        self.is_locked = False
        self.woken_us = 0
        """When the thread was last woken for something other than a look at the network."""
        self.fatal: ErrorCode | None = None
        self.clock = HeartbeatClock(runtime.config.behaviour.classic_drift, runtime.rng)
        self._runtime = runtime
        self._connection = connection
        self._membership = membership
        self._on_reset = on_reset
        self._backoff = Backoff(runtime.config, runtime.rng)

    def enable(self) -> None:
        """Start the timers of a generation that has begun."""
        self.is_enabled = True
        self.woken_us = self._runtime.now_us
        self.clock.restart(self._runtime.now_us, self._runtime.config.heartbeat_interval_ms * 1000)
        self._runtime.deadlines.arm(HEARTBEAT, self.clock.next_us)
        self.restart_session()

    def disable(self) -> None:
        """Stop the timers: there are no heartbeats outside of a generation."""
        self.is_enabled = False
        self._runtime.deadlines.cancel(HEARTBEAT)
        self._runtime.deadlines.cancel(SESSION)

    def restart_session(self, from_us: int | None = None) -> None:
        """Count the session anew: the coordinator was heard of."""
        if self.is_enabled:
            from_us = self._runtime.now_us if from_us is None else from_us
            self._runtime.deadlines.arm(SESSION, from_us + self._runtime.config.session_timeout_ms * 1000)

    def lock(self) -> None:
        """Hold beats back while the assignor computes: Java's heartbeat thread wants the coordinator's lock, which that has."""
        self.is_locked = True

    def unlock(self) -> None:
        """Let beats go again after the assignor; one that is due leaves now."""
        self.is_locked = False
        if self.is_enabled and HEARTBEAT not in self._runtime.deadlines.armed:
            self.beat()

    def beat(self) -> None:
        """Send the heartbeat that is due."""
        if not self.is_enabled or self.is_locked:
            return
        expires_us = self._runtime.deadlines.at(SESSION)
        if expires_us is not None and expires_us <= self._runtime.now_us:
            self.session_expired()  # both are due: the process stood still, and Java's thread looks at this first
        if not self._connection.is_known:
            self._connection.find()
            # The beat is not lost: AbstractCoordinator.HeartbeatThread#run looks again after a backoff, not after an interval.
            self._runtime.arm_in(HEARTBEAT, self._runtime.config.retry_backoff_ms * 1000)
            return
        self.woken_us = self._runtime.now_us
        self.clock.beat(self._runtime.now_us)
        self._runtime.deadlines.arm(HEARTBEAT, self.clock.next_us)
        sent = self._membership.generation
        self._connection.send(
            Heartbeat,
            lambda result: self._on_heartbeat(sent, result),
            group_id=self._runtime.identity.group_id,
            generation_id=sent.generation_id,
            member_id=sent.member_id,
            group_instance_id=self._runtime.identity.group_instance_id,
        )

    def session_expired(self) -> None:
        """Look for another coordinator: no heartbeat was answered for the session timeout.

        Kafka: AbstractCoordinator#markCoordinatorUnknown. The member stays in its generation until a coordinator says otherwise.
        """
        self._connection.lose()
        self.restart_session()

    def leave(self, *, reason: str, is_closing: bool = False) -> None:
        """Leave, if this member does so, and forget the generation. Kafka: ``AbstractCoordinator#maybeLeaveGroup``."""
        member_id = self._membership.generation.member_id
        can_leave = self._connection.is_known and self._membership.phase is not JoinPhase.UNJOINED and bool(member_id)
        if can_leave and self._wants_to_leave(is_closing):
            # Nobody waits for the answer: to itself the member is out now, to the coordinator by the end of its session.
            self._connection.send(
                LeaveGroup,
                lambda _: None,
                group_id=self._runtime.identity.group_id,
                members=(Leaver(member_id=member_id, reason=reason),),
            )
        self._membership.reset(reason)
        self.disable()

    def _wants_to_leave(self, is_closing: bool) -> bool:  # noqa: FBT001
        # A static member's place is kept for its restart (KIP-345), unless close() is told what to do (KIP-1092).
        operation = self._runtime.config.close_operation if is_closing else "default"
        return operation == "leave" or (operation == "default" and self._runtime.identity.group_instance_id is None)

    def _on_heartbeat(self, sent: SessionGeneration, result: HeartbeatResult | NetworkError) -> None:
        if self._runtime.config.behaviour.leaves_when_refused and (isinstance(result, NetworkError) or result.error):
            self._ends_generation(sent)
        elif isinstance(result, NetworkError):
            self._failed()
        elif result.error is ErrorCode.NONE:
            self._answered()
        elif result.error is ErrorCode.REBALANCE_IN_PROGRESS:
            self._answered()
            # Before SyncGroup is answered the member is on its way already; to ask again would throw that round away.
            if self._membership.phase is JoinPhase.STABLE:
                self._membership.request_rejoin("group is already rebalancing")
        elif result.error in COORDINATOR_GONE:
            self._connection.lose()
            self._failed()
        elif result.error in OUTSIDE:
            self._cast_out(sent, result.error)
        else:
            self._failed()

    def _ends_generation(self, sent: SessionGeneration) -> None:
        """kafka-go's heartbeat loop: whatever the error, the next generation is joined with the same member id."""
        if sent == self._membership.generation:
            self._membership.request_rejoin("")
            self.disable()

    def _answered(self) -> None:
        self._backoff.reset()
        self.restart_session()

    def _failed(self) -> None:
        if self.is_enabled:
            self._runtime.arm_in(HEARTBEAT, self._backoff.next_us())

    def _cast_out(self, sent: SessionGeneration, error: ErrorCode) -> None:
        if sent != self._membership.generation:
            self._answered()  # about a generation that is over
            return
        if error is ErrorCode.FENCED_INSTANCE_ID:
            self.fatal = error
        self._membership.reset(f"{error.name} from Heartbeat", keeps_member_id=error is ErrorCode.ILLEGAL_GENERATION)
        self.disable()
        self._on_reset()
