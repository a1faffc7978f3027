"""Where reading begins: committed offsets, else the start that ``auto.offset.reset`` names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

from kgctl.coordinator.requests import OffsetFetch
from kgctl.coordinator.results import OffsetFetchResult
from kgctl.member.api import ListOffsets, ListOffsetsResult, NetworkError, StartConsuming
from kgctl.member.connection import COORDINATOR_GONE, Connection
from kgctl.member.runtime import Runtime
from kgctl.model.error_codes import ErrorCode
from kgctl.model.partitions import TopicPartition

POSITIONS = "positions"
FetchIdentity = Callable[[], tuple[str | None, int]]
"""Member id and epoch for OffsetFetch; (None, -1): not checked, as classic members ask."""


class Positions:
    """Partitions that the member owns and whose position it does not know yet, and those that it consumes."""

    def __init__(self, runtime: Runtime, connection: Connection, identity: FetchIdentity) -> None:
        self.consumed: set[TopicPartition] = set()
        self.has_no_start = False
        self._runtime = runtime
        self._connection = connection
        self._identity = identity
        self._awaiting: set[TopicPartition] = set()
        self._asked: set[TopicPartition] = set()
        self._is_asking = False

    @property
    def is_settled(self) -> bool:
        """Whether every position is known."""
        return not self._awaiting

    def own(self, partitions: Iterable[TopicPartition]) -> None:
        """The member owns these: find out where they start."""
        self._awaiting.update(partitions)
        self._awaiting -= self.consumed

    def drop(self, partitions: Iterable[TopicPartition]) -> tuple[TopicPartition, ...]:
        """The member gives these up. Returns those that it consumed."""
        dropped = set(partitions)
        stopped = tuple(sorted(self.consumed & dropped)) if self.consumed else ()
        self._awaiting -= dropped
        self._asked -= dropped
        self.consumed -= dropped
        return stopped

    def forget(self) -> None:
        """The consumer closes: it begins to consume nothing more."""
        self._awaiting.clear()
        self._asked.clear()

    def step(self) -> Callable[[], None] | None:
        """What the application's thread can do about them now."""
        is_free = not self._is_asking and self._connection.is_known and not self._runtime.deadlines.is_armed(POSITIONS)
        return self._fetch if self._awaiting and is_free else None

    def _fetch(self) -> None:
        self._asked = set(self._awaiting)
        self._is_asking = True
        member_id, member_epoch = self._identity()
        self._connection.send(
            OffsetFetch,
            self._on_offsets,
            group_id=self._runtime.identity.group_id,
            partitions=tuple(sorted(self._asked)),
            member_id=member_id,
            member_epoch=member_epoch,
            require_stable=True,
        )

    def _on_offsets(self, result: OffsetFetchResult | NetworkError) -> None:
        """The poll() that asked waits for this, whatever else it could return; with the consumer protocol nobody has to."""
        if isinstance(result, NetworkError):
            return self._retry()
        if result.error in COORDINATOR_GONE:
            self._connection.lose()
        if result.error is not ErrorCode.NONE or any(offset.error is not ErrorCode.NONE for offset in result.offsets):
            return self._retry()
        self._use({offset.partition: offset.offset for offset in result.offsets})
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
        if self._asked & self._awaiting:
            self._runtime.arm_in(POSITIONS, self._runtime.config.retry_backoff_ms * 1000)

    def _start(self, offsets: dict[TopicPartition, int]) -> None:
        asked = self._asked
        started = {partition: offsets[partition] for partition in sorted(offsets) if partition in asked}
        if started:
            self._awaiting.difference_update(started)
            self.consumed.update(started)
            self._runtime.emit(StartConsuming(started))
