"""`kgctl.ConsumerGroup`: a member of a group on a cluster, as a series of generations. It fetches nothing.

The shape is kafka-go's ConsumerGroup; the protocol is Apache Kafka's, by the same sans-IO member that ``kgctl simulate`` runs.
"""

from __future__ import annotations

import asyncio
import queue
import re
import time
import warnings
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Literal, Self

from kgctl.arguments import checked
from kgctl.errors import ClosedError, KgctlError, MisuseError, TimedOutError, UsageError
from kgctl.group.driver import Driver, log
from kgctl.group.generation import Commits, Generation
from kgctl.member.api import CallbackKind, MemberIdentity, MemberState
from kgctl.member.config import Behaviour, MemberConfig, refusal
from kgctl.model.groups import Committable, OffsetAndMetadata, TopicPartition, topic_name_problem
from kgctl.wire.settings import WireSettings, checked_property, not_covered, with_msk_mechanism

BEHAVIOUR = Behaviour(polls_itself=True, limits_poll_interval=False)
"""Answers are handled as they come, and no poll() has to be called: the member's thread is kgctl's own."""

ASSIGNORS = ("range", "cooperative-sticky")
CLOSE_TIMEOUT_S = 35.0
NEVER_MS = 365 * 24 * 60 * 60 * 1000

Ready = Generation | BaseException | None


