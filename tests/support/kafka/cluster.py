"""Three brokers of Apache Kafka on loopback: coordinators and leaders are spread, and one can go away."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.support.kafka.broker import KafkaBroker, class_data_archive
from tests.support.kafka.config import THREE_BROKER_KEYS, NodePorts, broker_node
from tests.support.kafka.data import elect_preferred_leaders, wait_for_brokers, wait_until_coordinating


class KafkaCluster:
    """Node 1 is broker and controller, 2 and 3 are brokers; topics and the three offsets partitions have three replicas."""

    def __init__(self, folder: Path, overrides: Mapping[str, str] | None = None) -> None:
        keys = {**THREE_BROKER_KEYS, **(overrides or {})}
        first = KafkaBroker(folder / "1", overrides=keys)
        controller = first.ports.controller
        others = [_follower(folder / str(node_id), node_id, controller, keys) for node_id in (2, 3)]
        self.brokers = [first, *others]

    @property
    def bootstrap(self) -> str:
        """The three addresses."""
        return ",".join(broker.bootstrap for broker in self.brokers)

    def start(self) -> None:
        """Starts all three at once and waits until they are registered and coordinate."""
        archive = class_data_archive()
        self.brokers[0].start(archive=archive)
        for broker in self.brokers[1:]:
            broker.launch(archive)
        for broker in self.brokers:
            broker.wait_for_port()
        wait_for_brokers(self.bootstrap, len(self.brokers))
        wait_until_coordinating(self.bootstrap, partitions=3)

    def recover(self) -> None:
        """After an outage: waits until all three are back and each leads what it led at first."""
        wait_for_brokers(self.bootstrap, len(self.brokers))
        elect_preferred_leaders(self.bootstrap)
        wait_until_coordinating(self.bootstrap, partitions=3)

    def stop(self) -> None:
        """Ends all three, the controller last."""
        for broker in reversed(self.brokers):
            broker.stop()


def _follower(folder: Path, node_id: int, controller_port: int, keys: Mapping[str, str]) -> KafkaBroker:
    def config(log_dir: Path, ports: NodePorts) -> dict[str, str]:
        return broker_node(log_dir, ports, node_id)

    return KafkaBroker(folder, config=config, overrides=keys, controller_port=controller_port, node_id=node_id)
