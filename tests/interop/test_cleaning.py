"""The log cleaner beside Apache Kafka's own: of the same records the same ones are left, and logs begin at the same offset.

Kafka's segments are so small here that each batch lies in one of its own, as it does for `kgctl.server.cleaner`, which takes each
batch for a segment that has been closed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

from kgctl.testing import EmbeddedServer
from tests.support.kafka.broker import KafkaBroker
from tests.support.kafka.data import TIMEOUT_S, admin_client, wait_until_coordinating
from tests.support.members import wait_until

pytestmark = [pytest.mark.interop, pytest.mark.kafka, pytest.mark.deep, pytest.mark.timeout(300)]

HOUR_MS = 3_600_000
QUICK = {
    "log.cleaner.backoff.ms": "50",
    "log.retention.check.interval.ms": "200",
    "log.initial.task.delay.ms": "200",
}
ONE_BATCH_A_SEGMENT = {"internal.segment.bytes": "700"}
BATCH_BYTES = 420
"""Of values: with its header more than half of a segment and less than a whole one."""
RATIO = "min.cleanable.dirty.ratio"
NEVER, ALWAYS = {RATIO: "1.0"}, {RATIO: "0.01"}
"""Kafka compacts a log whose share of uncleaned bytes is above the ratio: so a test says when."""

Row = tuple[int, str | None, str | None]
"""(offset, key, value), the value without what it was padded with."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Keys and values that are written together, ``age_ms`` ago; ``ends``: "commit", "abort" or "never", for a transaction."""

    records: Mapping[str | None, str | None]
    ends: str = ""
    age_ms: int = 0


@dataclass(frozen=True, slots=True)
class Story:
    """What is written before each cleaning of a topic with ``config``. ``stops_at``: the batch at which cleaning has to stop."""

    config: Mapping[str, str]
    parts: Sequence[Sequence[Batch]]
    stops_at: int | None = None
    keyless: Sequence[Batch] = field(default=())
    """Written first, while the topic is not compacted yet."""


def values(*keys: str, value: str, age_ms: int = 0, ends: str = "") -> Batch:
    return Batch(dict.fromkeys(keys, value), ends, age_ms)


COMPACT = {"cleanup.policy": "compact"}
NO_GRACE = {**COMPACT, "delete.retention.ms": "0"}
TOMBSTONES = (
    [values("a", "b", value="1"), Batch({"a": None}), Batch({"c": "1", "b": None}), Batch({"b": "2"}), Batch({"x": None})],
    [values("d", value="1"), Batch({"d": None})],
    [values("e", value="1")],
)
STORIES = {
    "values": Story(
        COMPACT,
        [
            [values("a", "b", "c", value="1"), values("b", value="2"), values("a", "d", value="2"), values("b", value="3")],
            [values("c", "b", value="4"), values("e", value="4")],
        ],
    ),
    "tombstones go by the second cleaning": Story(NO_GRACE, TOMBSTONES),
    "tombstones stay for delete.retention.ms": Story({**COMPACT, "delete.retention.ms": str(HOUR_MS)}, TOMBSTONES),
    "transactions": Story(
        NO_GRACE,
        [
            [
                values("a", "b", value="1"),
                values("a", value="2", ends="abort"),
                values("b", value="2", ends="commit"),
                Batch({"c": "1"}, "abort"),
                Batch({"a": None}, "abort"),
                Batch({"d": None}, "commit"),
                values("e", value="1", ends="commit"),
                values("e", value="2"),
            ],
            [values("b", value="3"), values("f", value="1", ends="commit"), values("f", value="2", ends="abort")],
            [values("g", value="1")],
        ],
    ),
    "an open transaction holds what comes after it": Story(
        NO_GRACE,
        [
            [
                values("a", value="1"),
                values("a", value="2"),
                values("b", value="1", ends="never"),
                values("a", value="3"),
                values("a", value="4"),
            ]
        ],
        stops_at=2,
    ),
    "records without a key": Story(
        COMPACT,
        [[values("a", value="1"), values("a", value="2")]],
        keyless=[Batch({None: "1"}), Batch({None: "2", "k": "1"}), Batch({None: "3"})],
    ),
    "young records stay for min.compaction.lag.ms": Story(
        {**COMPACT, "min.compaction.lag.ms": str(HOUR_MS)},
        [
            [
                values("a", value="1", age_ms=3 * HOUR_MS),
                values("a", value="2", age_ms=2 * HOUR_MS),
                values("a", "b", value="3"),
                values("a", value="4", age_ms=3 * HOUR_MS),
                values("a", value="5"),
            ]
        ],
        stops_at=2,
    ),
    "compact and delete": Story(
        {"cleanup.policy": "compact,delete", "retention.ms": str(HOUR_MS)},
        [
            [
                values("a", "b", value="1", age_ms=2 * HOUR_MS),
                values("c", value="1", age_ms=2 * HOUR_MS),
                values("d", "f", value="1"),  # f stays: a segment that Kafka has emptied counts as new
                values("e", value="1", age_ms=2 * HOUR_MS),
                values("d", value="2"),
            ]
        ],
    ),
}
RETENTIONS = {
    "old ones in front": ({"retention.ms": str(HOUR_MS)}, [2, 2, 0, 2, 0]),
    "all are old": ({"retention.ms": str(HOUR_MS)}, [3, 2, 2]),
    "none is old": ({"retention.ms": str(HOUR_MS)}, [0, 2, 0]),
    "too many bytes": ({"retention.bytes": "1200"}, [0, 0, 0, 0, 0]),
    "too many bytes, and old": ({"retention.bytes": "1200", "retention.ms": str(HOUR_MS)}, [2, 2, 2, 2, 0]),
    "nothing is bounded": ({"retention.ms": "-1"}, [999, 999]),
}