class ConsumerGroup:
    """A live member: joins in the background, heartbeats, follows rebalances, leaves when closed.

    Iterate over it, or call `next`, to get each `Generation`; with ``async for`` or `next_async` in coroutines. The body of a
    ``for`` counts as a function of the generation: the group joins again only when the body has come back.

    ``topics`` or ``pattern`` (a regular expression for whole names). ``assignors`` in order of preference, for ``protocol``
    "classic"; "consumer" (KIP-848) takes ``server_assignor``, and session and heartbeats from the cluster. ``session_timeout_ms``
    is 45,000 and ``heartbeat_interval_ms`` 3,000 in the classic protocol.
    ``auto_offset_reset`` is where partitions begin that have no commit: "earliest", "latest" or "none" (an error).
    ``partition_watch_interval_ms``: how often topics are looked at for new partitions, 0 for never. ``properties`` have
    librdkafka's names (``security.protocol``, ``sasl.username``). Times are milliseconds.

    Raises:
        UsageError: settings that cannot be.
    """

    @checked(not_empty=("bootstrap", "group_id", "topics", "pattern", "assignors", "server_assignor", "group_instance_id"))
    def __init__(
        self,
        bootstrap: str,
        group_id: str,
        topics: Sequence[str] = (),
        *,
        pattern: str | None = None,
        protocol: Literal["classic", "consumer"] = "classic",
        assignors: Sequence[str] = ASSIGNORS,
        server_assignor: str | None = None,
        group_instance_id: str | None = None,
        client_id: str = "kgctl",
        rack: str | None = None,
        session_timeout_ms: int | None = None,
        heartbeat_interval_ms: int | None = None,
        rebalance_timeout_ms: int = 60_000,
        auto_offset_reset: Literal["earliest", "latest", "none"] = "latest",
        partition_watch_interval_ms: int = 300_000,
        retry_backoff_ms: int = 100,
        timeout_ms: int = 30_000,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        if protocol == "consumer":
            _check_told_by_the_cluster(session_timeout_ms=session_timeout_ms, heartbeat_interval_ms=heartbeat_interval_ms)
        config = MemberConfig(
            profile="kgctl",
            behaviour=BEHAVIOUR,
            group_protocol=protocol,
            group_remote_assignor=server_assignor,
            session_timeout_ms=45_000 if session_timeout_ms is None else session_timeout_ms,
            heartbeat_interval_ms=3_000 if heartbeat_interval_ms is None else heartbeat_interval_ms,
            rebalance_timeout_ms=rebalance_timeout_ms,
            partition_assignment_strategy=tuple(assignors),
            enable_auto_commit=False,
            auto_offset_reset=auto_offset_reset,
            metadata_max_age_ms=partition_watch_interval_ms or NEVER_MS,
            retry_backoff_ms=retry_backoff_ms,
            request_timeout_ms=timeout_ms,
        )
        identity = MemberIdentity(
            name=client_id,
            group_id=group_id,
            client_id=client_id,
            topics=tuple(topics),
            pattern=pattern,
            group_instance_id=group_instance_id,
            rack_id=rack,
        )
        _check(config, identity)
        self.group_id = group_id
        settings = _wire_settings(bootstrap, client_id, properties or {})
        self._driver = Driver(config, identity, settings, timeout_ms)
        self._generations = _Generations(
            self._driver, Commits(self._driver, settings, timeout_ms), is_classic=protocol == "classic"
        )
        self._held: Generation | None = None
        self._is_closed = False
        self._driver.start(self._generations)

    # --- for applications

    @property
    def member_id(self) -> str:
        """The id that the coordinator knows the member by; "" before there is one. It survives generations."""
        return self._driver.member.member_id

    @property
    def last_error(self) -> KgctlError | None:
        """What keeps the member from joining at present: no broker, no coordinator. It goes on trying.

        The logger ``kgctl.group`` warns of each once.
        """
        return self._driver.last_error

    @checked()
    def next(self, *, timeout_ms: int | None = None) -> Generation:
        """Wait for the next generation; never are there two at once.

        Raises:
            TimedOutError: none came in time; the message says what keeps the member from joining, where that is known.
            ClosedError: the group was closed.
            AuthError, BrokerError, KgctlError: the member failed for good (not authorised, fenced, no assignor in common).
            MisuseError: called by a function of the generation, which would wait for itself.
            Exception: what a function of the last generation raised.
        """
        self._check_is_outside("next()")
        self._release()
        until_s = None if timeout_ms is None else time.monotonic() + timeout_ms / 1000
        while True:
            ready = self._take(timeout_ms, until_s)
            if not isinstance(ready, Generation):
                break
            if not ready.ended.is_set():  # else it was overtaken before anybody asked
                return ready
        if self._driver.has_ended.is_set():
            self._generations.ready.put(ready)  # for whoever asks again
        raise ready if ready is not None else self._closed()

    def __iter__(self) -> Iterator[Generation]:
        """Each generation until the group is closed."""
        while True:
            try:
                generation = self.next()
            except ClosedError:
                return
            generation._hold()
            self._held = generation
            yield generation

    @checked()
    async def next_async(self, *, timeout_ms: int | None = None) -> Generation:
        """As `next`, for coroutines."""
        self._check_is_outside("next_async()")
        return await asyncio.to_thread(partial(self.next, timeout_ms=timeout_ms))

    async def __aiter__(self) -> AsyncIterator[Generation]:
        """Each generation until the group is closed."""
        while True:
            try:
                generation = await self.next_async()
            except ClosedError:
                return
            generation._hold()
            self._held = generation
            yield generation

    def close(self) -> None:
        """End the generation, wait for its functions, leave the group (a static member stays), give connections back.

        Safe to call twice, and from any thread but those of the generation's functions, which it waits for.

        Raises:
            MisuseError: called by one of those.
            TimedOutError: they, or the broker, let it wait for more than 35 s.
        """
        self._check_is_outside("close()")
        if not self._is_closed:
            self._is_closed = True
            self._release()
            self._driver.close()
        if not self._driver.join(CLOSE_TIMEOUT_S):
            is_waiting = self._generations.current is not None
            running = "a function of the last generation still runs" if is_waiting else "the broker is silent"
            raise TimedOutError(f"group '{self.group_id}' did not close within {CLOSE_TIMEOUT_S:g} s: {running}")

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else f"member {self.member_id!r}"
        return f"<ConsumerGroup {self.group_id!r}: {state}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self._check_is_outside("close()")
        await asyncio.to_thread(self.close)

    def __del__(self) -> None:
        driver = getattr(self, "_driver", None)
        if driver is not None and not self._is_closed:
            warnings.warn(
                f"unclosed {self!r}: it leaves its group now; use `with`, or close()", ResourceWarning, stacklevel=1, source=self
            )
            driver.close()

    # --- inside

    def _check_is_outside(self, call: str) -> None:
        current = self._generations.current
        if current is not None and current._is_asked_inside():
            raise MisuseError(
                f"group '{self.group_id}': {call} waits until all functions of the generation have returned, "
                "and was called by one: return from the function, which ends the generation, and call it outside",
                group=self.group_id,
            )

    def _take(self, timeout_ms: int | None, until_s: float | None) -> Ready:
        try:
            return self._generations.ready.get(timeout=None if until_s is None else max(0.0, until_s - time.monotonic()))
        except queue.Empty:
            why = f": {self.last_error.message}" if self.last_error is not None else ""
            message = f"group '{self.group_id}': no generation within {(timeout_ms or 0) / 1000:g} s{why}"
            raise TimedOutError(message, group=self.group_id) from None

    def _release(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            held._release()

    def _closed(self) -> ClosedError:
        return ClosedError(f"group '{self.group_id}' is closed: make a new ConsumerGroup to join again", group=self.group_id)


class _Generations:
    """What the driver tells, always in its thread, made into one `Generation` after the other."""

    def __init__(self, driver: Driver, commits: Commits, *, is_classic: bool) -> None:
        self.ready: queue.SimpleQueue[Ready] = queue.SimpleQueue()
        self.current: Generation | None = None
        self._driver = driver
        self._member = driver.member
        self._group_id = driver.member.identity.group_id
        self._commits = commits
        self._is_classic = is_classic
        self._positions: dict[TopicPartition, int] = {}
        self._callbacks = 0

    def on_callback(self, kind: CallbackKind, partitions: tuple[TopicPartition, ...], done: Callable[[], None]) -> None:
        """End the generation that this changes, and go on when its functions have returned."""
        self._callbacks += 1

        def go_on() -> None:
            self._callbacks -= 1
            done()

        changes = bool(partitions) or self._is_classic
        if changes and self.current is not None:
            self._end_current("the group is being closed" if self._driver.is_closing else _REASONS[kind], go_on)
        else:
            go_on()

    def on_start(self, positions: Mapping[TopicPartition, int]) -> None:
        """Remember where these begin."""
        self._positions.update(positions)

    def on_stop(self, partitions: tuple[TopicPartition, ...]) -> None:
        """Forget them."""
        for partition in partitions:
            self._positions.pop(partition, None)

    def on_step(self) -> None:
        """Hand out a generation when the member has come to rest in a new one."""
        member, current = self._member, self.current
        if current is not None and (not self._is_classic or current.generation_id == member.generation_id):
            return  # most steps are heartbeats
        if self._callbacks or member.state is not MemberState.STABLE or self._driver.has_ended.is_set():
            return
        if member.owned_partitions != member.consumed_partitions:
            return
        if current is None:
            self.current = Generation(
                self._group_id,
                member.generation_id,
                member.member_id,
                self._positions,
                commit=self._commit,
                give_up=self._commits.give_up,
                on_function_end=self._function_ended,
            )
            self.ready.put(self.current)
            log.info("group '%s': generation %d, %d partitions", self._group_id, member.generation_id, len(self._positions))
        elif not current.ended.is_set():
            self._end_current("the group rebalanced", lambda: None)

    def on_end(self, error: KgctlError | None) -> None:
        """No more generations."""
        if self.current is not None:
            self.current._end("closed" if error is None else error.message)
        self._commits.close()
        self.ready.put(error)

    # --- inside

    def _end_current(self, reason: str, then: Callable[[], None]) -> None:
        """``then`` runs in the driver's thread, once no function of the generation runs any more."""
        current = self.current
        assert current is not None

        def over() -> None:
            def step() -> list[Any]:
                self.current = None
                then()
                return []

            self._driver.post(step)

        log.info("group '%s': generation %d ends: %s", self._group_id, current.generation_id, reason)
        current._end(reason)
        current._when_over(over)

    def _function_ended(self, generation: Generation) -> None:
        """One function has returned: the generation is over for all, and the member joins again."""

        def step() -> list[Any]:
            if generation is not self.current or generation.ended.is_set():
                return []
            reason = f"a function of the generation failed: {generation.error!r}" if generation.error else "a function returned"
            if generation.error is not None:
                self.ready.put(generation.error)
            self._end_current(reason, lambda: None)
            return self._member.enforce_rebalance(self._driver.now_us())

        self._driver.post(step)

    def _commit(self, generation: Generation, offsets: Committable) -> None:
        """Commit in the name of the generation; see `Generation.commit`."""
        self._commits.commit(generation, offsets)
        for (topic, partition), stored in offsets.items():
            key = TopicPartition(topic, partition)
            if key in self._positions:
                self._positions[key] = stored.offset if isinstance(stored, OffsetAndMetadata) else stored


_REASONS = {
    CallbackKind.REVOKED: "partitions are being given up",
    CallbackKind.ASSIGNED: "partitions were assigned",
    CallbackKind.LOST: "the member is no longer in the group",
}


def _check_told_by_the_cluster(**given: int | None) -> None:
    for name, value in given.items():
        if value is not None:
            setting = f"group.consumer.{name.replace('_', '.')}"
            raise UsageError(f'{name} is for protocol="classic"; here the cluster says it ({setting})')


def _check(config: MemberConfig, identity: MemberIdentity) -> None:
    problem = _topics_problem(config, identity) or _times_problem(config) or _assignors_problem(config) or refusal(config)
    if problem is not None:
        raise UsageError(problem)


def _topics_problem(config: MemberConfig, identity: MemberIdentity) -> str | None:
    if bool(identity.topics) == (identity.pattern is not None):
        return "name the topics, or a pattern: one of the two"
    if identity.pattern is not None and config.group_protocol == "classic":  # else the coordinator reads it, as RE2
        try:
            re.compile(identity.pattern)
        except re.error as error:
            return f"pattern {identity.pattern!r} is no regular expression: {error}"
    return next(filter(None, map(topic_name_problem, identity.topics)), None)


def _times_problem(config: MemberConfig) -> str | None:
    for name, what in MORE_THAN_0.items():
        if getattr(config, name) <= 0:
            return f"{what} must be more than 0, not {getattr(config, name)}"
    interval_ms = config.metadata_max_age_ms
    return None if interval_ms > 0 else f"partition_watch_interval_ms must be 0 (never) or more, not {interval_ms}"


def _assignors_problem(config: MemberConfig) -> str | None:
    names, is_classic = config.partition_assignment_strategy, config.group_protocol == "classic"
    if not names:
        return "assignors names none"
    if len(set(names)) < len(names):
        return f"assignors names one twice: {', '.join(names)}"
    if config.group_remote_assignor is not None and is_classic:
        return 'server_assignor is for protocol="consumer", where the coordinator assigns; here it is assignors'
    if names != ASSIGNORS and not is_classic:
        return 'assignors are for protocol="classic", where a member assigns; here it is server_assignor'
    return None


MORE_THAN_0 = {
    "session_timeout_ms": "session_timeout_ms",
    "heartbeat_interval_ms": "heartbeat_interval_ms",
    "rebalance_timeout_ms": "rebalance_timeout_ms",
    "request_timeout_ms": "timeout_ms",
    "retry_backoff_ms": "retry_backoff_ms",
}
"""Field of the member's settings -> the argument's name."""


def _wire_settings(bootstrap: str, client_id: str, properties: Mapping[str, str]) -> WireSettings:
    checked_properties = with_msk_mechanism({name: checked_property(name, value) for name, value in properties.items()})
    given = {**checked_properties, "bootstrap.servers": bootstrap, "client.id": client_id}
    why = not_covered(given)
    if why is not None:
        raise UsageError(f"a ConsumerGroup connects by kgctl's own connection, which does not cover {why}")
    return WireSettings.from_properties(given)
