"""The share coordinator: what is answered and written, what a log makes of it. The differential asks Kafka itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from kgctl.model.error_codes import ErrorCode
from kgctl.model.share import PartitionState, SharePartitionKey, ShareSnapshot, ShareStateRecord, ShareUpdate, StateBatch
from kgctl.share.state.config import ShareCoordinatorConfig
from kgctl.share.state.shard import RedundantOffsets, ShareCoordinatorShard, StateAnswer, StateRefusal, state_partition_for

TOPIC, OTHER_TOPIC = UUID(int=7), UUID(int=8)
KEY = SharePartitionKey("g", TOPIC, 0)
SECOND = SharePartitionKey("g", TOPIC, 1)
BATCH = StateBatch(3, 5, 0, 1)
DONE = StateBatch(4, 4, 2, 2)
FENCED_LEADER = StateRefusal(
    ErrorCode.FENCED_LEADER_EPOCH, "The leader epoch in the request is older than the epoch on the broker."
)
FENCED_STATE = StateRefusal(
    ErrorCode.FENCED_STATE_EPOCH,
    "The share coordinator rejected the request because the share-group state epoch did not match.",
)
UNKNOWN = StateRefusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")


class Log:
    """A shard whose records are kept and replayed at once."""

    def __init__(self, **settings: int) -> None:
        self.config = ShareCoordinatorConfig(**settings)
        self.records: list[ShareStateRecord] = []
        self.shard = self._shard()

    def _shard(self) -> ShareCoordinatorShard:
        shard = ShareCoordinatorShard(self.config)
        shard.partition_counts = {TOPIC: 2}
        return shard

    def append(self, *records: ShareStateRecord) -> None:
        for record in records:
            self.shard.replay(len(self.records), record)
            self.records.append(record)

    def done(self, answer: StateAnswer[Any]) -> Any:
        """Return what was answered, with its records on the log."""
        self.append(*answer.records)
        return answer.value

    def summary(self, key: SharePartitionKey = KEY) -> Any:
        return self.shard.read_summary(key).value

    def reload(self, first: int = 0) -> None:
        self.shard = self._shard()
        for offset, record in enumerate(self.records[first:], first):
            self.shard.replay(offset, record)


@pytest.fixture
def log() -> Log:
    """One share partition, initialized in epoch 1 to read from offset 3."""
    log = Log(snapshot_update_records_per_snapshot=2, cold_partition_snapshot_interval_ms=100)
    assert log.done(log.shard.initialize(KEY, 1, 3, 1_000)) is None
    return log


def test_what_is_not_kept_has_an_empty_summary() -> None:
    assert Log().summary() == PartitionState()


@pytest.mark.parametrize(("start", "complete"), [(-1, -1), (3, 0)])
def test_a_share_partition_begins_with_a_snapshot(start: int, complete: int) -> None:
    answer = Log().shard.initialize(KEY, 1, start, 1_000)

    assert answer == StateAnswer(None, (ShareStateRecord(KEY, ShareSnapshot(0, 1, 0, start, complete, (), 1_000, 1_000)),))


def test_a_second_beginning_forgets_batches_and_counts_its_snapshot(log: Log) -> None:
    log.done(log.shard.write(KEY, PartitionState(1, 3, 0, (BATCH,), 0), 1_001))

    assert log.shard.initialize(KEY, 2, 9, 1_002).records == (
        ShareStateRecord(KEY, ShareSnapshot(1, 2, 0, 9, 0, (), 1_002, 1_002)),
    )


def test_a_change_is_written_as_an_update(log: Log) -> None:
    change = PartitionState(1, -1, 1, (BATCH, DONE), 0)
    batches = (StateBatch(3, 3, 0, 1), DONE, StateBatch(5, 5, 0, 1))

    assert log.shard.write(KEY, change, 1_001) == StateAnswer(None, (ShareStateRecord(KEY, ShareUpdate(0, 0, -1, 1, batches)),))
    log.done(log.shard.write(KEY, change, 1_001))
    assert log.shard.read(KEY, -1, 1_002) == StateAnswer(PartitionState(1, 3, batches=batches))
    assert log.summary() == PartitionState(1, 3, 1)


def test_after_so_many_updates_all_is_written_as_a_snapshot(log: Log) -> None:
    for number, change in enumerate((PartitionState(1, 3, 0, (BATCH,), 0), PartitionState(1, 4, 1, (DONE,), 0)), 1):
        log.done(log.shard.write(KEY, change, 1_000 + number))
    log.done(log.shard.write(KEY, PartitionState(1, -1, 2, (StateBatch(5, 5, 4, 1),), 0), 1_003))
    log.done(log.shard.write(KEY, PartitionState(1, -1, 2, (), 0), 1_004))

    snapshot = ShareSnapshot(1, 1, 0, 4, 2, (DONE, StateBatch(5, 5, 4, 1)), 1_003, 1_003)
    assert [record.value for record in log.records[-2:]] == [snapshot, ShareUpdate(1, 0, -1, 2)]


def test_without_updates_each_change_is_a_snapshot() -> None:
    log = Log(snapshot_update_records_per_snapshot=0)
    log.done(log.shard.initialize(KEY, 1, 3, 1_000))
    log.done(log.shard.write(KEY, PartitionState(1, -1, 0, (BATCH,), 0), 1_001))

    assert log.records[-1].value == ShareSnapshot(1, 1, 0, 3, 0, (BATCH,), 1_001, 1_001)


def test_a_new_leader_is_written_down_when_it_reads(log: Log) -> None:
    assert log.done(log.shard.read(KEY, 4, 1_001)) == PartitionState(1, 3)
    assert log.records[1:] == [ShareStateRecord(KEY, ShareUpdate(0, 4, 3, 0))]
    assert log.summary() == PartitionState(1, 3, 0, (), 4)
    assert log.shard.read(KEY, 4, 1_002).records == ()


def test_requests_of_an_older_leader_are_fenced(log: Log) -> None:
    log.done(log.shard.read(KEY, 4, 1_001))

    assert log.shard.read(KEY, 3, 1_002) == StateAnswer(FENCED_LEADER)
    assert log.shard.write(KEY, PartitionState(1, leader_epoch=3), 1_002) == StateAnswer(FENCED_LEADER)
    assert log.shard.write(KEY, PartitionState(1, leader_epoch=-1), 1_002).value is None


def test_a_write_tells_of_no_leader(log: Log) -> None:
    log.done(log.shard.write(KEY, PartitionState(1, leader_epoch=9), 1_001))

    assert log.records[-1].value == ShareUpdate(0, 0, -1)
    assert log.shard.read(KEY, 8, 1_002).value == PartitionState(1, 3)


def test_a_leader_stays_known_when_the_partition_begins_anew(log: Log) -> None:
    log.done(log.shard.read(KEY, 4, 1_001))
    log.done(log.shard.initialize(KEY, 2, 0, 1_002))

    assert log.summary() == PartitionState(2, 0, 0)
    assert log.shard.read(KEY, 4, 1_003) == StateAnswer(PartitionState(2, 0))
    assert log.shard.read(KEY, 3, 1_003) == StateAnswer(FENCED_LEADER)


def test_requests_of_an_older_state_epoch_are_fenced(log: Log) -> None:
    assert log.shard.write(KEY, PartitionState(0, leader_epoch=0), 1_001) == StateAnswer(FENCED_STATE)
    assert log.shard.initialize(KEY, 0, 0, 1_001) == StateAnswer(FENCED_STATE)
    assert log.shard.write(KEY, PartitionState(-1, leader_epoch=0), 1_001).value is None


def test_what_was_not_initialized_is_neither_read_nor_written() -> None:
    shard = Log().shard

    found = [shard.read(KEY, 0, 1_000).value, shard.write(KEY, PartitionState(), 1_000).value]
    assert found == [
        StateRefusal(ErrorCode.INVALID_REQUEST, "Read operation on uninitialized share partition not allowed."),
        StateRefusal(ErrorCode.INVALID_REQUEST, "Write operation on uninitialized share partition not allowed."),
    ]


@pytest.mark.parametrize(
    ("key", "refusal"),
    [
        (replace(KEY, topic_id=OTHER_TOPIC), UNKNOWN),
        (replace(KEY, partition=2), UNKNOWN),
        (
            replace(KEY, partition=-1),
            StateRefusal(ErrorCode.INVALID_REQUEST, "The partition id cannot be a negative number."),
        ),
    ],
)
def test_partitions_that_are_not_there_are_refused(key: SharePartitionKey, refusal: StateRefusal) -> None:
    shard = Log().shard

    assert {shard.initialize(key, 0, 0, 1_000).value, shard.read_summary(key).value, shard.delete(key).value} == {refusal}


def test_a_topic_that_went_is_unknown_to_reads_and_writes(log: Log) -> None:
    log.shard.partition_counts = {}

    assert log.shard.read(KEY, 0, 1_001).value == UNKNOWN
    assert log.shard.write(KEY, PartitionState(1), 1_001).value == UNKNOWN


def test_what_is_deleted_leaves_a_tombstone_once(log: Log) -> None:
    log.done(log.shard.read(KEY, 4, 1_001))
    assert log.done(log.shard.delete(KEY)) is None

    assert log.records[-1] == ShareStateRecord(KEY)
    assert log.summary() == PartitionState()
    assert log.shard.delete(KEY) == StateAnswer(None)
    log.done(log.shard.initialize(KEY, 0, 0, 1_002))
    assert log.shard.read(KEY, 0, 1_003).value == PartitionState(0, 0)


def test_what_is_cold_is_written_again(log: Log) -> None:
    log.done(log.shard.initialize(SECOND, 1, 0, 1_050))

    assert log.shard.snapshot_cold_partitions(1_099) == ()
    records = log.shard.snapshot_cold_partitions(1_100)
    assert records == (ShareStateRecord(KEY, ShareSnapshot(1, 1, 0, 3, 0, (), 1_000, 1_100)),)
    log.append(*records)
    assert [record.key for record in log.shard.snapshot_cold_partitions(1_200)] == [SECOND, KEY]  # as Kafka's map has them


def test_where_all_is_cold_nothing_is_written(log: Log) -> None:
    log.append(*log.shard.snapshot_cold_partitions(1_100))

    assert log.shard.snapshot_cold_partitions(9_999) == Log().shard.snapshot_cold_partitions(9_999) == ()


def test_a_snapshot_before_it_is_due_does_not_put_off_the_next(log: Log) -> None:
    log.done(log.shard.write(KEY, PartitionState(1, -1, 0, (), 0), 1_001))
    log.append(*log.shard.snapshot_cold_partitions(1_100))
    for _ in range(2):
        log.done(log.shard.write(KEY, PartitionState(1, -1, 0, (), 0), 1_101))

    assert [type(record.value) for record in log.records[-2:]] == [ShareUpdate, ShareSnapshot]


def test_topics_that_are_gone_are_forgotten(log: Log) -> None:
    assert log.shard.forget_topics([OTHER_TOPIC]) == ()
    assert log.shard.forget_topics([TOPIC, OTHER_TOPIC]) == (ShareStateRecord(KEY),)


def test_the_log_says_all_that_is_kept(log: Log) -> None:
    log.done(log.shard.read(KEY, 4, 1_001))
    log.done(log.shard.write(KEY, PartitionState(1, -1, 1, (DONE,), 4), 1_002))
    log.done(log.shard.initialize(SECOND, 5, -1, 1_003))
    before = log.summary(), log.summary(SECOND), log.shard.read(KEY, 4, 1_004), log.shard.first_needed_offset

    log.reload()

    assert (log.summary(), log.summary(SECOND), log.shard.read(KEY, 4, 1_004), log.shard.first_needed_offset) == before
    assert log.shard.read(KEY, 3, 1_004) == StateAnswer(FENCED_LEADER)


def test_an_update_without_its_snapshot_stands_alone(log: Log) -> None:
    log.done(log.shard.write(KEY, PartitionState(1, 4, 1, (DONE,), 0), 1_001))

    log.reload(first=1)

    assert log.shard.read(KEY, 0, 1_002).value == PartitionState(0, 4, batches=(DONE,))
    assert log.shard.initialize(KEY, 0, 0, 1_002).value is None


def test_what_all_have_overridden_may_go(log: Log) -> None:
    log.done(log.shard.initialize(SECOND, 1, 0, 1_001))
    assert log.shard.first_needed_offset is None
    log.done(log.shard.initialize(KEY, 2, 0, 1_002))
    assert log.shard.first_needed_offset == 1


@pytest.mark.parametrize(
    ("key", "count", "partition"),
    [
        (SharePartitionKey("g", UUID(int=0), 0), 50, 49),
        (SharePartitionKey("my-group", UUID("11111111-1111-1111-2222-222222222222"), 7), 50, 4),
        (SharePartitionKey("my-group", UUID("11111111-1111-1111-2222-222222222222"), 7), 1, 0),
    ],
)
def test_a_share_partition_has_its_place_as_in_kafka(key: SharePartitionKey, count: int, partition: int) -> None:
    assert state_partition_for(key, count) == partition


def test_what_every_share_partition_has_overridden_may_go() -> None:
    offsets = RedundantOffsets()
    found = [offsets.first_needed]
    for key, offset in ((KEY, 0), (SECOND, 1), (KEY, 2), (KEY, 3), (SECOND, 7), (KEY, 9)):
        offsets.snapshot(key, offset)
        found.append(offsets.first_needed)

    assert found == [None, None, None, 1, 1, 3, 7]


def test_a_share_partition_that_is_gone_holds_nothing_back_from_the_next_snapshot_on() -> None:
    offsets = RedundantOffsets()
    offsets.snapshot(KEY, 1)
    offsets.snapshot(SECOND, 2)

    offsets.tombstone(KEY, 5)
    assert offsets.first_needed == 2
    offsets.tombstone(SECOND, 6)
    assert offsets.first_needed == 6
    offsets.snapshot(SECOND, 8)
    assert offsets.first_needed == 8
