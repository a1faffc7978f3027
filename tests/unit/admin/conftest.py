"""A cluster of one scripted broker that coordinates every group."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kgctl.wire import Deadline
from kgctl.wire.cluster import ClusterClient
from kgctl.wire.connection import FIND_COORDINATOR
from kgctl.wire.settings import Address, WireSettings
from tests.support.fake_broker import FakeBroker, coordinator_of
from tests.support.patience import PATIENCE_MS


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    with FakeBroker() as fake:
        fake.handlers[FIND_COORDINATOR] = coordinator_of(fake)
        yield fake


@pytest.fixture
def cluster(broker: FakeBroker) -> Iterator[ClusterClient]:
    made = ClusterClient(WireSettings((Address("127.0.0.1", broker.port),)))
    yield made
    made.close()


@pytest.fixture
def deadline() -> Deadline:
    return Deadline(PATIENCE_MS)
