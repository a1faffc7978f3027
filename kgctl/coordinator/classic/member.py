"""A member of a classic group."""

from __future__ import annotations

from dataclasses import dataclass

from kgctl.coordinator.requests import JoinProtocol
from kgctl.coordinator.timers import TimerKey


@dataclass(slots=True)
class ClassicMember:
    """What the coordinator knows of one member. Kafka: ClassicGroupMember.

    ``parked_join`` and ``parked_sync`` are the ids of the requests that wait for an answer. ``is_new`` holds from the moment
    the member is added until the join phase ends: until then it does not know its id and cannot send heartbeats.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: tuple[JoinProtocol, ...]
    session_timer: TimerKey
    assignment: bytes = b""
    parked_join: int | None = None
    parked_sync: int | None = None
    is_new: bool = False

    @property
    def is_static(self) -> bool:
        """Whether it has an instance id (KIP-345)."""
        return self.group_instance_id is not None

    @property
    def is_waiting(self) -> bool:
        """Whether one of its requests is parked, which is sign of life enough."""
        return self.parked_join is not None or self.parked_sync is not None

    def metadata(self, protocol_name: str) -> bytes:
        """Its metadata for a protocol that it supports. Raises `KeyError` for another."""
        for protocol in self.protocols:
            if protocol.name == protocol_name:
                return protocol.metadata
        raise KeyError(protocol_name)

    def vote(self, candidates: frozenset[str]) -> str:
        """The first of its protocols that everybody supports."""
        return next(protocol.name for protocol in self.protocols if protocol.name in candidates)
