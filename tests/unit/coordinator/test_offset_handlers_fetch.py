"""OffsetFetch."""

from __future__ import annotations

from uuid import UUID

from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import TopicPartition
from kgctl.model.requests import FetchedOffset, OffsetCommit, OffsetCommitPartition, OffsetFetchResult
from tests.support.coordinator_harness import CoordinatorHarness

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def test_nothing_is_stored_for_an_unknown_group() -> None:
    harness = CoordinatorHarness()

    assert harness.fetch("t-0") == OffsetFetchResult(group_id="g", offsets=(FetchedOffset(partition=T0),))
    assert harness.fetch() == OffsetFetchResult(group_id="g")
    assert harness.fetch(group=None) == OffsetFetchResult(group_id=None, error=ErrorCode.INVALID_GROUP_ID)


def test_partitions_come_back_in_the_order_of_the_request() -> None:
    harness = CoordinatorHarness()
    harness.commit({"t-0": 7}, metadata="m")

    assert harness.fetch("t-1", "t-0").offsets == (
        FetchedOffset(partition=T1),
        FetchedOffset(partition=T0, offset=7, metadata="m"),
    )


def test_a_classic_group_tells_anybody() -> None:
    harness = CoordinatorHarness()
    harness.stable_group()

    assert harness.fetch("t-0", member_id="ghost", member_epoch=99).error is ErrorCode.NONE


def test_a_stable_fetch_does_not_show_what_a_transaction_may_change() -> None:
    harness = CoordinatorHarness()
    harness.commit({"t-0": 1, "t-1": 2})
    harness.txn_commit(9, {"t-0": 5, "t-2": 6})

    unstable = FetchedOffset(partition=T0, error=ErrorCode.UNSTABLE_OFFSET_COMMIT)
    assert harness.fetch("t-0", "t-1", require_stable=True).offsets == (unstable, FetchedOffset(partition=T1, offset=2))
    assert sorted(harness.fetch(require_stable=True).offsets, key=lambda o: o.partition) == [
        unstable,
        FetchedOffset(partition=T1, offset=2),
    ]
    assert harness.fetch("t-0").offsets[0].offset == 1


def test_an_offset_of_an_older_topic_of_that_name_is_missing() -> None:
    harness = CoordinatorHarness()
    committed = (
        OffsetCommitPartition(topic="t", partition=0, offset=7, topic_id=UUID(int=1)),
        OffsetCommitPartition(topic="t", partition=1, offset=8),
    )
    harness.send(OffsetCommit, group_id="g", partitions=committed)

    def fetched(topic_id: int) -> list[int]:
        return [o.offset for o in harness.fetch("t-0", "t-1", topic_ids={"t": UUID(int=topic_id)}).offsets]

    assert (fetched(1), fetched(2), fetched(0)) == ([7, 8], [-1, 8], [7, 8])
