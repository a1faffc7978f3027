"""What a member is to its driver: calls go in, actions come out.

A member is a consumer without sockets, threads and a clock. The driver owns those; its duties:

* perform the actions of each call in order;
* after each call look at `Member.next_deadline_us`, and call `Member.expire` when it has come (late is safe, early does nothing);
* call `Member.poll` as the application would. `Member.needs_poll` says whether a poll would do anything: a driver may leave out
  those that would not. An application that stops polling is announced with `Member.application_busy`;
* hand every answer to `Member.on_reply`, with the ``correlation_id`` of its request. Answers may come late, twice or never: the
  member has request timeouts of its own and ignores what it no longer waits for. A broken connection is a `NetworkError`;
* while a callback runs (from a `RunCallback` or `RunAssignor` to `Member.callback_done`) the application's thread is in it: no
  `Member.poll`, no `Member.commit`; answers and deadlines go on. It may end at once, but in a call of its own.

Members are made by ``kgctl.member.factory.make_member(config, identity, rng, *, positions_of, request_ids)``. ``positions_of``
tells what a commit would hold; it is asked about partitions until their callback has run, also when they are no longer consumed
(a commit follows `StopConsuming`). ``request_ids``, an iterator of integers for the whole run, numbers the requests.

Times are integer microseconds of one clock (``*_us``). Kafka: KafkaConsumer with ConsumerCoordinator, or with the consumer's
ConsumerMembershipManager.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from enum import StrEnum
from typing import Literal, Protocol, TypeAlias

from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import MetadataImage, TopicPartition
from kgctl.model.requests import Request, Result
from kgctl.model.values import frozen, frozen_in_order, quick_enum


class Rng(Protocol):
    """The seeded source of randomness that is handed in (``random.Random`` is one)."""

    def random(self) -> float:
        """Return a number of [0, 1)."""
        ...

    def getrandbits(self, k: int, /) -> int:
        """Return a number of ``k`` random bits."""
        ...


PositionsOf: TypeAlias = Callable[[Iterable[TopicPartition], int], dict[TopicPartition, int]]
"""(partitions, now_us) -> the offset of the next record not processed yet, of those that have one to commit."""


@frozen
class MemberIdentity:
    """Who the member is and what it reads. ``topics`` and ``pattern`` (a whole-name match): one of the two.

    ``matches_pattern``: with the consumer protocol, too, the client matches the pattern itself, against the topics that it knows,
    and tells the coordinator their names (Java: subscribe(Pattern)); without it, the coordinator does (SubscriptionPattern).

    ``name`` is the scenario's; it never goes over the wire.
    """

    name: str
    group_id: str
    client_id: str = ""
    client_host: str = "/127.0.0.1"
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    matches_pattern: bool = False
    group_instance_id: str | None = None
    rack_id: str | None = None


# --- what a member wants done


@frozen_in_order
class Send:
    """Send this to the group's coordinator. ``request.request_id`` is ``correlation_id``."""

    correlation_id: int
    request: Request


@frozen_in_order
class FindCoordinator:
    """Ask any broker who the group's coordinator is. Answered with `FindCoordinatorResult`."""

    correlation_id: int


@frozen_in_order
class RefreshMetadata:
    """Ask any broker for the topics. Answered with `Member.on_metadata`, or a `NetworkError` with this id."""

    correlation_id: int


@frozen_in_order
class ListOffsets:
    """Ask the leaders where these partitions begin or end. Answered with `ListOffsetsResult`."""

    correlation_id: int
    partitions: tuple[TopicPartition, ...]
    strategy: Literal["earliest", "latest"]


@quick_enum
class CallbackKind(StrEnum):
    """The methods of Java's ConsumerRebalanceListener."""

    REVOKED = "revoked"
    ASSIGNED = "assigned"
    LOST = "lost"


@frozen_in_order
class RunCallback:
    """Run the application's callback, for as long as it takes, then call `Member.callback_done`. There may be no partitions."""

    kind: CallbackKind
    partitions: tuple[TopicPartition, ...]


