"""Groups of real clients that commit what they are told to, each in its own way, into a ledger."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Protocol, Self

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition

from tests.support.kafka.consumers import consumer, joined
from tests.support.kafka.data import TIMEOUT_S, admin_client
from tests.support.kafka_python import subscribe
from tests.support.patience import PATIENCE_MS, PATIENCE_S, SESSION_MS
from tests.support.pipeline.truth.ledger import Commit, Ledger

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # it reads its schemas by importlib.resources.read_text
    import kafka
    from kafka.errors import CommitFailedError, RebalanceInProgressError

Commits = Mapping[int, Commit]
"""Partition -> what to commit for it."""


class Committer(Protocol):
    """One group, and how it commits."""

    group: str

    def commit(self, commits: Commits) -> None:
        """Commit this, and write it down once it is accepted."""
        ...


class Alone:
    """A confluent-kafka consumer with partitions of its own choice: its group has no members, so that it can be reset."""

    def __init__(self, stack: ExitStack, ledger: Ledger, bootstrap: str, group: str, topic: str) -> None:
        self.group = group
        self._ledger, self._topic = ledger, topic
        self._consumer: Consumer = consumer(bootstrap, group, "alone")
        stack.callback(self._consumer.close)

    def commit(self, commits: Commits) -> None:
        """By a synchronous commit."""
        with self._ledger.changing(self.group, _places(self._topic, commits)):
            self._consumer.commit(offsets=_partitions(self._topic, commits), asynchronous=False)


class Members:
    """Two confluent-kafka members of one group; each commits for the partitions that it has."""

    def __init__(
        self, stack: ExitStack, ledger: Ledger, bootstrap: str, group: str, topic: str, partitions: int, **properties: str
    ) -> None:
        self.group = group
        self._ledger, self._topic = ledger, topic
        shares = {"one": partitions - partitions // 2, "two": partitions // 2}
        self._members = stack.enter_context(joined(bootstrap, group, topic, shares, **properties))

    def commit(self, commits: Commits) -> None:
        """Each member its own."""
        for member in self._members.values():
            member.poll(0)
            own = {each.partition for each in member.assignment()}
            mine = {partition: commit for partition, commit in commits.items() if partition in own}
            if mine:
                with self._ledger.changing(self.group, _places(self._topic, mine)):
                    member.commit(offsets=_partitions(self._topic, mine), asynchronous=False)


class KafkaPython:
    """A member written by kafka-python."""

    def __init__(self, stack: ExitStack, ledger: Ledger, bootstrap: str, group: str, topic: str) -> None:
        self.group = group
        self._ledger, self._topic = ledger, topic
        settings = {"enable_auto_commit": False, "auto_offset_reset": "earliest", "session_timeout_ms": SESSION_MS}
        self._consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap, group_id=group, **settings)
        stack.callback(self._consumer.close)
        subscribe(self._consumer, topic)
        assert self._consumer.poll(timeout_ms=PATIENCE_MS), "no records for kafka-python"

    def commit(self, commits: Commits) -> None:
        """By its synchronous commit; once more where it joins the group anew, as it does when it learns of its topic again."""
        self._consumer.poll(timeout_ms=0)
        wanted = {
            kafka.TopicPartition(self._topic, partition): kafka.OffsetAndMetadata(offset, metadata, -1)
            for partition, (offset, metadata) in commits.items()
        }
        deadline = time.monotonic() + PATIENCE_S
        with self._ledger.changing(self.group, _places(self._topic, commits)):
            while not self._is_committed(wanted):
                assert time.monotonic() < deadline, "kafka-python does not come to an end of its rebalances"
                self._consumer.poll(timeout_ms=1_000)

    def _is_committed(self, wanted: Mapping[Any, Any]) -> bool:
        try:
            self._consumer.commit(wanted)
        except (RebalanceInProgressError, CommitFailedError):
            return False
        return True


class Transactional:
    """A transactional producer that sends its group's offsets; every third transaction is aborted."""

    def __init__(self, stack: ExitStack, ledger: Ledger, bootstrap: str, group: str, topic: str) -> None:
        self.group = group
        self._ledger, self._topic = ledger, topic
        self._consumer: Consumer = consumer(bootstrap, group, "reader", isolation_level="read_committed")
        stack.callback(self._consumer.close)
        self._producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"{group}-tx"})
        self._producer.init_transactions(TIMEOUT_S)
        self._count = 0

    def commit(self, commits: Commits) -> None:
        """In a transaction; what was aborted is not written down."""
        self._count += 1
        if self._count % 3 == 0:
            self._send(commits)
            self._producer.abort_transaction(TIMEOUT_S)
            return
        with self._ledger.changing(self.group, _places(self._topic, commits)):
            self._send(commits)
            self._producer.commit_transaction(TIMEOUT_S)
            # The marker follows the answer; a reader of what is committed waits for it.
            self._consumer.committed(_partitions(self._topic, commits), timeout=TIMEOUT_S)

    def _send(self, commits: Commits) -> None:
        self._producer.begin_transaction()
        self._producer.produce(self._topic, b"out")
        offsets = _partitions(self._topic, commits)
        self._producer.send_offsets_to_transaction(offsets, self._consumer.consumer_group_metadata(), TIMEOUT_S)


class Administrator:
    """What an administrator does to a group without members: moves its commits, deletes one."""

    def __init__(self, ledger: Ledger, bootstrap: str, group: str, topic: str) -> None:
        self.group = group
        self._ledger, self._topic = ledger, topic
        self._admin: Any = admin_client(bootstrap)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._admin = None

    def commit(self, commits: Commits) -> None:
        """As a reset does."""
        wanted = [ConsumerGroupTopicPartitions(self.group, _partitions(self._topic, commits))]
        with self._ledger.changing(self.group, _places(self._topic, commits)):
            for future in self._admin.alter_consumer_group_offsets(wanted).values():
                future.result(TIMEOUT_S)


def _partitions(topic: str, commits: Commits) -> list[TopicPartition]:
    return [TopicPartition(topic, partition, offset, metadata) for partition, (offset, metadata) in commits.items()]


def _places(topic: str, commits: Commits) -> Mapping[tuple[str, int], Commit | None]:
    return {(topic, partition): commit for partition, commit in commits.items()}
