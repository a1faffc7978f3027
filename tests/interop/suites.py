"""Integration tests of other clients' projects, as they publish them, on Apache Kafka 4.3.1 and on `kgctl.testing`.

``python -m tests.interop.suites NAME SOURCE [--on kafka|kgctl]`` runs one of `SUITES` from a checkout of its repository (any git
directory that has the release's tag; nothing of it is kept here), in an environment that is made for it. What failed is run once
more, as many of these tests are a matter of tenths of a second. What passed goes to `RESULTS`, from which the table in the manual
is made. Nothing of the tests is changed; `Suite.fixture`, which is added to their conftest.py, stands for the fixture that would
start a broker.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from kgctl.testing import EmbeddedServer
from tests.interop.peers import Outcomes, outcomes_of, run_kafka_python
from tests.support.kafka.broker import KafkaBroker
from tests.support.kafka.config import NodePorts, combined_node
from tests.support.kafka.data import wait_until_coordinating
from tests.support.kafka.security import Certificates, make_certificates

RESULTS = Path(__file__).with_name("suites.json")
TIMEOUT_S = 3_000
AS_KAFKA = {
    "group.initial.rebalance.delay.ms": "3000",
    "group.min.session.timeout.ms": "6000",
    "auto.create.topics.enable": "true",
}
"""Kafka's own defaults, where a fixture for tests has others."""

AIOKAFKA_FIXTURE = """

import os

@pytest.fixture(scope="session")
def docker():
    return None

@pytest.fixture(scope="session")
def kafka_image():
    return "kafka:4.3.1"

@pytest.fixture(scope="session")
def ssl_folder():
    return pathlib.Path(os.environ["SUITE_CERTIFICATES"])

@pytest.fixture(scope="session")
def kafka_server():
    host, port = os.environ["SUITE_PLAINTEXT"].split(":")
    yield KafkaServer(host, int(port), int(os.environ["SUITE_SSL"].split(":")[1]), 0, 0, None)

@pytest.fixture(scope="class")
def acl_manager():
    return None

kafka_config = kerberos_utils = acl_manager
"""


@dataclass(frozen=True, slots=True)
class Suite:
    """``tests`` are run, with ``options`` of pytest; ``left_out`` says what of the integration tests is not, and why.

    ``settings`` are the broker's, beside Kafka's defaults; ``fixture`` is added to ``conftest``; ``requirements`` are those of
    the tests, beside the client itself.
    """

    release: str
    tests: Sequence[str]
    left_out: str
    requirements: Sequence[str] = ()
    options: Sequence[str] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    conftest: str = "tests/conftest.py"
    fixture: str = ""
    package: str = ""
    """The client's name on PyPI, unless it is the suite's."""


_AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
_AIOKAFKA = (
    *("admin", "client", "conn", "consumer", "coordinator", "fetcher", "pep492", "producer", "sender"),
    *("transactional_consumer", "transactional_producer"),
)
_CONFLUENT_NEEDS = ("confluent-kafka[avro,json,protobuf]", "pytest", "pytest-asyncio", "pytest-timeout", "trivup", "requests")
SUITES: Mapping[str, Suite] = {
    "kafka-python": Suite(
        "3.0.12",
        ["test/integration"],
        "what starts brokers of its own",
        settings={**_AUTHORIZER, "num.partitions": "4", "node.id": "0"},
    ),
    "aiokafka": Suite(
        "0.14.0",
        [f"tests/test_{name}.py" for name in _AIOKAFKA],
        "test_sasl, which runs Kafka's and Kerberos' programs in its container",
        ["docker", "pytest", "pytest-asyncio", "pytest-mock", "pytest-timeout", "cramjam", "async-timeout"],
        ["--docker-image=kafka:4.3.1", "--no-pull", "-W", "ignore::DeprecationWarning"],
        {"num.partitions": "2", "node.id": "0"},
        fixture=AIOKAFKA_FIXTURE,
    ),
    "confluent-kafka": Suite(
        "2.15.0",
        ["tests/integration/admin", "tests/integration/consumer", "tests/integration/producer"],
        "schema registries, which want one; `test_describe_operations` starts brokers by trivup",
        _CONFLUENT_NEEDS,
        settings={**_AUTHORIZER, "num.partitions": "4"},
    ),
    "confluent-kafka share groups": Suite(
        "2.15.0",
        ["tests/integration/share_consumer"],
        "`share_consumer_oauth` and `share_consumer_sasl` start brokers by trivup",
        _CONFLUENT_NEEDS,
        settings={
            "num.partitions": "4",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.share.record.lock.duration.ms": "1000",
            "group.share.min.record.lock.duration.ms": "1000",
        },
        package="confluent-kafka",
    ),
}  # fmt: skip


BY_HAND: Mapping[str, str] = {
    "franz-go": "OAUTHBEARER, not served (`pkg/kgo` with `KGO_TEST_RF=1 KGO_TEST_RECORDS=2000`)",
    "kafka-go": "compressions and protocol, which ask no server",
    "kafkajs": "OAUTHBEARER, not served; protocol and utilities, which ask no server",
}
"""What of suites that are no Python was left out. They were run in their own checkouts, unchanged but for the addresses.

kafka-go's have fixed ports, so they ran in a network namespace (``unshare -n``) with `BackgroundServer` or Apache Kafka, with the
listeners and users of their docker-compose files; kafkajs' three brokers have their addresses in ``testHelpers/index.js``.
Tests of Go count as their functions do, with all subtests; what passed went into `RESULTS` by hand.
"""


