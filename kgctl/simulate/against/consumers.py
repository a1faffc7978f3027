"""One consumer of each of Python's clients, told and asked in the same words: confluent-kafka, kafka-python and aiokafka.

Settings have Kafka's names, as a client has them that takes them.
"""

from __future__ import annotations

import asyncio
import struct
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

_GENERATION = struct.Struct("<7si")
"""What consumer_group_metadata() begins with: a magic word and the generation, or the member's epoch."""
_QUIET = frozenset({"_NO_OFFSET", "_PARTITION_EOF", "_ALL_BROKERS_DOWN", "_TRANSPORT"})


class Read(NamedTuple):
    """A record that was read."""

    topic: str
    partition: int
    offset: int
    written_ms: int


class ConsumerListener(NamedTuple):
    """Whom a consumer tells. Callbacks are given partitions as ``topic-0``, errors their code and whether they are fatal."""

    called: Callable[[str, Iterable[str]], None]
    commit_failed: Callable[[str], None]
    failed: Callable[[str, bool], None]


class ClientRefusal(Exception):  # noqa: N818  # what its client says, which need not be an error of its own
    """What a consumer ends with: the client's error code."""


class AnyConsumer(ABC):
    """A consumer that has subscribed: to ``topics``, a list, or a pattern that begins with ``^``. Raises `ClientRefusal`."""

    takes_properties = False
    """Whether it knows the settings of a connection by Kafka's names."""

    @abstractmethod
    def __init__(self, topics: str, settings: Mapping[str, str], listener: ConsumerListener) -> None: ...

    @abstractmethod
    def poll(self, timeout_s: float, most: int) -> list[Read]:
        """Return what there is, and wait for the first record."""

    @abstractmethod
    def commit(self) -> None:
        """Commit what was read, and wait for it; a refusal is told."""

    @abstractmethod
    def membership(self) -> tuple[int, str]:
        """Return the generation, or epoch, and the member's id; -1 and "" for none."""

    @abstractmethod
    def close(self) -> None:
        """Leave the group."""


class ConfluentConsumer(AnyConsumer):
    """librdkafka's, by confluent-kafka."""

    takes_properties = True

    def __init__(self, topics: str, settings: Mapping[str, str], listener: ConsumerListener) -> None:
        from confluent_kafka import Consumer, KafkaException

        self._refusal = KafkaException
        self._listener = listener
        try:
            self._consumer = Consumer({**settings, "on_commit": self._on_commit, "error_cb": self._on_error})
            names = [topics] if topics.startswith("^") else topics.split(",")
            assigned, revoked, lost = (self._telling(what) for what in ("assigned", "revoked", "lost"))
            self._consumer.subscribe(names, on_assign=assigned, on_revoke=revoked, on_lost=lost)
        except KafkaException as problem:
            raise ClientRefusal(problem.args[0].name() if problem.args else str(problem)) from problem

    def _telling(self, what: str) -> Callable[[Any, list[Any]], None]:
        return lambda _, partitions: self._listener.called(what, _names(partitions))

    def _on_commit(self, error: Any, _: object) -> None:
        if error is not None and error.name() not in _QUIET:
            self._listener.commit_failed(error.name())

    def _on_error(self, error: Any) -> None:
        if error.name() not in _QUIET:
            self._listener.failed(error.name(), error.fatal())

    def poll(self, timeout_s: float, most: int) -> list[Read]:
        found = list[Read]()
        while len(found) < most:
            message = self._consumer.poll(timeout_s)
            if message is None:
                break
            timeout_s = 0.0
            if (error := message.error()) is None:
                topic, partition = message.topic() or "", message.partition() or 0
                found.append(Read(topic, partition, message.offset() or 0, message.timestamp()[1]))
            else:
                self._on_error(error)
        return found

    def commit(self) -> None:
        try:
            self._consumer.commit(asynchronous=False)
        except self._refusal as problem:
            self._on_commit(problem.args[0], [])

    def membership(self) -> tuple[int, str]:
        """The client tells it by its metadata for transactions only."""
        metadata = self._consumer.consumer_group_metadata()
        return _GENERATION.unpack_from(metadata)[1] if metadata else -1, self._consumer.memberid() or ""

    def close(self) -> None:
        self._consumer.close()


_ASSIGNORS = {
    "range": ("range", "RangePartitionAssignor"),
    "roundrobin": ("roundrobin", "RoundRobinPartitionAssignor"),
    "sticky": ("sticky.sticky_assignor", "StickyPartitionAssignor"),
    "cooperative-sticky": ("cooperative_sticky", "CooperativeStickyAssignor"),
}
"""Of the two clients in Python: the modules below ``coordinator.assignors``, and the classes."""
_STRATEGY = "partition_assignment_strategy"


