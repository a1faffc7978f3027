"""What the parts of one member share: the moment of the present call, what it has led to, what is due later; its coordinator.

The line to the coordinator: finding it, requests under way and their timeouts, losing it; and the topics that the member asks
for. Kafka: AbstractCoordinator#lookupCoordinator and #markCoordinatorUnknown, CoordinatorRequestManager, ConsumerMetadata.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from math import isqrt
from typing import Any, TypeAlias

from kgctl.member.api import (
    Action,
    Answer,
    FindCoordinator,
    FindCoordinatorResult,
    MemberIdentity,
    NetworkError,
    PositionsOf,
    RefreshMetadata,
    Rng,
    Send,
)
from kgctl.member.config import HeartbeatDrift, MemberConfig
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import MetadataImage, TopicPartition
from kgctl.model.requests import Request


class Deadlines:
    """Named deadlines; arming one again replaces it. Ties go by the order of arming."""

    __slots__ = ("armed", "earliest_us")

    def __init__(self) -> None:
        self.armed: dict[str, int] = {}
        """Name -> when it is due, in the order of arming."""
        self.earliest_us: int | None = None
        """The earliest; None: to be looked for."""

    def arm(self, name: str, at_us: int) -> None:
        """Arm the deadline of this name, in the place of the one there is."""
        armed = self.armed
        before_us = armed.pop(name, None)
        armed[name] = at_us
        next_us = self.earliest_us
        if next_us is not None:
            if at_us <= next_us:
                self.earliest_us = at_us
            elif before_us == next_us:
                self.earliest_us = None

    def cancel(self, name: str) -> None:
        """Disarm the deadline of this name, if it is armed."""
        if name in self.armed and self.armed.pop(name) == self.earliest_us:
            self.earliest_us = None

    def at(self, name: str) -> int | None:
        """Return when the deadline of this name is due; None if it is not armed."""
        return self.armed.get(name)

    def next_us(self) -> int | None:
        """Return the earliest deadline, None where none is armed."""
        next_us = self.earliest_us
        if next_us is None and self.armed:
            next_us = self.earliest_us = min(self.armed.values())
        return next_us

    def next_except(self, names: frozenset[str]) -> int | None:
        """The earliest deadline of another name than these."""
        armed = self.armed
        if armed.keys() <= names:
            return None
        return min([armed[name] for name in armed if name not in names])

    def pop_due(self, now_us: int) -> str | None:
        """Take the earliest deadline that has come; None: there is none."""
        armed, next_us = self.armed, self.next_us()
        if next_us is None or next_us > now_us:
            return None
        name = min(armed, key=armed.__getitem__)
        del armed[name]
        self.earliest_us = None
        return name

    def clear(self) -> None:
        """Disarm all deadlines."""
        self.armed.clear()
        self.earliest_us = None


@dataclass(slots=True)
class Runtime:
    """The member's surroundings in one object; ``now_us`` is the time of the call that is being answered."""

    identity: MemberIdentity
    config: MemberConfig
    rng: Rng
    positions_of: PositionsOf
    now_us: int = 0
    deadlines: Deadlines = field(default_factory=Deadlines)
    actions: list[Action] = field(default_factory=list)

    def emit(self, action: Action) -> None:
        """Add an action to those that the driver gets from this call."""
        self.actions.append(action)

    def take_actions(self) -> list[Action]:
        """Return the actions since the last call of this, in order."""
        taken, self.actions = self.actions, []
        return taken

    def arm_in(self, name: str, delay_us: int) -> None:
        """Arm a deadline this long from now."""
        self.deadlines.arm(name, self.now_us + delay_us)


def draw(rng: Rng, bound: int) -> int:
    """Return an evenly spread whole number of 0..bound."""
    return rng.getrandbits(32) * (bound + 1) >> 32 if bound > 0 else 0


_JITTER_PERCENT = 20


@dataclass(slots=True)
class Backoff:
    """``retry.backoff.ms`` doubled with each attempt up to ``retry.backoff.max.ms``, give or take a fifth (KIP-580)."""

    config: MemberConfig
    rng: Rng
    attempts: int = 0

    def next_us(self) -> int:
        """Return how long to wait before the next attempt: twice the last one, up to the limit."""
        first_us, limit_us = self.config.retry_backoff_ms * 1000, self.config.retry_backoff_max_ms * 1000
        base_us = min(first_us << min(self.attempts, 16), max(limit_us, first_us))
        self.attempts += 1
        spread_us = base_us * _JITTER_PERCENT // 100
        return base_us - spread_us + draw(self.rng, 2 * spread_us)

    def reset(self) -> None:
        """Begin with the shortest wait again, after a success."""
        self.attempts = 0