@frozen_in_order
class RunAssignor:
    """The leader's assignor computes: as a callback, it ends with `Member.callback_done`. Heartbeats wait for it, too."""

    protocol_name: str
    members: int
    partitions: int


@frozen_in_order
class StartConsuming:
    """These partitions are read from these offsets on: the committed ones, or those of ``auto.offset.reset``."""

    positions: Mapping[TopicPartition, int]

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """Return the partitions, in order."""
        return tuple(self.positions)


@quick_enum
class StopReason(StrEnum):
    """Why a member stops reading a partition."""

    REVOKED = "revoked"
    LOST = "lost"
    CLOSED = "closed"
    POLL_TIMEOUT = "max.poll.interval.ms"
    FAILED = "failed"


@frozen_in_order
class StopConsuming:
    """These partitions are no longer read, and no longer owned."""

    partitions: tuple[TopicPartition, ...]
    reason: StopReason


@frozen_in_order
class CommitDone:
    """A commit was answered: what was stored, or which error it met.

    ``is_automatic`` for those that the client makes by itself.
    """

    offsets: Mapping[TopicPartition, int]
    error: ErrorCode = ErrorCode.NONE
    is_automatic: bool = False


@frozen_in_order
class Failed:
    """The consumer met an error that it does not get over: FENCED_INSTANCE_ID, INCONSISTENT_GROUP_PROTOCOL, INVALID_CONFIG.

    ``partitions`` that it owned were stopped by `StopConsuming` before. It does nothing more; only a new member helps.
    """

    error: str
    message: str = ""


@frozen_in_order
class Closed:
    """The consumer's close() has returned: the process may end."""


Action: TypeAlias = (
    Send
    | FindCoordinator
    | RefreshMetadata
    | ListOffsets
    | RunCallback
    | RunAssignor
    | StartConsuming
    | StopConsuming
    | CommitDone
    | Failed
    | Closed
)


# --- what a member is answered


@frozen_in_order
class FindCoordinatorResult:
    """Answer to `FindCoordinator`: NONE, or COORDINATOR_NOT_AVAILABLE."""

    error: ErrorCode = ErrorCode.NONE


@frozen_in_order
class ListOffsetsResult:
    """Answer to `ListOffsets`: partitions that are left out could not be asked."""

    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)


@frozen_in_order
class NetworkError:
    """The request's connection broke: there will be no answer, and the request may have been carried out or not.

    ``no_broker``: no broker of the cluster can be reached.
    """

    correlation_id: int
    no_broker: bool = False


Answer: TypeAlias = Result | FindCoordinatorResult | ListOffsetsResult | NetworkError


# --- time in which nothing happens


@frozen_in_order
class Skipped:
    """The chores that `Member.skip_quiet` took as done: how many of each, and when the last one left the member (None: none)."""

    heartbeats: int = 0
    last_heartbeat_us: int | None = None
    commits: int = 0
    last_commit_us: int | None = None
    metadata_refreshes: int = 0


# --- the member


@quick_enum
class MemberState(StrEnum):
    """Where a member stands, the same words for both protocols."""

    NEW = "new"
    JOINING = "joining"
    STABLE = "stable"
    RECONCILING = "reconciling"
    FENCED = "fenced"
    LEAVING = "leaving"
    CLOSED = "closed"
    FAILED = "failed"


