"""DescribeGroups, ListGroups, DeleteGroups, statistics."""

from __future__ import annotations

from kgctl.coordinator.effects import AppendRecord
from kgctl.coordinator.streams.records import group_record as streams_record
from kgctl.model.coordinator_records import CoordinatorRecord, GroupMetadataKey, OffsetCommitKey
from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import CoordinatorStatistics, DescribedGroup, DescribedMember
from tests.support.coordinator_harness import CoordinatorHarness, subscription


def test_a_stable_group_is_described_with_protocol_metadata_and_assignments() -> None:
    harness = CoordinatorHarness()
    harness.stable_group(instances=["i"])

    member = DescribedMember(
        member_id="i-1",
        group_instance_id="i",
        client_id="c",
        client_host="/127.0.0.1",
        metadata=subscription("t"),
        assignment=b"Ai-1",
    )
    assert harness.describe() == DescribedGroup(
        group_id="g", state="Stable", protocol_type="consumer", protocol_data="range", members=(member,)
    )


def test_a_rebalancing_group_is_described_without_protocol_and_metadata() -> None:
    harness = CoordinatorHarness()
    leader, other = harness.stable_group(2)
    harness.join(leader)

    described = harness.describe()

    assert (described.state, described.protocol_data) == ("PreparingRebalance", "")
    assert {member.member_id: (member.metadata, member.assignment) for member in described.members} == {
        leader: (b"", b"A" + leader.encode()),
        other: (b"", b"A" + other.encode()),
    }


def test_an_unknown_group_is_dead_and_newer_clients_are_told_why() -> None:
    harness = CoordinatorHarness()

    assert harness.describe("x", version=5) == DescribedGroup(group_id="x", state="Dead")
    assert harness.describe("x", version=6) == DescribedGroup(
        group_id="x", error=ErrorCode.GROUP_ID_NOT_FOUND, error_message="Group x not found.", state="Dead"
    )
    assert harness.describe(None).error is ErrorCode.INVALID_GROUP_ID


def test_a_group_of_another_type_is_no_classic_group() -> None:
    harness = CoordinatorHarness()
    harness.driver.load([AppendRecord(streams_record("s", 2, 0, 0, {}))])

    assert harness.describe("s").error_message == "Group s is not a classic group."
    assert harness.describe("s", version=5).error is ErrorCode.NONE


def test_groups_are_listed_by_state_and_type_in_any_letters() -> None:
    harness = CoordinatorHarness()
    harness.stable_group(group="live")
    harness.commit({"t-0": 1}, group="offsets")

    live, offsets = ("live", "consumer", "Stable", "classic"), ("offsets", "", "Empty", "classic")
    assert sorted(harness.list_groups()) == [live, offsets]
    assert harness.list_groups(states=[" stable "]) == [live]
    assert harness.list_groups(states=["Empty", "nonsense"]) == [offsets]
    assert sorted(harness.list_groups(types=["CLASSIC"])) == [live, offsets]
    assert harness.list_groups(types=["share"]) == []
    assert harness.list_groups(states=["Dead"]) == []


def test_tombstones_of_several_groups_come_in_the_order_of_a_hash_set() -> None:
    harness = CoordinatorHarness()
    for group in ("g", "s"):
        harness.commit({"t-0": 1}, group=group)
    before = len(harness.log)

    harness.delete_groups("g", "h", "s")

    keys = [entry.record.key for entry in harness.log[before:] if isinstance(entry.record, CoordinatorRecord)]
    assert [(type(key), key.group) for key in keys] == [
        (OffsetCommitKey, "s"),
        (GroupMetadataKey, "s"),
        (OffsetCommitKey, "g"),
        (GroupMetadataKey, "g"),
    ]


def test_groups_are_deleted_one_by_one() -> None:
    harness = CoordinatorHarness()
    harness.stable_group(group="live")
    harness.commit({"t-0": 1}, group="offsets")

    errors = harness.delete_groups("live", "offsets", "offsets", "gone", None)

    assert errors == [
        ErrorCode.NON_EMPTY_GROUP,
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.INVALID_GROUP_ID,
    ]
    assert harness.list_groups() == [("live", "consumer", "Stable", "classic")]


def test_a_deleted_group_has_no_timers() -> None:
    harness = CoordinatorHarness()
    harness.join()
    key = harness.group().session_timer("c-1")

    harness.delete_groups("g")

    harness.expect_timer(key, at_ms=None)


def test_statistics_count_groups_members_and_offsets() -> None:
    harness = CoordinatorHarness()
    harness.stable_group(2, group="live")
    harness.commit({"t-0": 1, "t-1": 1}, group="offsets")
    harness.join(group="new")

    assert harness.driver.coordinator.statistics() == CoordinatorStatistics(
        groups={("classic", "Stable"): 1, ("classic", "Empty"): 2}, members={"classic": 2}, offsets=2
    )
