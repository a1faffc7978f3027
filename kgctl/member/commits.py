"""Commits, the application's own and those that the client makes by itself, and where reading begins.

Kafka: ConsumerCoordinator, CommitRequestManager, OffsetsRequestManager#updateFetchPositions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Literal, TypeAlias

from kgctl.member.api import CommitDone, ListOffsets, ListOffsetsResult, NetworkError, StartConsuming
from kgctl.member.runtime import COORDINATOR_GONE, RETRIABLE, Backoff, MemberConnection, Runtime
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import TopicPartition
from kgctl.model.requests import OffsetCommit, OffsetCommitPartition, OffsetFetch, OffsetFetchResult, PartitionErrors
from kgctl.model.values import frozen_in_order, quick_enum

AUTO_COMMIT = "auto commit"
RETRY_COMMIT = "retry commit"


@frozen_in_order
class CommitIdentity:
    """In whose name a commit is sent: member, generation or epoch, instance."""

    member_id: str
    generation_id: int


@quick_enum
class RoundCommit(Enum):
    """How far the commit is that a round of a classic member waits for."""

    NOT_SENT = 0
    UNDER_WAY = 1
    OVER = 2


WhoCommits: TypeAlias = Callable[[], CommitIdentity | ErrorCode]
"""The member as it may commit now, or the error that the client itself answers."""
OnRefused: TypeAlias = Callable[[ErrorCode, CommitIdentity], None]
"""Told of an error of the coordinator, so that the membership reacts."""
_Done: TypeAlias = Callable[[ErrorCode], None]


@dataclass(slots=True)
class _Commit:
    """``term``: that of the membership, of which nothing is tried again when it is over."""

    offsets: dict[TopicPartition, int]
    is_automatic: bool
    term: int
    retry_until_us: int
    done: _Done | None
    backoff: Backoff


class Committer:
    """Commits of one member. A stale epoch is tried again where there is a newer one, the client's own commits with what has been
    read by then.
    """

    __slots__ = (
        "_begun_us", "_connection", "_interval_us", "_on_refused", "_runtime", "_term", "_waiting", "_who", "is_automatic",
    )  # fmt: skip

    def __init__(self, runtime: Runtime, connection: MemberConnection, who: WhoCommits, on_refused: OnRefused) -> None:
        self._runtime = runtime
        self._connection = connection
        self._who = who
        self._on_refused = on_refused
        self.is_automatic = runtime.config.enable_auto_commit
        self._interval_us = runtime.config.auto_commit_interval_us
        self._waiting: list[_Commit] = []
        self._term = 0
        self._begun_us: int | None = None

    @property
    def is_idle(self) -> bool:
        """Whether no commit waits to be tried again (those under way are the connection's)."""
        return not self._waiting

    def restart_timer(self) -> None:
        """Put the next automatic commit an interval away; with `Behaviour.commits_by_clock` it comes when it would have come."""
        if not self.is_automatic:
            return
        runtime, interval_us = self._runtime, self._interval_us
        if runtime.config.behaviour.commits_by_clock:
            if self._begun_us is None:
                self._begun_us = runtime.now_us  # librdkafka's rd_kafka_cgrp_new starts the timer, once
            runtime.arm_in(AUTO_COMMIT, interval_us - (runtime.now_us - self._begun_us) % interval_us)
        else:
            runtime.arm_in(AUTO_COMMIT, interval_us)

    def is_due(self) -> bool:
        """Whether the interval of automatic commits is over."""
        return self.is_automatic and AUTO_COMMIT not in self._runtime.deadlines.armed

    def skip_timer(self, until_us: int, late_us: int) -> tuple[int, int | None]:
        """Take the automatic commits before this as done, each so late: how many, and when the last one left."""
        count, last_us = self.would_skip(until_us, late_us)
        if last_us is not None:
            self._runtime.deadlines.arm(AUTO_COMMIT, last_us + self._interval_us)
        return count, last_us

    def would_skip(self, until_us: int, late_us: int) -> tuple[int, int | None]:
        """What `skip_timer` would answer; nothing changes."""
        due_us = self._runtime.deadlines.at(AUTO_COMMIT)
        if due_us is None or due_us + late_us >= until_us:
            return 0, None
        first_us, period_us = due_us + late_us, self._interval_us + late_us
        count = (until_us - first_us + period_us - 1) // period_us
        return count, first_us + (count - 1) * period_us

    def auto_commit(self, partitions: Iterable[TopicPartition]) -> None:
        """The periodic commit: sent, not waited for, not tried again before the next."""
        self.restart_timer()
        self.commit(partitions, is_automatic=True)

    def commit(
        self,
        partitions: Iterable[TopicPartition],
        *,
        is_automatic: bool,
        retry_for_us: int = 0,
        done: _Done | None = None,
    ) -> None:
        """Commit the positions of these. ``done`` is told how it ended; at once where there is nothing to commit."""
        offsets = self._offsets(partitions)
        if not is_automatic:  # this one says more than those of the application that wait
            self._waiting = [waiting for waiting in self._waiting if waiting.is_automatic]
        self._begin(offsets, retry_for_us, done, is_automatic=is_automatic)

    @property
    def commits_first(self) -> bool:
        """Whether the client commits by itself before a member gives anything up, rather than as it does."""
        return self.is_automatic and not self._runtime.config.behaviour.commits_given_up

    def of_given_up(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """What is to be committed of partitions that are read no more from now on; nothing where it was committed before."""
        return self._offsets(partitions) if self.is_automatic and not self.commits_first else {}

    def commit_given_up(self, offsets: dict[TopicPartition, int], done: _Done) -> None:
        """Commit, once, what `of_given_up` has said."""
        self._begin(offsets, 0, done, is_automatic=True)

    def _begin(self, offsets: dict[TopicPartition, int], retry_for_us: int, done: _Done | None, *, is_automatic: bool) -> None:
        runtime = self._runtime
        if offsets:
            until_us, backoff = runtime.now_us + retry_for_us, Backoff(runtime.config, runtime.rng)
            self._try(_Commit(offsets, is_automatic, self._term, until_us, done, backoff))
        elif done is not None:
            done(ErrorCode.NONE)

    def retry(self) -> None:
        """Send again the commits that wait for it."""
        waiting, self._waiting = self._waiting, []
        for entry in waiting:
            if entry.is_automatic:
                entry.offsets = self._offsets(entry.offsets)
            self._try(entry)

    def end_term(self) -> None:
        """What was read may be somebody else's by now: what waits for another try is not tried again."""
        self._term += 1
        waiting, self._waiting = self._waiting, []
        self._runtime.deadlines.cancel(RETRY_COMMIT)
        for entry in waiting:
            self._finish(entry, ErrorCode.UNKNOWN_MEMBER_ID)

    def give_up(self) -> None:
        """Drop the commits that wait for another attempt."""
        self._waiting.clear()
        self._runtime.deadlines.cancel(RETRY_COMMIT)
        self._runtime.deadlines.cancel(AUTO_COMMIT)

    def _offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return how far these partitions have been read."""
        offsets = self._runtime.positions_of(partitions, self._runtime.now_us)
        return {partition: offsets[partition] for partition in sorted(offsets)} if offsets else offsets

    def _try(self, entry: _Commit) -> None:
        who = self._who()
        if isinstance(who, ErrorCode):
            self._finish(entry, who)
        elif not self._connection.is_known:
            self._connection.find()
            self._retry_later(entry, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        else:
            self._connection.send(
                OffsetCommit,
                lambda result: self._on_result(entry, who, result),
                group_id=self._runtime.identity.group_id,
                generation_id=who.generation_id,
                member_id=who.member_id,
                group_instance_id=self._runtime.identity.group_instance_id,
                retention_ms=self._runtime.config.commit_retention_ms,
                partitions=tuple(
                    OffsetCommitPartition(topic=topic, partition=partition, offset=offset)
                    for (topic, partition), offset in entry.offsets.items()
                ),
            )

    def _on_result(self, entry: _Commit, who: CommitIdentity, result: PartitionErrors | NetworkError) -> None:
        if isinstance(result, NetworkError):
            self._retry_later(entry, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return
        # One partition stands for all: ConsumerCoordinator.OffsetCommitResponseHandler#handle ends at the first error.
        error = next((error for _, error in result.partitions if error is not ErrorCode.NONE), ErrorCode.NONE)
        if error in COORDINATOR_GONE:
            self._connection.lose()
        if error in RETRIABLE or (error is ErrorCode.STALE_MEMBER_EPOCH and self._has_newer_epoch(who)):
            self._retry_later(entry, error)
        else:
            if error is not ErrorCode.NONE:
                self._on_refused(error, who)
            self._finish(entry, error)

    def _has_newer_epoch(self, sent: CommitIdentity) -> bool:
        who = self._who()
        return isinstance(who, CommitIdentity) and who.generation_id > sent.generation_id

    def _retry_later(self, entry: _Commit, error: ErrorCode) -> None:
        if self._runtime.now_us >= entry.retry_until_us or entry.term != self._term:
            self._finish(entry, error)
            return
        self._waiting.append(entry)
        self._runtime.arm_in(RETRY_COMMIT, entry.backoff.next_us())

    def _finish(self, entry: _Commit, error: ErrorCode) -> None:
        if entry.offsets:
            self._runtime.emit(CommitDone(entry.offsets, error, entry.is_automatic))
        if entry.is_automatic and error in RETRIABLE:
            self._runtime.arm_in(AUTO_COMMIT, self._runtime.config.retry_backoff_ms * 1000)
        if entry.done is not None:
            entry.done(error)


POSITIONS = "positions"
FetchIdentity = Callable[[], tuple[str | None, int]]
"""Member id and epoch for OffsetFetch; (None, -1): not checked, as classic members ask."""


class Positions:
    """Partitions that the member owns and whose position it does not know yet, and those that it consumes."""

    __slots__ = ("_asked", "_connection", "_identity", "_is_asking", "_runtime", "awaiting", "consumed", "has_no_start")

    def __init__(self, runtime: Runtime, connection: MemberConnection, identity: FetchIdentity) -> None:
        self.consumed: set[TopicPartition] = set()
        self.has_no_start = False
        self._runtime = runtime
        self._connection = connection
        self._identity = identity
        self.awaiting: set[TopicPartition] = set()
        self._asked: set[TopicPartition] = set()
        self._is_asking = False

    @property
    def is_settled(self) -> bool:
        """Return whether every partition has a position."""
        return not self.awaiting

    def own(self, partitions: Iterable[TopicPartition]) -> None:
        """Take these partitions over: find out where reading starts in each."""
        self.awaiting.update(partitions)
        self.awaiting -= self.consumed

    def drop(self, partitions: Iterable[TopicPartition]) -> tuple[TopicPartition, ...]:
        """The member gives these up. Returns those that it consumed."""
        dropped = set(partitions)
        stopped = tuple(sorted(self.consumed & dropped)) if self.consumed else ()
        self.awaiting -= dropped
        self._asked -= dropped
        self.consumed -= dropped
        return stopped

    def forget(self) -> None:
        """The consumer closes: it begins to consume nothing more."""
        self.awaiting.clear()
        self._asked.clear()

    def step(self) -> Callable[[], None] | None:
        """Return what the application's thread can do about the positions now, None while it waits."""
        if not self.awaiting or self._is_asking or not self._connection.is_known or POSITIONS in self._runtime.deadlines.armed:
            return None
        return self._fetch

    def _fetch(self) -> None:
        self._asked = set(self.awaiting)
        self._is_asking = True
        member_id, member_epoch = self._identity()
        self._connection.send(
            OffsetFetch,
            self._on_offsets,
            group_id=self._runtime.identity.group_id,
            partitions=tuple(sorted(self._asked)),
            member_id=member_id,
            member_epoch=member_epoch,
            # What an open transaction has committed is not read past: UNSTABLE_OFFSET_COMMIT, and asked again (KIP-447).
            require_stable=True,
        )

    def _on_offsets(self, result: OffsetFetchResult | NetworkError) -> None:
        """The poll() that asked waits for this, whatever else it could return; with the consumer protocol nobody has to."""
        if isinstance(result, NetworkError):
            return self._retry()
        if result.error is not ErrorCode.NONE:
            if result.error in COORDINATOR_GONE:
                self._connection.lose()
            return self._retry()
        fetched = {}
        for offset in result.offsets:
            if offset.error is not ErrorCode.NONE:
                return self._retry()
            fetched[offset.partition] = offset.offset
        self._use(fetched)
        return None

    def _retry(self) -> None:
        self._is_asking = False
        self._runtime.arm_in(POSITIONS, self._runtime.config.retry_backoff_ms * 1000)

    def _use(self, fetched: dict[TopicPartition, int]) -> None:
        missing = [partition for partition, offset in fetched.items() if offset < 0]
        for partition in missing:
            del fetched[partition]
        self._start(fetched)
        wanted = tuple(sorted(self._asked.intersection(missing))) if missing else ()
        if wanted:
            self._reset(wanted)
        else:
            self._is_asking = False

    def _reset(self, partitions: tuple[TopicPartition, ...]) -> None:
        policy = self._runtime.config.auto_offset_reset
        if policy == "none":
            self.has_no_start = True
            return
        strategy: Literal["earliest", "latest"] = "earliest" if policy == "earliest" else "latest"
        self._connection.ask(lambda number: ListOffsets(number, partitions, strategy), self._on_listed)

    def _on_listed(self, result: ListOffsetsResult | NetworkError) -> None:
        self._is_asking = False
        if not isinstance(result, NetworkError):
            self._start(dict(result.offsets))
        if self._asked & self.awaiting:
            self._runtime.arm_in(POSITIONS, self._runtime.config.retry_backoff_ms * 1000)

    def _start(self, offsets: dict[TopicPartition, int]) -> None:
        asked = self._asked
        started = {partition: offsets[partition] for partition in sorted(offsets) if partition in asked}
        if started:
            self.awaiting.difference_update(started)
            self.consumed.update(started)
            self._runtime.emit(StartConsuming(started))
