"""How a member process and its test talk: JSON lines, events on stdout, commands on stdin."""

from __future__ import annotations

import json
import queue
import sys
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tests.support.patience import SESSION_MS


@dataclass(frozen=True, slots=True)
class Settings:
    """The first argument of a member process."""

    bootstrap: str
    group: str
    topic: str
    client_id: str
    assignor: str = "range"
    instance_id: str | None = None
    session_timeout_ms: int = SESSION_MS
    protocol: str = "classic"
    commit_on_revoke: bool = False


def settings() -> Settings:
    return Settings(**json.loads(sys.argv[1]))


def emit(event: str, **values: Any) -> None:
    sys.stdout.write(json.dumps({"event": event, **values}) + "\n")
    sys.stdout.flush()


class Owned:
    """Tells of each change of the partitions that a member owns."""

    def __init__(self) -> None:
        self._last: list[tuple[str, int]] | None = None

    def tell(self, partitions: Iterable[tuple[str, int]]) -> None:
        now = sorted(partitions)
        if now != self._last:
            self._last = now
            emit("owned", partitions=now)


class Commands:
    """Commands as they come, read in a thread; the end of stdin is a "leave"."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def next(self) -> dict[str, Any] | None:
        try:
            return self._queue.get_nowait()
        except queue.Empty:
            return None

    def _read(self) -> None:
        for line in sys.stdin:
            self._queue.put(json.loads(line))
        self._queue.put({"do": "leave"})
