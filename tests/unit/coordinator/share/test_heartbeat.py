"""ShareGroupHeartbeat, as Kafka's coordinator does it; the differential has the rest."""

from __future__ import annotations

import pytest

from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import JoinGroup
from kgctl.model.share_requests import InitializeShareState, PartitionStart, ShareTopicStart
from kgctl.model.share_results import ShareGroupHeartbeatResult
from tests.unit.coordinator.share.beats import TOPICS, A, B, Shares

EMPTY_ID = "MemberId can't be empty."


def test_who_joins_reads_nothing_before_the_state_of_partitions_is_there() -> None:
    shares = Shares()

    assert shares.beat("m") == ShareGroupHeartbeatResult(
        member_id="m", member_epoch=2, heartbeat_interval_ms=5_000, assignment=()
    )
    starts = tuple(PartitionStart(number, 2) for number in range(TOPICS["a"]))
    assert shares.calls == [InitializeShareState("g", (ShareTopicStart(A, starts),))]
    assert shares.partitions == ({A: (0, 1, 2)}, {}, ())


def test_what_has_a_state_is_read_with_the_next_heartbeat() -> None:
    shares = Shares()
    shares.beat("m")
    shares.well()

    assert shares.partitions == ({}, {A: (0, 1, 2)}, ())
    assert shares.beat("m", 2) == ShareGroupHeartbeatResult(
        member_id="m", member_epoch=3, heartbeat_interval_ms=5_000, assignment=((A, (0, 1, 2)),)
    )
    assert shares.beat("m", 3).assignment is None
    assert shares.beat("m", 3, "a").assignment == ((A, (0, 1, 2)),)


def test_several_read_the_same_partition_where_there_are_more_of_them() -> None:
    shares = Shares()
    shares.running("b")
    for member_id in ("n", "o", "p"):
        shares.beat(member_id, 0, "b")
    for member_id in ("m", "n", "o", "p"):
        shares.beat(member_id, shares.state.members[member_id].member_epoch)

    numbers = sorted(number for member in shares.state.members.values() for number in member.assigned[B])
    assert numbers == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"member_id": ""}, EMPTY_ID),
        ({"member_id": " "}, EMPTY_ID),
        ({"group": " "}, "GroupId can't be empty."),
        ({"rack_id": ""}, "RackId can't be empty."),
        ({"subscribed_topic_names": ()}, "SubscribedTopicNames must be set in first request."),
        ({"subscribed_topic_names": None}, "SubscribedTopicNames must be set in first request."),
        ({"epoch": -2}, "MemberEpoch is invalid."),
    ],
)
def test_requests_that_cannot_be(said: dict[str, object], message: str) -> None:
    shares = Shares()
    fields = {"member_id": "m", "epoch": 0, **said}
    member_id, epoch = str(fields.pop("member_id")), int(str(fields.pop("epoch")))

    result = shares.beat(member_id, epoch, **fields)  # type: ignore[arg-type]  # what a case says
    assert (result.error, result.error_message) == (ErrorCode.INVALID_REQUEST, message)
    assert shares.harness.log == []


def test_unknown_groups_and_members() -> None:
    shares = Shares()
    shares.harness.join(group="classic")

    assert shares.beat("m", 1).error_message == "Share group g not found."
    assert shares.beat("m", -1).error_message == "Group g not found."
    shares.beat("m")
    unknown = shares.beat("x", 1)
    assert (unknown.error, unknown.error_message) == (ErrorCode.UNKNOWN_MEMBER_ID, "Member x is not a member of group g.")
    assert shares.beat("x", -1).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_name_belongs_to_one_kind_of_group() -> None:
    shares = Shares()
    shares.harness.commit({"a-0": 1}, group="other")

    for epoch in (0, 3, -1):
        refused = shares.beat("m", epoch, group="other")
        assert (refused.error, refused.error_message) == (ErrorCode.GROUP_ID_NOT_FOUND, "Group other is not a share group.")
    shares.beat("m")
    assert shares.harness.send(JoinGroup, group_id="g").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_epochs() -> None:
    shares = Shares()
    epoch = shares.running("a")

    greater, smaller = shares.beat("m", epoch + 1), shares.beat("m", epoch - 2)
    assert {greater.error, smaller.error} == {ErrorCode.FENCED_MEMBER_EPOCH}
    end = "The member must abandon all its partitions and rejoin."
    known = f"than the one known by the group coordinator ({epoch})"
    assert greater.error_message == f"The share group member has a greater member epoch ({epoch + 1}) {known}. {end}"
    not_previous = f"and it does not match the previous member epoch ({epoch - 1})"
    assert (
        smaller.error_message == f"The share group member has a smaller member epoch ({epoch - 2}) {known}, {not_previous}. {end}"
    )
    assert shares.beat("m", epoch - 1).member_epoch == epoch
    assert shares.beat("m", 0).member_epoch == epoch


