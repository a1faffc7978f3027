"""TLS and SASL on ``kgctl serve``, with clients that nobody here wrote."""

from __future__ import annotations

import json
import socket
import ssl
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient

from kgctl.errors import UsageError
from kgctl.serde.messages import encode_request
from kgctl.server.background import BackgroundServer
from kgctl.server.listeners import BrokerListener
from kgctl.server.security import MECHANISMS, split_security
from tests.support.kafka.broker import KafkaBroker
from tests.support.kafka.security import Certificates, make_certificates
from tests.support.kafka.tools import run_kcg
from tests.support.patience import PATIENCE_S
from tests.support.wire.raw_client import ConnectionClosed, RawClient

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # it reads its schemas by importlib.resources.read_text
    import kafka

PASSWORD = 'al"ice;secret'
JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="al\\"ice;secret" user_bob="bob-secret";'
LIST_GROUPS, SASL_HANDSHAKE, SASL_AUTHENTICATE = 16, 17, 36


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def config(certificates: Certificates, protocol: str = "SASL_SSL", **more: str) -> dict[str, str]:
    return {
        "ssl.keystore.location": str(certificates.server),
        "ssl.keystore.type": "PEM",
        f"listener.name.{protocol.lower()}.sasl.jaas.config": JAAS,
        **{name.replace("_", "."): value for name, value in more.items()},
    }


@pytest.fixture(scope="module")
def server(certificates: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BackgroundServer]:
    data = tmp_path_factory.mktemp("secure") / "data"
    with BackgroundServer(topics={"t": 1}, config=config(certificates), data=data, protocol="SASL_SSL") as running:
        yield running


def librdkafka(server: BackgroundServer, certificates: Certificates, mechanism: str, password: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": server.bootstrap,
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(certificates.ca),
        "sasl.mechanism": mechanism,
        "sasl.username": "alice",
        "sasl.password": password,
    }


@pytest.mark.interop
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka_logs_in_produces_and_reads(server: BackgroundServer, certificates: Certificates, mechanism: str) -> None:
    properties = librdkafka(server, certificates, mechanism, PASSWORD)
    producer = confluent_kafka.Producer(properties)
    producer.produce("t", value=mechanism.encode())
    assert producer.flush(PATIENCE_S) == 0
    consumer = confluent_kafka.Consumer({**properties, "group.id": mechanism, "auto.offset.reset": "earliest"})
    consumer.subscribe(["t"])
    message = consumer.poll(PATIENCE_S)
    consumer.close()

    assert message is not None
    assert message.error() is None


@pytest.mark.interop
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka_with_a_wrong_password_is_told(server: BackgroundServer, certificates: Certificates, mechanism: str) -> None:
    errors: list[str] = []
    properties: dict[str, Any] = librdkafka(server, certificates, mechanism, "wrong") | {"log_level": 0}
    properties["error_cb"] = lambda error: errors.append(error.name())
    admin = AdminClient(properties)
    for _ in range(100):
        admin.poll(0.1)
        if errors:
            break

    assert errors[0] == "_AUTHENTICATION"


@pytest.mark.interop
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafka_python_logs_in(server: BackgroundServer, certificates: Certificates, mechanism: str) -> None:
    properties = {
        "bootstrap_servers": server.bootstrap,
        "security_protocol": "SASL_SSL",
        "ssl_cafile": str(certificates.ca),
        "sasl_mechanism": mechanism,
        "sasl_plain_username": "bob",
        "sasl_plain_password": "bob-secret",
    }
    consumer = kafka.KafkaConsumer(**properties)

    assert consumer.partitions_for_topic("t") == {0}
    consumer.close()


@pytest.mark.needs("javac")
@pytest.mark.kafka
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_java_client_logs_in(server: BackgroundServer, certificates: Certificates, mechanism: str, tmp_path: Path) -> None:
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    login = f'org.apache.kafka.common.security.{module} required username="bob" password="bob-secret";'
    properties = tmp_path / "client.properties"
    properties.write_text(
        f"security.protocol=SASL_SSL\nssl.truststore.type=PEM\nssl.truststore.location={certificates.ca}\n"
        f"sasl.mechanism={mechanism}\nsasl.jaas.config={login}\n"
    )
    ran = run_kcg(["--bootstrap-server", server.bootstrap, "--list", "--command-config", str(properties)])

    assert (ran.returncode, "Exception" in ran.stderr) == (0, False)


