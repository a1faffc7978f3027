"""A broker that says what a test tells it to: the peer at the protocol's boundary."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from kgctl.serde.frames import frame
from kgctl.serde.messages import DecodedRequest, decode_request, encode_response
from kgctl.wire.connection import API_VERSIONS, METADATA, Api
from tests.support.patience import PATIENCE_S

CLOSE = object()
"""An answer: end the connection."""
SILENCE = object()
"""An answer: none, and the connection stays open."""

Handler = Callable[[DecodedRequest], Any]
"""Gives the response's values, raw bytes to send as they are, CLOSE or SILENCE."""


class FakeBroker:
    """Listens on a free loopback port while its ``with`` block lasts; one thread a connection.

    ``handlers`` answer by API; ``versions`` are what ApiVersions tells (the API's own range unless given). Every request is kept
    in ``requests``, in the order of arrival.
    """

    def __init__(
        self,
        handlers: Mapping[Api, Handler] | None = None,
        *,
        versions: Mapping[Api, tuple[int, int]] | None = None,
        node_id: int = 1,
    ) -> None:
        self.handlers: dict[Api, Handler] = dict(handlers or {})
        self.versions = dict(versions or {})
        self.node_id = node_id
        self.requests: list[DecodedRequest] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._connections: list[socket.socket] = []
        self._threads: list[threading.Thread] = []

    @property
    def port(self) -> int:
        """Where it listens."""
        port: int = self._listener.getsockname()[1]
        return port

    @property
    def address(self) -> str:
        """``host:port``."""
        return f"127.0.0.1:{self.port}"

    def asked(self, api: Api) -> list[Any]:
        """The bodies of all requests of one API."""
        return [request.body for request in self.requests if request.api_key == api.key]

    def hang_up(self) -> None:
        """End every connection; clients may come again."""
        for connection in list(self._connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.hang_up()
        for thread in list(self._threads):
            thread.join(PATIENCE_S)

    def _start(self, target: Callable[..., None], *args: Any) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._connections.append(connection)
                self._start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError, EOFError):
            while True:
                request = decode_request(_read_frame(connection))
                self.requests.append(request)
                answer = self._answer(request)
                if answer is CLOSE:
                    connection.shutdown(socket.SHUT_RDWR)
                    return
                if answer is not SILENCE:
                    connection.sendall(answer)

    def _answer(self, request: DecodedRequest) -> Any:
        api = next((api for api in self.handlers if api.key == request.api_key), None)
        if api is None and request.api_key == API_VERSIONS.key:
            values: Any = self._api_versions()
        elif api is None and request.api_key == METADATA.key:
            values = metadata([self])
        elif api is None:
            return CLOSE
        else:
            values = self.handlers[api](request)
        if values is CLOSE or values is SILENCE or isinstance(values, bytes):
            return values
        return frame(encode_response(request.api_key, request.api_version, request.correlation_id, values))

    def _api_versions(self) -> dict[str, Any]:
        served = {*self.handlers, METADATA, API_VERSIONS, *self.versions}
        ranges = {api: self.versions.get(api, (api.lowest, api.highest)) for api in served}
        return {
            "api_keys": [{"api_key": api.key, "min_version": low, "max_version": high} for api, (low, high) in ranges.items()]
        }


def _read_frame(connection: socket.socket) -> bytes:
    (length,) = struct.unpack(">i", _read_exactly(connection, 4))
    return _read_exactly(connection, length)


def _read_exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise EOFError
        data += piece
    return data


def metadata(brokers: Iterable[FakeBroker], topics: Mapping[str, Mapping[int, int]] | None = None) -> dict[str, Any]:
    """Metadata's answer; ``topics`` maps names to partition -> leader, an empty mapping is a topic that does not exist."""
    return {
        "brokers": [{"node_id": each.node_id, "host": "127.0.0.1", "port": each.port} for each in brokers],
        "topics": [
            {
                "error_code": 0 if leaders else 3,
                "name": name,
                "partitions": [
                    {"partition_index": number, "leader_id": leader, "leader_epoch": 0} for number, leader in leaders.items()
                ],
            }
            for name, leaders in (topics or {}).items()
        ],
    }


def coordinator_of(broker: FakeBroker, **errors: int) -> Handler:
    """FindCoordinator's answer: ``broker`` for every group, but for those in ``errors`` that error code."""

    def answer(request: DecodedRequest) -> dict[str, Any]:
        where = {"node_id": broker.node_id, "host": "127.0.0.1", "port": broker.port}
        if request.api_version < 4:
            return {**where, "error_code": errors.get(request.body.key, 0)}
        keys = request.body.coordinator_keys
        return {"coordinators": [{**where, "key": key, "error_code": errors.get(key, 0)} for key in keys]}

    return answer
