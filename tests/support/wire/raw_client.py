"""A Kafka client of a few lines on a blocking socket: says exactly what it is told to say."""

from __future__ import annotations

import itertools
import socket
import struct
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from kgctl.serde.messages import decode_response, encode_request
from tests.support.patience import PATIENCE_S


class ConnectionClosed(Exception):  # noqa: N818 - what happened
    """The server ended the connection."""


class RawClient:
    """One connection. ``timeout_s`` bounds each wait."""

    def __init__(self, address: str, *, timeout_s: float = PATIENCE_S, client_id: str = "raw") -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=timeout_s)
        self.client_id = client_id
        self._ids = itertools.count(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def call(self, api_key: int, version: int, values: Mapping[str, Any] | None = None) -> Any:
        """Send a request and read its response's body."""
        correlation_id = self.send(api_key, version, values)
        answered, body = decode_response(api_key, version, self.receive())
        assert answered == correlation_id
        return body

    def send(self, api_key: int, version: int, values: Mapping[str, Any] | None = None) -> int:
        """Send a request; its correlation id."""
        correlation_id = next(self._ids)
        self.send_payload(encode_request(api_key, version, correlation_id, self.client_id, values or {}))
        return correlation_id

    def send_payload(self, payload: bytes) -> None:
        self.socket.sendall(struct.pack(">i", len(payload)) + payload)

    def receive(self) -> bytes:
        """The next frame. Raises ConnectionClosed."""
        (size,) = struct.unpack(">i", self._read(4))
        return self._read(size)

    def is_closed(self) -> bool:
        """Wait for the server to end the connection without a word."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def _read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                raise ConnectionClosed
            data += part
        return bytes(data)
