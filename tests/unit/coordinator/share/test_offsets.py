"""Where share groups begin to read: described, altered, and what comes of the calls for it."""

from __future__ import annotations

from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import ZERO_UUID, TopicPartition
from kgctl.model.requests import DeleteGroups
from kgctl.model.share_requests import (
    AlterShareGroupOffsets,
    DescribeShareGroupOffsets,
    InitializeShareState,
    LatestOffsetsListed,
    ListLatestOffsets,
    PartitionStart,
    ReadShareStateSummary,
    ShareStateError,
    ShareStateInitialized,
    ShareStateSummary,
    ShareStateSummaryRead,
    ShareTopicStart,
)
from kgctl.model.share_results import (
    AlteredSharePartition,
    AlteredShareTopic,
    AlterShareGroupOffsetsResult,
    DescribedSharePartition,
    DescribedShareTopic,
    DescribeShareGroupOffsetsResult,
)
from tests.support.coordinator_harness import Call
from tests.unit.coordinator.share.beats import A, Shares

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
DOWN = ErrorCode.COORDINATOR_NOT_AVAILABLE


def altered(shares: Shares, **topics: tuple[tuple[int, int], ...]) -> Call:
    return shares.harness.send(AlterShareGroupOffsets, group_id="g", topics=tuple(topics.items()))


def initialize_call(shares: Shares) -> InitializeShareState:
    call = shares.calls.pop(0)
    assert isinstance(call, InitializeShareState)
    return call


def tell(shares: Shares, number: int = 0, **fields: object) -> None:
    """What comes of a call for the state of partitions."""
    shares.harness.send(ShareStateInitialized, call=initialize_call(shares), **fields)


def test_altered_offsets_make_a_group_and_are_answered_when_they_are_kept() -> None:
    shares = Shares()
    call = altered(shares, a=((1, 7), (9, 1)), gone=((0, 0),))

    assert call.is_parked
    assert shares.partitions == ({A: (1,)}, {}, ())
    (state,) = shares.calls
    assert isinstance(state, InitializeShareState)
    assert state.topics == (ShareTopicStart(A, (PartitionStart(1, 1, 7),)),)
    shares.well()
    partitions = (AlteredSharePartition(1), AlteredSharePartition(9, UNKNOWN))
    gone = AlteredShareTopic("gone", ZERO_UUID, (AlteredSharePartition(0, UNKNOWN),))
    assert call.result(object) == AlterShareGroupOffsetsResult(topics=(AlteredShareTopic("a", A, partitions), gone))
    assert shares.partitions == ({}, {A: (1,)}, ())
    assert shares.harness.list_groups() == [("g", "share", "Empty", "share")]


def test_where_nothing_can_be_altered_nothing_is_made() -> None:
    shares = Shares()

    assert altered(shares, gone=((0, 0),)).error is ErrorCode.NONE
    assert (shares.calls, shares.harness.log) == ([], [])
    for group_id in (None, ""):
        call = shares.harness.send(AlterShareGroupOffsets, group_id=group_id, topics=())
        assert call.error is ErrorCode.INVALID_GROUP_ID
    assert shares.harness.send(AlterShareGroupOffsets, group_id="g", topics=None).error is ErrorCode.NONE


def test_only_those_of_an_empty_share_group_are_altered() -> None:
    shares = Shares()
    shares.running("a")
    shares.harness.commit({"a-0": 1}, group="other")

    assert altered(shares, a=((0, 1),)).result(object) == AlterShareGroupOffsetsResult(error=ErrorCode.NON_EMPTY_GROUP)
    call = shares.harness.send(AlterShareGroupOffsets, group_id="other", topics=())
    told = AlterShareGroupOffsetsResult(error=ErrorCode.GROUP_ID_NOT_FOUND, error_message="Group other is not a share group.")
    assert call.result(object) == told


def test_a_partition_that_fails_fails_alone() -> None:
    shares = Shares()
    call = altered(shares, a=((0, 1), (1, 1)))
    tell(shares, topics=((A, (ShareStateError(0), ShareStateError(1, DOWN, "why"))),))

    partitions = (AlteredSharePartition(0), AlteredSharePartition(1, DOWN, "why"))
    assert call.result(object) == AlterShareGroupOffsetsResult(topics=(AlteredShareTopic("a", A, partitions),))
    assert shares.partitions == ({A: (0, 1)}, {}, ())