def _arguments(package: str, settings: Mapping[str, str]) -> dict[str, Any]:
    """The settings as these clients have them, which are named alike."""
    found: dict[str, Any] = {name.replace(".", "_"): _value(text) for name, text in settings.items()}
    modules = [_ASSIGNORS[name] for name in str(found.pop(_STRATEGY)).split(",")] if _STRATEGY in found else []
    if modules:
        found[_STRATEGY] = [getattr(import_module(f"{package}.coordinator.assignors.{name}"), kind) for name, kind in modules]
    return found


def _value(text: str) -> str | int | bool:
    return {"true": True, "false": False}.get(text, int(text) if text.isdecimal() else text)


class KafkaPythonConsumer(AnyConsumer):
    """kafka-python's."""

    def __init__(self, topics: str, settings: Mapping[str, str], listener: ConsumerListener) -> None:
        from kafka import ConsumerRebalanceListener, KafkaConsumer
        from kafka.errors import KafkaError

        class Calls(ConsumerRebalanceListener):  # type: ignore[misc]  # kafka-python has no types
            def on_partitions_assigned(self, assigned: Any) -> None:
                listener.called("assigned", _names(assigned))

            def on_partitions_revoked(self, revoked: Any) -> None:
                listener.called("revoked", _names(revoked))

            def on_partitions_lost(self, lost: Any) -> None:
                listener.called("lost", _names(lost))

        self._refusal, self._listener = KafkaError, listener
        self._consumer = KafkaConsumer(**_arguments("kafka", settings))
        self._consumer.subscribe(**_subscription(topics), listener=Calls())

    def poll(self, timeout_s: float, most: int) -> list[Read]:
        return _read(self._consumer.poll(timeout_ms=timeout_s * 1000, max_records=most))

    def commit(self) -> None:
        try:
            self._consumer.commit()
        except self._refusal as problem:
            self._listener.commit_failed(code_of(problem))

    def membership(self) -> tuple[int, str]:
        generation = self._consumer._coordinator._generation  # it tells it by no other way
        return generation.generation_id, generation.member_id

    def close(self) -> None:
        self._consumer.close()


class AiokafkaConsumer(AnyConsumer):
    """aiokafka's, whose loop goes on in a thread of its own while the application works, as it does where that awaits."""

    def __init__(self, topics: str, settings: Mapping[str, str], listener: ConsumerListener) -> None:
        self._listener = listener
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._wait(self._begin(topics, settings))

    def _wait(self, what: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(what, self._loop).result()

    async def _begin(self, topics: str, settings: Mapping[str, str]) -> None:
        from aiokafka import AIOKafkaConsumer
        from aiokafka.abc import ConsumerRebalanceListener
        from aiokafka.errors import KafkaError

        tell, self._refusal = self._tell, KafkaError

        class Calls(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka has no types
            async def on_partitions_assigned(self, assigned: Any) -> None:
                await tell("assigned", assigned)

            async def on_partitions_revoked(self, revoked: Any) -> None:
                await tell("revoked", revoked)

        self._consumer = AIOKafkaConsumer(**_arguments("aiokafka", settings))
        await self._consumer.start()
        self._consumer.subscribe(**_subscription(topics), listener=Calls())

    async def _tell(self, what: str, partitions: Iterable[Any]) -> None:
        await self._loop.run_in_executor(None, self._listener.called, what, _names(partitions))

    def poll(self, timeout_s: float, most: int) -> list[Read]:
        return _read(self._wait(self._consumer.getmany(timeout_ms=int(timeout_s * 1000), max_records=most)))

    def commit(self) -> None:
        try:
            self._wait(self._consumer.commit())
        except self._refusal as problem:
            self._listener.commit_failed(code_of(problem))

    def membership(self) -> tuple[int, str]:
        coordinator = self._consumer._coordinator  # it tells it by no other way
        return coordinator.generation, coordinator.member_id

    def close(self) -> None:
        self._wait(self._consumer.stop())


def _subscription(topics: str) -> dict[str, Any]:
    return {"pattern": topics} if topics.startswith("^") else {"topics": topics.split(",")}


def _names(partitions: Iterable[Any]) -> list[str]:
    return sorted(f"{each.topic}-{each.partition}" for each in partitions)


def _read(batches: Mapping[Any, Iterable[Any]]) -> list[Read]:
    return [Read(one.topic, one.partition, one.offset, one.timestamp) for batch in batches.values() for one in batch]


def code_of(problem: Exception) -> str:
    """The name of an error: UNKNOWN_MEMBER_ID of an UnknownMemberIdError."""
    if isinstance(problem, ClientRefusal):
        return str(problem)
    name = type(problem).__name__.removesuffix("Error")
    return "".join(f"_{letter}" if letter.isupper() and index else letter for index, letter in enumerate(name)).upper()


CONSUMERS: Mapping[str, tuple[str, type[AnyConsumer]]] = {
    "librdkafka": ("confluent_kafka", ConfluentConsumer),
    "kafka-python": ("kafka", KafkaPythonConsumer),
    "aiokafka": ("aiokafka", AiokafkaConsumer),
}
"""What the simulation calls a client -> the package that has it, and its consumer."""
