"""A manager of share partitions on a folder in memory, with a clock that is set."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from kgctl.coordinator.config import GroupConfig
from kgctl.model.groups import TopicPartition
from kgctl.serde.record_batch import Record, build_batch, parse_header
from kgctl.server.cluster import Catalog
from kgctl.server.partition_data import PartitionData
from kgctl.server.settings import Settings
from kgctl.server.share.fetching import FetchWish, Granted, ShareFetch
from kgctl.server.share.manager import SharePartitionManager
from kgctl.server.share.persister import Persister
from kgctl.server.share.sessions import SessionKey, ShareConnection, TopicIdPartition
from kgctl.share.partition import AcknowledgementBatch, AcquireMode
from kgctl.share.state.config import ShareCoordinatorConfig
from kgctl.storage.folder import memory_folder

GROUP, TOPIC = "g", "orders"
ANNA, BERT = SessionKey(GROUP, "anna"), SessionKey(GROUP, "bert")
ACCEPT, RELEASE = 1, 2
PATIENCE_S = 10
"""The manager's clock stands still: what it waits for in vain would never end."""
Story = Callable[[], Coroutine[Any, Any, None]]


class Around:
    """A manager, and what it needs. The group begins at the start of each partition."""

    def __init__(self, **settings: Any) -> None:
        folder = memory_folder(1)
        self.now_ms = 1_000
        self.config = GroupConfig(**{"share_auto_offset_reset": "earliest", **settings})
        self.catalog = Catalog(folder.topics, 1)
        self.catalog.create({TOPIC: 2})
        self.data = PartitionData(folder.topics, folder.record_log)
        self.persister = Persister(
            ShareCoordinatorConfig(state_topic_num_partitions=2),
            self.data,
            self.catalog,
            Settings({}, folder.documents),
            clock=lambda: self.now_ms,
            on_failure=self.failed,
            in_thread=False,
        )
        self.leads = True
        self.manager = SharePartitionManager(
            self.data,
            lambda: self.now_ms,
            self.persister,
            settings=lambda _: self.config,
            leads=self.place,
            max_sessions=10,
        )

    def failed(self, error: BaseException) -> None:
        raise AssertionError from error

    def place(self, partition: TopicIdPartition) -> TopicPartition | None:
        topic = self.catalog.by_id(partition.topic_id)
        return None if topic is None or not self.leads else TopicPartition(topic.name, partition.partition)

    def partition(self, index: int = 0) -> TopicIdPartition:
        return TopicIdPartition(self.catalog.topics[TOPIC].topic_id, index)

    def begin(self) -> None:
        topic_id = self.catalog.topics[TOPIC].topic_id
        self.persister.initialize(GROUP, {topic_id: {0: (1, -1), 1: (1, -1)}})

    def open(self, who: SessionKey = ANNA) -> ShareConnection:
        connection = ShareConnection()
        self.manager.sessions.open(who, [(self.partition(index), TOPIC) for index in (0, 1)], connection)
        return connection

    def produce(self, count: int, index: int = 0) -> None:
        batch = build_batch([Record(number, 1, None, b"v") for number in range(count)])
        self.data.append(TopicPartition(TOPIC, index), batch, parse_header(batch), self.now_ms)

    def wish(self, who: SessionKey = ANNA, **settings: Any) -> FetchWish:
        given: dict[str, Any] = {
            "partitions": [self.partition(0), self.partition(1)],
            "max_wait_ms": 0,
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "max_records": 500,
            "batch_size": 500,
            "mode": AcquireMode.BATCH_OPTIMIZED,
            "is_read_committed": False,
        }
        return FetchWish(who=who, **{**given, **settings})

    async def fetch(self, who: SessionKey = ANNA, **settings: Any) -> Mapping[TopicIdPartition, Granted]:
        return await asyncio.wait_for(ShareFetch(self.manager, self.wish(who, **settings)).run(), PATIENCE_S)

    async def got(self, who: SessionKey = ANNA, **settings: Any) -> list[tuple[int, int, int, int]]:
        """What is acquired: partition, first offset, last offset, deliveries."""
        found = await self.fetch(who, **settings)
        return [
            (partition.partition, each.first_offset, each.last_offset, each.delivery_count)
            for partition, granted in sorted(found.items())
            for each in granted.acquired.records
        ]

    async def acknowledge(self, who: SessionKey, first: int, last: int, kind: int, index: int = 0) -> Any:
        """What comes of it: None, or the failure."""
        partition = self.partition(index)
        outcome = self.manager.acknowledge(who, {partition: [AcknowledgementBatch(first, last, (kind,))]})[partition]
        return await outcome if asyncio.isfuture(outcome) else outcome


def play(story: Story) -> None:
    """Run a story to its end."""
    asyncio.run(story())