def test_a_login_over_plain_tcp_and_before_anything_else(certificates: Certificates) -> None:
    with BackgroundServer(config=config(certificates, "SASL_PLAINTEXT"), protocol="SASL_PLAINTEXT") as server:
        for version in (0, 1):
            with RawClient(server.bootstrap) as raw:
                assert raw.call(SASL_HANDSHAKE, version, {"mechanism": "GSSAPI"}).error_code == 33
                assert raw.call(SASL_HANDSHAKE, version, {"mechanism": "PLAIN"}).error_code == 0
                token = b"\0bob\0bob-secret"
                if version == 0:
                    raw.send_payload(token)
                    assert raw.receive() == b""
                else:
                    assert raw.call(SASL_AUTHENTICATE, 2, {"auth_bytes": token}).error_code == 0
                assert raw.call(LIST_GROUPS, 4).error_code == 0
        with RawClient(server.bootstrap) as raw:
            raw.send(LIST_GROUPS, 4)
            with pytest.raises(ConnectionClosed):
                raw.receive()


@pytest.mark.parametrize("token", [b"\0bob\0wrong", b"\0nobody\0bob-secret", b"bob", b"\0\0\0\0", b"\0bob\0", b"\xff" * 600])
def test_a_wrong_login_is_told_and_ends_the_connection(certificates: Certificates, token: bytes) -> None:
    with (
        BackgroundServer(config=config(certificates, "SASL_PLAINTEXT"), protocol="SASL_PLAINTEXT") as server,
        RawClient(server.bootstrap) as raw,
    ):
        raw.call(SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"})
        answer = raw.call(SASL_AUTHENTICATE, 2, {"auth_bytes": token})

        assert answer.error_code == 58
        assert raw.is_closed()


LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
INSIDE = {"listener.name.inside.plain.sasl.jaas.config": f'{LOGIN} user_alice="in" user_bob="in";'}
OUTSIDE = {"listener.name.outside.plain.sasl.jaas.config": f'{LOGIN} user_alice="out" user_carol="out";'}
LISTENERS = (BrokerListener("INSIDE", "SASL_PLAINTEXT"), BrokerListener("OUTSIDE", "SASL_PLAINTEXT"))
TRIED = [(name, word) for name in ("alice", "bob", "carol") for word in ("in", "out")]


def logins(address: str) -> list[tuple[str, str]]:
    """Who is let in by PLAIN, with what password."""
    found = []
    for name, word in TRIED:
        with RawClient(address) as raw:
            raw.call(SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"})
            if raw.call(SASL_AUTHENTICATE, 2, {"auth_bytes": f"\0{name}\0{word}".encode()}).error_code == 0:
                found.append((name, word))
    return found


@pytest.mark.parametrize("side", ["kgctl", pytest.param("kafka", marks=pytest.mark.kafka)])
def test_users_of_plain_are_their_listeners(side: str, tmp_path: Path) -> None:
    """As on Apache Kafka, of which the same is asked."""
    addresses = on_kafka if side == "kafka" else on_kgctl
    with addresses(tmp_path) as (inside, outside):
        assert logins(inside) == [("alice", "in"), ("bob", "in")]
        assert logins(outside) == [("alice", "out"), ("carol", "out")]


@contextmanager
def on_kgctl(folder: Path) -> Iterator[tuple[str, str]]:
    with BackgroundServer(listeners=LISTENERS, config={**INSIDE, **OUTSIDE}, data=folder) as server:
        yield server.bootstrap, server.server.bootstrap_of("OUTSIDE")
        assert not (folder / "credentials.json").exists()


@contextmanager
def on_kafka(folder: Path) -> Iterator[tuple[str, str]]:
    names = ("PLAINTEXT", "INSIDE", "OUTSIDE")
    protocols = "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,INSIDE:SASL_PLAINTEXT,OUTSIDE:SASL_PLAINTEXT"
    own = {"listener.security.protocol.map": protocols, "inter.broker.listener.name": "PLAINTEXT"}
    broker = KafkaBroker(folder, listeners=names, overrides={**own, **INSIDE, **OUTSIDE, "sasl.enabled.mechanisms": "PLAIN"})
    broker.start()
    try:
        yield broker.address("INSIDE"), broker.address("OUTSIDE")
    finally:
        broker.stop()


def test_users_of_plain_for_all_listeners_but_one() -> None:
    every = {"plain.sasl.jaas.config": f'{LOGIN} user_alice="in";'}
    with BackgroundServer(listeners=LISTENERS, config={**every, **OUTSIDE}) as server:
        assert logins(server.bootstrap) == [("alice", "in")]
        assert logins(server.server.bootstrap_of("OUTSIDE")) == [("alice", "out"), ("carol", "out")]


def test_users_of_plain_have_no_keys_for_scram() -> None:
    scram = {"scram-sha-512.sasl.jaas.config": JAAS}  # what a broker logs in with itself
    with BackgroundServer(listeners=LISTENERS, config={**INSIDE, **OUTSIDE, **scram}) as server:
        for name, password in (("alice", "in"), ("bob", "bob-secret")):
            login: dict[str, Any] = {"sasl.username": name, "sasl.password": password, "sasl.mechanism": "SCRAM-SHA-512"}
            client = {"bootstrap.servers": server.bootstrap, "security.protocol": "SASL_PLAINTEXT", "log_level": 0, **login}
            with pytest.raises(confluent_kafka.KafkaException):
                AdminClient(client).list_topics(timeout=1)


def test_passwords_are_nowhere_in_the_folder(server: BackgroundServer) -> None:
    data = server.server.options.data
    assert data is not None
    for path in data.iterdir():
        content = path.read_bytes()
        assert b"secret" not in content, path
        assert path.stat().st_mode & 0o077 == 0
    assert set(json.loads((data / "credentials.json").read_text())["data"]) == {"alice", "bob"}


def test_users_of_the_folder_need_no_password_at_the_next_start(certificates: Certificates, tmp_path: Path) -> None:
    with BackgroundServer(config=config(certificates, "SASL_PLAINTEXT"), data=tmp_path, protocol="SASL_PLAINTEXT"):
        pass
    with BackgroundServer(data=tmp_path, protocol="SASL_PLAINTEXT") as server, RawClient(server.bootstrap) as raw:
        raw.call(SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"})
        assert raw.call(SASL_AUTHENTICATE, 2, {"auth_bytes": b"\0bob\0bob-secret"}).error_code == 0


def test_certificates_of_clients_are_asked_for(certificates: Certificates) -> None:
    settings = config(certificates, "SSL", ssl_client_auth="required", ssl_truststore_location=str(certificates.ca))
    with BackgroundServer(config=settings, protocol="SSL") as server:
        host, _, port = server.bootstrap.rpartition(":")
        assert is_served(host, int(port), certificates, with_certificate=True)
        assert not is_served(host, int(port), certificates, with_certificate=False)


def is_served(host: str, port: int, certificates: Certificates, *, with_certificate: bool) -> bool:
    """Whether ApiVersions is answered to a client that shows a certificate, or none."""
    context = ssl.create_default_context(cafile=str(certificates.ca))
    if with_certificate:
        context.load_cert_chain(certificates.client_certificate, certificates.client_key)
    payload = encode_request(18, 0, 1, "c", {})
    with socket.create_connection((host, port)) as plain, context.wrap_socket(plain, server_hostname=host) as tls:
        try:
            tls.sendall(len(payload).to_bytes(4, "big") + payload)
            return tls.recv(1) != b""
        except (ssl.SSLError, ConnectionResetError, BrokenPipeError):
            return False


def test_a_client_without_tls_is_closed(server: BackgroundServer) -> None:
    with RawClient(server.bootstrap) as raw:
        raw.send_payload(bytes(20))
        assert raw.is_closed()


@pytest.mark.parametrize(
    ("protocol", "settings", "message"),
    [
        ("SSL", {}, "needs a certificate"),
        ("SSL", {"ssl.keystore.location": "/nosuch.pem"}, "ssl.keystore.location"),
        ("SASL_PLAINTEXT", {"sasl.enabled.mechanisms": "GSSAPI"}, "GSSAPI"),
        ("SASL_PLAINTEXT", {}, "needs users"),
        ("PLAINTEXT", {"listener.name.outside.ssl.key.password": "x"}, "there is no listener 'OUTSIDE', only PLAINTEXT"),
    ],
)
def test_settings_that_cannot_be_are_named(protocol: str, settings: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message), BackgroundServer(config=settings, protocol=protocol):
        pass


def test_secrets_are_not_among_the_brokers_configs() -> None:
    found, rest = split_security([BrokerListener("IN", "SASL_PLAINTEXT")], {"sasl.jaas.config": JAAS, "num.partitions": "3"})

    assert rest == {"num.partitions": "3"}
    security = found["IN"]
    assert security.users() == {"alice": PASSWORD, "bob": "bob-secret"}
    assert "secret" not in repr(security)


def test_a_page_for_prometheus() -> None:
    with BackgroundServer(metrics=("127.0.0.1", 0)) as plain, RawClient(plain.bootstrap) as raw:
        raw.call(LIST_GROUPS, 4)
        assert plain.server.metrics_page is not None
        with urlopen(f"http://127.0.0.1:{plain.server.metrics_page.port}/metrics", timeout=PATIENCE_S) as answer:
            text = answer.read().decode()

    assert "kgctl_connections 1.0" in text
    assert 'kgctl_requests_total{api_key="16"} 1.0' in text
