"""Whole messages: header and body, guarded before they are read. Without the length prefix of `kgctl.serde.frames`."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from kgctl.serde.encoder import entity_encoder
from kgctl.serde.frames import MalformedMessage, UnsupportedVersion
from kgctl.serde.guard import guarded, read_varint, readable_text, rewritten
from kgctl.serde.schemas import Direction, EntityPlan, header_is_flexible, load_plan, load_schema

_REQUEST_HEADER = struct.Struct(">hhih")
_CORRELATION_ID = struct.Struct(">i")

Reader = Callable[[bytes, int], tuple[Any, int]]


@dataclass(frozen=True, slots=True)
class RequestHeader:
    """The part of a request that has the same form in every API and version."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


@dataclass(frozen=True, slots=True)
class DecodedRequest:
    """A request as it came; ``body`` is kio's entity of its version."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body: Any


def decode_header(payload: bytes) -> tuple[RequestHeader, int]:
    """The request's header, and where what follows it begins (tagged fields of the header are not yet passed)."""
    if len(payload) < _REQUEST_HEADER.size:
        raise MalformedMessage(f"a request of {len(payload)} bytes has no room for a header")
    api_key, api_version, correlation_id, length = _REQUEST_HEADER.unpack_from(payload)
    end = _REQUEST_HEADER.size + max(length, 0)
    if length < -1 or end > len(payload):
        raise MalformedMessage(f"a client id of {length} bytes")
    client_id = None if length < 0 else readable_text(payload[_REQUEST_HEADER.size : end])
    return RequestHeader(api_key, api_version, correlation_id, client_id), end


def decode_request(payload: bytes) -> DecodedRequest:
    """Header and body. Raises MalformedMessage, and UnsupportedVersion where the API or its version has no schema here."""
    header, position = decode_header(payload)
    try:
        if header_is_flexible(header.api_key, header.api_version, "request"):
            position = _skip_tags(payload, position)
    except UnsupportedVersion:
        raise UnsupportedVersion(header.api_key, header.api_version, header.correlation_id) from None
    body = _decode_body(header.api_key, header.api_version, "request", payload, position)
    return DecodedRequest(header.api_key, header.api_version, header.correlation_id, header.client_id, body)


def encode_request(
    api_key: int, api_version: int, correlation_id: int, client_id: str | None, values: Mapping[str, Any]
) -> bytes:
    """Header and body; ``values`` as `tests.support.wire.builder.build` takes them. Raises UnsupportedVersion."""
    name = b"" if client_id is None else client_id.encode()
    out = bytearray(_REQUEST_HEADER.pack(api_key, api_version, correlation_id, -1 if client_id is None else len(name)))
    out += name
    if header_is_flexible(api_key, api_version, "request"):
        out.append(0)
    entity_encoder(load_plan(api_key, api_version, "request"))(values, out)
    return bytes(out)


def encode_response(api_key: int, api_version: int, correlation_id: int, values: Mapping[str, Any]) -> bytes:
    """Header and body; ``values`` as `tests.support.wire.builder.build` takes them. Raises UnsupportedVersion."""
    out = bytearray(_CORRELATION_ID.pack(correlation_id))
    if header_is_flexible(api_key, api_version, "response"):
        out.append(0)
    entity_encoder(load_plan(api_key, api_version, "response"))(values, out)
    return bytes(out)


def decode_response(api_key: int, api_version: int, payload: bytes) -> tuple[int, Any]:
    """The correlation id and kio's entity. Raises MalformedMessage, and UnsupportedVersion where there is no schema here.

    Error codes that kgctl does not know arrive as UNKNOWN_SERVER_ERROR.
    """
    if len(payload) < _CORRELATION_ID.size:
        raise MalformedMessage(f"a response of {len(payload)} bytes has no room for a header")
    (correlation_id,) = _CORRELATION_ID.unpack_from(payload)
    position = _CORRELATION_ID.size
    if header_is_flexible(api_key, api_version, "response"):
        position = _skip_tags(payload, position)
    return correlation_id, _decode_body(api_key, api_version, "response", payload, position)


def _decode_body(api_key: int, api_version: int, direction: Direction, payload: bytes, position: int) -> Any:
    plan, reader = _plan_and_reader(api_key, api_version, direction)
    safe, position = guarded(plan, payload, position)
    try:
        return reader(safe, position)[0]
    except Exception as error:  # noqa: BLE001  # kio raises errors of many kinds for bytes it cannot read
        mended = rewritten(plan, safe, position)
        try:
            return reader(mended, 0)[0]
        except Exception:  # noqa: BLE001
            raise MalformedMessage(f"{plan.type.__name__} version {api_version}: {error}") from error


@cache
def _plan_and_reader(api_key: int, api_version: int, direction: Direction) -> tuple[EntityPlan, Reader]:
    from kio.serial import entity_reader

    return load_plan(api_key, api_version, direction), entity_reader(load_schema(api_key, api_version, direction))


def _skip_tags(payload: bytes, position: int) -> int:
    """The header's tagged fields: none is known, so all are ignored."""
    try:
        count, position = read_varint(payload, position)
        for _ in range(min(count, len(payload))):
            _, position = read_varint(payload, position)
            size, position = read_varint(payload, position)
            position += size
    except IndexError:
        position = len(payload) + 1
    if position > len(payload):
        raise MalformedMessage("the header ends too early")
    return position
