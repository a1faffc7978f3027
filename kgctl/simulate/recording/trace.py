"""What happens in a run, as values and as canonical JSON lines: the event log, whose SHA-256 is the run's digest.

``at_us`` counts from the end of the warm-up (negative during it). Heartbeats that change nothing, and polls, are not in the log.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from kgctl.simulate.scenario.vocabulary import EventStage, PodChange


@lru_cache(maxsize=100_000)
def quoted(text: str) -> str:
    """Return the text as a JSON string."""
    return json.dumps(text)


class PodChanged(NamedTuple):
    """What became of a pod's process."""

    at_us: int
    pod: str
    what: PodChange
    detail: str = ""
    kind: Literal["pod"] = "pod"

    def line(self) -> str:
        """One line of JSON."""
        detail = f',"detail":{quoted(self.detail)}' if self.detail else ""
        return f'{{"at_us":{self.at_us},"kind":"pod","pod":{quoted(self.pod)},"what":"{self.what}"{detail}}}'


def _request_line(at_us: int, pod: str, api: str) -> str:
    return f'{{"at_us":{at_us},"kind":"request","pod":{quoted(pod)},"api":"{api}"}}'


def _reply_line(at_us: int, pod: str, api: str, error: str) -> str:
    return f'{{"at_us":{at_us},"kind":"reply","pod":{quoted(pod)},"api":"{api}","error":"{error}"}}'


class Requested(NamedTuple):
    """A request that has reached the coordinator."""

    at_us: int
    pod: str
    api: str
    kind: Literal["request"] = "request"

    def line(self) -> str:
        """One line of JSON."""
        return _request_line(self.at_us, self.pod, self.api)


class Replied(NamedTuple):
    """An answer has reached a pod; ``error`` is Kafka's name of the code."""

    at_us: int
    pod: str
    api: str
    error: str
    kind: Literal["reply"] = "reply"

    def line(self) -> str:
        """One line of JSON."""
        return _reply_line(self.at_us, self.pod, self.api, self.error)


class GroupChanged(NamedTuple):
    """The coordinator's view: state, generation (or group epoch), number of members, the leader's pod ("" for none)."""

    at_us: int
    state: str
    generation: int
    members: int
    leader: str
    kind: Literal["group"] = "group"

    def line(self) -> str:
        """One line of JSON."""
        return (
            f'{{"at_us":{self.at_us},"kind":"group","state":"{self.state}","generation":{self.generation},'
            f'"members":{self.members},"leader":{quoted(self.leader)}}}'
        )


class Removed(NamedTuple):
    """The coordinator has taken a member out: ``why`` is left, expired (a timer), replaced, or fenced."""

    at_us: int
    pod: str
    member_id: str
    why: str
    kind: Literal["removed"] = "removed"

    def line(self) -> str:
        """One line of JSON."""
        return (
            f'{{"at_us":{self.at_us},"kind":"removed","pod":{quoted(self.pod)},"member_id":{quoted(self.member_id)},'
            f'"why":"{self.why}"}}'
        )


class Owned(NamedTuple):
    """A pod consumes these partitions from now on. ``partitions``: "topic-0", sorted."""

    at_us: int
    pod: str
    partitions: tuple[str, ...]
    kind: Literal["own"] = "own"

    def line(self) -> str:
        """One line of JSON."""
        return f'{{"at_us":{self.at_us},"kind":"own","pod":{quoted(self.pod)},"partitions":[{_names(self.partitions)}]}}'


class Disowned(NamedTuple):
    """A pod does not consume these partitions any more; ``cause`` is that of the gap which begins."""

    at_us: int
    pod: str
    partitions: tuple[str, ...]
    cause: str
    kind: Literal["disown"] = "disown"

    def line(self) -> str:
        """One line of JSON."""
        return (
            f'{{"at_us":{self.at_us},"kind":"disown","pod":{quoted(self.pod)},"cause":"{self.cause}",'
            f'"partitions":[{_names(self.partitions)}]}}'
        )


class Committed(NamedTuple):
    """A commit was answered; ``records`` is how many records it moved the committed offsets by."""

    at_us: int
    pod: str
    partitions: int
    records: int
    error: str
    kind: Literal["commit"] = "commit"

    def line(self) -> str:
        """One line of JSON."""
        return (
            f'{{"at_us":{self.at_us},"kind":"commit","pod":{quoted(self.pod)},"partitions":{self.partitions},'
            f'"records":{self.records},"error":"{self.error}"}}'
        )


