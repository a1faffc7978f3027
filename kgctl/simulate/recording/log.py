"""The log of a run: what is emitted, folded into histories, and its lines, whose SHA-256 is the run's digest.

Heartbeats that change nothing, and polls, are in no line.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

from kgctl.simulate.recording.folds import FOLDS, Histories
from kgctl.simulate.recording.recording import Counted
from kgctl.simulate.recording.trace import Observer, Replied, Requested, TraceEvent, quoted
from kgctl.simulate.scenario.vocabulary import HEARTBEATS

if TYPE_CHECKING:
    from kgctl.model.error_codes import ErrorCode

_HASH_EVERY = 4096
UNSEEN = frozenset({*HEARTBEATS.values(), "FindCoordinator", "Metadata", "ListOffsets"})
"""Requests that are in no line, unless they are answered with an error."""


class EventLog:
    """What is emitted goes to the histories, and its line into the digest: the SHA-256 of the lines, each ended by a newline.

    That is what ``sha256sum`` says of the written log. Of requests and answers, which are most of a run, no event is made where
    nobody observes it.
    """

    def __init__(self, histories: Histories, observers: Sequence[Observer]) -> None:
        self._histories = histories
        self.skipped, self.skipped_beats = histories.skipped, histories.skipped_beats
        self._requests = histories.history.requests
        self._start_us = histories.start_us
        self._observers = tuple(observers)
        self._hash = sha256()
        self._lines: list[str] = []
        self.count = 0

    def emit(self, event: TraceEvent) -> None:
        """Something has happened."""
        fold = FOLDS.get(type(event))
        if fold is not None:
            fold(self._histories, event, event.at_us + self._start_us)
        if event.kind:
            self._append(event)

    def requested(self, now_us: int, number: int, pod: str, api: str) -> None:
        """A request of this pod has reached a broker, at this time of the run."""
        self._requests.append(Counted(now_us, 1, number, api))
        if api in UNSEEN:
            return
        if self._observers:
            self._append(Requested(now_us - self._start_us, pod, api))
            return
        self.count += 1
        self._lines.append(f'{{"at_us":{now_us - self._start_us},"kind":"request","pod":{quoted(pod)},"api":"{api}"}}')

    def replied(self, now_us: int, number: int, pod: str, api: str, error: ErrorCode) -> None:
        """An answer has reached this pod."""
        name = "NONE"
        if error:
            name = error.name
            self._histories.replied(now_us, number, name)
        elif api in UNSEEN:
            return
        if self._observers:
            self._append(Replied(now_us - self._start_us, pod, api, name))
            return
        self.count += 1
        head = f'{{"at_us":{now_us - self._start_us},"kind":"reply","pod":{quoted(pod)}'
        self._lines.append(f'{head},"api":"{api}","error":"{name}"}}')

    def digest(self) -> str:
        """Return the digest of the lines so far, in hexadecimal."""
        self._flush()
        return self._hash.hexdigest()

    def _append(self, event: TraceEvent) -> None:
        self.count += 1
        self._lines.append(event.line())
        if len(self._lines) >= _HASH_EVERY:
            self._flush()
        for observer in self._observers:
            observer.on_trace(event)

    def _flush(self) -> None:
        if self._lines:
            self._lines.append("")
            self._hash.update("\n".join(self._lines).encode())
            self._lines.clear()
