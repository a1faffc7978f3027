"""``python -m kgctl.simulate.against.client``: a process with one real consumer (confluent-kafka), or the play's helper.

Words of a line are separated by tabs. stdin:

    connect key=value ...               first of all: how to reach the cluster
    start NAME TOPICS key=value ...     TOPICS is a,b or ^regex; the keys are consumer settings and those of `ClientLoop`
    close NAME | stall NAME MS | slow NAME FACTOR
    produce TOPIC RATE,RATE,...         records a second for each partition, from now on
    create ID TOPIC PARTITIONS | grow ID TOPIC PARTITIONS | delete ID TOPIC,TOPIC | forget ID GROUP

stdout: MICROSECONDS NAME WHAT ...; the clock is the machine's, so that lines of several processes can be merged. The process
ends when stdin does.
"""

from __future__ import annotations

import os
import random  # noqa: TID251  # pauses of a real application, which no seed governs
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

_SAYING = threading.Lock()
_GENERATION = struct.Struct("<7si")
"""What consumer_group_metadata() begins with: a magic word and the generation, or the member's epoch."""
_TICK_S = 0.05
_ADMIN_S = 30.0
_QUIET = frozenset({"_NO_OFFSET", "_PARTITION_EOF", "_ALL_BROKERS_DOWN", "_TRANSPORT"})


