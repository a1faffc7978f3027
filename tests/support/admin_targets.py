"""The clusters that the tests of the admin layer run against, and the admins that they run: one contract for all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from kgctl.admin import GroupAdmin
from kgctl.admin.confluent import ConfluentGroupAdmin
from kgctl.admin.connect import ConnectionSettings, connect
from tests.support.kafka import create_topic, produce, unique
from tests.support.patience import PATIENCE_MS
from tests.support.serve import ServeProcess

RECORDS = 10


@dataclass(frozen=True, slots=True)
class Target:
    """A cluster; ``name`` is ``serve`` (kgctl's own server) or ``kafka`` (Apache Kafka)."""

    name: str
    bootstrap: str

    def topic(self, partitions: int = 3, records: int = RECORDS) -> str:
        """A new topic with ``records`` records in each partition."""
        topic = create_topic(self.bootstrap, unique("topic"), partitions)
        if records:
            produce(self.bootstrap, topic, dict.fromkeys(range(partitions), records))
        return topic

    def admin(self, timeout_ms: int = PATIENCE_MS) -> GroupAdmin:
        """As the commands get it."""
        return connect(ConnectionSettings(self.bootstrap, timeout_ms=timeout_ms))

    def confluent(self, timeout_ms: int = PATIENCE_MS) -> GroupAdmin:
        """As the commands get it for a login that only librdkafka covers."""
        return ConfluentGroupAdmin({"bootstrap.servers": self.bootstrap}, timeout_ms)


@pytest.fixture(scope="session")
def serve_target() -> Iterator[Target]:
    """One server for the whole run: use names of your own."""
    with ServeProcess() as process:
        yield Target("serve", process.bootstrap)


@pytest.fixture(params=[pytest.param("serve", marks=pytest.mark.interop), pytest.param("kafka", marks=pytest.mark.kafka)])
def target(request: pytest.FixtureRequest) -> Target:
    """Each cluster in turn."""
    if request.param == "kafka":
        return Target("kafka", request.getfixturevalue("kafka_broker").bootstrap)
    found = request.getfixturevalue("serve_target")
    assert isinstance(found, Target)
    return found


@pytest.fixture
def admin(target: Target) -> Iterator[GroupAdmin]:
    """kgctl's admin of the cluster."""
    with target.admin() as made:
        yield made


@pytest.fixture(params=["live", "confluent"])
def any_admin(request: pytest.FixtureRequest, target: Target) -> Iterator[GroupAdmin]:
    """Each admin in turn, for what both can do."""
    with target.admin() if request.param == "live" else target.confluent() as made:
        yield made
