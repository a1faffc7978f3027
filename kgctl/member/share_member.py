"""A member of a share group (KIP-932). Kafka: ShareMembershipManager with ShareHeartbeatRequestManager.

It beats as a member of the consumer protocol does, and takes every assignment at once: nobody has to give anything up first, no
callback runs, and nothing is committed. What it reads is for its driver to fetch and to acknowledge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from kgctl.member.api import Action, MemberIdentity, PositionsOf, Rng, StartConsuming, StopConsuming, StopReason
from kgctl.member.base import Step
from kgctl.member.config import INVALID_CONFIG, MemberConfig
from kgctl.member.consumer_heartbeats import (
    NO_ASSIGNMENT,
    OUTSIDE,
    Heartbeats,
    LocalAssignment,
    MembershipPhase,
)
from kgctl.member.consumer_member import ConsumerMember, MemberReconciliation
from kgctl.model.groups import TopicPartition
from kgctl.model.share_requests import ShareGroupHeartbeat

REFUSED = (
    "auto.offset.reset",
    "enable.auto.commit",
    "group.instance.id",
    "isolation.level",
    "partition.assignment.strategy",
    "interceptor.classes",
    "session.timeout.ms",
    "heartbeat.interval.ms",
    "group.protocol",
    "group.remote.assignor",
)
"""Settings with which a share consumer does not start. Kafka: ShareConsumerConfig."""


class ShareReconciliation(MemberReconciliation):
    """Takes an assignment over in one step, whatever the application does."""

    __slots__ = ()

    def needs_poll(self) -> bool:
        """Return false: the background thread does it."""
        return False

    def _must_wait(self, assigned: set[TopicPartition]) -> bool:  # noqa: ARG002  # whatever it is
        return False

    def _begin(self, resolved: LocalAssignment, assigned: set[TopicPartition]) -> None:
        member = self._member
        gone, added = member.owned - assigned, assigned - member.owned
        member.stop(gone, StopReason.REVOKED)
        member.owned.difference_update(gone)
        member.owned.update(added)
        if added:
            member.runtime.emit(StartConsuming(dict.fromkeys(sorted(added), 0)))
        member.membership.current = resolved
        member.membership.phase = MembershipPhase.ACKNOWLEDGING


class ShareHeartbeats(Heartbeats):
    """What a heartbeat says: who it is, and the topics where they are new to the coordinator."""

    __slots__ = ()

    def _send(self, fields: dict[str, Any], handler: Callable[[Any], None]) -> None:
        membership = self._membership
        self._connection.send(
            ShareGroupHeartbeat,
            handler,
            group_id=self._runtime.identity.group_id,
            member_id=membership.member_id,
            member_epoch=membership.epoch,
            **fields,
        )

    def _fields(self) -> dict[str, Any]:
        identity = self._runtime.identity
        if self._membership.phase is not MembershipPhase.JOINING:
            return {}
        return {"subscribed_topic_names": identity.topics, "rack_id": identity.rack_id}


class ShareConsumerMember(ConsumerMember):
    """See `kgctl.member.api.Member`. `StartConsuming` names partitions that it may fetch; their offsets say nothing."""

    __slots__ = ()

    def __init__(
        self, config: MemberConfig, identity: MemberIdentity, rng: Rng, positions_of: PositionsOf, request_ids: Iterator[int]
    ) -> None:
        super().__init__(replace(config, enable_auto_commit=False), identity, rng, positions_of, request_ids)
        self.heartbeats = ShareHeartbeats(
            self.runtime, self.connection, self.topics, self.membership, on_fenced=self._on_fenced, on_fatal=self._on_fatal
        )
        self.reconciliation = ShareReconciliation(self)

    def start(self, now_us: int) -> list[Action]:
        """Begin, unless a setting is none that a share consumer may have."""
        if refused := [name for name in REFUSED if name in self.config.given]:
            self.fail(INVALID_CONFIG, f"{', '.join(refused)} cannot be set when using a share group.")
            return self.runtime.take_actions()
        return super().start(now_us)

    @property
    def consumed_partitions(self) -> tuple[TopicPartition, ...]:
        """Return what it may fetch, sorted."""
        return self.owned_partitions

    def stop(self, partitions: set[TopicPartition], reason: StopReason) -> None:
        """Fetch these no more."""
        if stopped := tuple(sorted(partitions)):
            self.runtime.emit(StopConsuming(stopped, reason))

    def on_poll_limit(self) -> None:
        """Leave with the next beat: until then the background thread is asleep."""
        self._poll_limit_is_over = True

    def _lose(self, reason: StopReason, after: Step) -> None:
        self.reconciliation.abort()
        self.stop(set(self.owned), reason)
        self.owned.clear()
        self.membership.current = NO_ASSIGNMENT
        self._is_released = True
        if self.membership.phase is MembershipPhase.FENCED:
            after()

    def begin_close(self) -> None:
        """Leave; its driver has acknowledged and closed its sessions before. Kafka: ``ShareConsumerImpl#close``."""
        self.reconciliation.abort()
        self.stop(set(self.owned), StopReason.CLOSED)
        self.owned.clear()
        if self.membership.phase not in OUTSIDE:
            self.heartbeats.leave(self._leave_epoch("leave"))
        self.membership.phase = MembershipPhase.UNSUBSCRIBED
        self.await_close()