def say(name: str, what: str, *rest: str) -> None:
    """Print one line of JSON with the present time."""
    line = "\t".join((str(time.time_ns() // 1000), name, what, *rest))  # noqa: TID251  # what it does is in real time
    with _SAYING:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


class ClientLoop:
    """How the application polls. The keys that are not a consumer's:

    ``poll.pauses.ms`` a list to draw from, ``poll.timeout.ms``, ``poll.pauses.always`` (also when nothing was read),
    ``records.per.second``, ``max.poll.records``, ``commit.mode`` (auto, after-batch, before-batch, every), ``commit.every.ms``,
    ``callback.assigned.ms``, ``callback.revoked.ms``, ``callback.lost.ms`` (lists, too).
    """

    NAMES = frozenset(
        {
            *("poll.pauses.ms", "poll.timeout.ms", "poll.pauses.always", "records.per.second", "max.poll.records"),
            *("commit.mode", "commit.every.ms", "callback.assigned.ms", "callback.revoked.ms", "callback.lost.ms"),
        }
    )

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.timeout_s = float(settings.get("poll.timeout.ms", "100")) / 1000
        self.pauses_always = settings.get("poll.pauses.always") == "true"
        self.most = int(settings.get("max.poll.records", "500"))
        self.rate = float(settings.get("records.per.second", "0"))
        self.commit_mode = settings.get("commit.mode", "auto")
        self.commit_every_s = float(settings.get("commit.every.ms", "5000")) / 1000
        self._lists = {name: settings[name].split(",") for name in settings if name.startswith(("poll.pauses.ms", "callback."))}

    def draw_s(self, name: str) -> float:
        """Return one value of a setting's list, in seconds."""
        values = self._lists.get(name)
        return float(random.choice(values)) / 1000 if values else 0.0  # noqa: S311  # no secret


class RealConsumer(threading.Thread):
    """A consumer in a thread: it polls, processes for a while, and polls again."""

    def __init__(self, name: str, topics: str, settings: Mapping[str, str], connection: Mapping[str, str]) -> None:
        super().__init__(daemon=True)
        self._name, self._topics = name, topics
        self._loop = ClientLoop(settings)
        own = {key: value for key, value in settings.items() if key not in ClientLoop.NAMES}
        self._settings: dict[str, Any] = {**connection, **own, "on_commit": self._on_commit, "error_cb": self._on_error}
        if self._loop.commit_mode != "auto":
            self._settings["enable.auto.commit"] = "false"
        self.is_closing = threading.Event()
        self.stalled_until_s = 0.0
        self.factor = 1.0
        self._seen = (-1, "")
        self._committed_s = time.monotonic()
        self._consumer: Consumer | None = None

    def run(self) -> None:
        """Poll until the fleet says to close."""
        try:
            consumer = self._consumer = Consumer(self._settings)
            topics = [self._topics] if self._topics.startswith("^") else self._topics.split(",")
            consumer.subscribe(topics, on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost)
            say(self._name, "subscribed")
            while not self.is_closing.is_set():
                self._turn(consumer)
            say(self._name, "closing")
            consumer.close()
            say(self._name, "closed")
        except KafkaException as problem:
            error = problem.args[0] if problem.args else None
            say(self._name, "failed", error.name() if isinstance(error, KafkaError) else str(problem))

    def _turn(self, consumer: Consumer) -> None:
        messages = self._poll(consumer)
        self._tell_generation(consumer)
        if messages:
            say(self._name, "read", *_ranges(messages))
        if messages and self._loop.commit_mode == "before-batch":
            self._commit(consumer)
        if not self._stalls() and (messages or self._loop.pauses_always):
            work_s = len(messages) / self._loop.rate if self._loop.rate else 0.0
            self.is_closing.wait((self._loop.draw_s("poll.pauses.ms") + work_s) * self.factor)
            self._stalls()
        if messages and self._is_commit_due():
            self._commit(consumer)

    def _stalls(self) -> bool:
        """Whether it was stuck just now, in the batch that a stall has met it in."""
        left_s = self.stalled_until_s - time.monotonic()
        if left_s <= 0:
            return False
        say(self._name, "stalls")
        time.sleep(left_s)
        return True

    def _poll(self, consumer: Consumer) -> list[Message]:
        found: list[Message] = []
        timeout_s = self._loop.timeout_s
        while len(found) < self._loop.most:
            message = consumer.poll(timeout_s)
            if message is None:
                break
            timeout_s = 0.0
            error = message.error()
            if error is None:
                found.append(message)
            elif error.name() not in _QUIET:
                say(self._name, "failed" if error.fatal() else "error", error.name())
        return found

    def _is_commit_due(self) -> bool:
        if self._loop.commit_mode == "every":
            return time.monotonic() - self._committed_s >= self._loop.commit_every_s
        return self._loop.commit_mode == "after-batch"

    def _commit(self, consumer: Consumer) -> None:
        self._committed_s = time.monotonic()
        try:
            consumer.commit(asynchronous=False)
        except KafkaException as problem:
            self._on_commit(problem.args[0], [])

    def _tell_generation(self, consumer: Consumer) -> None:
        """The client tells it by its metadata for transactions only."""
        metadata = consumer.consumer_group_metadata()
        seen = (_GENERATION.unpack_from(metadata)[1] if metadata else -1, consumer.memberid() or "")
        if seen != self._seen:
            self._seen = seen
            say(self._name, "generation", str(seen[0]), seen[1])

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._tell_generation(consumer)
        time.sleep(self._loop.draw_s("callback.assigned.ms"))
        say(self._name, "assigned", _names(partitions))

    def _revoked(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        say(self._name, "revoked", _names(partitions))
        time.sleep(self._loop.draw_s("callback.revoked.ms"))

    def _lost(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        say(self._name, "lost", _names(partitions))
        time.sleep(self._loop.draw_s("callback.lost.ms"))

    def _on_commit(self, error: KafkaError | None, _: list[TopicPartition]) -> None:
        if error is not None and error.name() not in _QUIET:
            say(self._name, "commit-failed", error.name())

    def _on_error(self, error: KafkaError) -> None:
        if error.name() not in _QUIET:
            say(self._name, "failed" if error.fatal() else "error", error.name())


def _names(partitions: list[TopicPartition]) -> str:
    return ",".join(sorted(f"{each.topic}-{each.partition}" for each in partitions))


def _ranges(messages: list[Message]) -> list[str]:
    """``topic-0:FIRST-LAST:SHORTEST-LONGEST`` for each partition of a batch: offsets, milliseconds since they were written."""
    now_ms = time.time_ns() // 1_000_000  # noqa: TID251  # what it does is in real time
    found: dict[str, list[tuple[int, int]]] = {}
    for message in messages:
        name = f"{message.topic()}-{message.partition()}"
        found.setdefault(name, []).append((message.offset() or 0, max(now_ms - message.timestamp()[1], 0)))
    ranges = []
    for name, read in found.items():
        waits = [wait_ms for _, wait_ms in read]
        ranges.append(f"{name}:{read[0][0]}-{read[-1][0]}:{min(waits)}-{max(waits)}")
    return ranges


class Producing(threading.Thread):
    """Writes records at the rates that were last told."""

    def __init__(self, connection: Mapping[str, str]) -> None:
        super().__init__(daemon=True)
        self._producer = Producer({**connection, "linger.ms": "20"})
        self.rates: dict[str, list[float]] = {}
        self._ends: dict[str, int] = {}
        self._turn = threading.Lock()

    def leave(self, topics: Iterable[str]) -> None:
        """Write no more to these topics. Nothing is under way any more: what comes after a topic's end would make it again."""
        with self._turn:
            for topic in topics:
                self.rates.pop(topic, None)
            self._producer.flush(_ADMIN_S)

    def run(self) -> None:
        """Produce at intervals what has fallen due since the last one."""
        owed: dict[tuple[str, int], float] = {}
        before_s = time.monotonic()
        while True:
            time.sleep(_TICK_S)
            now_s = time.monotonic()
            with self._turn:
                self._write_due(owed, now_s - before_s)
            before_s = now_s

    def _write_due(self, owed: dict[tuple[str, int], float], passed_s: float) -> None:
        for topic, rates in list(self.rates.items()):
            for partition, rate in enumerate(rates):
                due = owed.get((topic, partition), 0.0) + rate * passed_s
                owed[topic, partition] = due - self.write(topic, partition, int(due))
        self._producer.poll(0)
        if self._ends:
            say("helper", "written", *(f"{name}:{end}" for name, end in self._ends.items()))
            self._ends.clear()

    def write(self, topic: str, partition: int, number: int) -> int:
        """Write so many records; how many were taken: none while the producer has not heard of the partition."""
        written = 0
        while written < number:
            try:
                self._producer.produce(topic, b"rehearse", partition=partition, on_delivery=self._delivered)
                written += 1
            except BufferError:
                self._producer.poll(0.05)
            except KafkaException:  # a topic that has grown just now: the producer looks at its topics every 5 minutes otherwise
                with suppress(KafkaException):
                    self._producer.list_topics(topic, timeout=1)
                break
        return written

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self._ends[f"{message.topic()}-{message.partition()}"] = (message.offset() or 0) + 1


class Helper:
    """The commands that are about the cluster. Each is answered by ``helper done ID`` or ``helper refused ID CODE WHY``."""

    def __init__(self, connection: Mapping[str, str]) -> None:
        self._admin = AdminClient(dict(connection))
        self._traffic: Producing | None = None
        self._connection = connection

    def produce(self, topic: str, rates: str) -> None:
        if self._traffic is None:
            self._traffic = Producing(self._connection)
            self._traffic.start()
        self._traffic.rates[topic] = [float(rate) for rate in rates.split(",")]

    def create(self, number: str, topic: str, partitions: str) -> None:
        self._do(number, lambda: self._admin.create_topics([NewTopic(topic, int(partitions))], operation_timeout=_ADMIN_S))

    def grow(self, number: str, topic: str, partitions: str) -> None:
        self._do(number, lambda: self._admin.create_partitions([NewPartitions(topic, int(partitions))]))

    def delete(self, number: str, topics: str) -> None:
        if self._traffic is not None:
            self._traffic.leave(topics.split(","))
        self._do(number, lambda: self._admin.delete_topics(topics.split(","), operation_timeout=_ADMIN_S))

    def forget(self, number: str, group: str) -> None:
        self._do(number, lambda: self._admin.delete_consumer_groups([group]))

    @staticmethod
    def _do(number: str, ask: Callable[[], dict[str, Any]]) -> None:
        try:
            for future in ask().values():
                future.result(_ADMIN_S)
        except KafkaException as problem:
            error = problem.args[0]
            say("helper", "refused", number, error.name(), " ".join(error.str().split()))
        except TimeoutError:
            say("helper", "refused", number, "_TIMED_OUT", "no answer")
        else:
            say("helper", "done", number)


def _pairs(words: list[str]) -> dict[str, str]:
    return dict(word.split("=", 1) for word in words)


def main() -> None:
    """Run the consumer or producer that the command line describes, until standard input ends."""
    connection = _pairs(sys.stdin.readline().rstrip("\n").split("\t")[1:])
    helper: Helper | None = None
    members: dict[str, RealConsumer] = {}
    say("client", "ready")
    for line in sys.stdin:
        word, *words = line.rstrip("\n").split("\t")
        if word == "start":
            members[words[0]] = RealConsumer(words[0], words[1], _pairs(words[2:]), connection)
            members[words[0]].start()
        elif word == "close":
            members[words[0]].is_closing.set()
        elif word == "stall":
            members[words[0]].stalled_until_s = time.monotonic() + int(words[1]) / 1000
        elif word == "slow":
            members[words[0]].factor = float(words[1])
        else:
            helper = helper or Helper(connection)
            getattr(helper, word)(*words)
    os._exit(0)


if __name__ == "__main__":
    main()