def test_a_group_has_a_largest_size() -> None:
    shares = Shares({"group.share.max.size": "1"})
    shares.beat("m")

    full = shares.beat("n")
    assert full.error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert full.error_message == "The share group has reached its maximum capacity of 1 members."
    assert shares.beat("m", 2).error is ErrorCode.NONE


def test_leaving_bumps_the_epoch_and_empties_the_group() -> None:
    shares = Shares()
    epoch = shares.running("a")

    assert shares.beat("m", -1) == ShareGroupHeartbeatResult(member_id="m", member_epoch=-1)
    assert (shares.state.group_epoch, shares.state.is_empty, shares.state.targets) == (epoch + 1, True, {})
    assert shares.harness.list_groups() == [("g", "share", "Empty", "share")]


def test_a_silent_member_is_fenced_and_a_heartbeat_starts_its_session_anew() -> None:
    shares = Shares()
    epoch = shares.running("a")
    shares.harness.sleep_ms(44_000)
    shares.beat("m", epoch)
    shares.harness.sleep_ms(44_999)
    assert not shares.state.is_empty
    shares.harness.sleep_ms(1)
    assert shares.state.is_empty
    assert shares.harness.driver.fired["share-session"] == 1


def test_a_group_may_have_a_session_and_an_interval_of_its_own() -> None:
    shares = Shares()
    shares.harness.update_config({"share.session.timeout.ms": "60000", "share.heartbeat.interval.ms": "7000"})
    assert shares.beat("m").heartbeat_interval_ms == 7_000
    shares.harness.sleep_ms(59_999)
    assert not shares.state.is_empty


def test_the_assignment_interval_puts_a_target_off() -> None:
    shares = Shares({"group.share.assignment.interval.ms": "1000"})
    shares.harness.sleep_ms(1)  # 0 is no time at which a target was made
    shares.beat("m")
    shares.well()

    assert (shares.beat("m", 2).assignment, shares.state.group_epoch, shares.state.assignment_epoch) == (None, 3, 2)
    shares.harness.sleep_ms(1_000)
    assert shares.beat("m", 2).assignment == ((A, (0, 1, 2)),)


def test_a_member_no_longer_reads_what_it_does_not_subscribe_to() -> None:
    shares = Shares()
    epoch = shares.running("a", "b")

    assert shares.beat("m", epoch, "b").assignment == ((B, (0, 1)),)
    assert shares.beat("m", epoch + 1, "gone").assignment == ()


def test_topics_that_grow_get_a_state_for_what_is_new() -> None:
    shares = Shares()
    epoch = shares.running("a")
    shares.change_topics(a=5, b=2)

    shares.beat("m", epoch)
    assert shares.calls == [InitializeShareState("g", (ShareTopicStart(A, (PartitionStart(3, 4), PartitionStart(4, 4))),))]
    shares.well()
    assert shares.beat("m", epoch + 1).assignment == ((A, (0, 1, 2, 3, 4)),)


def test_a_state_that_does_not_come_is_asked_for_again_after_a_while() -> None:
    shares = Shares()
    shares.beat("m")
    shares.harness.sleep_ms(29_999)
    shares.beat("m", 2)
    assert len(shares.calls) == 1
    shares.harness.sleep_ms(1)
    shares.beat("m", 2)
    assert shares.calls == [shares.calls[0]] * 2
