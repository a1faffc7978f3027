"""Many librdkafka members of one group, in one process, coming and going while records arrive.

By hand, for as long as one likes: ``python -m tests.interop.crowd --seconds 300``.
"""

from __future__ import annotations

import argparse
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from tests.support.kafka import commit
from tests.support.patience import PATIENCE_S
from tests.support.serve import ServeProcess

TOPIC, GROUP = "crowded", "crowd"
QUICK = {
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.session.timeout.ms": "45000",
    "group.consumer.min.session.timeout.ms": "500",
    "group.consumer.assignment.interval.ms": "0",
}
"""Sessions are long: on a busy machine nobody may be taken for dead. librdkafka gives a heartbeat that is not answered within
its interval up, with the connection and what else is under way on it: that must not happen here."""


class Member:
    """A consumer on a thread of its own. It commits what it has read before it gives a partition up, or leaves."""

    def __init__(self, bootstrap: str, name: str) -> None:
        self.name = name
        self.read: list[tuple[int, int]] = []
        self.errors: list[str] = []
        self.has_been_assigned = threading.Event()
        self._is_leaving = threading.Event()
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": GROUP,
                "group.protocol": "consumer",
                "client.id": name,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            },
            logger=None,
        )
        # The thread alone holds the consumer: librdkafka has a limit of some thousand at a time.
        self._thread = threading.Thread(target=self._run, args=(consumer,), name=name, daemon=True)
        self._thread.start()

    def _run(self, consumer: Consumer) -> None:
        consumer.subscribe([TOPIC], on_assign=self._on_assign, on_revoke=self._on_revoke)
        while not self._is_leaving.is_set():
            message = consumer.poll(0.05)
            if message is None:
                continue
            error = message.error()
            if error is not None:
                self.errors.append(str(error))
            else:
                self.read.append((message.partition() or 0, message.offset() or 0))
        consumer.close()

    def _on_assign(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        if partitions:
            self.has_been_assigned.set()

    def _on_revoke(self, consumer: Consumer, _: list[TopicPartition]) -> None:
        """Commits; again where librdkafka has lost the commit with a connection of its own (_DESTROY), as an application does."""
        for is_last in (False, False, True):
            try:
                consumer.commit(asynchronous=False)
            except KafkaException as error:
                code = error.args[0].code()
                if code == KafkaError._DESTROY and not is_last:
                    continue
                if code != KafkaError._NO_OFFSET:
                    self.errors.append(f"commit: {error}")
            return

    def leave(self) -> None:
        """Go, in good order."""
        self._is_leaving.set()

    def join(self, timeout_s: float) -> bool:
        """Wait until it has gone; whether it has."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()


class Crowd:
    """The members there are and those that were, and how many records were written for them.

    The group has committed the beginning of each partition before anybody comes: where nothing is committed librdkafka 2.16 asks
    for the beginning, and when a rebalance interrupts that it may ask twice and read again what it has read (its timer for a
    second try goes on after the first try's answer), whatever the server.
    """

    def __init__(self, bootstrap: str, size: int, partitions: int) -> None:
        commit(bootstrap, GROUP, {(TOPIC, number): 0 for number in range(partitions)})
        self.bootstrap, self.size, self.partitions = bootstrap, size, partitions
        self.written = 0
        self.members: list[Member] = []
        self.gone: list[Member] = []
        self._random = random.Random(size)

    @property
    def everybody(self) -> list[Member]:
        """Those of before too."""
        return [*self.members, *self.gone]

    def read(self) -> Counter[tuple[int, int]]:
        """How often each record, by partition and offset, has come to anybody."""
        return Counter(record for member in self.everybody for record in list(member.read))

    def who_read(self, record: tuple[int, int]) -> list[str]:
        """The names of those to whom it came."""
        return [member.name for member in self.everybody for each in list(member.read) if each == record]

    def arrive(self) -> None:
        """One more."""
        self.members.append(Member(self.bootstrap, f"m{len(self.everybody)}"))

    def depart(self) -> None:
        """One of those that have partitions goes."""
        ready = [member for member in self.members if member.has_been_assigned.is_set()]
        if ready:
            member = self._random.choice(ready)
            member.leave()
            self.members.remove(member)
            self.gone.append(member)

    def churn(self, is_over: Callable[[], bool]) -> None:
        """Members come and go until it is over, some at once, the crowd keeping its size."""
        while not is_over():
            for _ in range(self._random.randint(1, 3)):
                self.depart()
            while len(self.members) < self.size:
                self.arrive()
            time.sleep(self._random.uniform(0.1, 0.6))

    @contextmanager
    def load(self) -> Iterator[None]:
        """Records arrive all the time; at the end all that were sent are there."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "enable.idempotence": True, "linger.ms": 5})
        done = threading.Event()

        def run() -> None:
            while not done.wait(0.02):
                producer.poll(0)
                for _ in range(20):
                    producer.produce(TOPIC, b"record", partition=self.written % self.partitions)
                    self.written += 1

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
            assert producer.flush(PATIENCE_S) == 0

    def settle(self, timeout_s: float) -> None:
        """Wait until every record has come to somebody."""
        end = time.monotonic() + timeout_s
        while len(self.read()) < self.written and time.monotonic() < end:
            time.sleep(0.1)

    def close(self, timeout_s: float) -> list[str]:
        """Everybody leaves; the names of those that did not manage to."""
        for member in self.members:
            member.leave()
        end = time.monotonic() + timeout_s
        return [member.name for member in self.everybody if not member.join(max(end - time.monotonic(), 0.0))]


def main() -> int:
    """The command line: prints what came of it, and is 1 where a record came twice or not at all."""
    parser = argparse.ArgumentParser(prog="python -m tests.interop.crowd", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--members", type=int, default=30)
    parser.add_argument("--partitions", type=int, default=60)
    options = parser.parse_args()
    with ServeProcess(topics={TOPIC: options.partitions}, config=QUICK) as server:
        crowd = Crowd(server.bootstrap, options.members, options.partitions)
        with crowd.load():
            end = time.monotonic() + options.seconds
            crowd.churn(lambda: time.monotonic() > end)
        crowd.settle(PATIENCE_S)
        stuck = crowd.close(PATIENCE_S)
    read = crowd.read()
    twice = [record for record, count in read.items() if count > 1]
    errors = Counter(error for member in crowd.everybody for error in member.errors)
    print(
        f"{len(crowd.everybody)} members, {crowd.written} records, {len(read)} came, {len(twice)} twice; {len(stuck)} are stuck"
    )
    for error, count in errors.most_common(10):
        print(f"{count} times {error}")
    return 0 if not twice and not stuck and len(read) == crowd.written else 1


if __name__ == "__main__":
    sys.exit(main())
