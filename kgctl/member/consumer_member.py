"""A member that speaks the consumer protocol. Kafka: AsyncKafkaConsumer with ConsumerMembershipManager."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from uuid import UUID

from kgctl.member.api import (
    CallbackKind,
    MemberIdentity,
    MemberState,
    PositionsOf,
    Rng,
    StartConsuming,
    StopConsuming,
    StopReason,
)
from kgctl.member.base import HEARTBEAT, BaseMember, Step
from kgctl.member.commits import CommitIdentity
from kgctl.member.config import MemberConfig
from kgctl.member.consumer_heartbeats import (
    LEAVE_EPOCH,
    NO_ASSIGNMENT,
    OUTSIDE,
    STATIC_LEAVE_EPOCH,
    ConsumerMembership,
    Heartbeats,
    LocalAssignment,
    MembershipPhase,
    PartitionsById,
    new_member_id,
)
from kgctl.member.runtime import HeartbeatClock
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import MetadataImage, TopicPartition


class MemberReconciliation:
    """The reconciliations of one member, one at a time. ``abort`` makes what is under way end without effect."""

    __slots__ = ("_known", "_member", "_refreshed_for", "_round", "is_under_way")

    def __init__(self, member: ConsumerMember) -> None:
        self.is_under_way = False
        self._member = member
        self._round = 0
        self._known: tuple[dict[UUID, str], LocalAssignment, PartitionsById, set[TopicPartition]] | None = None
        self._refreshed_for: LocalAssignment | None = None

    def is_wanted(self) -> bool:
        """Return whether there is an assignment to reconcile and no reconciliation under way."""
        membership = self._member.membership
        return membership.phase is MembershipPhase.RECONCILING and not self.is_under_way and not membership.is_reconciled

    def abort(self) -> None:
        """Drop the reconciliation under way: the membership has ended, or begun anew."""
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
        # Assignments name topics by id. One that the member has no name for is asked about, once, and the rest is reconciled
        # now (AbstractMembershipManager#findResolvableAssignmentAndTriggerMetadataUpdate).
        if len(resolved) < len(membership.target.partitions) and self._refreshed_for is not membership.target:
            self._refreshed_for = membership.target
            member.topics.refresh()
        # The same partitions again: no callback, but the coordinator waits to hear that it was taken
        # (AbstractMembershipManager#maybeReconcile).
        if self._is_only_new_number(resolved):
            membership.current = LocalAssignment(membership.target.number, resolved)
            membership.phase = MembershipPhase.ACKNOWLEDGING
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
        # Between two polls the application may hold records that it has not worked through: what is committed and revoked
        # before a poll() would count them as done.
        member = self._member
        return not member.owned <= assigned or (member.config.enable_auto_commit and bool(member.owned))

    def _begin(self, resolved: LocalAssignment, assigned: set[TopicPartition]) -> None:
        member = self._member
        self.is_under_way = True
        self._round += 1
        number = self._round
        consumed, revoked = set(member.positions.consumed), member.owned - assigned
        offsets = member.committer.of_given_up(consumed & revoked)
        member.stop(revoked, StopReason.REVOKED)

        def committed(_: ErrorCode) -> None:
            if self._goes_on(number):
                self._revoke(number, resolved, assigned, offsets)

        if member.committer.commits_first:
            retry_us = member.config.effective_rebalance_timeout_ms * 1000
            member.committer.commit(consumed, is_automatic=True, retry_for_us=retry_us, done=committed)
        else:
            self._revoke(number, resolved, assigned, offsets)

    def _revoke(
        self, number: int, resolved: LocalAssignment, assigned: set[TopicPartition], offsets: dict[TopicPartition, int]
    ) -> None:
        member = self._member
        revoked = member.owned - assigned

        def callback() -> None:
            if self._goes_on(number):
                member.call_back(CallbackKind.REVOKED, revoked, after)

        def after() -> None:
            if self._goes_on(number):
                member.owned.difference_update(revoked)
                member.committer.commit_given_up(offsets, given_up)

        def given_up(_: ErrorCode) -> None:
            if self._goes_on(number):
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
                self.on_assigned(resolved)
                member.owned.clear()
                member.owned.update(assigned)
                member.call_back(CallbackKind.ASSIGNED, added, after)

        def after() -> None:
            if self._goes_on(number):
                self._acknowledge(resolved)

        member.queue(callback)

    def on_assigned(self, resolved: LocalAssignment) -> None:
        """Hear of an assignment before the application does."""

    def _acknowledge(self, resolved: LocalAssignment) -> None:
        member = self._member
        member.positions.own(member.owned)
        # With the next beat, which leaves at once, the coordinator may give to others what was given up here.
        member.membership.current = resolved
        member.membership.phase = MembershipPhase.ACKNOWLEDGING
        member.committer.restart_timer()
        self.is_under_way = False

    def _goes_on(self, number: int) -> bool:
        """Whether this round still counts; one that met another phase is over."""
        if number != self._round:
            return False
        if self._member.membership.phase is not MembershipPhase.RECONCILING:
            self.abort()
            return False
        return True


STATES: Mapping[MembershipPhase, MemberState] = {
    MembershipPhase.UNSUBSCRIBED: MemberState.NEW,
    MembershipPhase.JOINING: MemberState.JOINING,
    MembershipPhase.RECONCILING: MemberState.RECONCILING,
    MembershipPhase.ACKNOWLEDGING: MemberState.RECONCILING,
    MembershipPhase.STABLE: MemberState.STABLE,
    MembershipPhase.FENCED: MemberState.FENCED,
    MembershipPhase.LEAVING: MemberState.LEAVING,
    MembershipPhase.STALE: MemberState.FENCED,
    MembershipPhase.FATAL: MemberState.FAILED,
}


_RECONCILING = MembershipPhase.RECONCILING


class ConsumerMember(BaseMember):
    """See `kgctl.member.api.Member`. Its background thread reads the network and beats whatever the application does."""

    __slots__ = (
        "_idle", "_is_released", "_is_silent", "_names", "_poll_limit_is_over", "_queue", "heartbeats", "membership",
        "reconciliation",
    )  # fmt: skip

    has_background = True

    def __init__(
        self, config: MemberConfig, identity: MemberIdentity, rng: Rng, positions_of: PositionsOf, request_ids: Iterator[int]
    ) -> None:
        super().__init__(config, identity, rng, positions_of, request_ids)
        self.membership = ConsumerMembership(new_member_id(rng))
        self.heartbeats = Heartbeats(
            self.runtime, self.connection, self.topics, self.membership, on_fenced=self._on_fenced, on_fatal=self._on_fatal
        )
        self.reconciliation = MemberReconciliation(self)
        self._queue: list[tuple[int, Step]] = []
        self._poll_limit_is_over = False
        self._is_silent = False
        self._idle: tuple[TopicPartition, ...] = ()
        self._is_released = True
        self._names: tuple[MetadataImage | None, dict[UUID, str]] = (None, {})

    @property
    def left_over(self) -> int:
        """Return 0: the coordinator assigns."""
        return 0

    @property
    def member_id(self) -> str:
        """Return the id that the member made itself (KIP-1082)."""
        return self.membership.member_id

    @property
    def generation_id(self) -> int:
        """Return the member epoch; -1 outside of the group."""
        return self.membership.epoch if self.membership.epoch > 0 else -1

    @property
    def clock(self) -> HeartbeatClock:
        """Return the clock of the member's heartbeats."""
        return self.heartbeats.clock

    @property
    def is_at_rest(self) -> bool:
        """Whether the member owns what it is assigned and has said so."""
        is_settled = (
            self.membership.phase is MembershipPhase.STABLE and self.membership.is_reconciled and self.heartbeats.has_told
        )
        return is_settled and not self.reconciliation.is_under_way and not self._queue and not self._poll_limit_is_over

    def live_state(self) -> MemberState:
        """Return the membership's state in the words that both protocols share."""
        return STATES[self.membership.phase]

    def topic_names(self) -> dict[UUID, str]:
        """Return the names of the topic ids in the metadata that the member has."""
        image = self.topics.image
        if self._names[0] is not image:
            topics = {} if image is None else image.topics
            self._names = image, {topic.topic_id: name for name, topic in topics.items()}
        return self._names[1]

    def queue(self, step: Step) -> None:
        """Something for the application's thread, at its next poll(): by then the one under way, if any, has returned, unless it
        blocks for want of records.
        """
        self._queue.append((self._poll_number, step))

    def begin(self) -> None:
        """Join, as the first poll() does."""
        self.membership.join()

    def on_poll(self) -> None:
        """A member that left for want of polls joins again, once what it owned is given up."""
        self._poll_limit_is_over = False
        if self._is_silent:
            self._is_silent = False
            self._leave_as_stale()
        else:
            self._read_on()
        # It joins again only after the callback of what it lost has returned (AbstractMembershipManager#maybeRejoinStaleMember).
        if self.membership.phase is MembershipPhase.STALE and self._is_released:
            self.membership.join()

    def awaits_poll(self) -> bool:
        """Return whether only a poll brings the member on: something is queued for it, or the member is stale."""
        return bool(self._queue) or self._poll_limit_is_over or self.membership.phase is MembershipPhase.STALE

    def on_coordinator_found(self) -> None:
        """Do nothing: the background thread sees for itself."""

    def fetch_identity(self) -> tuple[str | None, int]:
        """Return the member id and epoch that an OffsetFetch carries."""
        return self.membership.member_id, self.membership.epoch

    def commit_identity(self) -> CommitIdentity | ErrorCode:
        """Return the member's identity with its epoch, in whose name commits are made."""
        if self.membership.epoch > 0:
            return CommitIdentity(self.membership.member_id, self.membership.epoch)
        return ErrorCode.UNKNOWN_MEMBER_ID

    def on_commit_refused(self, error: ErrorCode, sent: CommitIdentity) -> None:
        """Do nothing: the next heartbeat finds out."""

    def reads_network(self) -> bool:
        """Return true: the background thread always reads answers."""
        return True

    def run_background(self) -> None:
        """What the client's thread does without the application."""
        if not self.is_closing and not self._is_silent:
            if self.membership.phase is _RECONCILING:
                self.reconciliation.run(in_poll=False)
            self.heartbeats.run()

    def next_step(self) -> Step | None:
        """The order of ``AsyncKafkaConsumer#poll``: reconciliation and commits, then callbacks, then positions."""
        if self.is_closing:
            return None
        if self.membership.phase is _RECONCILING and self.reconciliation.needs_poll():
            return self._reconcile
        if self.committer.is_due() and self.connection.is_known:
            return self.auto_commit
        if self._queue and self._may_run(self._queue[0][0]):
            return self._run_queued
        if self.membership.phase in OUTSIDE:
            return None
        return self.positions.step() if self.positions.awaiting else None

    def on_deadline(self, name: str) -> None:
        """The background thread wakes for a beat, and finds the poll timer over where it is."""
        if name == HEARTBEAT and self._poll_limit_is_over:
            self._leave_as_stale()

    def on_poll_limit(self) -> None:
        """Read nothing from now on. Java's background thread is asleep until its next beat: only then does it see.

        librdkafka beats no more, and leaves when the application polls again: until then, or until its session is over, the
        coordinator takes it for a member (measured; rd_kafka_cgrp_consumer_serve).
        """
        self._poll_limit_is_over = True
        self._is_silent = self.config.behaviour.silent_past_limit
        if self._is_silent:
            self.runtime.deadlines.cancel(HEARTBEAT)
        self._idle = self.consumed_partitions
        if self._idle:
            self.runtime.emit(StopConsuming(self._idle, StopReason.POLL_TIMEOUT))

    def _read_on(self) -> None:
        """Read on where a poll() came back before the background thread saw that its time was over."""
        now_us = self.runtime.now_us
        positions = self.runtime.positions_of(self._idle, now_us)
        still = {partition: positions.get(partition, 0) for partition in self._idle}
        self._idle = ()
        if still:
            self.runtime.emit(StartConsuming(still))

    def _leave_as_stale(self) -> None:
        """Leave for want of polls, and lose what is owned.

        Kafka: AbstractMembershipManager#transitionToSendingLeaveGroup, #transitionToStale.
        """
        if self.membership.phase in OUTSIDE:
            return
        self.heartbeats.leave(self._leave_epoch("default"))
        self.heartbeats.is_under_way = False
        self.membership.current = NO_ASSIGNMENT
        self.membership.phase = MembershipPhase.STALE
        self._lose(StopReason.POLL_TIMEOUT, self._released_as_stale)

    def _released_as_stale(self) -> None:
        # The callback runs in the very poll() that the client waited for (AbstractMembershipManager#maybeRejoinStaleMember).
        if self.membership.phase is MembershipPhase.STALE:
            self.membership.join()

    def _on_fenced(self) -> None:
        """Give everything up, then join again. Kafka: AbstractMembershipManager#transitionToFenced."""
        # It keeps its id: to the coordinator epoch 0 is a member that begins (KIP-848).
        self.membership.epoch = 0
        self.membership.phase = MembershipPhase.FENCED
        self._lose(StopReason.LOST, self._released_as_fenced)

    def _released_as_fenced(self) -> None:
        if self.membership.phase is MembershipPhase.FENCED:
            self.membership.join()

    def _lose(self, reason: StopReason, after: Step) -> None:
        self.reconciliation.abort()
        self.committer.end_term()
        self._queue.clear()
        self.positions.drop(self._idle)
        self._idle = ()
        self.stop(set(self.owned), reason)
        self._is_released = not self.owned

        def released() -> None:
            self.owned.clear()
            self.membership.current = NO_ASSIGNMENT
            self._is_released = True
            after()

        if self.owned:
            self.queue(lambda: self.call_back(CallbackKind.LOST, self.owned, released))
        elif self.membership.phase is MembershipPhase.FENCED:
            released()

    def _on_fatal(self, error: ErrorCode, message: str) -> None:
        self.membership.phase = MembershipPhase.FATAL
        self.reconciliation.abort()
        self._queue.clear()
        self.stop(set(self.owned), StopReason.FAILED)
        self.queue(lambda: self.fail(error.name, message))

    def _may_run(self, queued_in: int) -> bool:
        if self._joins_itself:
            return self.may_call_back
        return self._poll_number > queued_in or self._poll_until_us > self.runtime.now_us

    def _run_queued(self) -> None:
        self._queue.pop(0)[1]()

    def _reconcile(self) -> None:
        self.reconciliation.run(in_poll=True)

    def begin_close(self) -> None:
        """Commit, callbacks, leave. Kafka: ``AsyncKafkaConsumer#close``."""
        self.reconciliation.abort()
        self._queue.clear()
        self.commit_last(self._release)

    def _release(self) -> None:
        if self.owned:
            kind = CallbackKind.REVOKED if self.membership.epoch > 0 else CallbackKind.LOST
            self.call_back(kind, self.owned, self._depart)
        else:
            self._depart()

    def _depart(self) -> None:
        self.owned.clear()
        if self.membership.phase not in OUTSIDE:
            self.heartbeats.leave(self._leave_epoch(self.config.close_operation))
        self.membership.phase = MembershipPhase.UNSUBSCRIBED
        self.await_close()

    def _leave_epoch(self, operation: str) -> int:
        """A static member says that it comes back, unless it is told to leave; a dynamic one leaves, even when told to remain."""
        is_static = self.identity.group_instance_id is not None
        return STATIC_LEAVE_EPOCH if is_static and operation != "leave" else LEAVE_EPOCH
