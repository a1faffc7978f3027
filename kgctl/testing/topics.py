"""What topics of a cluster for tests hold: made, written, read and cleaned without a client."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from kgctl.arguments import checked
from kgctl.errors import MisuseError, NotFoundError, TimedOutError, UnsupportedError, UsageError
from kgctl.model.groups import TopicPartition, topic_name_problem
from kgctl.model.records import TopicRecord
from kgctl.serde.record_batch import UnsupportedCompressionError
from kgctl.server.background import BackgroundServer
from kgctl.server.cleaner import COMPACT, DELETE, compact, expire, policies, setting
from kgctl.server.cluster import INTERNAL_TOPICS, OFFSETS_TOPIC
from kgctl.server.runtime import CoordinatorRuntime
from kgctl.server.settings import TOPICS, check_topic
from kgctl.testing.records import Writing, as_bytes, read, write

if TYPE_CHECKING:
    from kgctl.server.request_context import Services

T = TypeVar("T")
_PAUSE_S = 0.01


class ServerTopics:
    """The topics of a server in this process, and the way into its event loop."""

    def __init__(self, server: BackgroundServer) -> None:
        self._server = server
        self._turns: dict[str, int] = {}
        self._is_running = False

    @checked(not_empty=("name",))
    def create_topic(self, name: str, partitions: int = 1, *, config: Mapping[str, str] | None = None) -> None:
        """Make a topic, or give one more partitions; ``config`` changes settings by Kafka's names, the others stay.

        Raises:
            UsageError: a name, a number or a setting that Kafka refuses.
        """
        self._check_is_running()
        check_name(name)
        services = self._server.server.services
        settings = {**services.settings.of(TOPICS, name), **(config or {})}
        check_topic(settings)
        self._in_loop(lambda: _make(services, name, partitions, settings))

    @checked(not_empty=("topic",))
    def produce(
        self,
        topic: str,
        *values: bytes | str | None,
        key: bytes | str | None = None,
        partition: int | None = None,
        headers: Mapping[str, bytes | str | None] | None = None,
        timestamp_ms: int | None = None,
    ) -> list[TopicPartition]:
        """Write values to a topic, and return where each of them went; text is written as UTF-8, None is a tombstone.

        Without ``partition`` a ``key`` chooses it, as the Java client would; without either they take turns. A topic that is
        not there is made, with one partition. ``timestamp_ms``: now, where nothing else is said.

        Raises:
            UsageError: a name that no topic can have, a partition that this one has not, and what no broker takes: no key in a
                topic that is compacted, a record larger than ``max.message.bytes``, any in a topic of the brokers' own.
        """
        written = tuple(map(as_bytes, values))
        if topic in INTERNAL_TOPICS:
            raise UsageError(f"topic '{topic}' is the brokers' own: no client writes to it")
        self.create_topic(topic)
        if key is None and COMPACT in policies(self._server.server.services, topic):
            raise UsageError(f"topic '{topic}' is compacted (cleanup.policy): its records need a key")

        def append(runtime: CoordinatorRuntime) -> list[TopicPartition]:
            services = self._server.server.services
            known = services.catalog.get(topic)
            assert known is not None
            turn = self._turns.get(topic, 0)
            now_ms, most_bytes = runtime.clock(), setting(services, topic, "max.message.bytes")
            how = Writing(key, partition, headers, now_ms if timestamp_ms is None else timestamp_ms, turn, most_bytes)
            self._turns[topic] = turn + len(values)
            return write(services.data, topic, known.partition_count, written, how)

        return self._with_runtime(append)

    @checked(not_empty=("topic",))
    def records(
        self, topic: str, *, count: int | None = None, read_committed: bool = True, timeout_ms: int = 10_000
    ) -> list[TopicRecord]:
        """Everything that is in a topic now, one partition after the other; with ``count``, once there are that many.

        ``read_committed``: without what an open or aborted transaction wrote.

        Raises:
            NotFoundError: no such topic.
            TimedOutError: there are fewer than ``count`` when the time is up.
            UnsupportedError: a batch of snappy, lz4 or zstd, which only a client unpacks.
        """
        return until(
            lambda: self._in_loop(lambda: _records(self._server.server.services, topic, read_committed=read_committed)),
            lambda found: count is None or len(found) >= count,
            timeout_ms,
            lambda found: f"topic '{topic}' has {len(found)} of {count} records",
        )

    @checked(not_empty=("topic",))
    def compact(self, topic: str) -> int:
        """Compact a topic now, as Kafka's log cleaner would; return how many records went. Their offsets stay as gaps.

        Of each key the newest record stays, what was aborted goes. A tombstone goes by a call that comes ``delete.retention.ms``
        (a day) after the one that saw it first; `advance` lets the time pass. Left alone are records from an open transaction on,
        those younger than ``min.compaction.lag.ms``, and the newest one of a partition.

        Raises:
            NotFoundError: no such topic.
            UsageError: its ``cleanup.policy`` is without compact, so that a broker would never do it.
            UnsupportedError: a batch of snappy, lz4 or zstd, which only a client unpacks; nothing is changed.
        """
        return self._clean(topic, COMPACT, compact)

    @checked(not_empty=("topic",))
    def expire(self, topic: str, *, retention_ms: int | None = None, retention_bytes: int | None = None) -> int:
        """Take off the front of each partition what its retention no longer covers; return how many offsets that is.

        What is older than the topic's ``retention.ms`` goes, and what is beyond its ``retention.bytes``, in whole batches;
        ``retention_ms`` (0: everything before now) and ``retention_bytes`` stand in for them. Consumers behind the new beginning
        get OFFSET_OUT_OF_RANGE.

        Raises:
            NotFoundError: no such topic.
            UsageError: its ``cleanup.policy`` is without delete, so that a broker would never do it.
        """
        given = {"retention.ms": retention_ms, "retention.bytes": retention_bytes}
        instead = {name: most for name, most in given.items() if most is not None}
        return self._clean(topic, DELETE, partial(expire, retention=instead))

    def _clean(self, topic: str, policy: str, work: Callable[[Services, str, int], int]) -> int:
        """Done beside the loop, where records are written too."""
        self._check_is_running()
        services = self._server.server.services
        if services.catalog.get(topic) is None or topic == OFFSETS_TOPIC:
            raise NotFoundError(f"there is no topic '{topic}'" if topic != OFFSETS_TOPIC else f"{topic} is the coordinator's")
        if policy not in (has := policies(services, topic)):
            raise UsageError(f"topic '{topic}' has cleanup.policy={','.join(has)}, without {policy}: no broker would do it")
        try:
            return self._server.run(services.data.in_thread(work, services, topic, services.runtime.clock()))
        except UnsupportedCompressionError as error:
            raise UnsupportedError(f"topic '{topic}': {error}") from None

    # --- inside

    def _with_runtime(self, work: Callable[[CoordinatorRuntime], T]) -> T:
        return self._in_loop(lambda: work(self._server.server.services.runtime))

    def _check_is_running(self) -> None:
        if not self._is_running:
            raise MisuseError("an EmbeddedServer runs inside its `with` block, and this is outside of it")

    def _in_loop(self, work: Callable[[], T]) -> T:
        self._check_is_running()

        async def run() -> T:
            await asyncio.sleep(0)
            return work()

        return self._server.run(run())


def check_name(topic: str) -> None:
    problem = topic_name_problem(topic)
    if problem is not None:
        raise UsageError(problem)


def until(look: Callable[[], T], is_so: Callable[[T], bool], timeout_ms: int, told: Callable[[T], str]) -> T:
    until_s = time.monotonic() + timeout_ms / 1000
    while not is_so(found := look()):
        if time.monotonic() >= until_s:
            raise TimedOutError(f"{told(found)} after {timeout_ms / 1000:g} s")
        time.sleep(_PAUSE_S)
    return found


def _records(services: Services, topic: str, *, read_committed: bool) -> list[TopicRecord]:
    known = services.catalog.get(topic)
    if known is None:
        raise NotFoundError(f"there is no topic '{topic}'")
    partitions = [TopicPartition(topic, number) for number in range(known.partition_count)]
    return [each for one in partitions for each in read(services.data, one, read_committed=read_committed)]


def _make(services: Services, topic: str, partitions: int, settings: Mapping[str, str]) -> None:
    services.settings.put_topics({topic: settings})
    catalog = services.catalog
    known = catalog.get(topic)
    if known is None:
        catalog.create({topic: partitions})
    elif known.partition_count < partitions:
        catalog.grow({topic: partitions})
