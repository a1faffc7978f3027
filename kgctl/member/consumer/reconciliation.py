"""From what a member owns to what it should own. Kafka: AbstractMembershipManager#maybeReconcile.

Commit, revoke, assign, acknowledge. The background thread leads; callbacks are queued for the application's thread, which
runs them at its next poll(). With automatic commits, or partitions to revoke, even the beginning waits for a poll().
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from kgctl.member.api import CallbackKind, StopReason
from kgctl.member.consumer.membership import LocalAssignment, PartitionsById, Phase
from kgctl.model.error_codes import ErrorCode
from kgctl.model.partitions import TopicPartition

if TYPE_CHECKING:
    from kgctl.member.consumer.member import ConsumerMember


class Reconciliation:
    """The reconciliations of one member, one at a time. ``abort`` makes what is under way end without effect."""

    def __init__(self, member: ConsumerMember) -> None:
        self.is_under_way = False
        self._member = member
        self._round = 0
        self._known: tuple[dict[UUID, str], LocalAssignment, PartitionsById, set[TopicPartition]] | None = None
        self._refreshed_for: LocalAssignment | None = None

    def is_wanted(self) -> bool:
        """Whether there is something to reconcile."""
        membership = self._member.membership
        return membership.phase is Phase.RECONCILING and not self.is_under_way and not membership.is_reconciled

    def abort(self) -> None:
        """The membership has ended, or begun anew."""
        self._round += 1
        self.is_under_way = False

    def needs_poll(self) -> bool:
        """Whether the wanted one waits for the application's thread."""
        if not self.is_wanted():
            return False
        resolved, assigned = self._resolved()
        return not self._is_only_new_number(resolved) and self._must_wait(assigned)

    def run(self, *, in_poll: bool) -> None:
        """Begin, if there is something to do that can be done here."""
        if not self.is_wanted():
            return
        member = self._member
        membership = member.membership
        resolved, assigned = self._resolved()
        if len(resolved) < len(membership.target.partitions) and self._refreshed_for is not membership.target:
            self._refreshed_for = membership.target
            member.topics.refresh()
        if self._is_only_new_number(resolved):
            membership.current = LocalAssignment(membership.target.number, resolved)
            membership.phase = Phase.ACKNOWLEDGING
        elif in_poll or not self._must_wait(assigned):
            self._begin(LocalAssignment(membership.target.number, resolved), assigned)

    def _resolved(self) -> tuple[PartitionsById, set[TopicPartition]]:
        """The part of the target whose topics the member knows by name."""
        names, target = self._member.topic_names(), self._member.membership.target
        if self._known is None or self._known[0] is not names or self._known[1] is not target:
            resolved = {topic_id: numbers for topic_id, numbers in target.partitions.items() if topic_id in names}
            named = {TopicPartition(names[topic_id], number) for topic_id, numbers in resolved.items() for number in numbers}
            self._known = names, target, resolved, named
        return self._known[2:]

    def _is_only_new_number(self, resolved: PartitionsById) -> bool:
        current = self._member.membership.current
        return not current.is_none and resolved == current.partitions

    def _must_wait(self, assigned: set[TopicPartition]) -> bool:
        return self._member.config.enable_auto_commit or not self._member.owned <= assigned

    def _begin(self, resolved: LocalAssignment, assigned: set[TopicPartition]) -> None:
        member = self._member
        self.is_under_way = True
        self._round += 1
        number = self._round
        consumed = set(member.positions.consumed)
        member.stop(member.owned - assigned, StopReason.REVOKED)
        if not member.config.enable_auto_commit:
            self._revoke(number, resolved, assigned)
            return

        def committed(_: ErrorCode) -> None:
            if self._goes_on(number):
                self._revoke(number, resolved, assigned)

        retry_us = member.config.effective_rebalance_timeout_ms * 1000
        member.committer.commit(consumed, is_automatic=True, retry_for_us=retry_us, done=committed)

    def _revoke(self, number: int, resolved: LocalAssignment, assigned: set[TopicPartition]) -> None:
        member = self._member
        revoked = member.owned - assigned

        def callback() -> None:
            if self._goes_on(number):
                member.call_back(CallbackKind.REVOKED, revoked, after)

        def after() -> None:
            if self._goes_on(number):
                member.owned.difference_update(revoked)
                self._assign(number, resolved, assigned)

        if revoked:
            member.queue(callback)
        else:
            self._assign(number, resolved, assigned)

    def _assign(self, number: int, resolved: LocalAssignment, assigned: set[TopicPartition]) -> None:
        member = self._member

        def callback() -> None:
            if self._goes_on(number):
                added = assigned - member.owned
                member.owned.clear()
                member.owned.update(assigned)
                member.call_back(CallbackKind.ASSIGNED, added, after)

        def after() -> None:
            if self._goes_on(number):
                self._acknowledge(resolved)

        member.queue(callback)

    def _acknowledge(self, resolved: LocalAssignment) -> None:
        member = self._member
        member.positions.own(member.owned)
        member.membership.current = resolved
        member.membership.phase = Phase.ACKNOWLEDGING
        member.committer.restart_timer()
        self.is_under_way = False

    def _goes_on(self, number: int) -> bool:
        """Whether this round still counts; one that met another phase is over."""
        if number != self._round:
            return False
        if self._member.membership.phase is not Phase.RECONCILING:
            self.abort()
            return False
        return True
