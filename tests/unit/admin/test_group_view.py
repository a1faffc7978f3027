"""Groups with offsets, lag and owners put together. What users see of it is in tests/cli."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kgctl.admin import ItemError, Results
from kgctl.admin.group_view import (
    GroupLag,
    PartitionView,
    is_consumer_group,
    lag_behind,
    lag_by_group,
    view_offsets,
)
from kgctl.admin.topic_scopes import parse_topic_scopes
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import GroupListing, GroupType, LogOffsets, MemberDescription, OffsetAndMetadata, TopicPartition
from kgctl.model.lag import Flag, total_of
from tests.cli.fake_admin import FakeGroupAdmin, FakeLog


def test_groups_stand_in_the_order_asked_for_and_logs_are_asked_once() -> None:
    admin = FakeGroupAdmin()
    admin.topic("t", FakeLog(0, 5), FakeLog(0, 6))
    for group_id in ("a", "b", "c"):
        admin.group(group_id, {TopicPartition("t", 0): 1})
    found = view_offsets(admin, ["c", "a", "b"])
    assert [(view.description.group_id, view.total_lag) for view in found.views] == [("c", 4), ("a", 4), ("b", 4)]
    assert [name for name, _ in admin.calls] == ["describe_groups", "list_committed_offsets", "list_topics", "list_log_offsets"]


def test_no_topic_is_asked_about_for_a_group_that_knows_none() -> None:
    admin = FakeGroupAdmin()
    admin.topic("t", FakeLog(0, 5))
    admin.group("a")
    assert view_offsets(admin, ["a"]).views[0].partitions == ()
    assert "list_topics" not in [name for name, _ in admin.calls]


def test_topic_that_is_gone_keeps_its_committed_rows() -> None:
    admin = FakeGroupAdmin()
    admin.group("a", {TopicPartition("gone", 3): 1})
    found = view_offsets(admin, ["a"])
    assert [view.partition for view in found.views[0].partitions] == [TopicPartition("gone", 3)]
    assert [error.code for error in found.errors] == ["UNKNOWN_TOPIC_OR_PARTITION"]


@given(
    st.sets(st.integers(0, 5)),
    st.sets(st.integers(0, 5)),
    st.sampled_from(["", "t", "t:1", "t:0,2-4"]),
)
def test_rows_are_every_partition_of_known_topics_once(committed: set[int], owned: set[int], scope: str) -> None:
    admin = FakeGroupAdmin()
    admin.topic("t", *(FakeLog(0, 10) for _ in range(6)))
    member = MemberDescription("m", assignment={"t": tuple(sorted(owned))})
    admin.group("g", {TopicPartition("t", number): 1 for number in committed}, [member] if owned else [])
    scopes = parse_topic_scopes([scope] if scope else [])
    (view,) = view_offsets(admin, ["g"], scopes).views
    known = range(6) if committed or owned else ()
    expected = [number for number in known if not scopes or TopicPartition("t", number) in scopes[0]]
    assert [row.partition.partition for row in view.partitions] == expected
    assert {row.partition.partition for row in view.partitions if row.owner} == owned & set(expected)


def test_what_counts_as_a_consumer_group() -> None:
    def listed(kind: GroupType, protocol_type: str) -> bool:
        return is_consumer_group(GroupListing("g", protocol_type, type=kind))

    assert listed(GroupType.CLASSIC, "consumer")
    assert listed(GroupType.CLASSIC, "")
    assert listed(GroupType.CONSUMER, "consumer")
    assert listed(GroupType.UNKNOWN, "consumer")
    assert not listed(GroupType.CLASSIC, "connect")
    assert not listed(GroupType.SHARE, "share")
    assert not listed(GroupType.STREAMS, "streams")


T0, T1 = (TopicPartition("t", number) for number in (0, 1))


def test_lag_is_unknown_without_a_commit_or_a_log() -> None:
    assert lag_behind(OffsetAndMetadata(7), LogOffsets(5, 10)) == 3
    assert lag_behind(None, LogOffsets(5, 10)) is None
    assert lag_behind(OffsetAndMetadata(7), LogOffsets()) is None


def test_rows_are_what_brokers_said_and_what_follows_from_it() -> None:
    admin = FakeGroupAdmin()
    admin.topic("t", FakeLog(5, 10), FakeLog(0, 3), FakeLog(0, 4))
    admin.group("g", {T0: OffsetAndMetadata(7, "m", 3), T1: OffsetAndMetadata(-1)})
    (view,) = view_offsets(admin, ["g"]).views
    of_group = view.description
    assert view.partitions == (
        PartitionView(of_group, T0, OffsetAndMetadata(7, "m", 3), LogOffsets(5, 10), 3),
        PartitionView(of_group, T1, None, LogOffsets(0, 3), None),
        PartitionView(of_group, TopicPartition("t", 2), None, LogOffsets(0, 4), None),
    )


def test_a_member_that_reads_open_transactions_is_not_past_its_log() -> None:
    admin = FakeGroupAdmin()
    admin.topic("t", FakeLog(0, 10, last_stable=6), FakeLog(0, 10, last_stable=6))
    admin.group("g", {T0: 8, T1: 12})
    (view,) = view_offsets(admin, ["g"], read_committed=True).views
    assert [(each.lag, each.flags) for each in view.partitions] == [(0, ()), (None, ("past-log-end",))]


def test_group_with_an_unknown_end_has_an_unknown_total() -> None:
    commits = {"a": {T0: OffsetAndMetadata(1), T1: OffsetAndMetadata(1)}, "b": {T0: OffsetAndMetadata(4)}, "c": {}}
    no_leader = ItemError(ErrorCode.LEADER_NOT_AVAILABLE, "no leader")
    found = lag_by_group(commits, Results({T0: LogOffsets(0, 10)}, {T1: no_leader}))
    assert found == {"a": GroupLag(None, (Flag.NO_LEADER,)), "b": GroupLag(6), "c": GroupLag(0)}


def test_group_that_never_committed_there_does_not_need_the_end() -> None:
    assert lag_by_group({"a": {T0: OffsetAndMetadata(-1)}}, Results()) == {"a": GroupLag(0)}


COMMITS = st.dictionaries(
    st.integers(0, 20).map(lambda number: TopicPartition("t", number)),
    st.tuples(st.integers(-1, 100), st.integers(0, 100)),
)


@given(COMMITS)
def test_total_of_a_group_is_the_sum_of_its_rows(drawn: dict[TopicPartition, tuple[int, int]]) -> None:
    commits = {partition: OffsetAndMetadata(offset) for partition, (offset, _) in drawn.items()}
    logs = {partition: LogOffsets(0, end) for partition, (_, end) in drawn.items()}
    lags = [lag_behind(commit, logs[partition]) for partition, commit in commits.items() if commit.offset >= 0]
    assert lag_by_group({"g": commits}, Results(logs))["g"].lag == total_of(lags)