class Side(Protocol):
    """A server under test."""

    bootstrap: str

    def compact(self, topic: str, until: int) -> None:
        """Clean once what lies before the offset ``until``."""

    def expire(self, topic: str) -> None:
        """Let the server take off what is too old or too much."""


class Kafka:
    """``until`` of a cleaning is known from the checkpoint that the cleaner writes."""

    def __init__(self, broker: KafkaBroker) -> None:
        self.bootstrap = broker.bootstrap
        self._checkpoint = broker.folder / "log/cleaner-offset-checkpoint"

    def compact(self, topic: str, until: int) -> None:
        alter(self.bootstrap, topic, ALWAYS)
        wait_until(lambda: checkpoint(self._checkpoint, topic) >= until, f"{topic} is cleaned until {until}")
        alter(self.bootstrap, topic, NEVER)

    def expire(self, topic: str) -> None:
        time.sleep(1)  # five looks; that nothing happens has no sign of its own


class Ours:
    """The double."""

    def __init__(self, cluster: EmbeddedServer) -> None:
        self.bootstrap = cluster.bootstrap
        self._cluster = cluster

    def compact(self, topic: str, until: int) -> None:
        self._cluster.compact(topic)

    def expire(self, topic: str) -> None:
        self._cluster.expire(topic)


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sequence[Side]]:
    broker = KafkaBroker(tmp_path_factory.mktemp("kafka-cleaner"), overrides=QUICK)
    with EmbeddedServer(config={"auto.create.topics.enable": "false"}) as cluster:
        try:
            broker.start()
            wait_until_coordinating(broker.bootstrap)
            yield [Kafka(broker), Ours(cluster)]
        finally:
            broker.stop()


@pytest.mark.parametrize("name", STORIES)
def test_the_same_records_are_left(name: str, sides: Sequence[Side]) -> None:
    now_ms = int(time.time() * 1000)
    kafka, ours = (told(STORIES[name], side, name.replace(" ", "-"), now_ms) for side in sides)
    assert ours == kafka
    assert len({len(rows) for rows, _ in ours}) > 1, "a cleaning changed nothing"


@pytest.mark.parametrize("name", RETENTIONS)
def test_logs_begin_at_the_same_offset(name: str, sides: Sequence[Side]) -> None:
    config, ages_h = RETENTIONS[name]
    now_ms, topic = int(time.time() * 1000), f"expired-{name.replace(' ', '-').replace(',', '')}"
    begin: list[tuple[int, int]] = []
    for side in sides:
        create(side.bootstrap, topic, {**ONE_BATCH_A_SEGMENT, "cleanup.policy": "delete", "retention.ms": "-1"})
        with Writer(side.bootstrap, topic, now_ms) as writer:
            for age_h in ages_h:
                writer.write(values("a", "b", value="1", age_ms=age_h * HOUR_MS))
        alter(side.bootstrap, topic, config)
        side.expire(topic)
        begin.append(bounds(side.bootstrap, topic))
    assert begin[0] == begin[1]


def told(story: Story, side: Side, topic: str, now_ms: int) -> list[tuple[list[Row], list[Row]]]:
    """What is there before the first cleaning and after each: all of it, and what is committed."""
    policy = {"cleanup.policy": "delete"} if story.keyless else {}
    create(side.bootstrap, topic, {**ONE_BATCH_A_SEGMENT, **story.config, **NEVER, **policy, "retention.ms": "-1"})
    found: list[tuple[list[Row], list[Row]]] = []
    with Writer(side.bootstrap, topic, now_ms) as writer:
        for batch in story.keyless:
            writer.write(batch)
        if story.keyless:
            alter(side.bootstrap, topic, story.config)
        for number, part in enumerate(story.parts):
            bases = [writer.write(batch) for batch in part]
            end = writer.write(values(f"end-{number}", value="1"))  # Kafka's active segment
            if not number:
                found.append(both(side.bootstrap, topic))
            side.compact(topic, end if story.stops_at is None else bases[story.stops_at])
            if "delete" in story.config["cleanup.policy"]:
                alter(side.bootstrap, topic, {"retention.ms": story.config["retention.ms"]})
                side.expire(topic)
            found.append(both(side.bootstrap, topic))
    return found