def test_a_call_that_fails_fails_all() -> None:
    shares = Shares()
    call = altered(shares, a=((0, 1), (9, 1)))
    tell(shares, error=DOWN, error_message="why")

    topic = AlteredShareTopic("a", A, (AlteredSharePartition(0, DOWN), AlteredSharePartition(9, DOWN)))
    assert call.result(object) == AlterShareGroupOffsetsResult(error=DOWN, error_message="why", topics=(topic,))
    assert shares.partitions == ({A: (0,)}, {}, ())


def test_a_state_that_no_member_gets_may_be_asked_for_at_once_again() -> None:
    for outcome in ({"error": DOWN}, {"topics": ((A, (ShareStateError(0), ShareStateError(1, DOWN), ShareStateError(2))),)}):
        shares = Shares()
        shares.beat("m")
        tell(shares, **outcome)
        assert shares.partitions == ({}, {}, ())
        shares.beat("m", 2)
        assert len(shares.calls) == 1


def test_the_state_of_a_group_that_is_gone_is_nobodys() -> None:
    shares = Shares()
    altered(shares, a=((0, 1),))
    call = initialize_call(shares)
    shares.harness.send(DeleteGroups, group_ids=("g",))
    shares.well()
    assert shares.harness.any_group("g") is None
    length = len(shares.harness.log)

    shares.harness.send(ShareStateInitialized, call=call, topics=((A, (ShareStateError(0),)),))
    assert len(shares.harness.log) == length


def described(shares: Shares, topics: tuple[tuple[str, tuple[int, ...]], ...] | None) -> Call:
    return shares.harness.send(DescribeShareGroupOffsets, group_id="g", topics=topics)


def summary(shares: Shares, *partitions: ShareStateSummary, error: ErrorCode = ErrorCode.NONE) -> None:
    call = shares.calls.pop(0)
    assert isinstance(call, ReadShareStateSummary)
    topics = ((A, partitions),) if partitions else ()
    shares.harness.send(ShareStateSummaryRead, call=call, topics=topics, error=error)


def test_the_lag_is_what_is_left_behind_the_start_and_not_done() -> None:
    shares = Shares()
    shares.running("a")
    call = described(shares, (("a", (0, 1, 2)), ("gone", (4,))))
    summary(
        shares,
        ShareStateSummary(0, 1, 10, 5, 2),
        ShareStateSummary(1, 1, 3, 5),
        ShareStateSummary(2, error=DOWN),
    )
    ends = shares.calls.pop(0)
    assert isinstance(ends, ListLatestOffsets)
    assert ends.partitions == (TopicPartition("a", 0),)
    shares.harness.send(LatestOffsetsListed, call=ends, offsets=((TopicPartition("a", 0), 20, ErrorCode.NONE),))

    partitions = (DescribedSharePartition(0, 10, 5, 8), DescribedSharePartition(1, 3, 5), DescribedSharePartition(2))
    gone = DescribedShareTopic("gone", ZERO_UUID, (DescribedSharePartition(4),))
    topics = (DescribedShareTopic("a", A, partitions), gone)
    assert call.result(object) == DescribeShareGroupOffsetsResult(group_id="g", topics=topics)


def test_an_end_that_cannot_be_seen_is_an_error_of_its_partition() -> None:
    shares = Shares()
    call = described(shares, (("a", (0,)),))
    summary(shares, ShareStateSummary(0, 1, 10, 5, 2))
    ends = shares.calls.pop(0)
    shares.harness.send(LatestOffsetsListed, call=ends, offsets=((TopicPartition("a", 0), 0, DOWN),))

    (topic,) = call.result(DescribeShareGroupOffsetsResult).topics
    assert topic.partitions == (DescribedSharePartition(0, 0, 0, -1, DOWN),)


def test_all_offsets_are_those_of_partitions_with_a_state() -> None:
    shares = Shares()
    assert described(shares, None).result(object) == DescribeShareGroupOffsetsResult(group_id="g")
    shares.running("a")
    described(shares, None)
    assert [call.topics for call in shares.calls if isinstance(call, ReadShareStateSummary)] == [((A, (0, 1, 2)),)]
    assert shares.harness.driver.coordinator.initialized_share_partitions("g") == {A: (0, 1, 2)}


def test_a_summary_that_fails_is_an_error_of_the_group() -> None:
    shares = Shares()
    call = described(shares, (("a", (0,)),))
    summary(shares, error=DOWN)

    assert call.result(object) == DescribeShareGroupOffsetsResult(group_id="g", error=DOWN)
