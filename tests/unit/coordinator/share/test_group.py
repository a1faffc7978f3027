"""What any group is asked, of a share group; ShareGroupDescribe; and that what must hold is checked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kgctl.errors import InvariantViolation
from kgctl.model.coordinator_records import OffsetCommitValue
from kgctl.model.error_codes import ErrorCode
from kgctl.model.share_requests import ShareGroupDescribe
from kgctl.model.share_results import ShareGroupDescribedGroup, ShareGroupDescribedMember, ShareGroupDescribeResult
from tests.unit.coordinator.share.beats import A, Shares


def test_nobody_commits_to_it() -> None:
    shares = Shares()
    shares.beat("m")

    assert shares.harness.commit({"a-0": 1}) == {"a-0": ErrorCode.GROUP_ID_NOT_FOUND}
    assert shares.harness.delete_offsets("a-0").error is ErrorCode.GROUP_ID_NOT_FOUND
    assert shares.harness.fetch("a-0", member_id="m", member_epoch=1).offsets[0].offset == -1
    assert shares.state.expiry_base_ms(OffsetCommitValue(1, commit_timestamp_ms=5)) is None


def test_an_empty_one_does_not_end_by_itself() -> None:
    shares = Shares()
    shares.beat("m")
    shares.beat("m", -1)
    shares.harness.sleep_ms(8 * 24 * 3_600_000)
    assert shares.state.is_empty


def test_it_is_described_with_what_its_members_read() -> None:
    shares = Shares()
    epoch = shares.running("a", "gone")
    described = shares.harness.send(ShareGroupDescribe, group_ids=("g", "none", "", None, "other"))

    member = ShareGroupDescribedMember(
        member_id="m",
        member_epoch=epoch,
        client_host="/127.0.0.1",
        subscribed_topic_names=("a", "gone"),
        assignment=((A, (0, 1, 2)),),
    )
    group = ShareGroupDescribedGroup(
        group_id="g", state="Stable", group_epoch=epoch, assignment_epoch=epoch, assignor_name="simple", members=(member,)
    )
    not_found = ErrorCode.GROUP_ID_NOT_FOUND
    none, other = (
        ShareGroupDescribedGroup(group_id=name, error=not_found, error_message=f"Group {name} not found.")
        for name in ("none", "other")
    )
    invalid = ShareGroupDescribedGroup(group_id="", error=ErrorCode.INVALID_GROUP_ID)
    assert described.result(object) == ShareGroupDescribeResult(groups=(group, none, invalid, invalid, other))


def test_topics_that_are_gone_are_not_described() -> None:
    shares = Shares()
    shares.running("a")
    shares.change_topics(b=2)
    described = shares.harness.send(ShareGroupDescribe, group_ids=("g",)).result(ShareGroupDescribeResult)
    assert described.groups[0].members[0].assignment == ()


def test_a_group_of_another_kind_is_none() -> None:
    shares = Shares()
    shares.harness.commit({"a-0": 1})
    described = shares.harness.send(ShareGroupDescribe, group_ids=("g",)).result(ShareGroupDescribeResult)
    assert described.groups[0].error_message == "Group g is not a share group."


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("epoch", "is above the group epoch"),
        ("member", "is ahead of the target"),
        ("topics", "the counts of subscribed topics are wrong"),
        ("alike", "whether all members subscribe to the same"),
        ("target", "a target for somebody who is no member"),
        ("timer", "has no session timer"),
        ("partitions", "for no share group"),
    ],
)
def test_what_must_hold_is_checked(what: str, message: str) -> None:
    shares = Shares()
    shares.running("a")
    group, shard = shares.state, shares.harness.shard
    if what == "epoch":
        group.group_epoch = 0
    elif what == "member":
        group.members["m"] = replace(group.members["m"], member_epoch=99)
    elif what == "topics":
        group.topic_counts["b"] = 1
    elif what == "alike":
        group.is_homogeneous = False
    elif what == "target":
        group.targets["x"] = {}
    elif what == "timer":
        shard.disarm(group.session_timer("m"))
    else:
        shard.share_partitions["h"] = shard.share_partitions["g"]
    with pytest.raises(InvariantViolation, match=message):
        shares.harness.driver.coordinator.check()