@contextmanager
def on_kafka(suite: Suite, folder: Path) -> Iterator[Mapping[str, str]]:
    """A node of Apache Kafka; what the tests are told."""
    certificates = make_certificates(folder / "certificates")
    tls = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates.server),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates.ca),
        "inter.broker.listener.name": "PLAINTEXT",
    }
    node_id = int(suite.settings.get("node.id", 1))

    def node(log_dir: Path, ports: NodePorts) -> Mapping[str, str]:
        voters = {"controller.quorum.voters": f"{node_id}@127.0.0.1:{ports.controller}"}
        return {**combined_node(log_dir, ports, node_id), **voters, **AS_KAFKA, **tls, **suite.settings}

    broker = KafkaBroker(folder / "broker", config=node, listeners=("PLAINTEXT", "SSL"), node_id=node_id)
    try:
        broker.start()
        wait_until_coordinating(broker.bootstrap)
        yield told(broker.address("PLAINTEXT"), broker.address("SSL"), certificates)
    finally:
        broker.stop()


@contextmanager
def on_kgctl(suite: Suite, folder: Path) -> Iterator[Mapping[str, str]]:
    """An `EmbeddedServer` with Kafka's own settings."""
    certificates = make_certificates(folder / "certificates")
    settings = {"ssl.keystore.location": str(certificates.server), **suite.settings}
    acls = () if settings.pop("authorizer.class.name", None) else None
    with EmbeddedServer(config={**AS_KAFKA, **settings}, acls=acls, listeners={"SSL": "SSL"}) as cluster:
        yield told(cluster.bootstrap, cluster.bootstrap_of("SSL"), certificates)


SERVERS = {"kafka": on_kafka, "kgctl": on_kgctl}


def told(plain: str, tls: str, certificates: Certificates) -> dict[str, str]:
    """The variables by which a suite finds its server, and the client's side of TLS."""
    folder = certificates.ca.parent
    for name, file in (("ca.crt", certificates.ca), ("client.crt", certificates.client_certificate)):
        (folder / name).write_bytes(file.read_bytes())
    (folder / "client.key").write_bytes(certificates.client_key.read_bytes())
    return {"SUITE_PLAINTEXT": plain, "SUITE_SSL": tls, "SUITE_CERTIFICATES": str(folder), "BROKERS": plain}


def checked_out(suite: Suite, source: Path, folder: Path) -> Path:
    """The release's tests and pytest's settings, with our fixture."""
    packed = subprocess.run(
        ["git", "-C", str(source), "archive", f"v{suite.release}", "tests", "pyproject.toml"], capture_output=True, check=True
    )
    checkout = folder / "checkout"
    checkout.mkdir()
    subprocess.run(["tar", "-x", "-C", str(checkout)], input=packed.stdout, check=True)
    with (checkout / suite.conftest).open("a") as conftest:
        conftest.write(suite.fixture)
    return checkout


def environment(name: str, suite: Suite, folder: Path) -> Path:
    """A Python with the client of the release and what its tests need."""
    subprocess.run([sys.executable, "-m", "venv", str(folder / "env")], check=True)
    python = folder / "env/bin/python"
    wanted = [f"{suite.package or name}=={suite.release}", *suite.requirements]
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", *wanted], check=True)
    return python


def played(name: str, suite: Suite, source: Path | None, server: str, folder: Path) -> Outcomes:
    """Run the suite on one server; kafka-python's comes with its sdist."""
    if source is None:
        with SERVERS[server](suite, folder) as variables:
            return run_kafka_python(variables["BROKERS"], folder)
    checkout, python = checked_out(suite, source, folder), environment(name, suite, folder)

    def run(report: Path, *more: str) -> Outcomes:
        options = ["-q", "-o", f"cache_dir={folder / 'cache'}", "--timeout=180", f"--junitxml={report}", *suite.options, *more]
        with report.with_suffix(".log").open("w") as output:
            subprocess.run(
                [str(python), "-m", "pytest", *suite.tests, *options],
                cwd=checkout,
                env={**os.environ, **variables},
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=TIMEOUT_S,
                check=False,
            )
        return outcomes_of(report)

    with SERVERS[server](suite, folder) as variables:
        first = run(folder / "report.xml")
        again = run(folder / "again.xml", "--last-failed") if first.failed else first
    return Outcomes(first.passed | again.passed, first.failed - again.passed, first.skipped)


def record(name: str, release: str, server: str, found: Outcomes) -> None:
    """Keep what was found, beside what is known of the other server."""
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    kept = known.get(name, {})
    if kept.get("release") != release:
        kept = {"release": release}
    kept[server] = {"passed": len(found.passed), "failed": sorted(found.failed), "skipped": sorted(found.skipped)}
    RESULTS.write_text(json.dumps({**known, name: kept}, indent=1, sort_keys=True) + "\n")


def main() -> None:
    """Run one suite on one server, or on both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=SUITES)
    parser.add_argument("source", type=Path, nargs="?", help="a checkout of the project, with the release's tag")
    parser.add_argument("--on", choices=SERVERS, action="append")
    given = parser.parse_args()
    for server in given.on or SERVERS:
        folder = Path(tempfile.mkdtemp(prefix=f"{given.name.replace(' ', '-')}-{server}-"))
        print(f"{given.name} on {server}, in {folder}", file=sys.stderr)
        found = played(given.name, SUITES[given.name], given.source, server, folder)
        record(given.name, SUITES[given.name].release, server, found)
        print(f"{len(found.passed)} passed, {len(found.skipped)} skipped, failed: {sorted(found.failed)}", file=sys.stderr)


if __name__ == "__main__":
    main()
