"""``python -m kgctl.simulate.against.client FAMILY``: a process with one real consumer of Python's clients, or the play's helper.

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
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from kgctl.simulate.against.consumers import CONSUMERS, AnyConsumer, ConsumerListener, Read, code_of

_SAYING = threading.Lock()
_TICK_S = 0.05
_ADMIN_S = 30.0


def say(name: str, what: str, *rest: str) -> None:
    """Print one line with the present time."""
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

    def __init__(self, family: str, name: str, topics: str, settings: Mapping[str, str]) -> None:
        super().__init__(daemon=True)
        self._family, self._name, self._topics = family, name, topics
        self._loop = ClientLoop(settings)
        self._settings = {key: value for key, value in settings.items() if key not in ClientLoop.NAMES}
        if self._loop.commit_mode != "auto":
            self._settings["enable.auto.commit"] = "false"
        self.is_closing = False
        self.stalled_until_s = 0.0
        self.factor = 1.0
        self._seen = (-1, "")
        self._committed_s = time.monotonic()
        self._consumer: AnyConsumer | None = None

    def run(self) -> None:
        """Poll until the fleet says to close."""
        listener = ConsumerListener(self._called, lambda code: self._say("commit-failed", code), self._failed)
        try:
            consumer = self._consumer = CONSUMERS[self._family][1](self._topics, self._settings, listener)
            self._say("subscribed")
            while not self.is_closing:
                self._turn(consumer)
            self._say("closing")
            consumer.close()
            self._say("closed")
        except Exception as problem:  # noqa: BLE001  # whatever ends this consumer is what is to be told
            self._say("failed", code_of(problem))

    def _say(self, what: str, *rest: str) -> None:
        say(self._name, what, *rest)

    def _turn(self, consumer: AnyConsumer) -> None:
        records = consumer.poll(self._loop.timeout_s, self._loop.most)
        self._tell_generation()
        if records:
            self._say("read", *_ranges(records))
        if records and self._loop.commit_mode == "before-batch":
            self._commit(consumer)
        if not self._stalls() and (records or self._loop.pauses_always):
            work_s = len(records) / self._loop.rate if self._loop.rate else 0.0
            time.sleep((self._loop.draw_s("poll.pauses.ms") + work_s) * self.factor)
            self._stalls()
        if records and self._is_commit_due():
            self._commit(consumer)

    def _stalls(self) -> bool:
        """Whether it was stuck just now, in the batch that a stall has met it in."""
        left_s = self.stalled_until_s - time.monotonic()
        if left_s <= 0:
            return False
        self._say("stalls")
        time.sleep(left_s)
        return True

    def _is_commit_due(self) -> bool:
        if self._loop.commit_mode == "every":
            return time.monotonic() - self._committed_s >= self._loop.commit_every_s
        return self._loop.commit_mode == "after-batch"

    def _commit(self, consumer: AnyConsumer) -> None:
        self._committed_s = time.monotonic()
        consumer.commit()

    def _tell_generation(self) -> None:
        seen = self._consumer.membership() if self._consumer is not None else self._seen
        if seen != self._seen:
            self._seen = seen
            self._say("generation", str(seen[0]), seen[1])

    def _called(self, callback: str, partitions: Iterable[str]) -> None:
        """The client's listener: what was given up is so from the callback's begin on, what was assigned is so at its end."""
        names, length_s = ",".join(partitions), self._loop.draw_s(f"callback.{callback}.ms")
        if callback == "assigned":
            self._tell_generation()
            time.sleep(length_s)
            self._say(callback, names)
        else:
            self._say(callback, names)
            time.sleep(length_s)

    def _failed(self, code: str, is_fatal: bool) -> None:  # noqa: FBT001  # a callback
        self._say("failed" if is_fatal else "error", code)


def _ranges(records: list[Read]) -> list[str]:
    """``topic-0:FIRST-LAST:SHORTEST-LONGEST`` for each partition of a batch: offsets, milliseconds since they were written."""
    now_ms = time.time_ns() // 1_000_000  # noqa: TID251  # what it does is in real time
    found: dict[str, list[Read]] = {}
    for record in records:
        found.setdefault(f"{record.topic}-{record.partition}", []).append(record)
    ranges = []
    for name, read in found.items():
        waits = [max(now_ms - record.written_ms, 0) for record in read]
        ranges.append(f"{name}:{read[0].offset}-{read[-1].offset}:{min(waits)}-{max(waits)}")
    return ranges


_WRITER = {"linger.ms": "20", "retry.backoff.ms": "20", "reconnect.backoff.ms": "10", "reconnect.backoff.max.ms": "100"}
"""Quick to find a leader: while it looks for one, nothing is written, and a group that could read looks as one that cannot."""


class Producing(threading.Thread):
    """Writes records at the rates that were last told."""

    def __init__(self, connection: Mapping[str, str]) -> None:
        super().__init__(daemon=True)
        self._producer = Producer({**connection, **_WRITER})
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
    """Do what standard input says, until it ends."""
    connection = _pairs(sys.stdin.readline().rstrip("\n").split("\t")[1:])
    helper: Helper | None = None
    members: dict[str, RealConsumer] = {}
    say("client", "ready")
    for line in sys.stdin:
        word, *words = line.rstrip("\n").split("\t")
        if word == "start":
            members[words[0]] = RealConsumer(sys.argv[1], words[0], words[1], {**connection, **_pairs(words[2:])})
            members[words[0]].start()
        elif word == "close":
            members[words[0]].is_closing = True
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
