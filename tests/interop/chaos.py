"""A group of several clients while its members and its coordinator freeze, die and come back; and what must hold all the same.

By hand, for as long as one likes: ``python -m tests.interop.chaos --seconds 300 --seed 7``; on Apache Kafka: ``--server kafka``.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

from confluent_kafka import Consumer, Producer, TopicPartition

from kgctl.model.coordinator_records import (
    CoordinatorRecord,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from kgctl.model.values import partition_for
from kgctl.serde.consumer_protocol import decode_assignment
from kgctl.serde.coordinator_records import decode_record
from tests.support.kafka.broker import KafkaBroker
from tests.support.kafka.data import create_topic, wait_until_coordinating
from tests.support.members import CLIENTS, Member, wait_until
from tests.support.patience import PATIENCE_S
from tests.support.serve import ServeProcess

GROUP, TOPIC, PARTITIONS = "chaos", "chaos", 6
CREW = ("kgctl", "kgctl-async", "java", "kafka-go", "confluent-kafka", "aiokafka")
SESSION_MS = 6_000
BATCH = 30
PAUSE_S = (0.2, 1.2)
DEEDS = ("kill", "kill", "leave", "freeze_member", "freeze_ground", "restart_ground")


class Ground(Protocol):
    """A server that may be put to sleep, and killed and started again with the same address and data."""

    @property
    def bootstrap(self) -> str: ...

    def freeze(self) -> None: ...

    def thaw(self) -> None: ...

    def restart(self) -> None: ...


class ServeGround:
    """``kgctl serve`` with a data folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._server = ServeProcess(data=folder)

    @property
    def bootstrap(self) -> str:
        return self._server.bootstrap

    def freeze(self) -> None:
        self._server.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._server.process.send_signal(signal.SIGCONT)

    def restart(self) -> None:
        self._server.kill()
        self._server = ServeProcess(data=self._folder, listen=self._server.bootstrap)

    def close(self) -> None:
        self._server.kill()


class KafkaGround:
    """One node of Apache Kafka."""

    def __init__(self, broker: KafkaBroker) -> None:
        self._broker = broker
        self.bootstrap = broker.bootstrap
        self.freeze = broker.freeze
        self.thaw = broker.thaw
        self.close = broker.stop

    def restart(self) -> None:
        self._broker.stop(kill=True)
        self._broker.start()


