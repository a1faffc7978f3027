"""A member's connections in the event loop, as `kgctl.group.lines` has them: to its coordinator, to any broker, to leaders."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from kgctl.group.lines import CONNECT_MS, NO_LIMIT_MS, Metadata, check_readable, denied
from kgctl.group.requests import CODECS
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import MetadataImage, Node, TopicPartition
from kgctl.model.requests import Request, Result
from kgctl.wire import Deadline
from kgctl.wire.aio import AsyncCluster, AsyncConnection, open_async
from kgctl.wire.asking import Failure, coordinator_in, coordinator_question, leaders_in
from kgctl.wire.connection import FIND_COORDINATOR, LIST_OFFSETS, METADATA, given_up
from kgctl.wire.logs import EARLIEST, LATEST, bounds_question, offsets_in
from kgctl.wire.settings import Address, WireSettings


class AsyncCoordinatorConnection:
    """As `kgctl.group.lines.CoordinatorConnection`: requests one after the other, in the order in which they are asked."""

    def __init__(self, node: Node, settings: WireSettings) -> None:
        self.node = node
        self.is_aborted = False
        self._settings = settings
        self._turn = asyncio.Lock()
        self._connection: AsyncConnection | None = None

    async def ask(self, request: Request, timeout_ms: int = NO_LIMIT_MS) -> Result:
        """Send one request and wait for its answer. Raises `UnreachableError`, `AuthError`."""
        codec = CODECS[type(request)]
        async with self._turn:
            deadline = Deadline(timeout_ms)
            connection = await self._open(timeout_ms)
            version = connection.version(codec.api)
            answer = await connection.call(codec.api, codec.encode(request, version), deadline, version=version)
        return codec.decode(request, answer)

    def abort(self) -> None:
        """Close the connection for good: whoever waits for an answer on it waits no longer."""
        self.is_aborted = True
        if self._connection is not None:
            self._connection.close()

    async def _open(self, timeout_ms: int) -> AsyncConnection:
        address = Address(self.node.host, self.node.port)
        if not self.is_aborted and (self._connection is None or not self._connection.is_usable):
            if self._connection is not None:
                self._connection.close()
            self._connection = await open_async(address, self._settings, Deadline(min(CONNECT_MS, timeout_ms)))
        if self.is_aborted or self._connection is None:
            self.abort()
            raise given_up(address)
        return self._connection


class AsyncErrands:
    """What one member asks any broker, and leaders."""

    def __init__(self, group_id: str, settings: WireSettings, timeout_ms: int) -> None:
        self._group_id = group_id
        self._settings = settings
        self._timeout_ms = timeout_ms
        self._cluster = AsyncCluster(settings)
        self._version = 0
        self._metadata: Metadata | None = None

    async def find_coordinator(self) -> Node | ErrorCode:
        """As `kgctl.group.lines.Errands.find_coordinator`."""
        deadline = Deadline(self._timeout_ms)

        async def ask(connection: AsyncConnection) -> Node | Failure:
            version = connection.version(FIND_COORDINATOR)
            values = coordinator_question(self._group_id, version)
            return coordinator_in(await connection.call(FIND_COORDINATOR, values, deadline, version=version), self._group_id)

        found = await self._cluster.ask(ask, deadline)
        if not isinstance(found, Failure):
            return found
        if found.code is ErrorCode.GROUP_AUTHORIZATION_FAILED:
            raise denied(found.code, self._settings, self._group_id)
        return found.code

    async def metadata(self, own: Sequence[str] | None = None, others: Iterable[str] = ()) -> MetadataImage:
        """As `kgctl.group.lines.Errands.metadata`."""
        asked = None if own is None else [{"name": topic} for topic in sorted({*own, *others})]
        values = {"topics": asked, "allow_auto_topic_creation": False, "include_topic_authorized_operations": own is not None}
        answer = await self._cluster.call(METADATA, values, Deadline(self._timeout_ms))
        self._version += 1
        found = Metadata(answer, self._version)
        check_readable(found, own or (), self._settings, self._group_id)
        self._cluster.learn({Address(node.host, node.port): None for node in found.layout.nodes.values()})
        self._metadata = found
        return found.image

    async def list_offsets(
        self, partitions: Sequence[TopicPartition], strategy: Literal["earliest", "latest"]
    ) -> dict[TopicPartition, int]:
        """As `kgctl.group.lines.Errands.list_offsets`: those that could not be asked are left out, and asked for again."""
        deadline, known = Deadline(self._timeout_ms), self._metadata
        if known is None:
            await self.metadata(sorted({partition.topic for partition in partitions}))
            known = self._metadata
        assert known is not None
        found: dict[TopicPartition, int] = {}
        try:
            for node, wanted in leaders_in(known.layout, partitions).by_node.items():
                found |= await self._bounds(node, wanted, EARLIEST if strategy == "earliest" else LATEST, deadline)
        finally:
            if len(found) < len(partitions):
                self._metadata = None
        return found

    async def _bounds(self, node: Node, wanted: list[Any], timestamp: int, deadline: Deadline) -> dict[TopicPartition, int]:
        connection = await self._cluster.connection_to(Address(node.host, node.port), deadline)
        version = connection.version(LIST_OFFSETS)
        answer = await connection.call(LIST_OFFSETS, bounds_question(wanted, timestamp, version), deadline, version=version)
        return {partition: offset for partition, offset in offsets_in(answer).items() if not isinstance(offset, Failure)}

    def close(self) -> None:
        """Give the connections back."""
        self._cluster.close()