class Writer:
    """Writes batches to the one partition of a topic, each as one batch; closes its transactions at the end."""

    def __init__(self, bootstrap: str, topic: str, now_ms: int) -> None:
        self._bootstrap, self._topic, self._now_ms = bootstrap, topic, now_ms
        self._plain = Producer({"bootstrap.servers": bootstrap, "linger.ms": 200})
        self._open: list[Producer] = []

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        for producer in self._open:
            producer.abort_transaction(TIMEOUT_S)

    def write(self, batch: Batch) -> int:
        """Write it; its base offset."""
        if not batch.ends:
            return self._write(self._plain, batch)
        producer = Producer(
            {"bootstrap.servers": self._bootstrap, "linger.ms": 200, "transactional.id": f"{self._topic}-{id(batch)}"}
        )
        producer.init_transactions(TIMEOUT_S)
        producer.begin_transaction()
        base = self._write(producer, batch)
        if batch.ends == "never":
            self._open.append(producer)
        else:
            (producer.commit_transaction if batch.ends == "commit" else producer.abort_transaction)(TIMEOUT_S)
            marked = base + len(batch.records) + 1  # Kafka writes the marker after its answer
            wait_until(lambda: bounds(self._bootstrap, self._topic)[1] == marked, "the transaction's marker is written")
        return base

    def _write(self, producer: Producer, batch: Batch) -> int:
        offsets: list[int] = []

        def delivered(error: KafkaError | None, message: Message) -> None:
            assert error is None, error
            offsets.append(message.offset() or 0)

        wide = BATCH_BYTES // len(batch.records)
        for key, value in batch.records.items():
            header: dict[str, str | bytes | None] = {"pad": b"." * wide}  # a tombstone is wide too
            producer.produce(
                self._topic,
                value,
                key,
                timestamp=self._now_ms - batch.age_ms,
                headers=header,
                partition=0,
                on_delivery=delivered,
            )
        assert producer.flush(TIMEOUT_S) == 0
        return min(offsets)


def both(bootstrap: str, topic: str) -> tuple[list[Row], list[Row]]:
    return rows(bootstrap, topic, "read_uncommitted"), rows(bootstrap, topic, "read_committed")


def rows(bootstrap: str, topic: str, isolation: str) -> list[Row]:
    """Everything that a consumer reads."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 10,
        }
    )
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    found: list[Row] = []
    with closing(consumer):
        while (message := consumer.poll(TIMEOUT_S)) is not None:
            if error := message.error():
                assert error.code() == KafkaError._PARTITION_EOF, error
                break
            key, value = message.key(), message.value()
            found.append((message.offset() or 0, text(key), text(value)))
    return found


def text(value: str | bytes | None) -> str | None:
    return value.decode() if isinstance(value, bytes) else value


def bounds(bootstrap: str, topic: str) -> tuple[int, int]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader"})
    with closing(consumer):
        first, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), TIMEOUT_S)
    return first, end


@contextmanager
def closing(consumer: Consumer) -> Iterator[None]:
    try:
        yield
    finally:
        consumer.close()


def create(bootstrap: str, topic: str, config: Mapping[str, str]) -> None:
    admin = admin_client(bootstrap)
    admin.create_topics([NewTopic(topic, 1, 1, config=dict(config))])[topic].result(TIMEOUT_S)


def alter(bootstrap: str, topic: str, config: Mapping[str, str]) -> None:
    """Change settings; the broker has them then."""
    entries = [ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in config.items()]
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=entries)
    admin = admin_client(bootstrap)
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(TIMEOUT_S)
    wait_until(lambda: config.items() <= configs(bootstrap, topic).items(), "the broker has the settings")


def configs(bootstrap: str, topic: str) -> dict[str, str | None]:
    admin = admin_client(bootstrap)
    (future,) = admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, topic)]).values()
    return {name: entry.value for name, entry in future.result(TIMEOUT_S).items()}


def checkpoint(file: Path, topic: str) -> int:
    """Up to which offset Kafka's cleaner has been through partition 0; -1 for not at all."""
    lines = file.read_text().splitlines()[2:] if file.exists() else []
    return next((int(line.split()[2]) for line in lines if line.split()[:2] == [topic, "0"]), -1)
