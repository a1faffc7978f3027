"""The parts that make up a member of either protocol, and what can be seen of it from outside."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace

from kgctl.member.api import Answer, MemberIdentity, MemberState, PositionOf, Rng, Skipped
from kgctl.member.commits import AUTO_COMMIT, CommitIdentity, Committer
from kgctl.member.config import MemberConfig
from kgctl.member.connection import Connection
from kgctl.member.heartbeat_clock import HeartbeatClock
from kgctl.member.positions import Positions
from kgctl.member.runtime import Runtime
from kgctl.member.topics import METADATA, Topics
from kgctl.model.error_codes import ErrorCode
from kgctl.model.partitions import TopicPartition

HEARTBEAT = "heartbeat"
SESSION = "session"
POLL_LIMIT = "poll limit"
CHORES = frozenset({HEARTBEAT, SESSION, METADATA, AUTO_COMMIT})

Step = Callable[[], None]


class MemberParts(ABC):
    """The parts of a member, what its protocol adds, and what can be seen of it."""

    has_background = False
    """Whether its client does something by itself: `run_background`."""

    def __init__(
        self, config: MemberConfig, identity: MemberIdentity, rng: Rng, position_of: PositionOf, request_ids: Iterator[int]
    ) -> None:
        identity = replace(
            identity,
            group_instance_id=identity.group_instance_id or config.group_instance_id,
            rack_id=identity.rack_id or config.client_rack,
        )
        self.runtime = Runtime(identity, config, rng, position_of)
        self._deadlines = self.runtime.deadlines
        self.connection = Connection(self.runtime, request_ids, self.on_coordinator_found)
        self.topics = Topics(self.runtime, self.connection)
        self.positions = Positions(self.runtime, self.connection, self.fetch_identity)
        self.committer = Committer(self.runtime, self.connection, self.commit_identity, self.on_commit_refused)
        self.owned: set[TopicPartition] = set()
        self.is_started = False
        self.is_closing = False
        self._end: MemberState | None = None
        self._inbox: list[tuple[int, Answer]] = []
        self._polls_itself = config.behaviour.polls_itself
        self._poll_until_us = -1
        self._poll_number = 0
        self._after_callback: Step | None = None
        self._close_is_wanted = False
        self._is_departed = False

    # --- what the protocol adds

    @abstractmethod
    def on_coordinator_found(self) -> None:
        """The coordinator is known (again)."""

    @abstractmethod
    def fetch_identity(self) -> tuple[str | None, int]:
        """Member id and epoch for OffsetFetch."""

    @abstractmethod
    def commit_identity(self) -> CommitIdentity | ErrorCode:
        """In whose name a commit may be sent now."""

    @abstractmethod
    def on_commit_refused(self, error: ErrorCode, sent: CommitIdentity) -> None:
        """A commit met this error of the coordinator."""

    @abstractmethod
    def begin(self) -> None:
        """The first poll()."""

    @abstractmethod
    def next_step(self) -> Step | None:
        """What the application's thread does next. Asking changes nothing."""

    @abstractmethod
    def reads_network(self) -> bool:
        """Whether a thread of the client's own reads answers between polls."""

    @abstractmethod
    def on_deadline(self, name: str) -> None:
        """A deadline of the protocol's own has come."""

    @abstractmethod
    def on_poll(self) -> None:
        """poll() was called."""

    @abstractmethod
    def on_poll_limit(self) -> None:
        """``max.poll.interval.ms`` is over."""

    @abstractmethod
    def begin_close(self) -> None:
        """close() was called, and the application's thread is free for it."""

    @abstractmethod
    def live_state(self) -> MemberState:
        """The state of a member that has neither failed nor closed."""

    @property
    @abstractmethod
    def is_at_rest(self) -> bool:
        """Whether the protocol has nothing under way."""

    @property
    @abstractmethod
    def clock(self) -> HeartbeatClock:
        """The heartbeats."""

    @property
    @abstractmethod
    def member_id(self) -> str:
        """The member's id."""

    @property
    @abstractmethod
    def generation_id(self) -> int:
        """The generation or epoch."""

    def awaits_poll(self) -> bool:
        """Whether the member did something for want of polls that the next one mends."""
        return False

    def run_background(self) -> None:  # noqa: B027  # only some protocols have such a thread
        """What the client does by itself, after whatever has just happened."""

    def on_beats_skipped(self, last_us: int) -> None:  # noqa: B027  # only some protocols care
        """Beats up to this time count as sent and answered."""

    # --- what can be seen

    @property
    def identity(self) -> MemberIdentity:
        """Who it is."""
        return self.runtime.identity

    @property
    def config(self) -> MemberConfig:
        """Its settings."""
        return self.runtime.config

    @property
    def state(self) -> MemberState:
        """Where it stands."""
        if self._end is not None:
            return self._end
        if self.is_closing:
            return MemberState.LEAVING
        return self.live_state() if self.is_started else MemberState.NEW

    @property
    def owned_partitions(self) -> tuple[TopicPartition, ...]:
        """What it believes to own, sorted."""
        return tuple(sorted(self.owned))

    @property
    def consumed_partitions(self) -> tuple[TopicPartition, ...]:
        """What it reads, sorted."""
        return tuple(sorted(self.positions.consumed))

    @property
    def in_callback(self) -> bool:
        """Whether the application's thread is in a callback."""
        return self._after_callback is not None

    @property
    def needs_poll(self) -> bool:
        """Whether a poll would do something now."""
        if self._after_callback is not None or self._end is not None or self.is_closing:
            return False
        if self._inbox or not self.is_started or self._deadlines.is_armed(POLL_LIMIT) or self.awaits_poll():
            return True
        return not self.in_poll() and (self.positions.has_no_start or self.next_step() is not None)

    @property
    def is_quiet(self) -> bool:
        """Whether chores change nothing."""
        return (
            self.is_started
            and self._end is None
            and not self.is_closing
            and self._after_callback is None
            and not self._inbox
            and self.connection.is_known
            and self.connection.is_idle
            and self.is_at_rest
            and self.positions.is_settled
            and self.committer.is_idle
            and self.topics.image is not None
        )

    def next_loud_deadline_us(self) -> int | None:
        """The next deadline that is no chore."""
        return self._deadlines.next_except(CHORES)

    def skip_quiet(self, until_us: int, commits_late_us: int = 0) -> Skipped:
        """Take the chores before this as done."""
        beats, last_us = 0, None
        clock = self.clock
        if clock.next_us < until_us and self._deadlines.is_armed(HEARTBEAT):
            beats, last_us = clock.skip(until_us)
            self._deadlines.arm(HEARTBEAT, clock.next_us)
            self.on_beats_skipped(last_us)
        commits, last_commit_us = self.committer.skip_timer(until_us, commits_late_us)
        return Skipped(beats, last_us, commits, last_commit_us, self.topics.skip_refreshes(until_us))

    def quiet_commit_us(self, until_us: int, commits_late_us: int = 0) -> int | None:
        """When the last automatic commit before this would have left; nothing changes."""
        return self.committer.would_skip(until_us, commits_late_us)[1]

    def in_poll(self) -> bool:
        """Whether the application's thread is inside poll() or close(), and not in a callback."""
        if self._after_callback is not None or not self.is_started:
            return False
        return self._poll_until_us >= self.runtime.now_us or self.is_closing or self._polls_itself
