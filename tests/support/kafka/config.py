"""The broker configurations of the tests, as plain mappings by Kafka's own names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

CLUSTER_ID = "kgctl-tests-cluster-01"

# Small, quick to start and to stop, and quick to react; everything else is Kafka's default.
TEST_KEYS: Mapping[str, str] = {
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.retention.check.interval.ms": "86400000",  # every ten minutes it would delete empty groups without commits
    "log.retention.check.interval.ms": "86400000",  # every five minutes it would delete records whose times are of long ago
    "group.min.session.timeout.ms": "100",
    "group.consumer.min.session.timeout.ms": "100",
    "group.consumer.min.heartbeat.interval.ms": "50",
    "auto.create.topics.enable": "false",
    "num.network.threads": "1",
    "num.io.threads": "2",
    "background.threads": "2",
    "log.cleaner.dedupe.buffer.size": "1048577",  # the smallest that starts
    "broker.heartbeat.interval.ms": "500",  # with the next: an idle node takes half of the processor time
    "metadata.max.idle.interval.ms": "0",
    "broker.session.timeout.ms": "3000",  # how long a killed node is kept from coming back
    "controller.quorum.append.linger.ms": "0",
    "controller.quorum.election.timeout.ms": "100",
    "controller.quorum.election.backoff.max.ms": "50",
}

THREE_BROKER_KEYS: Mapping[str, str] = {
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "3",
    "default.replication.factor": "3",
    "broker.session.timeout.ms": "9000",  # Kafka's own: a broker that hangs is still taken for alive while kgctl asks it
}


@dataclass(frozen=True, slots=True)
class NodePorts:
    """The loopback ports of one node: one a listener name, and the quorum's."""

    listeners: Mapping[str, int]
    controller: int

    @property
    def all(self) -> list[int]:
        """Every port of this node's own."""
        return [*self.listeners.values(), self.controller]


def combined_node(log_dir: Path, ports: NodePorts, node_id: int = 1) -> dict[str, str]:
    """A node that is broker and the quorum's only controller."""
    listeners = [f"{name}://127.0.0.1:{port}" for name, port in ports.listeners.items()]
    return {
        **_common(log_dir, ports, node_id),
        "process.roles": "broker,controller",
        "listeners": ",".join([*listeners, f"CONTROLLER://127.0.0.1:{ports.controller}"]),
    }


def broker_node(log_dir: Path, ports: NodePorts, node_id: int) -> dict[str, str]:
    """A broker of a cluster whose controller is node 1."""
    listeners = [f"{name}://127.0.0.1:{port}" for name, port in ports.listeners.items()]
    return {**_common(log_dir, ports, node_id), "process.roles": "broker", "listeners": ",".join(listeners)}


def controller_node(log_dir: Path, ports: NodePorts, node_id: int) -> dict[str, str]:
    """A node that is the quorum's only controller, and no broker."""
    listeners = f"CONTROLLER://127.0.0.1:{ports.controller}"
    return {**_common(log_dir, ports, node_id), "process.roles": "controller", "listeners": listeners}


def _common(log_dir: Path, ports: NodePorts, node_id: int) -> dict[str, str]:
    return {
        "node.id": str(node_id),
        "controller.quorum.voters": f"1@127.0.0.1:{ports.controller}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": protocol_map(list(ports.listeners)),
        "log.dirs": str(log_dir),
        **TEST_KEYS,
    }


def protocol_map(listeners: Sequence[str]) -> str:
    """Each listener is named after its security protocol; the controller's is plain."""
    return ",".join(["CONTROLLER:PLAINTEXT", *(f"{name}:{name}" for name in listeners)])
