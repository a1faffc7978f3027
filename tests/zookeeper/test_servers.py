"""Logins and encryption on a real ZooKeeper, and servers too old to answer many reads in one request."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.security import make_digest_acl

from kgctl.admin.zookeeper import ZooKeeperSettings
from kgctl.admin.zookeeper.connection import ZooKeeperSession
from kgctl.zookeeper import Registry
from tests.support.kafka.ports import free_ports
from tests.support.kafka.security import make_certificates
from tests.support.machine import DEBIANS_JARS
from tests.support.maven import class_path
from tests.support.zookeeper import ZooKeeperServer, zookeeper_class_path
from tests.support.zookeeper.fixtures import started
from tests.support.zookeeper.old_kafka import POM
from tests.zookeeper.conftest import ZooKeeperCli, commits, rows, topic

pytestmark = pytest.mark.zookeeper

NETTY = sorted(DEBIANS_JARS.glob("netty-*.jar"))
JAAS = """\
Server {
  org.apache.zookeeper.server.auth.DigestLoginModule required user_kgctl="secret";
};
"""


@pytest.fixture
def login_server(tmp_path: Path) -> Iterator[ZooKeeperServer]:
    """A server that takes nobody without SASL."""
    (tmp_path / "jaas.conf").write_text(JAAS)
    settings = {
        "authProvider.1": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
        "sessionRequireClientSASLAuth": "true",
    }
    jvm = [f"-Djava.security.auth.login.config={tmp_path / 'jaas.conf'}"]
    yield from started(ZooKeeperServer(tmp_path / "zookeeper", settings=settings, jvm=jvm))


@pytest.fixture
def tls_server(tmp_path: Path) -> Iterator[tuple[ZooKeeperServer, int]]:
    """A server with a second port for TLS, and that port; certificates are in ``certificates``."""
    certificates = make_certificates(tmp_path / "certificates")
    secure = free_ports(1)[0]
    settings = {
        "secureClientPort": str(secure),
        "secureClientPortAddress": "127.0.0.1",
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "ssl.keyStore.type": "PEM",
        "ssl.keyStore.location": str(certificates.server),
        "ssl.trustStore.type": "PEM",
        "ssl.trustStore.location": str(certificates.ca),
        "ssl.clientAuth": "need",
    }
    jars = ":".join((zookeeper_class_path(), *map(str, NETTY)))
    for server in started(ZooKeeperServer(tmp_path / "zookeeper", settings=settings, class_path=jars)):
        yield server, secure


def test_digest_opens_what_is_closed_to_others(tmp_path: Path, zookeeper: str, kazoo: KazooClient) -> None:
    topic(kazoo, "orders", 1)
    commits(kazoo, "payments", {("orders", 0): 7})
    for path in ("/consumers/payments/offsets", "/consumers/payments/offsets/orders", "/consumers/payments/offsets/orders/0"):
        kazoo.set_acls(path, [make_digest_acl("kgctl", "secret", all=True)])
    cli = ZooKeeperCli(tmp_path, zookeeper)
    assert cli("describe group payments").code == 8
    told = cli("describe group payments -X zookeeper.digest=kgctl:secret -o json")
    assert rows(told, "current_offset") == [(7,)]
    done = cli("reset-offsets payments --all-topics --to-offset 3 --execute -X zookeeper.digest=kgctl:secret")
    assert done.code == 0
    assert "secret" not in done.out + done.err


def test_sasl_logs_in_and_a_wrong_password_is_exit_code_8(tmp_path: Path, login_server: ZooKeeperServer) -> None:
    cli = ZooKeeperCli(tmp_path, login_server.hosts)
    login = "-X zookeeper.sasl.mechanism=DIGEST-MD5 -X zookeeper.sasl.username=kgctl -X zookeeper.sasl.password"
    for name, word in (("right", "secret"), ("wrong", "wrong")):
        (tmp_path / name).write_text(word)
    assert cli(f"list groups {login}=file:{tmp_path}/right").code == 0
    ran = cli(f"list groups {login}=file:{tmp_path}/wrong --timeout 20s")
    assert (ran.code, ran.err) == (8, f"kgctl: ZooKeeper at {login_server.hosts} refuses the login\n")


def test_tls_with_certificates_of_both_sides(tmp_path: Path, tls_server: tuple[ZooKeeperServer, int]) -> None:
    server, port = tls_server
    with Registry.connect(server.hosts) as registry:
        registry.group("payments").commit("orders", 0, 7)
    folder = tmp_path / "certificates"
    cli = ZooKeeperCli(tmp_path, f"127.0.0.1:{port}")
    own = f"-X zookeeper.ssl.certificate.location={folder}/client.pem -X zookeeper.ssl.key.location={folder}/client-key.pem"
    told = cli(f"list groups {own} -X zookeeper.ssl.ca.location={folder}/ca.pem -o json")
    assert rows(told, "group") == [("payments",)]
    assert cli(f"list groups {own} -X zookeeper.ssl.ca.location={folder}/other-ca.pem --timeout 1s").code == 7
    assert cli("list groups --timeout 1s").code == 7
    gc.collect()  # a socket that was left open would be told here


@pytest.mark.needs("maven")
def test_a_server_without_many_reads_in_one_request_is_read_one_by_one(tmp_path: Path) -> None:
    """ZooKeeper 3.4.10, which Kafka 1.1.1 brings: it answers such a request as unimplemented and closes the connection."""
    jars = class_path(POM)
    for server in started(ZooKeeperServer(tmp_path / "zookeeper", class_path=jars)):
        connection = ZooKeeperSession(ZooKeeperSettings.of(server.hosts), timeout_ms=60_000)
        with Registry(connection) as registry:
            group = registry.group("payments")
            instance = group.new_instance("x")
            instance.register(["orders"])
            group.commit("orders", 0, 7)
            assert (group.fetch("orders", 0), group.fetch("orders", 1)) == (7, None)
            assert not connection._has_multi_read
            assert instance.registered(), "the session goes on"
            instance.deregister()
        commits_of = {("wide", number): number for number in range(1_500)}
        kazoo = KazooClient(server.hosts)
        kazoo.start()
        commits(kazoo, "big", commits_of)
        kazoo.stop()
        kazoo.close()
        told = ZooKeeperCli(tmp_path, server.hosts)("describe group big -o json")
        assert {(row["topic"], row["partition"]): row["current_offset"] for row in told.data} == commits_of
