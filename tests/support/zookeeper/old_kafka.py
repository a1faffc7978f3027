"""Apache Kafka 1.1.1 from Maven Central: its broker, its old high-level consumer and its group tool, whose groups live in
ZooKeeper. Nobody here wrote a line of it."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from confluent_kafka import Producer

from tests.support import maven
from tests.support.kafka.broker import answers
from tests.support.kafka.ports import free_ports
from tests.support.kafka.processes import start_process, stop_process
from tests.support.machine import find_java
from tests.support.patience import PATIENCE_S

POM = Path(__file__).with_name("pom.xml")
JVM = ("-Xmx256m", *maven.FAST_JVM, "-Xlog:disable", "-Xshare:auto")
SESSION_MS = 2_000
RELEASE = "1.1.1"
"""The one that is meant where none is named."""


def old_class_path(release: str = RELEASE) -> str:
    """The jars of a release, and of the ZooKeeper whose client runs on the Java of today.

    Raises:
        Unavailable: it cannot be had on this machine.
    """
    return (
        maven.class_path(POM) if release == RELEASE else maven.class_path(POM, kafka_version=release, zookeeper_version="3.5.9")
    )


def old_kafka_command(main_class: str, *arguments: str, jvm: Sequence[str] = (), release: str = RELEASE) -> list[str]:
    """The command line of a class of Apache Kafka; its classes come ready made from `class_data_archive` if that is there.

    Raises:
        Unavailable: it cannot be had on this machine.
    """
    archive = class_data_archive(release)
    shared = (f"-XX:SharedArchiveFile={archive}",) if archive.exists() else ()
    return maven.java_command(old_class_path(release), main_class, *arguments, jvm=(*JVM, *shared, *jvm))


def class_data_archive(release: str = RELEASE) -> Path:
    """Where the classes that a broker loads are kept; the first one that is started on a machine makes it when it ends."""
    jars = old_class_path(release)
    java = find_java()
    times = [str(Path(jar).stat().st_mtime_ns) for jar in jars.split(os.pathsep)]
    key = maven.digest(jars, *times, str(java.resolve()), str(java.stat().st_size))
    return maven.cache_folder() / f"archive-old-{key}.jsa"


class OldKafka:
    """One broker, with ``zookeeper`` (``host:port/chroot``) as its home."""

    def __init__(self, folder: Path, zookeeper: str, *, release: str = RELEASE) -> None:
        self.release = release
        self.folder = folder
        self.zookeeper = zookeeper
        self.port = free_ports(1)[0]
        self._process: subprocess.Popen[bytes] | None = None
        self._draft = folder / "classes.jsa"

    @property
    def bootstrap(self) -> str:
        """``host:port``."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it and wait until it answers."""
        self.folder.mkdir(parents=True, exist_ok=True)
        properties = maven.write_properties(self.folder / "server.properties", self._config())
        is_first = not class_data_archive(self.release).exists()
        dump = [f"-XX:ArchiveClassesAtExit={self._draft}"] if is_first else []
        command = old_kafka_command("kafka.Kafka", str(properties), jvm=dump, release=self.release)
        self._process = start_process(command, self.folder / "output.log")
        wait_until(f"Apache Kafka {self.release} answers", lambda: answers(self.port))

    def stop(self) -> None:
        """End it; one that makes the archive is given the time to."""
        if self._process is not None:
            stop_process(self._process, kill=class_data_archive(self.release).exists())
            self._process = None
            if self._draft.exists():
                maven.write_atomically(class_data_archive(self.release), self._draft.read_bytes())

    def create_topic(self, topic: str, partitions: int) -> None:
        """By its own tool."""
        shape = ["--partitions", str(partitions), "--replication-factor", "1"]
        self.run("kafka.admin.TopicCommand", ["--zookeeper", self.zookeeper, "--create", "--topic", topic, *shape])

    def produce(self, topic: str, counts: Mapping[int, int]) -> None:
        """So many records into each partition; the value of each is ``<partition>:<its number, from 0>``."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "log_level": 0})
        for partition, count in counts.items():
            for number in range(count):
                producer.produce(topic, f"{partition}:{number}".encode(), partition=partition)
        assert producer.flush(PATIENCE_S) == 0

    def run(self, main_class: str, arguments: Sequence[str]) -> str:
        """Run a tool to its end and return what it printed."""
        done = subprocess.run(
            old_kafka_command(main_class, *arguments), capture_output=True, text=True, check=False, timeout=PATIENCE_S
        )
        assert done.returncode == 0, f"{main_class}:\n{done.stdout}{done.stderr}"
        return done.stdout

    def describe(self, group: str) -> dict[tuple[str, int], dict[str, str]]:
        """What ``kafka-consumer-groups --zookeeper --describe`` shows, by partition."""
        printed = self.run("kafka.admin.ConsumerGroupCommand", ["--zookeeper", self.zookeeper, "--describe", "--group", group])
        lines = [line.split() for line in printed.splitlines() if line.strip()]
        start = next((number for number, words in enumerate(lines) if words[0] == "TOPIC"), len(lines))
        rows = [dict(zip(lines[start], words, strict=False)) for words in lines[start + 1 :]]
        return {(row["TOPIC"], int(row["PARTITION"])): row for row in rows}

    def list_groups(self) -> list[str]:
        """What ``kafka-consumer-groups --zookeeper --list`` shows."""
        printed = self.run("kafka.admin.ConsumerGroupCommand", ["--zookeeper", self.zookeeper, "--list"])
        return [line for line in printed.splitlines() if line.strip() and not line.startswith("Note:")]

    def consumer(self, group: str, topic: str, name: str, *, goes_on: bool = False) -> OldConsumer:
        """An old console consumer, begun; the caller stops it. One that does not ``goes_on`` refuses a group with offsets."""
        return OldConsumer(self, group, topic, self.folder / f"{name}.log", "largest" if goes_on else "smallest")

    def _config(self) -> dict[str, str]:
        return {
            "broker.id": "1",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "log.dirs": str(self.folder / "log"),
            "zookeeper.connect": self.zookeeper,
            "offsets.topic.num.partitions": "1",
            "offsets.topic.replication.factor": "1",
            "group.initial.rebalance.delay.ms": "0",
            "auto.create.topics.enable": "false",
            "log.message.timestamp.type": "CreateTime",
        }


class OldConsumer:
    """``kafka.tools.ConsoleConsumer --zookeeper``: the high-level consumer of old, in a process of its own."""

    def __init__(self, kafka: OldKafka, group: str, topic: str, log: Path, reset: str) -> None:
        self._log = log
        settings = {
            "group.id": group,
            "auto.offset.reset": reset,
            "auto.commit.interval.ms": "100",
            "zookeeper.session.timeout.ms": str(SESSION_MS),
            "rebalance.backoff.ms": "500",
        }
        flags = [word for key, value in settings.items() for word in ("--consumer-property", f"{key}={value}")]
        command = old_kafka_command("kafka.tools.ConsoleConsumer", "--zookeeper", kafka.zookeeper, "--topic", topic, *flags)
        self._process = start_process(command, log)

    @property
    def records(self) -> list[str]:
        """The values of the records that it has read."""
        return re.findall(r"^\d+:\d+$", self._log.read_text(errors="replace"), re.MULTILINE)

    def stop(self, *, kill: bool = False) -> None:
        """Its registration goes at once on a plain stop, and with its session when it is killed."""
        stop_process(self._process, kill=kill)


def wait_until(what: str, is_so: Callable[[], object]) -> None:
    """Poll until it is so."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, f"not so after {PATIENCE_S} s: {what}"
        time.sleep(0.05)
