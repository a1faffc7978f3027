"""Users who may do some things: kgctl serve and Apache Kafka, each with an authorizer, refuse the same in the same words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from kgctl.server.access import STANDARD
from kgctl.server.background import BackgroundServer
from kgctl.server.service import default_registry
from tests.support.kafka.security import USERS, SecureKafkaBroker
from tests.wire.differential.about_rights import RULES, UserProbe, everything, prepare, put, rules_of
from tests.wire.differential.differences import RIGHTS, differences
from tests.wire.differential.talk import create_topic

pytestmark = pytest.mark.kafka

JAAS = " ".join(f'user_{name}="{password}"' for name, password in USERS.items())
CONFIG = {
    "sasl.jaas.config": f"org.apache.kafka.common.security.plain.PlainLoginModule required {JAAS};",
    "authorizer.class.name": STANDARD,
    "super.users": "User:ANONYMOUS;User:admin",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "auto.create.topics.enable": "true",
}
NEWEST, MIDDLE, OLDEST = "newest", "middle", "oldest"


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    broker = SecureKafkaBroker(tmp_path_factory.mktemp("kafka-rights"), {"auto.create.topics.enable": "true"})
    try:
        broker.start()
        yield broker.address("SASL_PLAINTEXT")
    finally:
        broker.stop()


@pytest.fixture(scope="module")
def kgctl() -> Iterator[str]:
    with BackgroundServer(config=CONFIG, protocol="SASL_PLAINTEXT") as server:
        yield server.bootstrap


@pytest.mark.parametrize("versions", [OLDEST, MIDDLE, NEWEST])
@pytest.mark.parametrize("rules", RULES, ids=lambda name: name.replace(" ", "-").replace(",", ""))
def test_every_refusal_is_kafkas(rules: str, versions: str, kafka: str, kgctl: str) -> None:
    name = f"rights-{versions}-{list(RULES).index(rules)}"
    theirs, ours = (_asked(bootstrap, name, rules, versions) for bootstrap in (kafka, kgctl))
    assert len(theirs) == len(ours)

    found = [
        f"{question}\n  {line}"
        for (question, expected), (_, answer) in zip(theirs, ours, strict=True)
        for line in differences(RIGHTS, _said(expected, name), _said(answer, name))
    ]

    assert not found, "\n".join(found)


def _said(answer: Any, name: str) -> Any:
    """What is said about this test's own groups. Kafka writes all of a request that it refuses into the message."""
    if isinstance(answer, dict):
        return {key: _said(value, name) for key, value in answer.items()}
    if isinstance(answer, list):
        return [_said(value, name) for value in answer if not _is_of_another(value, name)]
    if isinstance(answer, str):
        answer = re.sub(r"^(topic|producer) \d+$", r"\1", answer)  # in another order among those of other tests
        return re.sub(r"(?s)^Request .* needs", "Request needs", answer)
    return answer


def _is_of_another(value: Any, name: str) -> bool:
    if not isinstance(value, dict):
        return False
    subject = value.get("name") if "is_internal" in value else value.get("group_id")
    return subject is not None and not str(subject).startswith((name, "not a"))


def _asked(bootstrap: str, name: str, rules: str, versions: str) -> list[tuple[Any, Any]]:
    specs = {spec.key: spec for spec in default_registry().specs()}

    def version(api_key: int) -> int:
        least, most = specs[api_key].min_version, specs[api_key].max_version
        return {OLDEST: least, MIDDLE: (least + most) // 2, NEWEST: most}[versions]

    admin = UserProbe(bootstrap, "admin", USERS["admin"])
    put(admin, [])
    topic_id = prepare(admin, name, create_topic)
    put(admin, rules_of(rules, name))
    alice = UserProbe(bootstrap, "alice", USERS["alice"])
    for api_key, values in everything(name, topic_id, version):
        alice.call(api_key, version(api_key), values)
    put(admin, [])
    for probe in (admin, alice):
        probe.close()
    return alice.answers
