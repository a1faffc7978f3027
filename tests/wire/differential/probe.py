"""Says the same to two servers and writes down what they answer, free of ids and times."""

from __future__ import annotations

import enum
import time
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from kgctl.serde.codec import Entity
from kgctl.serde.messages import decode_response
from tests.support.patience import PATIENCE_S
from tests.support.wire.raw_client import ConnectionClosed, RawClient
from tests.wire.differential.plain import Plain

IDS = {
    "member_id": "member",
    "leader": "member",
    "topic_id": "topic",
    "cluster_id": "cluster",
    "producer_id": "producer",
    "port": "port",
    "host": "host",
    "client_host": "client host",
    "log_dir": "folder",
    "transaction_start_time_ms": "time",
}
"""Fields whose values differ from server to server: each value becomes a name and a number, in the order of appearance."""

NOT_READY = ("COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "CONCURRENT_TRANSACTIONS")
"""Errors with which a broker says that it is still loading, or still writing what was asked before."""
NOT_READY_S = 5

UNSET = ("", None, -1, UUID(int=0))


class Probe:
    """One conversation with one server."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._raw: RawClient | None = None
        self._names: dict[tuple[str, Any], str] = {}
        self._plain = Plain(self._named)
        self.answers: list[Any] = []

    def call(self, api_key: int, version: int, values: Mapping[str, Any] | None = None, *, note: bool = True) -> Any:
        """Ask, note the answer (or that the connection was closed) and give back the response's body, None after a close.

        A broker that is not yet ready to decide is asked again: how long it takes depends on the machine.
        """
        deadline = time.monotonic() + NOT_READY_S
        while True:
            raw = self._connection()
            try:
                raw.send(api_key, version, values)
                _, body = decode_response(api_key, version, raw.receive())
            except (ConnectionClosed, ConnectionResetError):
                self._closed((api_key, version, dict(values or {})))
                return None
            if not _is_not_ready(body) or time.monotonic() > deadline:
                break
            time.sleep(0.05)
        if note:
            self.answers.append(((api_key, version, _short(values)), self._plain.of(body)))
        return body

    def until(self, api_key: int, version: int, values: Mapping[str, Any], is_there: Callable[[Any], bool]) -> Any:
        """Ask until the answer is as wanted; only a real broker needs a second time. Nothing is noted."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            body = self.call(api_key, version, values, note=False)
            if is_there(body):
                return body
            if time.monotonic() > deadline:
                raise AssertionError(f"not in {PATIENCE_S} s: {body}")
            time.sleep(0.02)

    def payload(self, payload: bytes, api_key: int, version: int) -> None:
        """Send these bytes in a frame; note the answer, read in this version, or the close."""
        raw = self._connection()
        try:
            raw.send_payload(payload)
            _, body = decode_response(api_key, version, raw.receive())
        except (ConnectionClosed, ConnectionResetError):
            self._closed(payload.hex())
            return
        self.answers.append((payload.hex(), self._plain.of(body)))

    def close(self) -> None:
        if self._raw is not None:
            self._raw.close()
            self._raw = None

    def _closed(self, what: Any) -> None:
        self.answers.append((what, "closed"))
        self.close()

    def _connection(self) -> RawClient:
        if self._raw is None:
            self._raw = RawClient(self._bootstrap, client_id="probe")
        return self._raw

    def _named(self, value: Any, key: str) -> Any:
        kind = IDS.get(key)
        if kind is None or value in UNSET:
            return value
        return self._names.setdefault((kind, value), f"{kind} {sum(1 for other in self._names if other[0] == kind) + 1}")


def _is_not_ready(value: Any) -> bool:
    """Whether an error of `NOT_READY` stands anywhere in an answer."""
    if isinstance(value, Entity):
        return any(_is_not_ready(getattr(value, name)) for name in value.__slots__)
    if isinstance(value, tuple):
        return any(map(_is_not_ready, value))
    return isinstance(value, enum.Enum) and value.name in NOT_READY


def _short(values: Any) -> str:
    text = str(dict(values or {}))
    return text if len(text) < 400 else text[:400] + "..."