class Shared(NamedTuple):
    """Records of a share group, first to last, are delivered again, given back or archived; ``pod`` "" where nobody did it."""

    at_us: int
    pod: str
    what: str
    partition: str
    first: int
    last: int
    deliveries: int
    kind: Literal["share"] = "share"

    def line(self) -> str:
        """One line of JSON."""
        return (
            f'{{"at_us":{self.at_us},"kind":"share","pod":{quoted(self.pod)},"what":"{self.what}",'
            f'"partition":{quoted(self.partition)},"first":{self.first},"last":{self.last},"deliveries":{self.deliveries}}}'
        )


class Happened(NamedTuple):
    """What became of an event of the scenario. ``event``: its name, or its kind where it has none."""

    at_us: int
    event: str
    what: EventStage
    target: str
    event_kind: str
    kind: Literal["event"] = "event"

    def line(self) -> str:
        """One line of JSON."""
        return (
            f'{{"at_us":{self.at_us},"kind":"event","event":{quoted(self.event)},"what":"{self.what}",'
            f'"target":{quoted(self.target)},"event_kind":"{self.event_kind}"}}'
        )


class Scaled(NamedTuple):
    """An autoscaler has looked: from so many pods to so many, what its metric alone would ask for, and what decided.

    ``value`` is the metric's: records (lag), microseconds (lag-age), millionths (cpu).
    """

    at_us: int
    members: str
    before: int
    replicas: int
    desired: int
    why: str
    metric: str
    value: int
    kind: Literal["autoscale"] = "autoscale"

    def line(self) -> str:
        """One line of JSON."""
        return (
            f'{{"at_us":{self.at_us},"kind":"autoscale","members":{quoted(self.members)},"metric":"{self.metric}",'
            f'"value":{self.value},"before":{self.before},"replicas":{self.replicas},"desired":{self.desired},"why":"{self.why}"}}'
        )


TraceEvent: TypeAlias = (
    PodChanged | Requested | Replied | GroupChanged | Removed | Owned | Disowned | Committed | Shared | Happened | Scaled
)


@lru_cache(maxsize=100_000)
def _names(partitions: tuple[str, ...]) -> str:
    return ",".join(map(quoted, partitions))


class Observer(Protocol):
    """Receives every event of a run as it happens. One with a true ``needs_looks`` is shown the metrics in quiet times, too."""

    def on_trace(self, event: TraceEvent) -> None:
        """Something happened. Called in the order of the log."""
        ...

    def on_step(self, at_us: int, metrics: Any) -> None:
        """Everything of one moment is done; ``metrics`` is what the run was given to read its recording with."""
        ...


_HASH_EVERY = 4096


class EventLog:
    """The digest is the SHA-256 of the canonical lines, each ended by a newline: what ``sha256sum`` says of the written log."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = tuple(observers)
        self._hash = sha256()
        self._lines: list[str] = []
        self.count = 0

    def add(self, event: TraceEvent) -> None:
        """Append a line."""
        self.count += 1
        lines = self._lines
        lines.append(event.line())
        if len(lines) >= _HASH_EVERY:
            self._flush()
        for observer in self._observers:
            observer.on_trace(event)

    def requested(self, at_us: int, pod: str, api: str) -> None:
        """Append the line of `Requested`."""
        if self._observers:
            self.add(Requested(at_us, pod, api))
            return
        self.count += 1
        self._lines.append(_request_line(at_us, pod, api))

    def replied(self, at_us: int, pod: str, api: str, error: str) -> None:
        """Append the line of `Replied`."""
        if self._observers:
            self.add(Replied(at_us, pod, api, error))
            return
        self.count += 1
        self._lines.append(_reply_line(at_us, pod, api, error))

    def digest(self) -> str:
        """Return the digest of the lines so far, in hexadecimal."""
        self._flush()
        return self._hash.hexdigest()

    def _flush(self) -> None:
        if self._lines:
            self._lines.append("")
            self._hash.update("\n".join(self._lines).encode())
            self._lines.clear()
