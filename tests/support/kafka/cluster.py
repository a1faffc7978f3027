"""Three brokers of Apache Kafka on loopback: coordinators and leaders are spread, and one can go away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from tests.support.kafka.broker import KafkaBroker, NodeConfig, class_data_archive
from tests.support.kafka.config import THREE_BROKER_KEYS, broker_node, combined_node, controller_node
from tests.support.kafka.data import elect_preferred_leaders, wait_for_brokers, wait_until_coordinating


class KafkaCluster:
    """Node 1 is broker and controller, 2 and 3 are brokers; topics and the three offsets partitions have three replicas."""

    def __init__(self, folder: Path, overrides: Mapping[str, str] | None = None) -> None:
        keys = {**THREE_BROKER_KEYS, **(overrides or {})}
        first = self._broker(folder, 0, keys)
        self.brokers = [first, *(self._broker(folder, number, keys, first.ports.controller) for number in (1, 2))]

    @property
    def listeners(self) -> Sequence[str]:
        """The names of each broker's listeners, the tests' own first."""
        return ("PLAINTEXT",)

    def config_of(self, number: int) -> NodeConfig:
        """The configuration of the broker at this place."""
        return partial(broker_node if number else combined_node, node_id=number + 1)

    def _broker(self, folder: Path, number: int, keys: Mapping[str, str], controller: int | None = None) -> KafkaBroker:
        return KafkaBroker(
            folder / str(number + 1),
            config=self.config_of(number),
            overrides=keys,
            listeners=self.listeners,
            controller_port=controller,
            node_id=number + 1,
        )

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


class ApartKafkaCluster(KafkaCluster):
    """Nodes 1 to 3 are brokers, of which each can go away; the controller is a node of its own."""

    def __init__(self, folder: Path, overrides: Mapping[str, str] | None = None) -> None:
        keys = {**THREE_BROKER_KEYS, **(overrides or {})}  # how many replicas a topic has is the controller's to say
        self._controller = KafkaBroker(folder / "4", config=partial(controller_node, node_id=4), overrides=keys, node_id=4)
        quorum = {"controller.quorum.voters": f"4@127.0.0.1:{self._controller.ports.controller}"}
        self._controller.overrides |= quorum
        super().__init__(folder, {**keys, **quorum})

    def config_of(self, number: int) -> NodeConfig:
        return partial(broker_node, node_id=number + 1)

    def start(self) -> None:
        """Starts all four, and waits as any cluster does."""
        self._controller.launch(class_data_archive())
        super().start()

    def stop(self) -> None:
        """Ends all four, the controller last."""
        super().stop()
        self._controller.stop()
