"""State of share groups that goes: by topic, with the group, with the topic."""

from __future__ import annotations

from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import ZERO_UUID
from kgctl.model.requests import DeleteGroups, DeleteGroupsResult
from kgctl.model.share_requests import (
    AlterShareGroupOffsets,
    DeleteShareGroupOffsets,
    DeleteShareState,
    GroupStateDeleted,
    ShareGroupPartitions,
    ShareStateDeleted,
    ShareStateError,
)
from kgctl.model.share_results import DeletedShareTopic, DeleteShareGroupOffsetsResult
from tests.support.coordinator_harness import Call
from tests.unit.coordinator.share.beats import A, B, Shares

DOWN = ErrorCode.COORDINATOR_NOT_AVAILABLE
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def emptied() -> Shares:
    """A group that has read both topics and has no members any more."""
    shares = Shares()
    shares.running("a", "b")
    shares.beat("m", -1)
    return shares


def delete_topics(shares: Shares, *topics: str) -> Call:
    return shares.harness.send(DeleteShareGroupOffsets, group_id="g", topics=topics)


def tell(shares: Shares, *groups: GroupStateDeleted) -> None:
    call = shares.calls.pop(0)
    assert isinstance(call, DeleteShareState)
    shares.harness.send(ShareStateDeleted, call=call, groups=groups)


def test_the_state_of_topics_goes() -> None:
    shares = emptied()
    call = delete_topics(shares, "a", "gone")

    assert call.is_parked
    assert shares.partitions == ({}, {B: (0, 1)}, (A,))
    shares.well()
    topics = (DeletedShareTopic("a", A), DeletedShareTopic("gone", ZERO_UUID, UNKNOWN))
    assert call.result(object) == DeleteShareGroupOffsetsResult(topics=topics)
    assert not shares.partitions[2]
    nothing = DeletedShareTopic("a", ZERO_UUID, UNKNOWN, "There is no offset information to delete.")
    assert delete_topics(shares, "a").result(object) == DeleteShareGroupOffsetsResult(topics=(nothing,))


def test_what_could_not_be_dropped_may_be_dropped_again() -> None:
    shares = emptied()
    call = delete_topics(shares, "a")
    tell(shares, GroupStateDeleted("g", ((A, (ShareStateError(0), ShareStateError(1, DOWN))),)))

    assert call.result(object) == DeleteShareGroupOffsetsResult(topics=(DeletedShareTopic("a", A, DOWN),))
    assert shares.partitions == ({}, {B: (0, 1)}, (A,))
    again = delete_topics(shares, "a")
    tell(shares, GroupStateDeleted("g", error=DOWN))
    assert again.result(object) == DeleteShareGroupOffsetsResult(error=DOWN)
    delete_topics(shares, "a")
    (call_again,) = shares.calls
    assert isinstance(call_again, DeleteShareState)
    assert call_again.groups == (ShareGroupPartitions("g", ((A, (0, 1, 2)),)),)


def test_only_that_of_an_empty_share_group_is_dropped() -> None:
    shares = Shares()
    not_found = ErrorCode.GROUP_ID_NOT_FOUND
    told = DeleteShareGroupOffsetsResult(error=not_found, error_message="Group g not found.")
    assert delete_topics(shares, "a").result(object) == told
    shares.running("a")
    assert delete_topics(shares, "a").result(object) == DeleteShareGroupOffsetsResult(error=ErrorCode.NON_EMPTY_GROUP)
    for group_id in (None, ""):
        call = shares.harness.send(DeleteShareGroupOffsets, group_id=group_id, topics=())
        assert call.error is ErrorCode.INVALID_GROUP_ID
    assert shares.harness.send(DeleteShareGroupOffsets, group_id="g", topics=None).error is ErrorCode.NONE


def test_a_group_goes_when_its_state_is_gone() -> None:
    shares = emptied()
    call = shares.harness.send(DeleteGroups, group_ids=("g", "none"))

    assert call.is_parked
    assert shares.partitions[:2] == ({}, {})
    assert sorted(shares.partitions[2], key=str) == sorted((A, B), key=str)
    shares.well()
    groups = (("g", ErrorCode.NONE), ("none", ErrorCode.GROUP_ID_NOT_FOUND))
    assert call.result(object) == DeleteGroupsResult(groups=groups)
    assert shares.harness.any_group("g") is None
    assert shares.harness.shard.share_partitions == {}


def test_a_group_whose_state_does_not_go_stays() -> None:
    shares = emptied()
    for outcome in (GroupStateDeleted("g", ((A, (ShareStateError(0, DOWN),)),)), GroupStateDeleted("g", error=DOWN)):
        call = shares.harness.send(DeleteGroups, group_ids=("g",))
        tell(shares, outcome)
        assert call.result(object) == DeleteGroupsResult(groups=(("g", DOWN),))
    assert shares.harness.any_group("g") is not None


def test_groups_without_state_and_with_members_are_answered_at_once() -> None:
    shares = Shares()
    shares.running("a")

    assert shares.harness.delete_groups("g") == [ErrorCode.NON_EMPTY_GROUP]
    shares.beat("n", 0, "gone", group="h")
    shares.beat("n", -1, group="h")
    assert shares.harness.delete_groups("h") == [ErrorCode.NONE]
    assert shares.calls == []


def test_topics_that_are_gone_are_kept_for_nobody() -> None:
    shares = emptied()
    delete_topics(shares, "a")
    shares.change_topics(b=2)
    assert shares.partitions == ({}, {B: (0, 1)}, ())
    shares.harness.send(AlterShareGroupOffsets, group_id="g", topics=(("b", ((1, 4),)),))
    shares.change_topics(a=3)
    assert shares.partitions == ({}, {}, ())
