"""What an operator asks a running server, over the listener that clients use: one request of kgctl's own, in JSON.

A frame whose API key is `OPERATOR_KEY`, far from Kafka's, holds a JSON object behind the usual header; so does its answer. It
needs the same login as any request, and is not among the versions that ApiVersions tells.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from kgctl.errors import KgctlError, NotFoundError, RefusedError, UnreachableError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import Done, ForceCompleteRebalance, Result
from kgctl.server.status import Wanted

if TYPE_CHECKING:
    from kgctl.server.pieces import Work
    from kgctl.server.request_context import Services
    from kgctl.wire.connection import Connection
    from kgctl.wire.deadline import Deadline

OPERATOR_KEY = 32_001
OPERATOR_PREFIX = struct.pack(">h", OPERATOR_KEY)
_HEADER = struct.Struct(">hhih")
_CORRELATION_ID = struct.Struct(">i")
COMMANDS = ("status", "complete-rebalance")
Described = Callable[["Wanted"], "Work[Mapping[str, Any]]"]


class MalformedOperation(ValueError):  # noqa: N818 - says what the bytes are
    """No request of an operator."""


def answer_operator(payload: bytes, services: Services, describe: Described) -> bytes | Awaitable[bytes | None]:
    """The response to an operator's request. Raises `MalformedOperation`."""
    correlation_id, asked = _parse(payload)
    if asked.get("command") == "status":
        wanted = Wanted(
            groups=tuple(group for group in asked.get("groups") or () if isinstance(group, str)),
            only_rebalancing=bool(asked.get("only_rebalancing")),
            with_members=bool(asked.get("with_members")),
        )
        found = services.pieces.begin(describe(wanted))
        return _described(services, correlation_id, found) if isinstance(found, Awaitable) else _response(correlation_id, found)
    return _complete(correlation_id, services, str(asked.get("group", "")))


def _parse(payload: bytes) -> tuple[int, dict[str, Any]]:
    try:
        _, _, correlation_id, client_id_bytes = _HEADER.unpack_from(payload)
        asked = json.loads(payload[_HEADER.size + max(client_id_bytes, 0) :])
    except (struct.error, ValueError, RecursionError) as error:
        raise MalformedOperation(f"an operator's request that cannot be read: {error}") from None
    if not isinstance(asked, dict) or asked.get("command") not in COMMANDS:
        raise MalformedOperation("an operator's request without a command")
    return correlation_id, asked


def _complete(correlation_id: int, services: Services, group_id: str) -> bytes | Awaitable[bytes | None]:
    runtime = services.runtime
    before = runtime.core.rebalance_status(group_id, runtime.clock())
    removed = [member.member_id for member in before.awaited] if before is not None and before.waiting_for else []

    def render(result: Result) -> Mapping[str, Any]:
        error = result.error if isinstance(result, Done) else ErrorCode.UNKNOWN_SERVER_ERROR
        return {"error": error.name, "removed": removed if error is ErrorCode.NONE else []}

    answer = runtime.ask(ForceCompleteRebalance(request_id=runtime.next_request_id(), group_id=group_id), render)
    if isinstance(answer, Awaitable):
        return _later(correlation_id, answer)
    return _response(correlation_id, answer or {})


async def _described(services: Services, correlation_id: int, found: Awaitable[Mapping[str, Any]]) -> bytes:
    """Many groups are written beside the event loop."""
    return await services.data.codec.run(_response, correlation_id, await found)


async def _later(correlation_id: int, answer: Awaitable[Mapping[str, Any] | None]) -> bytes:
    return _response(correlation_id, await answer or {})


def _response(correlation_id: int, values: Mapping[str, Any]) -> bytes:
    return _CORRELATION_ID.pack(correlation_id) + json.dumps(values).encode()


def ask_status(connection: Connection, deadline: Deadline, wanted: Wanted = Wanted()) -> dict[str, Any]:  # noqa: B008  # frozen
    """How the server behind the connection is doing. Raises `UnreachableError` where that is no ``kgctl serve``."""
    return _ask(connection, {"command": "status", **asdict(wanted)}, deadline)


def ask_to_complete(connection: Connection, group_id: str, deadline: Deadline) -> list[str]:
    """End the group's rebalance without the members that it waits for, which are removed; their ids.

    Raises `NotFoundError` where there is no such group, `RefusedError` where no rebalance is under way.
    """
    answer = _ask(connection, {"command": "complete-rebalance", "group": group_id}, deadline)
    match answer.get("error"):
        case "NONE":
            return [str(member) for member in answer["removed"]]
        case "GROUP_ID_NOT_FOUND":
            raise NotFoundError(f"group {group_id!r} does not exist", group=group_id)
        case "INVALID_REQUEST":
            raise RefusedError(f"group {group_id!r} has no rebalance under way", group=group_id)
        case other:
            raise KgctlError(f"the rebalance could not be completed: {other}", group=group_id)


def _ask(connection: Connection, asked: Mapping[str, Any], deadline: Deadline) -> dict[str, Any]:
    payload = _HEADER.pack(OPERATOR_KEY, 0, 1, -1) + json.dumps(asked).encode()
    try:
        response = connection.exchange(payload, deadline)
        found = json.loads(response[_CORRELATION_ID.size :])
    except (UnreachableError, ValueError) as error:
        raise UnreachableError(f"{connection.address} is no kgctl serve that can be asked: {error}") from None
    assert isinstance(found, dict)
    return found
