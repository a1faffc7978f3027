"""A broker of any release that kgctl is held against, and that release's own ``kafka-consumer-groups``.

From 3.0 on a node needs nothing beside itself; those before keep their state in a ZooKeeper, which comes with them.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Protocol

from tests.support import maven
from tests.support.kafka.broker import KafkaBroker
from tests.support.kafka.install import JVM, kafka_command
from tests.support.patience import PATIENCE_S
from tests.support.zookeeper.old_kafka import OldKafka, old_class_path
from tests.support.zookeeper.server import ZooKeeperServer

OF_ZOOKEEPER = ("1.1.1", "2.1.1", "2.8.2")
RELEASES = (*OF_ZOOKEEPER, "3.0.2", "3.6.2", "3.9.1", "4.0.1", "4.1.1", "4.2.0", "4.3.1")
_IN_THE_CORE = (*OF_ZOOKEEPER, "3.0.2", "3.6.2")
"""Their tools are classes of the broker's own jar."""


class Broker(Protocol):
    """One running node."""

    @property
    def bootstrap(self) -> str: ...
    def stop(self) -> None: ...


class _WithZooKeeper(OldKafka):
    """A node and the ZooKeeper that it needs."""

    def __init__(self, folder: Path, release: str) -> None:
        self._server = ZooKeeperServer(folder / "zookeeper", class_path=old_class_path(release))
        super().__init__(folder / "kafka", self._server.hosts, release=release)

    def start(self) -> None:
        self._server.start()
        super().start()

    def stop(self) -> None:
        super().stop()
        self._server.stop(kill=True)


def start_release(release: str, folder: Path) -> Broker:
    """A running node of this release of Apache Kafka; whoever starts it stops it.

    Raises:
        Unavailable: it cannot be had on this machine.
    """
    broker = _WithZooKeeper(folder, release) if release in OF_ZOOKEEPER else KafkaBroker(folder, release=release)
    try:
        broker.start()
    except BaseException:
        broker.stop()
        raise
    return broker


def own_tool(release: str, *arguments: str, name: str = "") -> str:
    """What the release's own ``kafka-consumer-groups`` prints, or its tool of another ``name``."""
    if not name:
        core = release in _IN_THE_CORE
        name = "kafka.admin.ConsumerGroupCommand" if core else "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    if release in OF_ZOOKEEPER:
        command = maven.java_command(old_class_path(release), name, *arguments, jvm=JVM)
    else:
        command = kafka_command(name, *arguments, release=release)
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    return done.stdout
