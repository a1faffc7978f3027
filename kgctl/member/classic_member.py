"""A member that speaks the classic protocol. Kafka: ClassicKafkaConsumer with ConsumerCoordinator."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kgctl.assignors.spec import AssignorError, GroupSpec
from kgctl.member.api import CallbackKind, MemberIdentity, MemberState, NetworkError, PositionsOf, Rng, RunAssignor, StopReason
from kgctl.member.base import HEARTBEAT, SESSION, BaseMember, Step
from kgctl.member.classic_session import NO_GENERATION_ID, OUTSIDE, ClassicSession, JoinPhase, Membership, SessionGeneration
from kgctl.member.commits import CommitIdentity, RoundCommit
from kgctl.member.config import MemberConfig, is_cooperative
from kgctl.member.leader import Assignments, LeaderAssignor, Remembered, group_spec
from kgctl.member.runtime import COORDINATOR_GONE, RETRIABLE, HeartbeatClock, Snapshot, draw
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import ConsumerSubscription, MetadataImage, TopicPartition
from kgctl.model.requests import JoinGroup, JoinGroupResult, SyncGroup, SyncGroupResult
from kgctl.serde.consumer_protocol import decode_assignment

REJOIN = "rejoin"
OLD_JOIN_VERSION = 1  # kafka-go's JoinGroup
JOIN_AGAIN_AT_ONCE = frozenset(
    {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.MEMBER_ID_REQUIRED}
)
DISCONNECTED = ErrorCode.COORDINATOR_NOT_AVAILABLE
"""Stands for a round that ended with the connection."""


class Rebalance:
    """The rounds of one member: revoke, join, sync, assigned. Kafka: ConsumerCoordinator, AbstractCoordinator."""

    __slots__ = (
        "_assigned_from", "_assignor", "_commit", "_compared_image", "_elected", "_group_topics", "_has_looked",
        "_is_joining", "_joined_topics", "_member", "_membership", "_outcome", "_rebalance_timeout_ms", "_remembered",
        "_topics", "is_cooperative",
    )  # fmt: skip

    def __init__(self, member: ClassicMember) -> None:
        config = member.config
        self.is_cooperative = is_cooperative(config.partition_assignment_strategy)
        self._member = member
        self._rebalance_timeout_ms = config.effective_rebalance_timeout_ms
        self._membership = member.membership
        self._topics = member.topics
        self._assignor = LeaderAssignor(config.behaviour.assignor_prefix, config.partition_assignment_strategy)
        self._remembered: Remembered | None = None
        self._joined_topics: tuple[str, ...] | None = None
        self._group_topics: tuple[str, ...] = ()
        self._assigned_from: Snapshot | None = None
        self._compared_image: MetadataImage | None = None
        self._commit = RoundCommit.NOT_SENT
        self._is_joining = False
        self._has_looked = True
        self._elected: JoinGroupResult | None = None
        self._outcome: bytes | set[TopicPartition] | ErrorCode | None = None

    @property
    def is_under_way(self) -> bool:
        """Return whether a round has begun and not ended."""
        return self._is_joining or self._commit is not RoundCommit.NOT_SENT

    def is_needed(self) -> bool:
        """Whether the member has to join (again). Kafka: ``ConsumerCoordinator#rejoinNeededOrPending``."""
        membership = self._membership
        if self._is_joining or membership.rejoin_needed:
            return True
        of_metadata, of_subscription = membership.TOPICS_CHANGED
        if self._assigned_from is not None and self._has_changed_metadata():
            membership.request_rejoin(of_metadata)
        elif self._joined_topics is not None and self._joined_topics != self._topics.subscription:
            membership.request_rejoin(of_subscription)
        return membership.rejoin_needed

    def _has_changed_metadata(self) -> bool:
        """Whether the leader knows the group's topics to be others than those it assigned from."""
        topics = self._topics
        watches = self._member.config.behaviour.watches_partitions
        if not watches or self._assigned_from is None or topics.image is self._compared_image:
            return False
        # Compared with the metadata from which the leader assigned, as in ConsumerCoordinator#rejoinNeededOrPending.
        self._compared_image = topics.image
        return topics.snapshot(self._group_topics) != self._assigned_from

    @property
    def calls_back(self) -> bool:
        """Whether the round goes on by a callback: what is given up before JoinGroup, or was assigned."""
        if self._outcome is not None:
            return not isinstance(self._outcome, ErrorCode)
        membership = self._member.membership
        begins = membership.needs_prepare and not self._is_joining and self._commit is RoundCommit.NOT_SENT
        return begins and bool(self._member.owned) and (not self.is_cooperative or membership.is_outside)

    def step(self) -> Step | None:
        """Return the round's next step, None while it waits. Kafka: AbstractCoordinator#joinGroupIfNeeded."""
        member = self._member
        if self._outcome is not None:
            return self._end_round
        if self._elected is not None:
            return self._lead if member.topics.image is not None else None
        # Nothing is given up before there is a coordinator to join at (AbstractCoordinator#ensureCoordinatorReady): a cluster
        # that is down costs no member its partitions.
        is_ready = member.connection.is_known and member.topics.is_ready
        if self._is_joining or not is_ready or REJOIN in member.runtime.deadlines.armed:
            return None
        if not member.membership.needs_prepare and self._has_looked:
            return None if self._is_looking or self._commit is RoundCommit.UNDER_WAY else self._join
        return self._step_before()

    def _step_before(self) -> Step | None:
        # A pattern is matched anew before each round, so that a new topic costs one rebalance, not one for each member that hears
        # of it (ConsumerCoordinator#poll).
        if not self._has_looked:
            return self._look
        # Sent once a round, and polled for: ConsumerCoordinator#onJoinPrepare returns to the application until it is answered.
        if self._commit is RoundCommit.NOT_SENT and self._member.committer.commits_first:
            return None if self._is_looking else self._commit_first
        return None if self._commit is RoundCommit.UNDER_WAY or self._is_looking else self._prepare

    @property
    def _is_looking(self) -> bool:
        return self._member.identity.pattern is not None and self._topics.is_refreshing

    # --- before JoinGroup

    def _commit_first(self) -> None:
        """Commit what was read; what will be revoked is read no further. Kafka: ``ConsumerCoordinator#onJoinPrepare``."""
        member = self._member
        self._commit = RoundCommit.UNDER_WAY
        consumed = set(member.positions.consumed)
        # Eager members give everything up, so nothing more is read while the commit is under way (KIP-429 spares the others).
        if not self.is_cooperative:
            member.stop(consumed, StopReason.REVOKED)
        retry_us = self._rebalance_timeout_ms * 1000
        member.committer.commit(consumed, is_automatic=True, retry_for_us=retry_us, done=self._committed)

    def _committed(self, _: ErrorCode) -> None:
        if self._commit is RoundCommit.UNDER_WAY:
            self._commit = RoundCommit.OVER

    def _prepare(self) -> None:
        member = self._member
        member.membership.needs_prepare = False
        self._commit = RoundCommit.NOT_SENT
        # Only a leader watches the topics of the others, and each round elects one anew (ConsumerCoordinator#onJoinPrepare).
        self._assigned_from = None
        owned = set(member.owned)
        # Cast out, the member may own what others have by now: onPartitionsLost instead of onPartitionsRevoked (KIP-429).
        if member.membership.is_outside:
            if owned:
                member.stop(owned, StopReason.LOST)
                member.call_back(CallbackKind.LOST, owned, member.owned.clear)
        elif not self.is_cooperative:
            self._revoke(owned, member.owned.clear)
        # Only what it does not subscribe to any more: the rest is kept over the rebalance, and told as owned.
        elif gone := {partition for partition in owned if partition.topic not in member.topics.subscription}:
            self._revoke(gone, lambda: member.owned.difference_update(gone))

    def _revoke(self, partitions: set[TopicPartition], then: Callable[[], None]) -> None:
        """Read these no more, tell the application, commit where the client does it now, and then go on."""
        member = self._member
        offsets = member.committer.of_given_up(member.positions.consumed & partitions)
        member.stop(partitions, StopReason.REVOKED)

        def called_back() -> None:
            self._commit = RoundCommit.UNDER_WAY
            member.committer.commit_given_up(offsets, committed)

        def committed(_: ErrorCode) -> None:
            self._commit = RoundCommit.NOT_SENT
            then()

        member.call_back(CallbackKind.REVOKED, partitions, called_back)

    # --- JoinGroup

    def _join(self) -> None:
        member = self._member
        config, identity, membership = member.config, member.identity, member.membership
        membership.phase = JoinPhase.PREPARING
        # No heartbeat goes out between JoinGroup and its answer: a parked JoinGroup is sign of life enough for the coordinator.
        member.committer.end_term()
        member.session.disable()
        self._is_joining = True
        self._joined_topics = member.topics.subscription
        sent = membership.generation
        # What it owns goes along in every subscription (KIP-429), with the generation, so that a leader believes the newer of
        # two claims to a partition (KIP-792), and the rack (KIP-881).
        member.connection.send(
            JoinGroup,
            lambda result: self._on_join(sent, result),
            timeout_ms=config.join_timeout_ms,
            parks=True,
            group_id=identity.group_id,
            member_id=sent.member_id,
            group_instance_id=identity.group_instance_id,
            protocols=self._assignor.join_protocols(
                ConsumerSubscription(
                    self._joined_topics, None, tuple(sorted(member.owned)), sent.generation_id, identity.rack_id
                ),
                self._remembered,
            ),
            session_timeout_ms=config.session_timeout_ms,
            rebalance_timeout_ms=self._rebalance_timeout_ms,
            reason=membership.rejoin_reason or None,
            **({"api_version": OLD_JOIN_VERSION} if config.behaviour.joins_without_id else {}),
        )

    def _on_join(self, sent: SessionGeneration, result: JoinGroupResult | NetworkError) -> None:
        member = self._member
        membership = member.membership
        # It left or was cast out since: AbstractCoordinator.JoinGroupResponseHandler#handle drops such an answer.
        if membership.phase is not JoinPhase.PREPARING:
            self._outcome = DISCONNECTED if self._is_joining else None
        elif isinstance(result, NetworkError):
            self._outcome = DISCONNECTED
        elif result.error is ErrorCode.NONE:
            # The coordinator counts the session from this answer, so the heartbeats begin here and not with SyncGroup's.
            membership.phase = JoinPhase.COMPLETING
            membership.generation = SessionGeneration(result.generation_id, result.member_id, result.protocol_name)
            member.session.enable()
            # A follower's SyncGroup has nothing to say; the coordinator parks it until the leader's has come.
            if result.leader == result.member_id:
                self._elected = result
            else:
                self._sync(())
        else:
            self._join_refused(sent, result)

    def _join_refused(self, sent: SessionGeneration, result: JoinGroupResult) -> None:
        membership = self._member.membership
        # KIP-394: the id comes with the refusal, and the same JoinGroup follows with it at once.
        if result.error is ErrorCode.MEMBER_ID_REQUIRED:
            membership.generation = SessionGeneration(member_id=result.member_id)
        # A heartbeat may have learnt the same and forgotten the id before: forgetting twice would throw a new one away
        # (AbstractCoordinator.CoordinatorResponseHandler#generationUnchanged).
        elif result.error is ErrorCode.UNKNOWN_MEMBER_ID and membership.generation == sent:
            membership.reset("UNKNOWN_MEMBER_ID from JoinGroup")
        elif result.error in COORDINATOR_GONE:
            self._member.connection.lose()
        self._outcome = result.error

    # --- SyncGroup

    def _lead(self) -> None:
        """Kafka: ``ConsumerCoordinator#onLeaderElected``. The group's topics are those that the leader knows at this moment."""
        member = self._member
        elected, image = self._elected, member.topics.image
        self._elected = None
        if elected is None or image is None:
            return
        try:
            spec = group_spec(elected.members, image)
        except AssignorError as error:
            self._assignor_failed(error)
            return
        self._group_topics = tuple(dict.fromkeys(topic for entry in spec.members for topic in entry.topics))
        self._assigned_from = member.topics.snapshot(self._group_topics)
        self._compared_image = image
        # KIP-814: a static leader that only restarted changes nobody's assignment.
        if elected.skip_assignment:
            self._sync(())
            return
        name = elected.protocol_name or ""
        partitions = sum(topic.partition_count for topic in spec.topics.values())
        member.session.lock()
        member.run_assignor(RunAssignor(name, len(spec.members), partitions), lambda: self._assign(name, spec))

    def _assign(self, name: str, spec: GroupSpec) -> None:
        """What the assignor throws comes out of poll(), and the others wait for a SyncGroup that never comes."""
        try:
            assignments = self._assignor.assign(name, spec)
        except AssignorError as error:
            self._assignor_failed(error)
            return
        self._sync(assignments)
        self._member.session.unlock()

    @property
    def left_over(self) -> int:
        """How many partitions the last assignment left to nobody."""
        return self._assignor.left_over

    def _assignor_failed(self, error: AssignorError) -> None:
        self._is_joining = False
        self._member.session.disable()
        self._member.session.unlock()
        self._member.fail("ASSIGNOR_FAILED", str(error))

    def _sync(self, assignments: Assignments) -> None:
        member = self._member
        generation = member.membership.generation
        member.connection.send(
            SyncGroup,
            lambda result: self._on_sync(generation, result),
            timeout_ms=member.config.sync_timeout_ms,
            parks=True,
            group_id=member.identity.group_id,
            generation_id=generation.generation_id,
            member_id=generation.member_id,
            group_instance_id=member.identity.group_instance_id,
            # KIP-559: the coordinator refuses a SyncGroup that means another protocol than the one it has elected.
            protocol_type="consumer",
            protocol_name=generation.protocol_name,
            assignments=assignments,
        )

    def _on_sync(self, sent: SessionGeneration, result: SyncGroupResult | NetworkError) -> None:
        membership = self._member.membership
        if not self._is_joining:
            return
        if isinstance(result, NetworkError):
            self._outcome = DISCONNECTED
        elif result.error is ErrorCode.NONE:
            # A heartbeat that was answered meanwhile may have cast the member out: then the assignment is not its own any more
            # (AbstractCoordinator.SyncGroupResponseHandler#handle).
            if membership.phase is JoinPhase.COMPLETING and (membership.generation is sent or membership.generation == sent):
                membership.phase = JoinPhase.STABLE
                membership.rejoin_needed = False
                membership.rejoin_reason = ""
                self._outcome = result.assignment
            else:
                self._outcome = ErrorCode.ILLEGAL_GENERATION
        else:
            if result.error in COORDINATOR_GONE:
                self._member.connection.lose()
            elif membership.generation == sent and result.error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
                # The id is still good where only the generation is not. Kafka: AbstractCoordinator#resetStateOnResponseError.
                keeps = result.error is ErrorCode.ILLEGAL_GENERATION
                membership.reset(f"{result.error.name} from SyncGroup", keeps_member_id=keeps)
                self._member.session.disable()
            self._outcome = result.error

    # --- the end of a round

    def _end_round(self) -> None:
        outcome, self._outcome = self._outcome, None
        membership = self._member.membership
        if isinstance(outcome, ErrorCode):
            self._is_joining = False
            self._elected = None
            self._round_failed(outcome)
        elif membership.generation.generation_id == NO_GENERATION_ID or membership.phase is not JoinPhase.STABLE:
            self._is_joining = False
            membership.reset("the generation was lost before its callbacks ran")
        elif isinstance(outcome, bytes):
            self._complete(outcome)
        elif outcome is not None:
            self._hand_over(outcome)

    def _round_failed(self, error: ErrorCode) -> None:
        member = self._member
        if member.config.behaviour.leaves_when_refused and error is not ErrorCode.REBALANCE_IN_PROGRESS:
            member.session.leave(reason="")
            member.runtime.arm_in(REJOIN, member.config.join_group_backoff_ms * 1000)
            return
        # The coordinator logs the reason of a JoinGroup (KIP-800); being given an id is none.
        if error is not ErrorCode.MEMBER_ID_REQUIRED:
            member.membership.request_rejoin(f"rebalance failed due to {error.name}")
        if error in JOIN_AGAIN_AT_ONCE:
            return
        if error in RETRIABLE:
            member.runtime.arm_in(REJOIN, member.config.retry_backoff_ms * 1000)
        else:
            member.session.disable()
            member.fail(error.name)

    def _complete(self, assignment: bytes) -> None:
        """Take the assignment in: revoke what is not in it, then own it. Kafka: ``ConsumerCoordinator#onJoinComplete``."""
        member = self._member
        assigned = set(decode_assignment(assignment).partitions)
        # The application has changed its subscription since JoinGroup: Java takes nothing of such an assignment, and joins with
        # the new subscription.
        if not {partition.topic for partition in assigned} <= set(member.topics.subscription):
            member.membership.request_rejoin("received assignment does not match the current subscription")
            self._close_round()
            return
        # What moves away is free only once this member joins again without it: the second rebalance of KIP-429.
        revoked = member.owned - assigned if self.is_cooperative else set()
        if not revoked:
            self._hand_over(assigned)
            return
        self._revoke(revoked, lambda: self._revoked(assigned))

    def _revoked(self, assigned: set[TopicPartition]) -> None:
        self._member.membership.request_rejoin(Membership.TO_REVOKE)
        # librdkafka's rd_kafka_cgrp_incr_unassign_done: what was revoked is committed, and then a poll() hands over what is
        # assigned, be it nothing. ConsumerCoordinator#onJoinComplete does both in one go.
        if self._member.config.behaviour.queues_callbacks:
            self._outcome = assigned
        else:
            self._hand_over(assigned)

    def _hand_over(self, assigned: set[TopicPartition]) -> None:
        member = self._member
        added = assigned - member.owned
        # Assignors hear of the assignment before the listener does (ConsumerPartitionAssignor#onAssignment): what they send in
        # the next round does not wait for a callback.
        self._remembered = Remembered(frozenset(assigned), member.membership.generation.generation_id)
        member.committer.restart_timer()
        member.stop(member.owned - assigned, StopReason.REVOKED)
        member.owned.clear()
        member.owned.update(assigned)
        member.call_back(CallbackKind.ASSIGNED, added, self._handed_over(added))

    def _handed_over(self, added: set[TopicPartition]) -> Callable[[], None]:
        def after() -> None:
            member = self._member
            member.positions.own(member.owned)
            if not member.topics.has_all(added):
                member.topics.refresh()
            self._close_round()

        return after

    def _look(self) -> None:
        self._has_looked = True
        self._member.topics.refresh()

    def _close_round(self) -> None:
        self._is_joining = False
        self._has_looked = self._member.identity.pattern is None
        self._member.membership.needs_prepare = True


