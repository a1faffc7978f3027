"""OffsetDelete, and offsets of deleted groups and topics."""

from __future__ import annotations

from uuid import UUID

import pytest

from kgctl.coordinator import offset_handlers
from kgctl.model.coordinator_records import CoordinatorRecord, GroupMetadataKey, OffsetCommitKey
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import TopicPartition
from kgctl.model.requests import OffsetCommit, OffsetCommitPartition, OffsetDeleteResult
from tests.support.coordinator_harness import CoordinatorHarness

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


def tombstones(harness: CoordinatorHarness, since: int) -> list[object]:
    """The keys of the tombstones appended since."""
    records = [entry.record for entry in harness.log[since:]]
    assert all(isinstance(record, CoordinatorRecord) and record.value is None for record in records)
    return [record.key for record in records if isinstance(record, CoordinatorRecord)]


def test_offsets_of_an_empty_group_are_deleted() -> None:
    harness = CoordinatorHarness()
    harness.commit({"t-0": 1})

    result = harness.delete_offsets("t-0", "t-1")

    assert result == OffsetDeleteResult(partitions=((T0, ErrorCode.NONE), (T1, ErrorCode.NONE)))
    assert tombstones(harness, 1) == [OffsetCommitKey("g", "t", 0)]


def test_offsets_of_topics_in_use_are_kept() -> None:
    harness = CoordinatorHarness()
    (member,) = harness.stable_group(topics=["t"])
    harness.commit({"t-0": 1, "u-0": 2}, member, 1)

    result = harness.delete_offsets("t-0", "u-0")

    assert result.partitions == ((T0, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC), (U0, ErrorCode.NONE))
    assert harness.offsets() == {"t-0": 1}


def test_a_group_with_members_that_are_no_consumers_keeps_all_its_offsets() -> None:
    harness = CoordinatorHarness()
    harness.stable_group(protocol_type="connect")

    assert harness.delete_offsets("t-0") == OffsetDeleteResult(error=ErrorCode.NON_EMPTY_GROUP)


def test_the_group_must_exist_and_have_a_name() -> None:
    harness = CoordinatorHarness()

    assert harness.delete_offsets("t-0") == OffsetDeleteResult(error=ErrorCode.GROUP_ID_NOT_FOUND)
    assert harness.delete_offsets("t-0", group="") == OffsetDeleteResult(error=ErrorCode.INVALID_GROUP_ID)


def test_a_pending_offset_is_deleted_with_its_transaction_s_claim() -> None:
    harness = CoordinatorHarness()
    harness.txn_commit(9, {"t-0": 1})

    harness.delete_offsets("t-0")

    assert tombstones(harness, 1) == [OffsetCommitKey("g", "t", 0)]
    harness.end_txn(9)
    assert harness.offsets() == {}


def test_a_deleted_group_takes_its_offsets_along_stored_ones_first() -> None:
    harness = CoordinatorHarness()
    harness.commit({"t-0": 1})
    harness.txn_commit(9, {"t-0": 2, "u-0": 2})

    assert harness.delete_groups("g") == [ErrorCode.NONE]
    assert tombstones(harness, 3) == [
        OffsetCommitKey("g", "t", 0),
        OffsetCommitKey("g", "u", 0),
        GroupMetadataKey("g"),
    ]
    assert harness.list_groups() == []


def test_offsets_of_a_deleted_topic_go() -> None:
    harness = CoordinatorHarness(topics={"t": 2, "u": 1})
    ids = {name: topic.topic_id for name, topic in harness.driver.image.topics.items()}
    committed = (
        OffsetCommitPartition(topic="t", partition=0, offset=1, topic_id=ids["t"]),
        OffsetCommitPartition(topic="t", partition=1, offset=1),
        OffsetCommitPartition(topic="u", partition=0, offset=1, topic_id=ids["u"]),
    )
    harness.send(OffsetCommit, group_id="g", partitions=committed)

    harness.change_topics({"u": 3})

    assert harness.offsets() == {"u-0": 1}


def test_offsets_of_a_newer_topic_of_the_same_name_stay() -> None:
    harness = CoordinatorHarness(topics={"t": 2})
    newer = OffsetCommitPartition(topic="t", partition=0, offset=1, topic_id=UUID(int=7))
    harness.send(OffsetCommit, group_id="g", partitions=(newer,))

    harness.change_topics({})

    assert harness.offsets() == {"t-0": 1}


def test_deletions_over_many_groups_let_requests_come_between(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group and its offset at a time; a second topic that goes meanwhile waits, and a newer topic's offset stays."""
    monkeypatch.setattr(offset_handlers, "_DELETED_AT_ONCE", 2)
    harness = CoordinatorHarness(topics={"t": 1, "u": 1, "v": 1})
    for number in range(3):
        harness.commit({"t-0": 1, "u-0": 2, "v-0": 3}, group=f"g{number}")

    harness.change_topics({"u": 1, "v": 1})
    harness.change_topics({"v": 1})
    newer = OffsetCommitPartition(topic="t", partition=0, offset=9, topic_id=UUID(int=7))
    harness.send(OffsetCommit, group_id="g2", partitions=(newer,))
    assert harness.offsets(group="g2") == {"t-0": 9, "u-0": 2, "v-0": 3}
    harness.sleep_ms(10)

    assert [harness.offsets(group=f"g{number}") for number in range(3)] == [{"v-0": 3}, {"v-0": 3}, {"t-0": 9, "v-0": 3}]