class Member(Protocol):
    """One consumer. See the module for the driver's duties."""

    @property
    def identity(self) -> MemberIdentity:
        """Return member id, instance id and group."""
        ...

    @property
    def member_id(self) -> str:
        """The id that the coordinator knows it by; "" before there is one."""
        ...

    @property
    def generation_id(self) -> int:
        """The generation, or the member epoch, that it is in; -1 outside of one."""
        ...

    @property
    def left_over(self) -> int:
        """How many partitions an assignor of the user's own gave to nobody when this member last led its group."""
        ...

    @property
    def state(self) -> MemberState:
        """Return the state of the member's membership."""
        ...

    @property
    def owned_partitions(self) -> tuple[TopicPartition, ...]:
        """What it believes to own, sorted; those being taken away until their callback has run."""
        ...

    @property
    def consumed_partitions(self) -> tuple[TopicPartition, ...]:
        """What it reads, sorted: owned, the assigned-callback is over, the offsets are there."""
        ...

    @property
    def needs_poll(self) -> bool:
        """Whether a `poll` would do something now; until it is called nothing more happens on the application's side.

        Always after `application_busy`: that poll may not be left out.
        """
        ...

    @property
    def in_callback(self) -> bool:
        """Whether the application's thread is in a callback: the driver owes a `callback_done`."""
        ...

    def start(self, now_us: int) -> list[Action]:
        """The process called subscribe(); its first `poll` may come at once."""
        ...

    def poll(self, now_us: int, until_us: int | None = None) -> list[Action]:
        """The application called poll().

        ``until_us``: the call blocks for want of records until then, and answers that arrive meanwhile are handled at once.
        Without it the call returns at once, and answers wait for the next one.
        """
        ...

    def application_busy(self, since_us: int) -> list[Action]:
        """The last poll() was at ``since_us`` and the next is not in sight.

        ``max.poll.interval.ms`` runs from there until the next `poll`.
        """
        ...

    def commit(self, now_us: int) -> list[Action]:
        """The application commits the positions of what it reads. Ends with a `CommitDone`."""
        ...

    def callback_done(self, now_us: int) -> list[Action]:
        """The callback of the last `RunCallback` has returned."""
        ...

    def enforce_rebalance(self, now_us: int) -> list[Action]:
        """Join again though nothing asks for it. Without effect in the consumer protocol. Kafka: Consumer#enforceRebalance."""
        ...

    def on_reply(self, correlation_id: int, result: Answer, now_us: int) -> list[Action]:
        """A request was answered, or its connection broke."""
        ...

    def answer_in_poll(self, correlation_id: int, result: Answer, now_us: int) -> list[Action] | None:
        """`poll` that blocks and `on_reply` in one call, for an application that sits in poll() when the answer arrives.

        None: nothing was done, as another thread of the client takes the answer: call `on_reply`.
        """
        ...

    def on_metadata(self, image: MetadataImage, now_us: int) -> list[Action]:
        """Take the answer to a `RefreshMetadata`: the topics that exist."""
        ...

    def close(self, now_us: int) -> list[Action]:
        """The application calls close(). Ends with `Closed`; until then answers, callbacks and deadlines go on."""
        ...

    def next_deadline_us(self) -> int | None:
        """When `expire` has to be called next; None: nothing to wait for."""
        ...

    def expire(self, now_us: int) -> list[Action]:
        """Do what is due: heartbeats, request timeouts, backoffs, max.poll.interval.ms, metadata that is too old."""
        ...

    @property
    def is_quiet(self) -> bool:
        """Whether it sits in its group with nothing under way: its chores change nothing as long as the group does not."""
        ...

    @property
    def is_answered(self) -> bool:
        """Whether its coordinator is known, and has answered everything."""
        ...

    def next_loud_deadline_us(self) -> int | None:
        """While quiet: the next deadline that is no chore and so cannot be skipped."""
        ...

    def skip_quiet(self, until_us: int, commits_late_us: int = 0) -> Skipped:
        """Take the chores (heartbeats, metadata refreshes, automatic commits) due before ``until_us`` as done, without effect.

        Only while `is_quiet`; the caller knows that each would have been answered without an error and with nothing new. The next
        ones are due at or after ``until_us``, in the phase that they would have had. ``commits_late_us``: how long after its
        interval an automatic commit waits for the application's poll(), which makes it.
        """
        ...

    def quiet_commit_us(self, until_us: int, commits_late_us: int = 0) -> int | None:
        """`Skipped.last_commit_us` of a `skip_quiet` until then, which is not done."""
        ...
