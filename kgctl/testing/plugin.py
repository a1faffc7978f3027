"""The pytest plugin: fixtures for tests of one's own consumers. It imports nothing before a test asks for one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kgctl.group.consumer_group import ConsumerGroup
    from kgctl.testing.cluster import EmbeddedServer


@pytest.fixture
def kafka_cluster() -> Iterator[EmbeddedServer]:
    """A `kgctl.testing.EmbeddedServer` of the test's own, without topics; it starts in a few milliseconds."""
    from kgctl.testing.cluster import EmbeddedServer

    with EmbeddedServer() as cluster:
        yield cluster


@pytest.fixture
def consumer_group(kafka_cluster: EmbeddedServer) -> Iterator[Callable[..., ConsumerGroup]]:
    """Call it as `kgctl.testing.EmbeddedServer.consumer_group`: members that are closed when the test ends."""
    with ExitStack() as stack:

        def start(group_id: str, *topics: str, **settings: Any) -> ConsumerGroup:
            return stack.enter_context(kafka_cluster.consumer_group(group_id, *topics, **settings))

        yield start
