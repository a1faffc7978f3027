"""A member that speaks the classic protocol. Kafka: ClassicKafkaConsumer with ConsumerCoordinator."""

from __future__ import annotations

from collections.abc import Iterator

from kgctl.member.api import CallbackKind, MemberIdentity, MemberState, PositionOf, Rng, StopReason
from kgctl.member.base import CLOSE_TIMEOUT_US, BaseMember
from kgctl.member.classic.membership import NO_GENERATION_ID, JoinPhase, Membership
from kgctl.member.classic.rebalance import Rebalance
from kgctl.member.classic.session import OUTSIDE, Session
from kgctl.member.commits import CommitIdentity
from kgctl.member.config import MemberConfig
from kgctl.member.heartbeat_clock import HeartbeatClock
from kgctl.member.parts import HEARTBEAT, SESSION, Step
from kgctl.model.error_codes import ErrorCode


class ClassicMember(BaseMember):
    """See `kgctl.member.api.Member`."""

    def __init__(
        self, config: MemberConfig, identity: MemberIdentity, rng: Rng, position_of: PositionOf, request_ids: Iterator[int]
    ) -> None:
        super().__init__(config, identity, rng, position_of, request_ids)
        self.membership = Membership()
        self.session = Session(self.runtime, self.connection, self.membership, lambda: None)
        self.rebalance = Rebalance(self)

    @property
    def member_id(self) -> str:
        """The id that the coordinator gave it."""
        return self.membership.generation.member_id

    @property
    def generation_id(self) -> int:
        """The generation that it is in."""
        return self.membership.generation.generation_id

    @property
    def clock(self) -> HeartbeatClock:
        """The heartbeats."""
        return self.session.clock

    @property
    def is_at_rest(self) -> bool:
        """Whether no round is under way or needed."""
        return (
            self.membership.phase is JoinPhase.STABLE
            and self.session.fatal is None
            and not self.rebalance.is_under_way
            and not self.rebalance.is_needed()
        )

    def live_state(self) -> MemberState:
        """Stable within a generation; fenced until the application's thread hears of it."""
        if self.membership.phase is JoinPhase.STABLE and not self.membership.rejoin_needed:
            return MemberState.STABLE
        if self.membership.phase is JoinPhase.UNJOINED and self.owned:
            return MemberState.FENCED
        return MemberState.JOINING

    def begin(self) -> None:
        """Nothing beside what all members do."""

    def on_poll(self) -> None:
        """What a heartbeat has thrown comes out of poll()."""

    def on_coordinator_found(self) -> None:
        """A new coordinator has a session's time to answer."""
        self.session.restart_session()

    def fetch_identity(self) -> tuple[str | None, int]:
        """Classic members fetch offsets without saying who they are."""
        return None, -1

    def commit_identity(self) -> CommitIdentity | ErrorCode:
        """Only within a generation."""
        if self.membership.phase is JoinPhase.STABLE:
            return CommitIdentity(self.member_id, self.generation_id)
        return ErrorCode.REBALANCE_IN_PROGRESS if self.membership.is_rebalancing else ErrorCode.UNKNOWN_MEMBER_ID

    def on_commit_refused(self, error: ErrorCode, sent: CommitIdentity) -> None:
        """Kafka: ``ConsumerCoordinator.OffsetCommitResponseHandler``."""
        is_current = sent == CommitIdentity(self.member_id, self.generation_id)
        if error is ErrorCode.REBALANCE_IN_PROGRESS:
            self.membership.request_rejoin("offset commit failed since group is already rebalancing")
        elif error in OUTSIDE and (is_current or self.membership.phase is not JoinPhase.PREPARING):
            if error is ErrorCode.FENCED_INSTANCE_ID:
                self.session.fatal = error
                return
            self.membership.reset(f"{error.name} from OffsetCommit", keeps_member_id=error is ErrorCode.ILLEGAL_GENERATION)
            self.session.disable()

    def reads_network(self) -> bool:
        """The heartbeat thread does, while it runs."""
        return self.session.is_enabled

    def next_step(self) -> Step | None:
        """The order of ``ConsumerCoordinator#poll``: the group first, then commits, then positions."""
        if self.session.fatal is not None:
            return self._throw
        if self.is_closing:
            return None
        if self.rebalance.is_needed():
            return self.rebalance.step()
        if self.committer.is_due() and self.connection.is_known:
            return self._auto_commit
        return self.positions.step()

    def on_deadline(self, name: str) -> None:
        """Heartbeat and session; the time to rejoin only makes a step possible."""
        if name == HEARTBEAT:
            self.session.beat()
        elif name == SESSION:
            self.session.session_expired()

    def on_poll_limit(self) -> None:
        """The heartbeat thread leaves on the application's behalf; what it owned is lost at its next poll()."""
        if self.session.is_enabled:
            self.stop(set(self.owned), StopReason.POLL_TIMEOUT)
            self.session.leave(reason="consumer poll timeout has expired.")

    def on_beats_skipped(self, last_us: int) -> None:
        """The session runs from the last beat."""
        self.session.restart_session(last_us)

    def begin_close(self) -> None:
        """Commit, then callbacks, then leave. Kafka: ``ConsumerCoordinator#close``."""
        consumed = set(self.positions.consumed)
        self.stop(consumed, StopReason.CLOSED)
        if self.config.enable_auto_commit:
            self.committer.commit(consumed, is_automatic=True, retry_for_us=CLOSE_TIMEOUT_US, done=lambda _: self._release())
        else:
            self._release()

    def _release(self) -> None:
        self.session.disable()
        if not self.owned:
            self._depart()
            return
        is_outside = self.generation_id == NO_GENERATION_ID or not self.member_id or self.membership.is_rebalancing
        self.call_back(CallbackKind.LOST if is_outside else CallbackKind.REVOKED, self.owned, self._depart)

    def _depart(self) -> None:
        self.owned.clear()
        self.session.leave(reason="the consumer is being closed", is_closing=True)
        self.await_close()

    def _throw(self) -> None:
        self.fail((self.session.fatal or ErrorCode.UNKNOWN_SERVER_ERROR).name)

    def _auto_commit(self) -> None:
        self.committer.auto_commit(self.positions.consumed)
