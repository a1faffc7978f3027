"""The pytest plugin: fixtures for tests of one's own consumers. It imports nothing before a test asks for one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kgctl.group.consumer_group import ConsumerGroup
    from kgctl.testing.cluster import EmbeddedServer

MARKER = (
    "kafka(topics=None, config=None, quick=False, brokers=1, data=None, broker_version=None, acls=None, protocol='PLAINTEXT', "
    "users=None, listeners=None, advertised=None): what `kafka_cluster` is made with"
)


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", MARKER)


@pytest.fixture
def kafka_cluster(request: pytest.FixtureRequest) -> Iterator[EmbeddedServer]:
    """A `kgctl.testing.EmbeddedServer` of the test's own; it starts in a few milliseconds.

    ``@pytest.mark.kafka(topics={"orders": 3}, brokers=3)`` says with what; without it there are no topics.
    """
    with _server(_marked(request.node)) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def kafka_server_settings() -> dict[str, Any]:
    """What `kafka_server` is made with, as the marker ``kafka`` has it: override it in a conftest.py."""
    return {}


@pytest.fixture(scope="session")
def kafka_server(kafka_server_settings: dict[str, Any]) -> Iterator[EmbeddedServer]:
    """A `kgctl.testing.EmbeddedServer` for all tests of a run, one for each process of pytest-xdist."""
    with _server(kafka_server_settings) as cluster:
        yield cluster


@pytest.fixture
def consumer_group(kafka_cluster: EmbeddedServer) -> Iterator[Callable[..., ConsumerGroup]]:
    """Call it as `kgctl.testing.EmbeddedServer.consumer_group`: members that are closed when the test ends."""
    with ExitStack() as stack:

        def start(group_id: str, *topics: str, **settings: Any) -> ConsumerGroup:
            return stack.enter_context(kafka_cluster.consumer_group(group_id, *topics, **settings))

        yield start


def _marked(node: pytest.Item) -> dict[str, Any]:
    """What the markers say, of the module, the class and the test: the nearest word counts."""
    settings: dict[str, Any] = {}
    for marker in reversed(list(node.iter_markers("kafka"))):
        if marker.args:
            raise pytest.UsageError(f"the marker kafka takes names: kafka(topics=...), not {marker.args[0]!r}")
        settings |= marker.kwargs
    return settings


def _server(settings: dict[str, Any]) -> EmbeddedServer:
    from kgctl.errors import UsageError
    from kgctl.testing.cluster import EmbeddedServer

    try:
        return EmbeddedServer(**settings)
    except (TypeError, UsageError) as error:
        raise pytest.UsageError(f"the settings of kafka: {error}") from error
