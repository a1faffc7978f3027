"""The state of share partitions on the server: what is durable when, what comes back, and what a full disk leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kgctl.errors import StorageError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import TopicPartition
from kgctl.model.share import PartitionState, SharePartitionKey, StateBatch
from kgctl.serde.record_batch import Record, build_batch, iterate_batches, iterate_records, parse_header
from kgctl.serde.share_state_records import decode_record
from kgctl.server.cluster import Catalog
from kgctl.server.partition_data import PartitionData
from kgctl.server.settings import Settings
from kgctl.server.share.persister import STATE_TOPIC, UNWRITTEN, Persister
from kgctl.share.state.config import ShareCoordinatorConfig
from kgctl.share.state.shard import StateRefusal, state_partition_for
from kgctl.storage.folder import DataFolder, memory_folder, open_folder

GROUP = "g"
DONE = StateBatch(3, 4, 2, 1)
STATE = PartitionState(1, 3, 2, (DONE,), 0)


class Around:
    """A persister on a folder, and what it needs."""

    def __init__(self, folder: DataFolder, **settings: int) -> None:
        self.folder = folder
        self.now_ms = 1_000
        self.failures: list[BaseException] = []
        self.told: list[StateRefusal | None] = []
        self.catalog = Catalog(folder.topics, 1)
        if self.catalog.get("orders") is None:
            self.catalog.create({"orders": 2})
        self.settings = Settings({}, folder.documents)
        self.data = PartitionData(folder.topics, folder.record_log, path=folder.path)
        config = ShareCoordinatorConfig(**{"state_topic_num_partitions": 3, **settings})
        self.persister = Persister(
            config,
            self.data,
            self.catalog,
            self.settings,
            clock=lambda: self.now_ms,
            on_failure=self.failures.append,
            in_thread=folder.path is not None,
        )
        self.persister.load()

    @property
    def topic_id(self) -> UUID:
        return self.catalog.topics["orders"].topic_id

    def key(self, partition: int = 0) -> SharePartitionKey:
        return SharePartitionKey(GROUP, self.topic_id, partition)

    def place(self, partition: int = 0) -> TopicPartition:
        return TopicPartition(STATE_TOPIC, state_partition_for(self.key(partition), 3))

    def initialize(self, *partitions: int) -> None:
        found = self.persister.initialize(GROUP, {self.topic_id: dict.fromkeys(partitions or (0,), (1, 3))})
        assert set(found.values()) == {None}

    def summary(self, partition: int = 0) -> Any:
        return self.persister.read_summary([self.key(partition)])[self.key(partition)]

    async def written(self) -> list[StateRefusal | None]:
        """Wait until everything is; what those are told who wait now."""
        self.persister.after_writes(self.told.append)
        await self.persister.stop()
        return self.told

    def records(self, place: TopicPartition) -> list[Any]:
        batches = self.data.read(place, self.data.bounds(place)[0], 1 << 20)
        return [
            decode_record(record.key or b"", record.value)
            for position, _ in iterate_batches(batches)
            for record in iterate_records(batches, position)
        ]


Story = Callable[[], Coroutine[Any, Any, None]]


@pytest.fixture(params=["memory", "disk"])
def around(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    folder = memory_folder(1) if request.param == "memory" else open_folder(tmp_path / "data", create=True, offsets_partitions=1)
    found = Around(folder)
    yield found
    found.data.stop()
    folder.close()


def test_what_was_answered_is_in_the_log_when_it_is_told_so(around: Around) -> None:
    async def story() -> None:
        around.initialize()
        assert around.persister.write(around.key(), STATE) is None
        assert around.persister.read(around.key(), -1) == PartitionState(1, 3, batches=(DONE,))
        assert around.told == []
        assert await around.written() == [None]

    asyncio.run(story())
    assert [type(record.value).__name__ for record in around.records(around.place())] == ["ShareSnapshot", "ShareUpdate"]
    topic = around.catalog.topics[STATE_TOPIC]
    assert (topic.partition_count, around.settings.of_topic(STATE_TOPIC, "retention.ms", 1)) == (3, -1)


def test_what_a_turn_of_the_loop_appends_is_flushed_once(around: Around, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[int] = []
    monkeypatch.setattr(around.data, "flush", lambda: flushed.append(around.data.bounds(around.place())[1]))

    async def story() -> None:
        around.initialize()
        around.persister.write(around.key(), STATE)
        await around.written()

    asyncio.run(story())
    assert flushed == [2]


def test_where_nothing_is_being_written_it_is_told_at_once(around: Around) -> None:
    assert around.summary() == PartitionState()
    around.persister.after_writes(around.told.append)
    assert around.told == [None]
    assert around.catalog.get(STATE_TOPIC) is None


def test_refusals_are_those_of_the_share_coordinator(around: Around) -> None:
    unknown = SharePartitionKey(GROUP, UUID(int=5), 0)
    found = [around.persister.read(around.key(), 0), around.persister.write(around.key(), STATE)]
    found += [*around.persister.delete([unknown]).values(), *around.persister.read_summary([unknown]).values()]

    assert [refusal.error.name for refusal in found if isinstance(refusal, StateRefusal)] == [
        *["INVALID_REQUEST"] * 2,
        *["UNKNOWN_TOPIC_OR_PARTITION"] * 2,
    ]


def test_what_cannot_be_encoded_changes_nothing(around: Around) -> None:
    found = around.persister.initialize("g" * 40_000, {around.topic_id: {0: (1, 3)}})

    assert [refusal and refusal.error for refusal in found.values()] == [ErrorCode.UNKNOWN_SERVER_ERROR]
    around.persister.after_writes(around.told.append)
    assert around.told == [None]


def test_everything_comes_back_after_a_restart(tmp_path: Path) -> None:
    first = Around(open_folder(tmp_path / "data", create=True, offsets_partitions=1))

    async def story() -> None:
        first.initialize(0, 1)
        first.persister.write(first.key(), STATE)
        first.persister.read(first.key(1), 4)
        await first.written()
        first.persister.delete([first.key(1)])
        await first.written()

    asyncio.run(story())
    first.data.stop()
    first.folder.close()
    again = Around(open_folder(tmp_path / "data", create=False, offsets_partitions=1), state_topic_num_partitions=7)

    assert again.persister.read(again.key(), -1) == PartitionState(1, 3, batches=(DONE,))
    assert (again.summary(), again.summary(1)) == (PartitionState(1, 3, 2), PartitionState())
    assert _offset_of_a_new_beginning(again) == again.data.bounds(again.place())[1] - 1
    again.data.stop()
    again.folder.close()


def test_a_log_that_holds_no_such_records_is_told_with_its_place(around: Around) -> None:
    around.catalog.create({STATE_TOPIC: 3})
    batch = build_batch([Record(0, 0, b"\0\0", b"\0\0")])
    around.data.append(TopicPartition(STATE_TOPIC, 2), batch, parse_header(batch), 0)

    with pytest.raises(StorageError, match="partition __share_group_state-2 cannot be read at offset 0: 2 bytes announced"):
        around.persister.load()


def test_where_the_disk_refuses_all_goes_back_to_what_is_written(around: Around, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        around.initialize()
        await around.written()
        append = around.data.append
        monkeypatch.setattr(around.data, "append", _refuse)
        around.persister.write(around.key(), STATE)
        assert await around.written() == [None, UNWRITTEN]
        assert around.summary() == PartitionState(1, 3, 0)
        monkeypatch.setattr(around.data, "append", append)
        around.persister.write(around.key(), STATE)
        assert await around.written() == [None, UNWRITTEN, None]

    asyncio.run(story())
    assert around.summary() == PartitionState(1, 3, 2)
    assert len(around.records(around.place())) == 2
    assert around.failures == []


def test_where_not_even_reading_is_possible_the_server_is_to_end(around: Around, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        around.initialize()
        await around.written()
        monkeypatch.setattr(around.data, "append", _refuse)
        monkeypatch.setattr(around.data, "bounds", _refuse)
        around.persister.write(around.key(), STATE)
        assert await around.written() == [None]

    asyncio.run(story())
    assert [str(error) for error in around.failures] == ["the disk is full"]


def test_what_is_kept_of_a_topic_goes_with_it(around: Around) -> None:
    async def story() -> None:
        around.initialize(0, 1)
        await around.written()
        around.catalog.delete(["orders"])
        around.persister.topics_changed()
        await around.written()

    key, place, second = around.key(), around.place(), around.place(1)
    asyncio.run(story())
    assert around.records(place)[-1].value is around.records(second)[-1].value is None
    refusal = around.persister.read(key, 0)
    assert isinstance(refusal, StateRefusal)


def test_a_topic_of_state_that_somebody_deleted_is_made_anew(around: Around) -> None:
    async def story() -> None:
        around.initialize()
        await around.written()
        around.catalog.delete([STATE_TOPIC])
        assert isinstance(around.persister.write(around.key(), STATE), StateRefusal)
        around.initialize()
        await around.written()

    asyncio.run(story())
    assert around.summary() == PartitionState(1, 3, 0)
    assert len(around.records(around.place())) == 1


def test_what_waits_for_a_topic_of_state_that_goes_is_refused(around: Around) -> None:
    async def story() -> None:
        around.initialize()
        await around.written()
        around.persister.write(around.key(), STATE)
        around.persister.after_writes(around.told.append)
        around.catalog.delete([STATE_TOPIC])
        around.persister.topics_changed()
        await asyncio.sleep(0)
        assert await around.written() == [None, UNWRITTEN, None]

    asyncio.run(story())
    assert around.summary() == PartitionState()


def test_partitions_that_the_topic_of_state_gets_later_move_nothing(around: Around) -> None:
    async def story() -> None:
        around.initialize(0, 1)
        await around.written()
        around.catalog.grow({STATE_TOPIC: 50})
        around.persister.topics_changed()

    asyncio.run(story())
    assert (around.summary(), around.summary(1)) == (PartitionState(1, 3, 0), PartitionState(1, 3, 0))


def test_cold_partitions_are_written_again_and_the_log_is_pruned(around: Around) -> None:
    async def story() -> None:
        around.initialize()
        await around.written()
        around.now_ms += 299_999
        around.persister.tend(around.now_ms)
        assert around.persister._is_idle
        around.now_ms += 1
        around.persister.tend(around.now_ms)
        await around.written()

    asyncio.run(story())
    assert around.data.bounds(around.place()) == (1, 2)
    assert [record.value.write_timestamp_ms for record in around.records(around.place())] == [301_000]


def test_long_changes_are_written_in_several_batches(around: Around, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgctl.server.share.persister.BATCH_BYTES", 200)

    async def story() -> None:
        around.initialize()
        for _ in range(9):
            around.persister.write(around.key(), STATE)
        await around.written()

    asyncio.run(story())
    batches = around.data.read(around.place(), 0, 1 << 20)
    assert len(around.records(around.place())) == 10
    assert len(list(iterate_batches(batches))) > 3


def _offset_of_a_new_beginning(around: Around) -> int | None:
    async def story() -> None:
        around.initialize()
        await around.written()

    asyncio.run(story())
    return around.persister._shards[around.place().partition].shard.first_needed_offset


def _refuse(*_: Any) -> Any:
    raise StorageError("the disk is full")
