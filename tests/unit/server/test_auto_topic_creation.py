"""Topics that heartbeats have made beside them, and what is remembered of those that cannot be."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from functools import partial

import pytest

from kgctl.model.streams_topology import CreatableTopic
from kgctl.server.api import create_topics
from kgctl.server.auto_topic_creation import MOST_FAILURES, AutoTopicCreation
from kgctl.server.background import BackgroundServer
from kgctl.server.request_context import ClientSession, RequestContext, Services

KEPT_MS = 1_000
TOO_MANY_COPIES = (
    "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be reached because only 1 broker(s) "
    "are registered or some brokers have all their log directories cordoned."
)


class Broker:
    """A server in a thread, and what it makes for streams groups, by a clock that is set."""

    def __init__(self, server: BackgroundServer) -> None:
        self._server = server
        self.services: Services = server.server.services
        self.now_ms = 0
        self.made = AutoTopicCreation(lambda: self.now_ms)

    def create(self, *topics: CreatableTopic, times: int = 1) -> dict[str, str]:
        """Have them made, so many times at once; what failed."""
        return self._server.run(self._create(topics, times))

    async def _create(self, topics: Sequence[CreatableTopic], times: int) -> dict[str, str]:
        context = RequestContext(self.services, self.services.cluster.brokers[0], ClientSession(), 88, 0, "c")
        for _ in range(times):
            self.made.begin(topics, KEPT_MS, partial(self.services.data.in_thread, create_topics.handle, context))
        assert self.services.catalog.get(topics[0].name) is None
        await self.made.stop()
        await asyncio.sleep(0)
        return self.made.failures([topic.name for topic in topics])


@pytest.fixture
def broker() -> Iterator[Broker]:
    with BackgroundServer() as server:
        yield Broker(server)


def test_topics_are_made_as_asked_for_and_nobody_waits(broker: Broker) -> None:
    given = (("cleanup.policy", "compact"), ("segment.bytes", "1048576"))
    assert broker.create(CreatableTopic("a-changelog", 3, configs=given), CreatableTopic("b-repartition", 5)) == {}

    counts = {name: topic.partition_count for name, topic in broker.services.catalog.topics.items() if name[1] == "-"}
    assert counts == {"a-changelog": 3, "b-repartition": 5}
    assert broker.services.settings.of("topics", "a-changelog") == dict(given)


def test_what_is_under_way_is_not_begun_again(broker: Broker) -> None:
    assert broker.create(CreatableTopic("t", 1), times=3) == {}


def test_a_failure_is_kept_for_its_time_in_which_nothing_is_tried(broker: Broker) -> None:
    assert broker.create(CreatableTopic("t", 1, replication_factor=3)) == {"t": TOO_MANY_COPIES}
    broker.now_ms = KEPT_MS - 1
    assert broker.create(CreatableTopic("t", 1)) == {"t": TOO_MANY_COPIES}
    broker.now_ms = KEPT_MS
    assert broker.create(CreatableTopic("t", 1)) == {}
    assert broker.services.catalog.get("t") is not None


def test_an_error_without_words_has_kafka_s(broker: Broker) -> None:
    words = "The server experienced an unexpected error when processing the request."
    assert broker.create(CreatableTopic("t", 2**31 - 1), CreatableTopic("u", 2)) == {"t": words, "u": words}


def test_the_oldest_failure_gives_way(broker: Broker) -> None:
    broker.create(CreatableTopic("old", 1, replication_factor=3))
    broker.now_ms = 1
    others = [CreatableTopic(f"t{number}", 1, replication_factor=3) for number in range(MOST_FAILURES)]
    assert set(broker.create(*others)) == {topic.name for topic in others}
    assert broker.made.failures(["old"]) == {}


def test_failures_stand_in_the_order_of_kafka_s_map(broker: Broker) -> None:
    """Seen in its answers: of four the order of buckets, of more that of a trie."""
    names = [f"same-streams-topics-that-cannot-be-made-more-{number}" for number in range(8)]
    failed = broker.create(*(CreatableTopic(name, 1, replication_factor=3) for name in names))
    assert [name[-1] for name in failed] == ["7", "2", "6", "3", "0", "4", "5", "1"]
    few = [f"same-streams-topics-that-cannot-be-made-{number}" for number in range(3)]
    failed = broker.create(*(CreatableTopic(name, 1, replication_factor=3) for name in few))
    assert [name[-1] for name in failed] == ["1", "0", "2"]