_DRAWN_ONE_BY_ONE = 12


class HeartbeatClock:
    """The beats of one member. ``next_us`` is when the next one leaves; times and drifts are in microseconds.

    The nominal beats are an interval and a drift apart; a beat leaves its own small jitter away from its nominal time. So a skip
    over a day of beats costs what a single beat costs.
    """

    __slots__ = ("_drift", "_interval_us", "_nominal_us", "_rng", "next_us")

    def __init__(self, drift: HeartbeatDrift, rng: Rng) -> None:
        self._drift = drift
        self._rng = rng
        self._interval_us = 1
        self._nominal_us = 0
        self.next_us = 0

    @property
    def period_us(self) -> int:
        """Return the mean distance of two beats."""
        return self._interval_us + self._drift.constant_us

    def restart(self, now_us: int, interval_us: int) -> None:
        """A generation has begun: count from now, from anywhere in the interval (not ``phase_locked``), or on (``goes_on``)."""
        self._interval_us = max(interval_us, 1)
        if self._drift.goes_on:
            self.next_us = max(self.next_us, now_us)
            return
        self._nominal_us = now_us + (0 if self._drift.phase_locked else draw(self._rng, self._interval_us) - self._interval_us)
        self._step(now_us)

    def beat(self, now_us: int) -> None:
        """A beat leaves now, at ``next_us`` or late; one before it (another one failed) starts the timer anew."""
        if now_us < self.next_us:
            self._nominal_us = now_us
        else:
            self._nominal_us = max(self._nominal_us, now_us - self._drift.jitter_us)
        self._step(now_us)

    def skip(self, until_us: int) -> tuple[int, int]:
        """Take the beats before ``until_us``, ``next_us`` at least, as sent: how many they were, and when the last one left."""
        period_us = self.period_us
        count = max((until_us - self._nominal_us + period_us - 1) // period_us, 1)
        last_us = min(max(self._nominal_us + (count - 1) * period_us, self.next_us), until_us - 1)
        strayed_us = self._nominal_us + count * period_us + self._walk(count) - until_us
        # What the walk adds over a long time may be more than a period; only the phase counts.
        self._nominal_us = until_us + strayed_us % period_us
        self._leave_at(until_us)
        return count, last_us

    def _step(self, now_us: int) -> None:
        drift, walk_us = self._drift, self._drift.walk_us
        walked_us = (self._rng.getrandbits(32) * (2 * walk_us + 1) >> 32) - walk_us if walk_us else 0  # as `draw`
        self._nominal_us += self._interval_us + drift.constant_us + walked_us
        self._leave_at(now_us)

    def _leave_at(self, earliest_us: int) -> None:
        jitter_us = self._drift.jitter_us
        left_us = self._nominal_us + (draw(self._rng, 2 * jitter_us) - jitter_us if jitter_us else 0)
        self.next_us = max(earliest_us, left_us)

    def _walk(self, beats: int) -> int:
        """The sum of that many draws of -walk..walk; for many, a normal one of the same spread."""
        walk_us = self._drift.walk_us
        if walk_us == 0:
            return 0
        if beats <= _DRAWN_ONE_BY_ONE:
            # As `draw`, whose call would cost as much as the number.
            bits, bound = self._rng.getrandbits, 2 * walk_us + 1
            return sum([bits(32) * bound >> 32 for _ in range(beats)]) - beats * walk_us
        # The sum of 12 numbers of 0..65535 is as good as normal, with a deviation of 65536.
        bits = self._rng.getrandbits
        normal = sum([bits(16) for _ in range(12)]) - 6 * 65_535
        return walk_us * isqrt(beats * 1_000_000 // 3) // 1000 * normal >> 16


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


_InFlight: TypeAlias = tuple[Handler, int, bool, bool]
"""(handler, deadline in microseconds, whether it goes to the coordinator, whether it parks)."""


class MemberConnection:
    """Requests of one member.

    A broker reads the next request of a connection only when it has answered the one before. So while a JoinGroup or SyncGroup is
    parked there, everything else waits behind it; a LeaveGroup, too.
    """

    __slots__ = (
        "_backoff", "_held", "_ids", "_in_flight", "_is_looking", "_on_found", "_parked", "_runtime", "_timeout_us",
        "is_known", "on_no_broker",
    )  # fmt: skip

    def __init__(self, runtime: Runtime, request_ids: Iterator[int], on_found: Callable[[], None]) -> None:
        self.is_known = False
        self.on_no_broker: Callable[[], None] = lambda: None
        """Called when no broker of the cluster can be reached."""
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
        return not any(to_coordinator for _, _, to_coordinator, _ in self._in_flight.values())

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
        handler, deadline_us, _, _ = self._in_flight.pop(correlation_id)
        if not self._in_flight:
            self._runtime.deadlines.cancel(REQUESTS)
        elif deadline_us == self._runtime.deadlines.armed.get(REQUESTS):
            self._arm_timeouts()
        if self._parked == correlation_id:
            self._parked = None
            if self._held:
                self._release()
        return handler

    def answer(self, correlation_id: int, result: Answer) -> None:
        """Hand an answer on; a broken connection loses the coordinator first."""
        if type(result) is NetworkError:
            _, _, was_to_coordinator, _ = self._in_flight[correlation_id]
            handler = self.finish(correlation_id)
            if was_to_coordinator:
                self.lose()
            if result.no_broker:
                self.on_no_broker()
            handler(result)
        else:
            self.finish(correlation_id)(result)

    def lose(self) -> None:
        """The coordinator is not known any more; what was under way to it is not answered. Look for it again."""
        if not self.is_known:
            return
        self.is_known = False
        # Java drops the connection as well, so that no late answer counts (ConsumerNetworkClient#disconnectAsync).
        lost = [(number, entry[0]) for number, entry in self._in_flight.items() if entry[2]]
        for number, _ in lost:
            del self._in_flight[number]
        self._held.clear()
        self._parked = None
        self._arm_timeouts()
        self.find()
        for number, handler in lost:
            handler(NetworkError(number))

    def expire_requests(self) -> None:
        """Give up the requests that have waited for longer than ``request.timeout.ms``."""
        now_us = self._runtime.now_us
        for number in [number for number, (_, deadline_us, _, _) in self._in_flight.items() if deadline_us <= now_us]:
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
        self._in_flight[correlation_id] = (handler, deadline_us, to_coordinator, parks)
        deadlines = runtime.deadlines
        earliest_us = deadlines.armed.get(REQUESTS)
        if earliest_us is None or deadline_us < earliest_us:
            deadlines.arm(REQUESTS, deadline_us)

    def _put(self, send: Send, *, parks: bool) -> None:
        if parks:
            self._parked = send.correlation_id
        self._runtime.actions.append(send)

    def _release(self) -> None:
        while self._held and self._parked is None:
            send = self._held.pop(0)
            self._put(send, parks=self._in_flight[send.correlation_id][3])

    def _arm_timeouts(self) -> None:
        in_flight = self._in_flight
        if not in_flight:
            self._runtime.deadlines.cancel(REQUESTS)
        else:
            self._runtime.deadlines.arm(REQUESTS, min([deadline_us for _, deadline_us, _, _ in in_flight.values()]))

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


class MemberTopics:
    """The member's copy of the metadata, and which topics it subscribes to."""

    __slots__ = ("_connection", "_pattern", "_request", "_runtime", "image", "is_ready", "subscription")

    def __init__(self, runtime: Runtime, connection: MemberConnection) -> None:
        self.image: MetadataImage | None = None
        self.subscription: tuple[str, ...] = tuple(dict.fromkeys(runtime.identity.topics))
        self._runtime = runtime
        self._connection = connection
        self._request: int | None = None
        pattern = runtime.identity.pattern
        self._pattern = None if pattern is None else re.compile(pattern)
        self.is_ready = pattern is None
        """Whether the subscription is known: with a pattern, only once the topics are."""

    @property
    def is_refreshing(self) -> bool:
        """Whether the topics have been asked for and not told yet."""
        return self._request is not None

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
        self.is_ready = True
        if self._pattern is not None:
            self.subscription = tuple(sorted(name for name in image.topics if self._pattern.fullmatch(name)))
        self._runtime.arm_in(METADATA, self._runtime.config.metadata_max_age_ms * 1000)

    def forget(self) -> None:
        """Begin anew with the bootstrap servers, which tell of no topic yet (KIP-1102, NetworkClient.DefaultMetadataUpdater)."""
        self.image = None
        if self._request is None:
            self._runtime.arm_in(METADATA, self._runtime.config.retry_backoff_ms * 1000)

    def snapshot(self, names: Iterable[str]) -> Snapshot:
        """What is known of these topics, to compare with what was known before."""
        topics = {} if self.image is None else self.image.topics
        found = ((name, topics[name]) for name in sorted(set(names)) if name in topics)
        return tuple((name, topic.partition_count, topic.partition_racks) for name, topic in found)

    def has_all(self, partitions: Iterable[TopicPartition]) -> bool:
        """Whether the metadata has all of these partitions."""
        topics = {} if self.image is None else self.image.topics
        for name, number in partitions:
            topic = topics.get(name)
            if topic is None or number >= topic.partition_count:
                return False
        return True

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
