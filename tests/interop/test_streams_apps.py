"""Applications of Kafka Streams on `kgctl serve`: what they count, which tasks they have, how they end."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.kafka import KafkaBroker
from tests.support.kafka.group_types import FOLDER
from tests.support.maven import compile_java, java_command
from tests.support.serve import ServeFactory

pytestmark = [
    *(pytest.mark.interop, pytest.mark.kafka, pytest.mark.slow),
    pytest.mark.needs("javac"),
    pytest.mark.timeout(600),
]

SOURCE = Path(__file__).parents[1] / "java/streams/StreamsApps.java"
OFTEN = {
    "group.streams.heartbeat.interval.ms": "200",
    "group.streams.min.heartbeat.interval.ms": "100",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
}
TIMEOUT_S = 480
SETTLED = "message.timestamp.type=CreateTime"
SEEN_ON_KAFKA = {
    "counts": "a=2 b=2 c=1, each once; "
    f"NAME-counts-changelog 2 [cleanup.policy=compact, {SETTLED}]; "
    f"NAME-words-repartition 2 [cleanup.policy=delete, {SETTLED}, retention.ms=-1, segment.bytes=52428800]; "
    "0 [NAME-in] [] [NAME-words-repartition] []; 1 [] [NAME-words-repartition] [] [NAME-counts-changelog]; then Empty 0",
    "once": "a=3 b=2 c=2, each once; a=5 b=2 c=2 d=1, each once",
    "classic": "a=3 b=2 c=2, each once; a=5 b=2 c=2 d=1, each once",
    "rolling": "a=2 b=2 c=2 d=2, each once; a=4 b=4 c=4 d=4, each once; a=6 b=6 c=6 d=6, each once",
    "scaling": "tasks [8]; tasks [4, 4]; tasks [2, 3, 3]; a=2 b=2 c=2 d=2, each once; "
    "tasks [4, 4]; tasks [8]; a=3 b=3 c=3 d=3, each once",
    "restoring": "a=2 b=2 c=1, each once; a=3 b=2 c=2, each once; restored 5",
    "standby": "a=2 b=2 c=1, each once; copies [1, 1]; a=3 b=2 c=2, each once; tasks 4 0",
    "failing": "a=2 b=2 poison=1, each once; java.lang.IllegalStateException: poisoned",
    "shutdown": "all in ERROR; java.lang.IllegalStateException: poisoned, nothing",
    "missing": "org.apache.kafka.streams.errors.MissingSourceTopicException: "
    "Missing source topics: Source topics NAME-in are missing.. Timeout exceeded after a while.",
    "late": "a=2 b=1, each once; nothing",
    "changed": "a=2 b=1, each once; "
    "org.apache.kafka.common.errors.InvalidRequestException: Topology updates are not supported yet.",
    "unequal": "org.apache.kafka.streams.errors.TopologyException: "
    "Invalid topology: Following topics do not have the same number of partitions: [{NAME-in=2, NAME-other=3}]",
    "queries": "hosts, and partitions of each: 2 2 2; a=1 b=1, each once",
}
"""Scenario -> what is seen of its applications on Apache Kafka 4.3.1."""
EVERY_TIME = ("counts", "once")


def seen(bootstrap: str, folder: Path, scenarios: Sequence[str] = tuple(SEEN_ON_KAFKA)) -> dict[str, str]:
    """What is seen on this server."""
    classes = compile_java(FOLDER / "pom.xml", [SOURCE])
    command = java_command(classes, "StreamsApps", bootstrap, str(folder), *scenarios)
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    return dict(line.split(": ", 1) for line in done.stdout.splitlines())


def test_applications_do_what_they_do_on_kafka(kgctl_serve: ServeFactory, tmp_path: Path) -> None:
    found = seen(kgctl_serve(config=OFTEN).bootstrap, tmp_path, EVERY_TIME)
    assert found == {scenario: SEEN_ON_KAFKA[scenario] for scenario in EVERY_TIME}


@pytest.mark.deep
@pytest.mark.parametrize("brokers", [1, 3])
def test_applications_of_every_kind_do_what_they_do_on_kafka(kgctl_serve: ServeFactory, tmp_path: Path, brokers: int) -> None:
    assert seen(kgctl_serve(config=OFTEN, brokers=brokers).bootstrap, tmp_path) == SEEN_ON_KAFKA


@pytest.mark.deep
def test_kafka_itself_is_seen_so(tmp_path: Path) -> None:
    broker = KafkaBroker(tmp_path / "broker", overrides=OFTEN)
    try:
        broker.start()
        assert seen(broker.bootstrap, tmp_path / "state") == SEEN_ON_KAFKA
    finally:
        broker.stop()
