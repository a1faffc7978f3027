"""What the server has seen of groups beside what the coordinator keeps: for whoever looks after it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import ConsumerGroupHeartbeat, ConsumerGroupHeartbeatResult, JoinGroup, JoinGroupResult, Result
from kgctl.model.share_requests import ShareGroupHeartbeat
from kgctl.model.share_results import ShareGroupHeartbeatResult
from kgctl.model.streams_requests import StreamsGroupHeartbeat
from kgctl.model.streams_results import StreamsGroupHeartbeatResult

JOINS = (JoinGroup, ConsumerGroupHeartbeat, ShareGroupHeartbeat, StreamsGroupHeartbeat)
Joining = JoinGroup | ConsumerGroupHeartbeat | ShareGroupHeartbeat | StreamsGroupHeartbeat


class GroupActivity:
    """When groups were made and were last asked for something, and when members joined, as far as this server has seen it."""

    _ROOM = 1_000

    def __init__(self) -> None:
        self.created_ms: dict[str, int] = {}
        self.last_ms: dict[str, int] = {}
        self.joined_ms: dict[tuple[str, str], int] = {}
        self._prune_at = self._ROOM

    def asked(self, group_id: str, now_ms: int, *, is_new: bool) -> None:
        """A request was about this group, which it may have made."""
        self.last_ms[group_id] = now_ms
        if is_new:
            self.created_ms[group_id] = now_ms

    def joined(self, request: Joining, result: Result, now_ms: int) -> None:
        """An answer to a request to join, which came at ``now_ms``. Who joins a rebalance of its group has joined before."""
        group_id = request.group_id or ""
        if (
            isinstance(result, (ConsumerGroupHeartbeatResult, ShareGroupHeartbeatResult, StreamsGroupHeartbeatResult))
            and result.error is ErrorCode.NONE
            and result.member_id
        ):
            self.joined_ms[group_id, result.member_id] = now_ms
        elif isinstance(result, JoinGroupResult) and result.error is ErrorCode.NONE:
            self.joined_ms.setdefault((group_id, result.member_id), now_ms)

    def forget_gone(self, groups: Mapping[str, Any]) -> None:
        """Keep no more than twice as much as there is."""
        if len(self.last_ms) + len(self.joined_ms) < self._prune_at:
            return
        self.last_ms = {group_id: at_ms for group_id, at_ms in self.last_ms.items() if group_id in groups}
        self.created_ms = {group_id: at_ms for group_id, at_ms in self.created_ms.items() if group_id in groups}
        self.joined_ms = {
            (group_id, member_id): at_ms
            for (group_id, member_id), at_ms in self.joined_ms.items()
            if group_id in groups and member_id in getattr(groups[group_id], "members", ())
        }
        self._prune_at = 2 * (len(self.last_ms) + len(self.joined_ms)) + self._ROOM