class Chaos:
    """The crew, and what happens to it. ``told`` says what was done, for whoever has to understand a failure."""

    def __init__(self, ground: Ground, seed: int, crew: Sequence[str] = CREW) -> None:
        self.told: list[str] = []
        self._ground = ground
        self._rng = random.Random(seed)
        self._crew = list(crew)
        self._started = 0
        self._stack = ExitStack()
        self._living: list[Member] = []
        self._everybody: list[Member] = []
        create_topic(ground.bootstrap, TOPIC, PARTITIONS)
        self._producer = Producer({"bootstrap.servers": ground.bootstrap, "enable.idempotence": True, "log_level": 0})

    def run(self, seconds: float) -> None:
        """Make trouble for so long, then wait until all records have been read and committed."""
        end = time.monotonic() + seconds
        self.run_through(self._rng.choice(DEEDS) for _ in iter(lambda: time.monotonic() < end, False))

    def run_through(self, deeds: Iterable[str]) -> None:
        """Do these things, with records and commits between them; then as `run`."""
        by_name: dict[str, Callable[[], None]] = {
            "kill": self._kill,
            "leave": self._leave,
            "freeze_member": self._freeze_member,
            "freeze_ground": self._freeze_ground,
            "restart_ground": self._restart_ground,
        }
        with self._stack:
            for deed in deeds:
                self._recruit()
                self._produce()
                self._commit()
                time.sleep(self._rng.uniform(*PAUSE_S))
                by_name[deed]()
            self._recruit()
            assert self._producer.flush(PATIENCE_S) == 0
            wait_until(self._has_read_all, f"all records are read ({'; '.join(self.told[-8:])})")
            wait_until(self._has_committed_all, f"all records are committed ({'; '.join(self.told[-8:])})")

    def commits(self) -> dict[int, list[int]]:
        """Partition -> what was committed, in the order of the log."""
        found: dict[int, list[int]] = {}
        for record in self._log():
            if isinstance(record.key, OffsetCommitKey) and record.key.group == GROUP:
                assert isinstance(record.value, OffsetCommitValue), f"{record.key} was deleted"
                found.setdefault(record.key.partition, []).append(record.value.offset)
        return found

    def generations(self) -> list[tuple[int, list[tuple[str, int]]]]:
        """Each generation that the coordinator wrote: its number, and all partitions of all its members."""
        found = []
        for record in self._log():
            if record.key == GroupMetadataKey(GROUP) and isinstance(record.value, GroupMetadataValue):
                owned = [
                    partition
                    for member in record.value.members
                    if member.assignment
                    for partition in decode_assignment(member.assignment).partitions
                ]
                found.append((record.value.generation, [(each.topic, each.partition) for each in owned]))
        return found

    def read_by(self) -> dict[str, int]:
        """Client library -> how many records its members were given."""
        found = dict.fromkeys(self._crew, 0)
        for member in self._everybody:
            found[member.name.rpartition("-")[0]] += len(member.records)
        return found

    # --- what happens

    def _recruit(self) -> None:
        self._living = [member for member in self._living if member.process.poll() is None]
        missing = list(self._crew)
        for member in self._living:
            missing.remove(member.name.rpartition("-")[0])
        for name in missing:
            self._started += 1
            given = {"bootstrap": self._ground.bootstrap, "group": GROUP, "topic": TOPIC, "assignor": "range"}
            member = Member(CLIENTS[name], client_id=f"{name}-{self._started}", session_timeout_ms=SESSION_MS, **given)
            self._stack.callback(member.kill)
            self._living.append(member)
            self._everybody.append(member)

    def _produce(self) -> None:
        for number in range(BATCH):
            self._producer.produce(TOPIC, b"x", partition=number % PARTITIONS)
        self._producer.poll(0)

    def _commit(self) -> None:
        for member in self._living:
            self._tell(member, "commit")

    def _tell(self, member: Member, do: str) -> None:
        try:
            member.tell(do)
        except OSError:  # it died of something: the next one takes its place
            self.told.append(f"{member.name} was dead")

    def _kill(self) -> None:
        member = self._rng.choice(self._living)
        self.told.append(f"kill {member.name}")
        member.kill()

    def _leave(self) -> None:
        member = self._rng.choice(self._living)
        self.told.append(f"{member.name} leaves")
        self._tell(member, "leave")
        try:
            member.process.wait(5)
        except subprocess.TimeoutExpired:
            member.kill()

    def _freeze_member(self) -> None:
        """For less than its session, or for more."""
        member, seconds = self._rng.choice(self._living), self._rng.choice((0.5, SESSION_MS / 1000 + 1))
        self.told.append(f"freeze {member.name} for {seconds:g} s")
        if member.process.poll() is None:
            member.process.send_signal(signal.SIGSTOP)
            time.sleep(seconds)
            member.process.send_signal(signal.SIGCONT)

    def _freeze_ground(self) -> None:
        seconds = self._rng.uniform(0.3, 2.0)
        self.told.append(f"freeze the server for {seconds:.1f} s")
        self._ground.freeze()
        time.sleep(seconds)
        self._ground.thaw()

    def _restart_ground(self) -> None:
        self.told.append("kill the server and start it again")
        self._ground.restart()

    # --- what has become of it

    def _has_read_all(self) -> bool:
        self._recruit()
        read = {record for member in self._everybody for record in member.records}
        return read >= {(partition, offset) for partition, end in self._ends().items() for offset in range(end)}

    def _has_committed_all(self) -> bool:
        self._recruit()
        self._commit()
        time.sleep(0.2)
        return {partition: offsets[-1] for partition, offsets in self.commits().items()} == self._ends()

    def _ends(self) -> dict[int, int]:
        with _reader(self._ground.bootstrap) as consumer:
            partitions = range(PARTITIONS)
            return {each: consumer.get_watermark_offsets(TopicPartition(TOPIC, each), PATIENCE_S)[1] for each in partitions}

    def _log(self) -> Iterator[CoordinatorRecord]:
        with _reader(self._ground.bootstrap) as consumer:
            count = len(consumer.list_topics("__consumer_offsets", PATIENCE_S).topics["__consumer_offsets"].partitions)
            place = TopicPartition("__consumer_offsets", partition_for(GROUP, count), 0)
            _, end = consumer.get_watermark_offsets(place, PATIENCE_S)
            consumer.assign([place])
            while consumer.position([place])[0].offset < end:
                for message in consumer.consume(500, 0.2):
                    key, value = message.key(), message.value()
                    if message.error() is None and isinstance(key, bytes):
                        yield decode_record(key, value if isinstance(value, bytes) else None)


def _reader(bootstrap: str) -> Consumer:
    return Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False, "log_level": 0})


def check(chaos: Chaos) -> None:
    """No commit went back, and no generation gave a partition to two."""
    story = "; ".join(chaos.told)
    for partition, offsets in chaos.commits().items():
        assert offsets == sorted(offsets), f"commits of partition {partition} went back: {offsets}: {story}"
    for number, owned in chaos.generations():
        assert len(owned) == len(set(owned)), f"generation {number} has {sorted(owned)}: {story}"


def ground_of(server: str, folder: Path) -> ServeGround | KafkaGround:
    if server == "serve":
        return ServeGround(folder)
    broker = KafkaBroker(folder)
    broker.start()
    wait_until_coordinating(broker.bootstrap)
    return KafkaGround(broker)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--server", choices=("serve", "kafka"), default="serve")
    parser.add_argument("--crew", nargs="+", default=CREW, choices=CLIENTS)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ground = ground_of(given.server, Path(folder))
        try:
            chaos = Chaos(ground, given.seed, given.crew)
            chaos.run(given.seconds)
            check(chaos)
            print("\n".join(chaos.told))
            print(f"{sum(map(len, chaos.commits().values()))} commits, {len(chaos.generations())} generations: {chaos.read_by()}")
        finally:
            ground.close()


if __name__ == "__main__":
    main()
