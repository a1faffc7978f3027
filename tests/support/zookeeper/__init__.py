"""A real ZooKeeper on loopback, Debian's package, and Apache Kafka 1.1.1, whose consumers keep their groups there."""

from __future__ import annotations

from tests.support.zookeeper.server import ZooKeeperServer, zookeeper_class_path

__all__ = ["ZooKeeperServer", "zookeeper_class_path"]
