"""A broker of any release that kgctl is held against, and that release's own ``kafka-consumer-groups``.

From 3.0 on a node needs nothing beside itself; those before keep their state in a ZooKeeper, which comes with them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from tests.support.kafka.broker import KafkaBroker
from tests.support.kafka.install import kafka_class_path
from tests.support.kafka.tools import CONSUMER_GROUPS, Tools
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


class OwnTools(Tools):
    """Those of a release, from its ``kafka-consumer-groups`` on.

    Raises:
        Unavailable: it cannot be had on this machine.
    """

    def __init__(self, release: str) -> None:
        self._groups = "kafka.admin.ConsumerGroupCommand" if release in _IN_THE_CORE else CONSUMER_GROUPS
        super().__init__(old_class_path(release) if release in OF_ZOOKEEPER else kafka_class_path(release))

    def printed(self, *arguments: str, name: str = "") -> str:
        """What ``kafka-consumer-groups`` prints, or the tool of another ``name``."""
        return self.run(name or self._groups, arguments).stdout
