"""A member of a classic group that does one thing at a time, by raw requests."""

from __future__ import annotations

from typing import Any

from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import ConsumerAssignment, ConsumerSubscription
from kgctl.serde.consumer_protocol import encode_assignment, encode_subscription
from tests.support.patience import SESSION_MS
from tests.support.wire.raw_client import RawClient

JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP = 11, 12, 13, 14


class ClassicMember:
    """Alone in its group it is the leader and gives itself nothing."""

    def __init__(self, raw: RawClient, group: str, topics: list[str], *, session_timeout_ms: int = SESSION_MS) -> None:
        self.raw = raw
        self.group = group
        self.member_id = ""
        self.generation_id = -1
        self.session_timeout_ms = session_timeout_ms
        self._metadata = encode_subscription(ConsumerSubscription(tuple(topics)))

    def send_join(self, version: int = 7) -> int:
        """Ask to join; its correlation id. The answer is the caller's to read."""
        return self.raw.send(JOIN_GROUP, version, self._join())

    def join(self, version: int = 7) -> Any:
        """Join and sync; the JoinGroup response."""
        joined = self.raw.call(JOIN_GROUP, version, self._join())
        if int(joined.error_code) == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = joined.member_id
            joined = self.raw.call(JOIN_GROUP, version, self._join())
        assert int(joined.error_code) == 0
        self.member_id, self.generation_id = joined.member_id, joined.generation_id
        assert self.sync() == 0
        return joined

    def sync(self) -> int:
        nothing = encode_assignment(ConsumerAssignment())
        answer = self.raw.call(
            SYNC_GROUP,
            3,
            {
                "group_id": self.group,
                "generation_id": self.generation_id,
                "member_id": self.member_id,
                "assignments": [{"member_id": self.member_id, "assignment": nothing}],
            },
        )
        return int(answer.error_code)

    def heartbeat(self) -> int:
        values = {"group_id": self.group, "generation_id": self.generation_id, "member_id": self.member_id}
        return int(self.raw.call(HEARTBEAT, 3, values).error_code)

    def leave(self) -> int:
        return int(self.raw.call(LEAVE_GROUP, 1, {"group_id": self.group, "member_id": self.member_id}).error_code)

    def _join(self) -> dict[str, Any]:
        return {
            "group_id": self.group,
            "session_timeout_ms": self.session_timeout_ms,
            "rebalance_timeout_ms": 60_000,
            "member_id": self.member_id,
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": self._metadata}],
        }