class ClassicMember(BaseMember):
    """A member of a classic group; the calls are those of `kgctl.member.api.Member`."""

    __slots__ = ("_has_left_late", "_limit_is_over", "membership", "rebalance", "session")

    def __init__(
        self, config: MemberConfig, identity: MemberIdentity, rng: Rng, positions_of: PositionsOf, request_ids: Iterator[int]
    ) -> None:
        super().__init__(config, identity, rng, positions_of, request_ids)
        self.membership = Membership()
        self.session = ClassicSession(self.runtime, self.connection, self.membership, lambda: None)
        self.rebalance = Rebalance(self)
        self._limit_is_over = False
        self._has_left_late = False

    @property
    def left_over(self) -> int:
        """Return what the last assignment that it made as the leader left to nobody."""
        return self.rebalance.left_over

    @property
    def member_id(self) -> str:
        """Return the id that the coordinator gave the member."""
        return self.membership.generation.member_id

    @property
    def generation_id(self) -> int:
        """Return the generation that the member is in, -1 outside of one."""
        return self.membership.generation.generation_id

    @property
    def clock(self) -> HeartbeatClock:
        """Return the clock of the member's heartbeats."""
        return self.session.clock

    @property
    def is_at_rest(self) -> bool:
        """Return whether no round is under way or needed."""
        return (
            self.membership.phase is JoinPhase.STABLE
            and self.session.fatal is None
            and not self.rebalance.is_under_way
            and not self.rebalance.is_needed()
            and not self._limit_is_over
        )

    def live_state(self) -> MemberState:
        """Stable within a generation; fenced until the application's thread hears of it."""
        if self.membership.phase is JoinPhase.STABLE and not self.membership.rejoin_needed:
            return MemberState.STABLE
        if self.membership.phase is JoinPhase.UNJOINED and self.owned:
            return MemberState.FENCED
        return MemberState.JOINING

    def begin(self) -> None:
        """Do nothing beside what all members do in the first poll()."""

    def request_rebalance(self) -> None:
        """Kafka: ``ConsumerCoordinator#requestRejoin`` for ``enforceRebalance``."""
        self.membership.request_rejoin("rebalance enforced by user")

    def on_poll(self) -> None:
        """Note that the application polls: the client sees it, if it has left for want of polls, when it looks next.

        What a heartbeat has thrown is thrown by the next step. Kafka: AbstractCoordinator#pollHeartbeat.
        """
        self._limit_is_over = False
        if self._has_left_late:
            self._has_left_late = False
            self.runtime.arm_in(REJOIN, draw(self.runtime.rng, self.config.behaviour.back_lag_us))

    def on_coordinator_found(self) -> None:
        """Count the session anew: a new coordinator has a session's time to answer."""
        self.session.restart_session()

    def fetch_identity(self) -> tuple[str | None, int]:
        """Return no identity: classic members fetch offsets without saying who they are."""
        return None, -1

    def commit_identity(self) -> CommitIdentity | ErrorCode:
        """Return the member's identity within a generation, None outside."""
        # Outside of a generation the client refuses by itself, without a request (ConsumerCoordinator#sendOffsetCommitRequest).
        if self.membership.phase is JoinPhase.STABLE:
            return CommitIdentity(self.member_id, self.generation_id)
        return ErrorCode.REBALANCE_IN_PROGRESS if self.membership.is_rebalancing else ErrorCode.UNKNOWN_MEMBER_ID

    def on_commit_refused(self, error: ErrorCode, sent: CommitIdentity) -> None:
        """Kafka: ``ConsumerCoordinator.OffsetCommitResponseHandler``."""
        is_current = sent == CommitIdentity(self.member_id, self.generation_id)
        # CompletingRebalance refuses commits: the member has to catch up with its group before it can commit again.
        if error is ErrorCode.REBALANCE_IN_PROGRESS:
            self.membership.request_rejoin("offset commit failed since group is already rebalancing")
        elif error in OUTSIDE and (is_current or self.membership.phase is not JoinPhase.PREPARING):
            if error is ErrorCode.FENCED_INSTANCE_ID:
                self.session.fatal = error
                return
            self.membership.reset(f"{error.name} from OffsetCommit", keeps_member_id=error is ErrorCode.ILLEGAL_GENERATION)
            self.session.disable()

    def reads_network(self) -> bool:
        """Return whether the heartbeat thread reads answers, which it does while it runs."""
        return self.session.is_enabled

    def reads_in_us(self) -> int:
        """Return how long until the heartbeat thread looks at the network again."""
        every_us = self.config.behaviour.reads_every_us
        return every_us - (self.runtime.now_us - self.session.woken_us) % every_us if every_us else 0

    def joins(self) -> bool:
        """``AbstractCoordinator#rejoinNeededOrPending``: poll() reads answers before it goes on only for that."""
        return self.membership.rejoin_needed or self.membership.is_rebalancing or self.session.fatal is not None

    def next_step(self) -> Step | None:
        """The order of ``ConsumerCoordinator#poll``: the group first, then commits, then positions."""
        if self.session.fatal is not None:
            return self._throw
        if self.is_closing:
            return None
        if self.rebalance.is_needed():
            return None if self.callback_waits() else self.rebalance.step()
        if self.committer.is_automatic and self.committer.is_due() and self.connection.is_known:
            return self.auto_commit
        return self.positions.step() if self.positions.awaiting else None

    def callback_waits(self) -> bool:
        """Whether the round goes on by a callback, and no poll() is there to run it."""
        return self._joins_itself and not self.may_call_back and self.rebalance.calls_back

    def on_deadline(self, name: str) -> None:
        """Heartbeat and session; the time to rejoin only makes a step possible."""
        if name == HEARTBEAT and self._limit_is_over:
            self._leave_late()
        elif name == HEARTBEAT:
            self.session.beat()
        elif name == SESSION:
            self.session.session_expired()

    def on_poll_limit(self) -> None:
        """The heartbeat thread leaves on the application's behalf, at once or when its next beat is due (``limits_at_beats``)."""
        self._limit_is_over = self.config.behaviour.limits_at_beats and HEARTBEAT in self.runtime.deadlines.armed
        if not self._limit_is_over:
            self._leave_late()

    def _leave_late(self) -> None:
        """Leave for want of polls; what the member owned is lost at its next poll()."""
        self._limit_is_over = False
        if self.session.is_enabled:
            self._has_left_late = self.config.behaviour.back_lag_us > 0
            self.stop(set(self.owned), StopReason.POLL_TIMEOUT)
            self.session.leave(reason="consumer poll timeout has expired.")

    def on_beats_skipped(self, last_us: int) -> None:
        """Count the session from the last beat that was skipped."""
        self.session.restart_session(last_us)

    def begin_close(self) -> None:
        """Commit, then callbacks, then leave. Kafka: ``ConsumerCoordinator#close``."""
        self.commit_last(self._release)

    def _release(self) -> None:
        self.session.disable()
        if not self.owned:
            self._depart()
            return
        # While a round is under way the partitions may have been given on: they are lost then, not revoked
        # (ConsumerCoordinator#onLeavePrepare).
        is_outside = self.membership.is_outside or self.membership.is_rebalancing
        self.call_back(CallbackKind.LOST if is_outside else CallbackKind.REVOKED, self.owned, self._depart)

    def _depart(self) -> None:
        self.owned.clear()
        self.session.leave(reason="the consumer is being closed", is_closing=True)
        self.await_close()

    def _throw(self) -> None:
        self.fail((self.session.fatal or ErrorCode.UNKNOWN_SERVER_ERROR).name)
