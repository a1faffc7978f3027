"""The event log: hashed as it grows, and shown to those who watch."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from kgctl.simulate.engine.trace import Observer, TraceEvent

_HASH_EVERY = 4096


class EventLog:
    """The digest is the SHA-256 of the canonical lines, each ended by a newline: what ``sha256sum`` says of the written log."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = tuple(observers)
        self._hash = sha256()
        self._lines: list[str] = []
        self.count = 0

    def add(self, event: TraceEvent) -> None:
        """The next line."""
        self.count += 1
        lines = self._lines
        lines.append(event.line())
        if len(lines) >= _HASH_EVERY:
            self._flush()
        for observer in self._observers:
            observer.on_trace(event)

    def digest(self) -> str:
        """Of what was logged so far, in hexadecimal."""
        self._flush()
        return self._hash.hexdigest()

    def _flush(self) -> None:
        if self._lines:
            self._lines.append("")
            self._hash.update("\n".join(self._lines).encode())
            self._lines.clear()
