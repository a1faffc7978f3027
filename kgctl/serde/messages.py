"""Whole messages: header and body. Without the length prefix of `kgctl.serde.frames`."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from kgctl.serde.codec import Writer, read, readable_text, reader, skip_tags, write, writer
from kgctl.serde.frames import MalformedMessage, UnsupportedVersion
from kgctl.serde.schemas import EntityPlan, header_is_flexible, load_plan

_REQUEST_HEADER = struct.Struct(">hhih")
_CORRELATION_ID = struct.Struct(">i")
_NO_TAGS = b"\0"


class RequestHeader(NamedTuple):
    """The part of a request that has the same form in every API and version."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


class DecodedRequest(NamedTuple):
    """A request as it came; ``body`` is a `kgctl.serde.codec.Entity` of its version."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body: Any


def decode_header(payload: bytes) -> tuple[RequestHeader, int]:
    """Return the request's header, and where what follows it begins (the header's tagged fields are not yet passed)."""
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
        codec = server_codec(header.api_key, header.api_version)
    except UnsupportedVersion:
        raise UnsupportedVersion(header.api_key, header.api_version, header.correlation_id) from None
    return DecodedRequest(*header, codec.decode(payload, position))


def encode_request(
    api_key: int, api_version: int, correlation_id: int, client_id: str | None, values: Mapping[str, Any]
) -> bytes:
    """Header and body; ``values`` as `kgctl.serde.codec.write` takes them. Raises UnsupportedVersion."""
    plan = load_plan(api_key, api_version, "request")
    name = b"" if client_id is None else client_id.encode()
    out = bytearray(_REQUEST_HEADER.pack(api_key, api_version, correlation_id, -1 if client_id is None else len(name)))
    out += name
    if plan.flexible:
        out.append(0)
    write(plan, values, out)
    return bytes(out)


def encode_response(api_key: int, api_version: int, correlation_id: int, values: Mapping[str, Any]) -> bytes:
    """Header and body; ``values`` as `kgctl.serde.codec.write` takes them. Raises UnsupportedVersion."""
    return server_codec(api_key, api_version).encode(correlation_id, values)


def decode_response(api_key: int, api_version: int, payload: bytes) -> tuple[int, Any]:
    """Return the correlation id and the body. Raises MalformedMessage, and UnsupportedVersion where there is no schema here."""
    if len(payload) < _CORRELATION_ID.size:
        raise MalformedMessage(f"a response of {len(payload)} bytes has no room for a header")
    plan = load_plan(api_key, api_version, "response")
    (correlation_id,) = _CORRELATION_ID.unpack_from(payload)
    position = _CORRELATION_ID.size
    if header_is_flexible(api_key, api_version, "response"):
        position = skip_tags(payload, position)
    return correlation_id, read(plan, payload, position)


class ServerCodec(NamedTuple):
    """What a server needs to answer an API in one version, looked up once."""

    plan: EntityPlan
    write: Writer
    begin: bytes
    """What stands between the correlation id and the body of a response."""

    def decode(self, payload: bytes, position: int) -> Any:
        """Return what follows a header that `decode_header` read. Raises MalformedMessage."""
        if self.plan.flexible:
            position = position + 1 if payload[position : position + 1] == _NO_TAGS else skip_tags(payload, position)
        return read(self.plan, payload, position)

    def encode(self, correlation_id: int, values: Mapping[str, Any]) -> bytes:
        """Return a response, header and body; ``values`` as `kgctl.serde.codec.write` takes them."""
        out = bytearray(_CORRELATION_ID.pack(correlation_id))
        out += self.begin
        self.write(values, out)
        return bytes(out)


@cache
def server_codec(api_key: int, api_version: int) -> ServerCodec:
    """Return the codec of this API and version, which takes some milliseconds the first time. Raises UnsupportedVersion."""
    plan = load_plan(api_key, api_version, "request")
    reader(plan)
    begin = _NO_TAGS if header_is_flexible(api_key, api_version, "response") else b""
    return ServerCodec(plan, writer(load_plan(api_key, api_version, "response")), begin)
