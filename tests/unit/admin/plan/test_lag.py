"""Lag of partitions and of groups."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kgctl.admin.plan.lag import lag_by_group, partition_lag, range_flags, total_lag
from kgctl.model.offsets import LogOffsets, OffsetAndMetadata, PartitionLag
from kgctl.model.partitions import TopicPartition

T0, T1 = (TopicPartition("t", number) for number in (0, 1))


def test_row_of_a_commit() -> None:
    assert partition_lag(T0, OffsetAndMetadata(7, "m", 3), LogOffsets(5, 10)) == PartitionLag(T0, 7, 5, 10, 3, 3, "m")


def test_no_commit_is_unknown_lag() -> None:
    assert partition_lag(T0, None, LogOffsets(5, 10)) == PartitionLag(T0, None, 5, 10, None)
    assert partition_lag(T0, OffsetAndMetadata(-1), LogOffsets(5, 10)) == PartitionLag(T0, None, 5, 10, None)


def test_unknown_log_is_unknown_lag() -> None:
    assert partition_lag(T0, OffsetAndMetadata(7), LogOffsets()) == PartitionLag(T0, 7, None, None, None, None, "")


def test_commit_past_the_end_is_negative_lag() -> None:
    assert partition_lag(T0, OffsetAndMetadata(12), LogOffsets(0, 10)).lag == -2


def test_flags() -> None:
    def flags(commit: int | None, log: LogOffsets) -> tuple[str, ...]:
        return range_flags(partition_lag(T0, None if commit is None else OffsetAndMetadata(commit), log))

    assert flags(4, LogOffsets(5, 10)) == ("below-log-start",)
    assert flags(5, LogOffsets(5, 10)) == ()
    assert flags(10, LogOffsets(5, 10)) == ()
    assert flags(11, LogOffsets(5, 10)) == ("past-log-end",)
    assert flags(None, LogOffsets(5, 10)) == ()
    assert flags(3, LogOffsets()) == ()


def test_group_with_an_unknown_end_has_an_unknown_total() -> None:
    commits = {"a": {T0: OffsetAndMetadata(1), T1: OffsetAndMetadata(1)}, "b": {T0: OffsetAndMetadata(4)}, "c": {}}
    assert lag_by_group(commits, {T0: LogOffsets(0, 10)}) == {"a": None, "b": 6, "c": 0}


def test_group_that_never_committed_there_does_not_need_the_end() -> None:
    assert lag_by_group({"a": {T0: OffsetAndMetadata(-1)}}, {}) == {"a": 0}


COMMITS = st.dictionaries(
    st.integers(0, 20).map(lambda number: TopicPartition("t", number)),
    st.tuples(st.integers(-1, 100), st.integers(0, 100)),
)


@given(COMMITS)
def test_total_of_a_group_is_the_sum_of_its_rows(drawn: dict[TopicPartition, tuple[int, int]]) -> None:
    commits = {partition: OffsetAndMetadata(offset) for partition, (offset, _) in drawn.items()}
    logs = {partition: LogOffsets(0, end) for partition, (_, end) in drawn.items()}
    rows = [partition_lag(partition, commit, logs[partition]) for partition, commit in commits.items()]
    assert lag_by_group({"g": commits}, logs) == {"g": total_lag(rows)}
