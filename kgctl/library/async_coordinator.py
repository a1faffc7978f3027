"""`kgctl.AsyncCoordinator`: the calls of a coordinator that wait, for coroutines."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from kgctl.arguments import checked
from kgctl.library.coordinator import LOCAL_HOST, Coordinator, checked_answer
from kgctl.library.member_fields import Assignment, join_fields, sync_fields
from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import JoinGroup, JoinGroupResult, SyncGroup


class AsyncCoordinator:
    """`Coordinator.join` and `Coordinator.sync` for coroutines: any number may wait. Other calls of ``coordinator`` never do."""

    @checked()
    def __init__(self, coordinator: Coordinator) -> None:
        self.coordinator = coordinator

    @checked(not_empty=("topics", "client_host"))
    async def join(
        self,
        group_id: str,
        topics: Sequence[str] = (),
        *,
        member_id: str = "",
        protocols: Sequence[str] | Mapping[str, bytes] = ("range",),
        protocol_type: str = "consumer",
        group_instance_id: str | None = None,
        client_id: str = "kgctl",
        client_host: str = LOCAL_HOST,
        session_timeout_ms: int = 45_000,
        rebalance_timeout_ms: int = 300_000,
    ) -> JoinGroupResult:
        """As `Coordinator.join`, with the same arguments but for ``timeout_ms`` (use ``asyncio.timeout``)."""
        given = join_fields(locals())
        joined: JoinGroupResult = await asyncio.wrap_future(self.coordinator._ask(JoinGroup, member_id=member_id, **given))
        if joined.error is ErrorCode.MEMBER_ID_REQUIRED:
            joined = await asyncio.wrap_future(self.coordinator._ask(JoinGroup, member_id=joined.member_id, **given))
        return checked_answer(joined, group_id)

    @checked()
    async def sync(
        self,
        group_id: str,
        joined: JoinGroupResult,
        assignment: Assignment | Mapping[str, bytes] | None = None,
        *,
        group_instance_id: str | None = None,
    ) -> bytes:
        """As `Coordinator.sync`."""
        request = sync_fields(group_id, joined, assignment or {}, group_instance_id)
        answer = await asyncio.wrap_future(self.coordinator._ask(SyncGroup, **request))
        return bytes(checked_answer(answer, group_id).assignment)
