"""Three brokers, each with a second listener behind a proxy that loses connections: who comes that way never gets past it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from tests.support.kafka.broker import KafkaBroker, NodeConfig
from tests.support.kafka.cluster import KafkaCluster
from tests.support.kafka.config import NodePorts, broker_node, combined_node
from tests.support.wire.lossy import LossyProxy

LOSSY = "LOSSY"
LISTENERS = ("PLAINTEXT", LOSSY)


class LossyCluster(KafkaCluster):
    """As `KafkaCluster`; ``lossy_bootstrap`` are the proxies' addresses, which the brokers tell those who come by them."""

    def __init__(self, folder: Path, overrides: Mapping[str, str] | None = None) -> None:
        self.proxies = [LossyProxy(partial(self._target, number), seed=number) for number in range(3)]
        super().__init__(folder, overrides)

    @property
    def listeners(self) -> Sequence[str]:
        """A plain one for the tests, and the one behind the proxies."""
        return LISTENERS

    def config_of(self, number: int) -> NodeConfig:
        """The configuration of the broker at this place."""
        base = broker_node if number else combined_node

        def config(log_dir: Path, ports: NodePorts) -> dict[str, str]:
            plain = ports.listeners["PLAINTEXT"]
            return {
                **base(log_dir, ports, number + 1),
                "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,LOSSY:PLAINTEXT",
                "inter.broker.listener.name": "PLAINTEXT",
                "advertised.listeners": f"PLAINTEXT://127.0.0.1:{plain},LOSSY://{self.proxies[number].address}",
            }

        return config

    @property
    def lossy_bootstrap(self) -> str:
        """The three addresses of the proxies."""
        return ",".join(proxy.address for proxy in self.proxies)

    def lose(self, chance: float, delay_s: float = 0.0) -> None:
        """From here on each frame closes its connection with this chance."""
        for proxy in self.proxies:
            proxy.chance, proxy.delay_s = chance, delay_s

    def stop(self) -> None:
        """Ends all three, and the proxies."""
        super().stop()
        for proxy in self.proxies:
            proxy.close()

    def _target(self, number: int) -> tuple[str, int]:
        broker: KafkaBroker = self.brokers[number]
        return "127.0.0.1", broker.ports.listeners[LOSSY]
