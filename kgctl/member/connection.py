"""The member's line to its coordinator: finding it, requests under way and their timeouts, losing it; and the topics it asks for.

Kafka: AbstractCoordinator#lookupCoordinator and #markCoordinatorUnknown, CoordinatorRequestManager, ConsumerMetadata.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from kgctl.member.api import Action, Answer, FindCoordinator, FindCoordinatorResult, NetworkError, RefreshMetadata, Send
from kgctl.member.runtime import Backoff, Runtime
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import MetadataImage, TopicPartition
from kgctl.model.requests import Request

Handler: TypeAlias = Callable[[Any], None]
"""Takes the answer: a result, or a `NetworkError` when there will be none."""

LOOKUP = "lookup"
REQUESTS = "requests"
COORDINATOR_GONE = frozenset({ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR})
RETRIABLE = COORDINATOR_GONE | {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}


@dataclass(slots=True)
class _InFlight:
    handler: Handler
    deadline_us: int
    to_coordinator: bool
    parks: bool


class Connection:
    """Requests of one member.

    A broker reads the next request of a connection only when it has answered the one before. So while a JoinGroup or SyncGroup is
    parked there, everything else waits behind it; a LeaveGroup, too.
    """

    def __init__(self, runtime: Runtime, request_ids: Iterator[int], on_found: Callable[[], None]) -> None:
        self.is_known = False
        self._runtime = runtime
        self._ids = request_ids
        self._on_found = on_found
        self._in_flight: dict[int, _InFlight] = {}
        self._held: list[Send] = []
        self._parked: int | None = None
        self._is_looking = False
        self._timeout_us = runtime.config.request_timeout_ms * 1000
        self._backoff = Backoff(runtime.config, runtime.rng)

    @property
    def is_idle(self) -> bool:
        """Return whether no answer is awaited."""
        return not self._in_flight

    @property
    def is_clear(self) -> bool:
        """Whether no answer of the coordinator is awaited."""
        return not any(entry.to_coordinator for entry in self._in_flight.values())

    def expects(self, correlation_id: int) -> bool:
        """Return whether the answer to this request is still awaited."""
        return correlation_id in self._in_flight

    def find(self) -> None:
        """See to it that the coordinator is, or gets, known."""
        if self.is_known or self._is_looking or LOOKUP in self._runtime.deadlines.armed:
            return
        self._is_looking = True
        self.ask(FindCoordinator, self._on_coordinator)

    def ask(self, action: Callable[[int], Action], handler: Handler) -> int:
        """Send a request that any broker can answer."""
        correlation_id = next(self._ids)
        self._add(correlation_id, handler, None, to_coordinator=False, parks=False)
        self._runtime.emit(action(correlation_id))
        return correlation_id

    def send(
        self, request: type[Request], handler: Handler, *, timeout_ms: int | None = None, parks: bool = False, **fields: Any
    ) -> int:
        """Send this to the coordinator, or behind what is parked there. The coordinator is known."""
        correlation_id = next(self._ids)
        identity = self._runtime.identity
        filled = request(request_id=correlation_id, client_id=identity.client_id, client_host=identity.client_host, **fields)
        self._add(correlation_id, handler, timeout_ms, to_coordinator=True, parks=parks)
        send = Send(correlation_id, filled)
        if self._parked is not None:
            self._held.append(send)
        else:
            if parks:
                self._parked = correlation_id
            self._runtime.actions.append(send)
        return correlation_id

    def finish(self, correlation_id: int) -> Handler:
        """The answer is there, or will not come: what takes it."""
        entry = self._in_flight.pop(correlation_id)
        if entry.deadline_us == self._runtime.deadlines.at(REQUESTS):
            self._arm_timeouts()
        if self._parked == correlation_id:
            self._parked = None
            self._release()
        return entry.handler

    def answer(self, correlation_id: int, result: Answer) -> None:
        """Hand an answer on; a broken connection loses the coordinator first."""
        was_to_coordinator = self._in_flight[correlation_id].to_coordinator
        handler = self.finish(correlation_id)
        if isinstance(result, NetworkError) and was_to_coordinator:
            self.lose()
        handler(result)

    def lose(self) -> None:
        """The coordinator is not known any more; what was under way to it is not answered. Look for it again."""
        if not self.is_known:
            return
        self.is_known = False
        # Java drops the connection as well, so that no late answer counts (ConsumerNetworkClient#disconnectAsync).
        lost = [number for number, entry in self._in_flight.items() if entry.to_coordinator]
        handlers = [(number, self._in_flight.pop(number).handler) for number in lost]
        self._held.clear()
        self._parked = None
        self._arm_timeouts()
        self.find()
        for number, handler in handlers:
            handler(NetworkError(number))

    def expire_requests(self) -> None:
        """Give up the requests that have waited for longer than ``request.timeout.ms``."""
        now_us = self._runtime.now_us
        for number in [number for number, entry in self._in_flight.items() if entry.deadline_us <= now_us]:
            if number in self._in_flight:
                self.answer(number, NetworkError(number))
        self._arm_timeouts()

    def abandon(self) -> None:
        """Stop waiting for every answer."""
        self._in_flight.clear()
        self._held.clear()
        self._runtime.deadlines.cancel(REQUESTS)
        self._runtime.deadlines.cancel(LOOKUP)

    def _add(self, correlation_id: int, handler: Handler, timeout_ms: int | None, *, to_coordinator: bool, parks: bool) -> None:
        runtime = self._runtime
        deadline_us = runtime.now_us + (self._timeout_us if timeout_ms is None else timeout_ms * 1000)
        self._in_flight[correlation_id] = _InFlight(handler, deadline_us, to_coordinator, parks)
        earliest_us = runtime.deadlines.at(REQUESTS)
        if earliest_us is None or deadline_us < earliest_us:
            runtime.deadlines.arm(REQUESTS, deadline_us)

    def _put(self, send: Send, *, parks: bool) -> None:
        if parks:
            self._parked = send.correlation_id
        self._runtime.actions.append(send)

    def _release(self) -> None:
        while self._held and self._parked is None:
            send = self._held.pop(0)
            self._put(send, parks=self._in_flight[send.correlation_id].parks)

    def _arm_timeouts(self) -> None:
        in_flight = self._in_flight
        if not in_flight:
            self._runtime.deadlines.cancel(REQUESTS)
        else:
            self._runtime.deadlines.arm(REQUESTS, min([entry.deadline_us for entry in in_flight.values()]))

    def _on_coordinator(self, result: FindCoordinatorResult | NetworkError) -> None:
        self._is_looking = False
        if isinstance(result, NetworkError) or result.error is not ErrorCode.NONE:
            self._runtime.arm_in(LOOKUP, self._backoff.next_us())
            return
        self._backoff.reset()
        self.is_known = True
        self._on_found()


METADATA = "metadata"
Snapshot = tuple[tuple[str, int, tuple[tuple[str, ...], ...]], ...]
"""(topic, partitions, racks) of the topics that were looked at."""


class Topics:
    """The member's copy of the metadata, and which topics it subscribes to."""

    def __init__(self, runtime: Runtime, connection: Connection) -> None:
        self.image: MetadataImage | None = None
        self.subscription: tuple[str, ...] = tuple(dict.fromkeys(runtime.identity.topics))
        self._runtime = runtime
        self._connection = connection
        self._request: int | None = None
        pattern = runtime.identity.pattern
        self._pattern = None if pattern is None else re.compile(pattern)

    @property
    def is_ready(self) -> bool:
        """Whether the subscription is known: with a pattern, only once the topics are."""
        return self._pattern is None or self.image is not None

    def refresh(self) -> None:
        """Ask for the topics now, unless that is under way."""
        self._runtime.deadlines.cancel(METADATA)
        if self._request is None:
            self._request = self._connection.ask(RefreshMetadata, self._on_failure)

    def take(self, image: MetadataImage) -> None:
        """The topics as they are now; patterns are matched against their names."""
        if self._request is not None and self._connection.expects(self._request):
            self._connection.finish(self._request)
        self._request = None
        self.image = image
        if self._pattern is not None:
            self.subscription = tuple(sorted(name for name in image.topics if self._pattern.fullmatch(name)))
        self._runtime.arm_in(METADATA, self._runtime.config.metadata_max_age_ms * 1000)

    def snapshot(self, names: Iterable[str]) -> Snapshot:
        """What is known of these topics, to compare with what was known before."""
        topics = {} if self.image is None else self.image.topics
        found = ((name, topics[name]) for name in sorted(set(names)) if name in topics)
        return tuple((name, topic.partition_count, topic.partition_racks) for name, topic in found)

    def has_all(self, partitions: Iterable[TopicPartition]) -> bool:
        """Whether the metadata has all of these partitions."""
        topics = {} if self.image is None else self.image.topics
        counts = {name: topic.partition_count for name, topic in topics.items()}
        return all(partition.partition < counts.get(partition.topic, 0) for partition in partitions)

    def skip_refreshes(self, until_us: int) -> int:
        """Take the refreshes that are due before this as done, with nothing new: how many."""
        due_us = self._runtime.deadlines.at(METADATA)
        age_us = max(self._runtime.config.metadata_max_age_ms * 1000, 1)
        if due_us is None or due_us >= until_us:
            return 0
        count = (until_us - due_us + age_us - 1) // age_us
        self._runtime.deadlines.arm(METADATA, due_us + count * age_us)
        return count

    def _on_failure(self, _: NetworkError) -> None:
        self._request = None
        self._runtime.arm_in(METADATA, self._runtime.config.retry_backoff_ms * 1000)
