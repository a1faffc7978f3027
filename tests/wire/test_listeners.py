"""Several listeners of one broker: who comes in by one is told the addresses of that one, as by Apache Kafka."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from kgctl.errors import UsageError
from kgctl.server.background import BackgroundServer
from kgctl.server.listeners import BrokerListener
from tests.support.kafka.broker import KafkaBroker
from tests.support.kafka.config import NodePorts, combined_node
from tests.support.kafka.data import wait_until_coordinating
from tests.support.kafka.security import Certificates, make_certificates
from tests.support.patience import PATIENCE_S
from tests.support.wire.raw_client import ConnectionClosed, RawClient

FIND_COORDINATOR, METADATA, DESCRIBE_CLUSTER, DESCRIBE_CONFIGS, SASL_HANDSHAKE = 10, 3, 60, 32, 17
BROKER = 4
MAP = {"listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT"}


@contextmanager
def on_kgctl(folder: Path) -> Iterator[Mapping[str, str]]:
    del folder
    listeners = (BrokerListener("INSIDE"), BrokerListener("OUTSIDE", advertised=("kafka.example", 0)))
    with BackgroundServer(listeners=listeners, config=MAP) as server:
        yield {listener.name: server.server.bootstrap_of(listener.name) for listener in listeners}


@contextmanager
def on_kafka(folder: Path) -> Iterator[Mapping[str, str]]:
    def node(log_dir: Path, ports: NodePorts) -> Mapping[str, str]:
        told = {"INSIDE": "127.0.0.1", "OUTSIDE": "kafka.example"}
        return {
            **combined_node(log_dir, ports),
            "advertised.listeners": ",".join(f"{name}://{host}:{ports.listeners[name]}" for name, host in told.items()),
            "listener.security.protocol.map": f"{MAP['listener.security.protocol.map']},CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "INSIDE",
        }

    broker = KafkaBroker(folder, config=node, listeners=("INSIDE", "OUTSIDE"))
    broker.start()
    try:
        wait_until_coordinating(broker.bootstrap)
        yield {name: broker.address(name) for name in ("INSIDE", "OUTSIDE")}
    finally:
        broker.stop()


@pytest.mark.parametrize("server", [on_kgctl, pytest.param(on_kafka, marks=pytest.mark.kafka)])
def test_who_asks_is_told_the_addresses_of_the_listener_that_they_came_in_by(server: Any, tmp_path: Path) -> None:
    with server(tmp_path) as addresses:
        for name, host in (("INSIDE", "127.0.0.1"), ("OUTSIDE", "kafka.example")):
            place = (host, int(addresses[name].rpartition(":")[2]))
            with RawClient(addresses[name]) as client:
                brokers = client.call(METADATA, 12, {"topics": []}).brokers
                (group,) = client.call(FIND_COORDINATOR, 6, {"coordinator_keys": ["g"], "key_type": 0}).coordinators
                old = client.call(FIND_COORDINATOR, 3, {"key": "g", "key_type": 0})
                cluster = client.call(DESCRIBE_CLUSTER, 1, {"endpoint_type": 1}).brokers
            assert {(each.host, each.port) for each in (*brokers, group, old, *cluster)} == {place}


def test_what_a_broker_says_of_its_listeners(tmp_path: Path) -> None:
    with on_kgctl(tmp_path) as addresses, RawClient(addresses["OUTSIDE"]) as client:
        asked = {"resource_type": BROKER, "resource_name": "1", "configuration_keys": None}
        (found,) = client.call(DESCRIBE_CONFIGS, 4, {"resources": [asked]}).results
    configs = {each.name: each.value for each in found.configs}
    port = addresses["OUTSIDE"].rpartition(":")[2]
    assert configs["listeners"] == f"INSIDE://{addresses['INSIDE']},OUTSIDE://{addresses['OUTSIDE']}"
    assert configs["advertised.listeners"] == f"INSIDE://{addresses['INSIDE']},OUTSIDE://kafka.example:{port}"
    assert configs["listener.security.protocol.map"] == MAP["listener.security.protocol.map"]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def test_each_listener_has_its_own_protection(certificates: Certificates) -> None:
    listeners = (BrokerListener(), BrokerListener("LOGIN", "SASL_PLAINTEXT"), BrokerListener("SSL", "SSL"))
    config = {
        "listener.name.ssl.ssl.keystore.location": str(certificates.server),
        "listener.name.login.plain.sasl.jaas.config": 'user_alice="secret"',
        "listener.name.login.sasl.enabled.mechanisms": "PLAIN",
    }
    with BackgroundServer(listeners=listeners, config=config) as server:
        at = {listener.name: server.server.bootstrap_of(listener.name) for listener in listeners}
        with RawClient(at["PLAINTEXT"]) as plain:
            assert plain.call(SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"}).error_code == 34  # ILLEGAL_SASL_STATE
            assert plain.call(METADATA, 12, {"topics": []}).brokers
        with RawClient(at["LOGIN"]) as login:
            assert login.call(SASL_HANDSHAKE, 1, {"mechanism": "SCRAM-SHA-256"}).mechanisms == ("PLAIN",)
            login.send(METADATA, 12, {"topics": []})
            with pytest.raises(ConnectionClosed):
                login.receive()
        with RawClient(at["SSL"]) as bare:
            bare.send_payload(bytes(20))
            assert bare.is_closed()
        client: dict[str, Any] = {
            "bootstrap.servers": at["SSL"],
            "security.protocol": "SSL",
            "ssl.ca.location": str(certificates.ca),
        }
        (broker,) = AdminClient(client).list_topics(timeout=PATIENCE_S).brokers.values()
        assert f"{broker.host}:{broker.port}" == at["SSL"]


def test_a_broker_that_is_lost_is_lost_by_all_its_listeners_and_comes_back_to_the_same_ports() -> None:
    with BackgroundServer(listeners=(BrokerListener("A"), BrokerListener("B")), brokers=2) as server:
        before = [server.server.bootstrap_of(name) for name in "AB"]
        with RawClient(before[1].split(",")[1]) as client:
            server.run(server.server.stop_broker(2))
            assert client.is_closed()
        assert [server.server.bootstrap_of(name) for name in "AB"] == [each.split(",")[0] for each in before]
        for address in (each.split(",")[1] for each in before):
            with pytest.raises(ConnectionRefusedError):
                RawClient(address)
        server.run(server.server.start_broker(2))
        assert [server.server.bootstrap_of(name) for name in "AB"] == before


@pytest.mark.parametrize("turns", range(5))
def test_a_connection_that_is_under_way_as_its_broker_is_lost_ends_with_it(turns: int) -> None:
    """So many turns of the loop lie between the connection's arrival and the end: it is accepted in one and made in another."""
    with BackgroundServer(brokers=2) as server:
        address = server.bootstrap.split(",")[1]

        async def arrive_and_be_lost() -> RawClient:
            client = RawClient(address)
            for _ in range(turns):
                await asyncio.sleep(0)
            await server.server.stop_broker(2)
            return client

        with server.run(arrive_and_be_lost()) as client:
            assert client.is_closed()


@pytest.mark.parametrize(
    ("listeners", "message"),
    [
        ((BrokerListener("A"), BrokerListener("A")), "there are two listeners 'A'"),
        (
            (BrokerListener("A", port=9_092), BrokerListener("B", port=9_093)),
            "port 9093 would be one of listener A and of B: 2 brokers",
        ),
    ],
)
def test_listeners_that_cannot_be(listeners: tuple[BrokerListener, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message), BackgroundServer(listeners=listeners, brokers=2):
        pass
