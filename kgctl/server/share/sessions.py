"""Share sessions: which partitions a member fetches from a broker, so that each request says only what has changed.

Kafka: ShareSession, ShareSessionCache and SharePartitionManager#newContext.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from kgctl.model.error_codes import ErrorCode

INITIAL_EPOCH, FINAL_EPOCH = 0, -1
_LAST_EPOCH = 2**31 - 1


def next_epoch(epoch: int) -> int:
    """The epoch of the request after one with this epoch."""
    if epoch < 0:
        return FINAL_EPOCH
    return 1 if epoch == _LAST_EPOCH else epoch + 1


class TopicIdPartition(NamedTuple):
    """A partition by its topic's id, as requests name it."""

    topic_id: UUID
    partition: int


class SessionRefused(Exception):  # noqa: N818 - an answer
    """Why a request does not belong to a session, or there is no room for one more."""

    def __init__(self, error: ErrorCode) -> None:
        super().__init__(error.name)
        self.error = error


class SessionKey(NamedTuple):
    """Whose session it is."""

    group_id: str
    member_id: str


@dataclass(slots=True)
class SessionPartition:
    """A partition of a session. ``topic`` was the name when it came in; None where there was no such topic."""

    topic: str | None
    is_due: bool
    """It is to be in the next answer, whether there are records or not."""


@dataclass(slots=True, eq=False)
class ShareSession:
    """What a member fetches. ``connection`` is what ends it when it ends."""

    key: SessionKey
    partitions: dict[TopicIdPartition, SessionPartition]
    connection: ShareConnection
    epoch: int = next_epoch(INITIAL_EPOCH)

    def update(self, wanted: Iterable[tuple[TopicIdPartition, str | None]], forgotten: Iterable[TopicIdPartition]) -> None:
        """Add what is wanted, then take away what is forgotten; a request may say both of one."""
        for partition, topic in wanted:
            if partition not in self.partitions:
                self.partitions[partition] = SessionPartition(topic, is_due=True)
        for partition in forgotten:
            self.partitions.pop(partition, None)

    def answers(self, partition: TopicIdPartition, *, has_records: bool, has_error: bool) -> bool:
        """Whether an answer names the partition, and what the next one does. Raises `KeyError` for one that is not in here."""
        known = self.partitions[partition]
        must = has_records or has_error or known.is_due
        known.is_due = has_error
        if has_records:
            self.partitions[partition] = self.partitions.pop(partition)  # who had some goes to the end
        return must


@dataclass(slots=True, eq=False)
class ShareConnection:
    """A client's connection to a broker, and the last session that was opened on it."""

    session: ShareSession | None = None
    group_id: str = ""
    when_gone: list[Callable[[], None]] = field(default_factory=list)

    def gone(self) -> None:
        """It has ended."""
        for call in self.when_gone:
            call()
        self.when_gone.clear()


class ShareSessions:
    """The sessions of one broker. ``on_left`` is called for a member whose connection has ended, before its session is removed.

    ``on_empty`` is called with a group that has no more sessions, when a connection of one of its members has ended.
    """

    def __init__(self, limit: int, on_left: Callable[[SessionKey], None], on_empty: Callable[[str], None]) -> None:
        self._limit = limit
        self._on_left = on_left
        self._on_empty = on_empty
        self._sessions: dict[SessionKey, ShareSession] = {}
        self._of_group: Counter[str] = Counter()

    def __iter__(self) -> Iterator[ShareSession]:
        return iter(self._sessions.values())

    def get(self, key: SessionKey) -> ShareSession | None:
        return self._sessions.get(key)

    def open(
        self, key: SessionKey, partitions: list[tuple[TopicIdPartition, str | None]], connection: ShareConnection
    ) -> ShareSession:
        """Open a session in place of the member's old one. Raises `SessionRefused`; the old one is gone then, too."""
        self.remove(key)
        wanted = {partition: SessionPartition(topic, is_due=False) for partition, topic in partitions}
        if len(wanted) < len(partitions):
            raise SessionRefused(ErrorCode.UNKNOWN_SERVER_ERROR)  # Kafka: ImplicitLinkedHashCollection#mustAdd
        if len(self._sessions) >= self._limit:
            raise SessionRefused(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        session = self._sessions[key] = ShareSession(key, wanted, connection)
        self._of_group[key.group_id] += 1
        if not connection.group_id:
            connection.when_gone.append(lambda: self._connection_gone(connection))
        connection.session, connection.group_id = session, key.group_id
        return session

    def of_request(self, key: SessionKey, epoch: int) -> ShareSession:
        """The session that a request with this epoch, neither the first nor the last one, belongs to. Raises `SessionRefused`."""
        session = self._sessions.get(key)
        if session is None:
            raise SessionRefused(ErrorCode.SHARE_SESSION_NOT_FOUND)
        if session.epoch != epoch:
            raise SessionRefused(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        return session

    def acknowledges(self, key: SessionKey, epoch: int) -> None:
        """A request that only acknowledges. Raises `SessionRefused`. Kafka: SharePartitionManager#acknowledgeSessionUpdate."""
        if epoch == INITIAL_EPOCH:
            raise SessionRefused(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        if epoch == FINAL_EPOCH:
            if key not in self._sessions:
                raise SessionRefused(ErrorCode.SHARE_SESSION_NOT_FOUND)
            return
        session = self.of_request(key, epoch)
        session.epoch = next_epoch(epoch)

    def remove(self, key: SessionKey) -> ShareSession | None:
        """Forget a session; what its connection does does not matter any more."""
        session = self._sessions.pop(key, None)
        if session is not None:
            self._of_group[key.group_id] -= 1
            session.connection.session = None
        return session

    def _connection_gone(self, connection: ShareConnection) -> None:
        """A member that opens its session anew by another connection does not lose it with the old one."""
        session, group_id = connection.session, connection.group_id
        connection.group_id = ""
        if session is not None:
            self._on_left(session.key)
            self.remove(session.key)
        if self._of_group[group_id] == 0:
            del self._of_group[group_id]
            self._on_empty(group_id)
