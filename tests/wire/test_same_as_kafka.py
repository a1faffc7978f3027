"""The same said to kgctl serve and to Apache Kafka, in every version that both have; every field of every answer compared."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from kgctl.server.background import BackgroundServer
from kgctl.server.service import default_registry
from tests.support.kafka import KafkaBroker
from tests.support.kafka.settings import PATH, settings_of
from tests.wire.differential.about_groups import static_joining
from tests.wire.differential.about_streams_groups import of_streams_groups
from tests.wire.differential.conversations import BY_DEFAULT, CONVERSATIONS
from tests.wire.differential.differences import KNOWN, RIGHTS, differences
from tests.wire.differential.probe import Probe
from tests.wire.differential.talk import API_VERSIONS, Conversation, create_topic
from tests.wire.generated.compare import CONVERSATION

pytestmark = pytest.mark.kafka

CONFIG = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "group.min.session.timeout.ms": "100",
    "auto.create.topics.enable": "false",
}
STATIC_MEMBERS_SINCE = 5
ITSELF = ("broker.id", "listeners")
"""Settings that say what a broker is; kgctl's has no defaults of those."""


def cases(conversations: Mapping[str, tuple[int, Conversation]]) -> Iterator[tuple[str, int]]:
    for name, (api_key, conversation) in conversations.items():
        spec = default_registry().get(api_key)
        assert spec is not None
        for version in range(spec.min_version, spec.max_version + 1):
            if conversation is not static_joining or version >= STATIC_MEMBERS_SINCE:
                yield name, version


@pytest.fixture(scope="module")
def server() -> Iterator[BackgroundServer]:
    with BackgroundServer(config=CONFIG) as running:
        yield running


@pytest.fixture(scope="module")
def automatic_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Apache Kafka, and kgctl, that make topics when they are asked for one: both by their own default."""
    overrides = {"auto.create.topics.enable": "true"}
    kafka = KafkaBroker(tmp_path_factory.mktemp("kafka-automatic"), overrides=overrides)
    try:
        kafka.start()
        with BackgroundServer() as ours:
            yield kafka.bootstrap, ours.bootstrap
    finally:
        kafka.stop()


@pytest.mark.parametrize(("name", "version"), list(cases(CONVERSATIONS)), ids=str)
def test_every_answer_is_kafkas(name: str, version: int, server: BackgroundServer, kafka_broker: KafkaBroker) -> None:
    compare(name, CONVERSATIONS[name][1], version, (kafka_broker.bootstrap, server.bootstrap))


@pytest.mark.parametrize(("name", "version"), list(cases(BY_DEFAULT)), ids=str)
def test_topics_come_when_asked_for_as_in_kafka(name: str, version: int, automatic_servers: tuple[str, str]) -> None:
    compare(name, BY_DEFAULT[name][1], version, automatic_servers)


@pytest.mark.deep
def test_streams_groups_that_are_off_are_refused_as_by_kafka(tmp_path: Path) -> None:
    off = {"group.coordinator.rebalance.protocols": "classic,consumer"}
    kafka = KafkaBroker(tmp_path, overrides=off)

    def asking(probe: Probe, _: int, name: str) -> None:
        for api_key, values in of_streams_groups(name, create_topic(probe, name), lambda _: 0):
            probe.call(api_key, 0, values)

    try:
        kafka.start()
        with BackgroundServer(config={**CONFIG, **off}) as ours:
            compare("streams groups off", asking, 0, (kafka.bootstrap, ours.bootstrap))
    finally:
        kafka.stop()


def compare(name: str, conversation: Conversation, version: int, servers: tuple[str, str]) -> None:
    """Hold the same conversation with Kafka and with kgctl."""
    subject = f"same-{name.replace(' ', '-').replace(chr(39), '')}-{version}"
    answers = []
    for bootstrap in servers:
        probe = Probe(bootstrap)
        conversation(probe, version, subject)
        probe.close()
        answers.append(probe.answers)
    theirs, ours = answers

    assert len(theirs) == len(ours)

    found = [
        f"{question}\n  {line}"
        for (question, expected), (_, answer) in zip(theirs, ours, strict=True)
        for line in differences(name, expected, answer)
    ]

    assert not found, "\n".join(found)


def test_the_versions_are_kafkas(server: BackgroundServer, kafka_broker: KafkaBroker) -> None:
    """Every API that is served has Kafka's own range."""
    theirs, ours = ranges_of(kafka_broker.bootstrap), ranges_of(server.bootstrap)

    assert ours == {key: theirs.get(key) for key in ours}


def ranges_of(bootstrap: str) -> dict[int, tuple[int, int]]:
    """Each API that the server announces, with its lowest and highest version."""
    probe = Probe(bootstrap)
    body = probe.call(API_VERSIONS, 4, {"client_software_name": "probe", "client_software_version": "1"})
    probe.close()
    return {entry.api_key: (entry.min_version, entry.max_version) for entry in body.api_keys}


def test_the_list_of_differences_names_conversations_that_there_are() -> None:
    assert {entry.conversation for entry in KNOWN} <= {*CONVERSATIONS, *BY_DEFAULT, CONVERSATION, RIGHTS}


def test_brokers_have_kafkas_settings(server: BackgroundServer, kafka_broker: KafkaBroker) -> None:
    """All of them, with types, defaults and marks; ``python -m tests.support.kafka.settings`` writes the file."""
    assert settings_of(kafka_broker.bootstrap) == PATH.read_text()
    theirs, ours = (json.loads(text) for text in (PATH.read_text(), settings_of(server.bootstrap)))
    assert {name: row for name, row in ours.items() if name in theirs and name not in ITSELF} == {
        name: row for name, row in theirs.items() if name not in ITSELF
    }
