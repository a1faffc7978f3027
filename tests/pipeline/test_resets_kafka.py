"""Whatever kgctl's own commands do to an empty group on Apache Kafka is listed whole by ``history resets``."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition

from tests.support.kafka.broker import KafkaBroker
from tests.support.kafka.consumers import joined
from tests.support.kafka.data import committed, create_topic, produce, unique
from tests.support.kafka.kgctl import run_kgctl
from tests.support.pipeline.commands import run_history
from tests.support.profiles import is_deep

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(600)]

PARTITIONS, RECORDS, READ = 3, 140, 100
STEPS, DEEP_STEPS = 25, 200
CLUSTER = "c"
Step = tuple[int, int, int]
"""Partition, offset before, offset after."""


class Operator:
    """Changes an empty group by commands chosen by chance, and notes what the broker has before and after each."""

    def __init__(self, bootstrap: str, group: str, topic: str, folder: Path, seed: int) -> None:
        self.bootstrap, self.group, self.topic, self.folder = bootstrap, group, topic, folder
        self.choice = random.Random(seed)
        self.backups: list[Path] = []
        self.steps: list[Step] = []
        self.undone = 0
        self.offsets = self._committed()

    def step(self) -> None:
        if self.backups and self.choice.random() < 0.35:
            self.undone += 1
            run_kgctl(self.bootstrap, "undo", str(self.backups.pop()), "--execute", "--no-backup")
        else:
            self._reset()
        before, self.offsets = self.offsets, self._committed()
        self.steps += [(each, before[each], self.offsets[each]) for each in before if before[each] != self.offsets[each]]

    def _reset(self) -> None:
        choice, backup = self.choice, self.folder / f"{len(self.steps)}-{len(self.backups)}.csv"
        chosen = ",".join(map(str, sorted(choice.sample(range(PARTITIONS), choice.randint(1, PARTITIONS)))))
        to = choice.choice([
            ["--to-earliest"],
            ["--to-latest"],
            ["--to-offset", str(choice.randrange(RECORDS))],
            ["--shift-by", str(choice.choice([-40, -1, 1, 25]))],
        ])  # fmt: skip
        place = ["--topic", f"{self.topic}:{chosen}", *to]
        run_kgctl(self.bootstrap, "reset-offsets", self.group, *place, "--execute", "--backup", str(backup))
        self.backups += [backup] if backup.exists() else []

    def _committed(self) -> dict[int, int]:
        return {partition: offset for (_, partition), offset in committed(self.bootstrap, self.group).items()}


def test_any_sequence_of_changes_is_listed_whole(kafka_broker: KafkaBroker, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    group, topic, warehouse = unique("changed"), unique("topic"), tmp_path / "w"
    create_topic(kafka_broker.bootstrap, topic, PARTITIONS)
    produce(kafka_broker.bootstrap, topic, dict.fromkeys(range(PARTITIONS), RECORDS))
    read_some(kafka_broker.bootstrap, group, topic)
    operator = Operator(kafka_broker.bootstrap, group, topic, tmp_path, seed=7)
    for number in range(DEEP_STEPS if is_deep(pytestconfig) else STEPS):
        operator.step()
        if number % 10 == 0:
            collect_and_build(kafka_broker.bootstrap, warehouse)
    collect_and_build(kafka_broker.bootstrap, warehouse)

    found = run_history("resets", warehouse, "--group", group)
    listed = [(row["partition"], row["offset_before"], row["offset_after"]) for row in found]
    assert sorted(listed) == sorted(operator.steps)
    assert [each for each in listed if each[0] == 0] == [each for each in operator.steps if each[0] == 0], "in their order"
    assert operator.undone > 3
    consumed = run_history("sql", warehouse, f"SELECT sum(records_consumed) AS read FROM commit_rate WHERE \"group\" = '{group}'")
    assert consumed == [{"read": 0}] or consumed == [{"read": None}], "nobody read after the first commits"


def read_some(bootstrap: str, group: str, topic: str) -> None:
    """A member commits after `READ` records of each partition, and leaves; the reset after it is undone to the leader's epoch."""
    with joined(bootstrap, group, topic, {"one": PARTITIONS}) as members:
        offsets = [TopicPartition(topic, partition, READ, "read", 0) for partition in range(PARTITIONS)]
        members["one"].commit(offsets=offsets, asynchronous=False)


def collect_and_build(bootstrap: str, warehouse: Path) -> None:
    run_history("collect", warehouse, "--cluster", CLUSTER, "--bootstrap-server", bootstrap, "--once")
    run_history("build", warehouse, "--engine", "local")
