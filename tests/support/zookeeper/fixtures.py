"""pytest's side: one ZooKeeper for the whole run, each test in a chroot of its own; one old Kafka for the few that need it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kazoo.client import KazooClient

from tests.support.kafka.data import unique
from tests.support.zookeeper.old_kafka import OldKafka
from tests.support.zookeeper.server import ZooKeeperServer


def started(server: ZooKeeperServer) -> Iterator[ZooKeeperServer]:
    """The server, running, for the length of a fixture."""
    server.start()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def zookeeper_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    """One server for the whole run: use a chroot of your own, and leave it running."""
    yield from started(ZooKeeperServer(tmp_path_factory.mktemp("zookeeper")))


@pytest.fixture
def own_zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    """A server for one test alone, which may freeze, stop or kill it."""
    yield from started(ZooKeeperServer(tmp_path_factory.mktemp("zookeeper-own")))


@pytest.fixture
def zookeeper(zookeeper_server: ZooKeeperServer) -> str:
    """``host:port/chroot`` of an empty tree that no other test uses."""
    chroot = f"/{unique('test')}"
    with_root = KazooClient(zookeeper_server.hosts)
    with_root.start()
    with_root.create(chroot)
    with_root.stop()
    with_root.close()
    return zookeeper_server.hosts + chroot


@pytest.fixture
def kazoo(zookeeper: str) -> Iterator[KazooClient]:
    """A plain kazoo client in that tree: the other side's hand."""
    client = KazooClient(zookeeper)
    client.start()
    yield client
    client.stop()
    client.close()


@pytest.fixture(scope="session")
def old_kafka(zookeeper_server: ZooKeeperServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OldKafka]:
    """One broker of Apache Kafka 1.1.1 for the whole run: use names of your own."""
    kafka = OldKafka(tmp_path_factory.mktemp("old-kafka"), f"{zookeeper_server.hosts}/old-kafka")
    try:
        kafka.start()
        yield kafka
    finally:
        kafka.stop()
