"""Plans of resets: each strategy, clamping, and what holds of every plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgctl.admin import EARLIEST_LOCAL, LATEST_TIERED, MAX_TIMESTAMP, ItemError
from kgctl.admin.notation import FromFile, PlannedOffset
from kgctl.admin.offset_reset import (
    Clamp,
    Heal,
    PartitionFacts,
    PastOffset,
    ResetResult,
    ResetRow,
    ShiftBy,
    Strategy,
    ToCurrent,
    ToEarliest,
    ToHistory,
    ToLatest,
    ToMark,
    ToOffset,
    ToTime,
    plan_partition,
)
from kgctl.admin.topic_scopes import TopicScope, parse_topic_scopes, resolve_scopes
from kgctl.errors import BrokerError, KgctlError, NotFoundError, RefusedError, UsageError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import LogOffsets, OffsetAndMetadata, TopicPartition

P = TopicPartition("t", 0)
LOG = LogOffsets(10, 100)
IN_DOUBT = "later commits may be missing"


def plan(strategy: Strategy, committed: int | None, *, at_time: int | None = None, clamp: bool = True) -> ResetRow:
    commit = None if committed is None else OffsetAndMetadata(committed)
    return plan_partition(strategy, "g", P, PartitionFacts(commit, LOG, at_time), clamp=clamp)


def from_file(target: int | None, *, metadata: str = "", expected: int | None = None, verify: bool = False) -> FromFile:
    offset = None if target is None else OffsetAndMetadata(target, metadata)
    return FromFile({"g": {P: PlannedOffset(offset, expected, verify)}})


def to_history(target: OffsetAndMetadata | None, doubt: str | None = None) -> ToHistory:
    return ToHistory(0, {"g": {P: PastOffset(target, doubt)}})


@pytest.mark.parametrize(
    ("strategy", "committed", "at_time", "new", "note"),
    [
        (ToEarliest(), 50, None, 10, None),
        (ToLatest(), 50, None, 100, None),
        (ToLatest(), None, None, 100, None),
        (ToOffset(42), 50, None, 42, None),
        (ToOffset(100), 50, None, 100, None),
        (ToOffset(10), 50, None, 10, None),
        (ToOffset(0), 50, None, 10, "0 is before the log start 10; 10 is used"),
        (ToOffset(101), 50, None, 100, "101 is past the log end 100; 100 is used"),
        (ShiftBy(5), 50, None, 55, None),
        (ShiftBy(-5), 50, None, 45, None),
        (ShiftBy(-500), 50, None, 10, "-450 is before the log start 10; 10 is used"),
        (ShiftBy(500), 50, None, 100, "550 is past the log end 100; 100 is used"),
        (ToTime(0), 50, 30, 30, None),
        (ToTime(0), 50, None, 100, "no record at or after 1970-01-01T00:00:00.000Z; log end"),
        (ToCurrent(), None, None, 100, "nothing was committed; log end"),
        (ToCurrent(), 5, None, 10, "5 is before the log start 10; 10 is used"),
        (ToCurrent(), 500, None, 100, "500 is past the log end 100; 100 is used"),
        (from_file(42), 50, None, 42, None),
        (from_file(7), 50, None, 10, "7 is before the log start 10; 10 is used"),
        (to_history(OffsetAndMetadata(42)), 50, None, 42, None),
        (to_history(OffsetAndMetadata(42)), None, None, 42, None),
        (to_history(OffsetAndMetadata(101)), 50, None, 100, "101 is past the log end 100; 100 is used"),
        (
            to_history(OffsetAndMetadata(42), IN_DOUBT),
            50,
            None,
            42,
            IN_DOUBT,
        ),
        (
            to_history(OffsetAndMetadata(7), IN_DOUBT),
            50,
            None,
            10,
            f"7 is before the log start 10; 10 is used; {IN_DOUBT}",
        ),
    ],
)
def test_strategy_moves_the_offset(
    strategy: Strategy, committed: int | None, at_time: int | None, new: int, note: str | None
) -> None:
    row = plan(strategy, committed, at_time=at_time)
    assert (row.new, row.note, row.result) == (OffsetAndMetadata(new), note, ResetResult.PLANNED)
    assert row.lag_after == 100 - new
    assert row.delta == (None if committed is None else new - committed)


@pytest.mark.parametrize("strategy", [ToOffset(50), ShiftBy(0), ToCurrent(), ToTime(0), from_file(50)])
def test_what_stays_is_unchanged(strategy: Strategy) -> None:
    assert plan(strategy, 50, at_time=50).result is ResetResult.UNCHANGED


def test_commit_of_minus_one_is_no_commit() -> None:
    assert plan(ToLatest(), -1).old is None
    assert plan(ShiftBy(1), -1).result is ResetResult.FAILED


def test_shift_without_a_commit_fails() -> None:
    row = plan(ShiftBy(1), None)
    error = row.to_exception()
    assert (row.result, row.new, row.delta, row.lag_after) == (ResetResult.FAILED, None, None, None)
    assert type(error) is KgctlError
    assert (error.code, error.group, error.topic, error.partition) == ("NOTHING_COMMITTED", "g", "t", 0)


def test_without_clamping_what_is_outside_the_log_fails() -> None:
    for target in (9, 101):
        row = plan(ToOffset(target), 50, clamp=False)
        assert (row.result, row.code, row.new) == (ResetResult.FAILED, "OFFSET_OUT_OF_RANGE", None)
    assert plan(ToOffset(100), 50, clamp=False).result is ResetResult.PLANNED


def test_clamp_says_what_was_asked_and_what_is_used() -> None:
    assert plan(ToOffset(101), 50).clamp == Clamp(101, 100)
    assert plan(ToOffset(99), 50).clamp is None


def test_file_can_take_a_commit_away() -> None:
    row = plan(from_file(None), 50)
    assert (row.result, row.new, row.note) == (ResetResult.PLANNED, None, "the commit is taken away")
    assert plan(from_file(None), None).result is ResetResult.UNCHANGED


def test_file_restores_metadata_at_the_same_offset() -> None:
    row = plan(from_file(50, metadata="mine"), 50)
    assert (row.result, row.new) == (ResetResult.PLANNED, OffsetAndMetadata(50, "mine"))


@pytest.mark.parametrize(("expected", "committed"), [(49, 50), (None, 50), (50, None)])
def test_file_that_expects_something_else_is_refused(expected: int | None, committed: int | None) -> None:
    row = plan(from_file(42, expected=expected, verify=True), committed)
    assert (row.result, row.code) == (ResetResult.REFUSED, "PLAN_OUTDATED")
    assert isinstance(row.to_exception(), RefusedError)


def test_file_that_was_executed_already_has_nothing_to_do() -> None:
    assert plan(from_file(42, expected=50, verify=True), 42).result is ResetResult.UNCHANGED
    assert plan(from_file(None, expected=50, verify=True), None).result is ResetResult.UNCHANGED


@pytest.mark.parametrize("committed", [50, None])
def test_file_that_expects_what_is_there_is_planned(committed: int | None) -> None:
    assert plan(from_file(42, expected=committed, verify=True), committed).result is ResetResult.PLANNED


def test_error_of_the_log_fails_the_row_as_itself() -> None:
    error = ItemError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "gone")
    row = plan_partition(ToLatest(), "g", P, PartitionFacts(None, LogOffsets(), error=error))
    assert (row.result, row.note) == (ResetResult.FAILED, "gone")
    assert isinstance(row.to_exception(), NotFoundError)


def test_unknown_bounds_fail_the_row() -> None:
    row = plan_partition(ToLatest(), "g", P, PartitionFacts(None, LogOffsets(0, None)))
    assert (row.result, row.code) == (ResetResult.FAILED, "LOG_UNKNOWN")
    assert not isinstance(row.to_exception(), BrokerError)


def test_planned_row_is_no_error() -> None:
    assert plan(ToLatest(), 50).to_exception() is None


OFFSETS = st.one_of(st.none(), st.integers(0, 300))
BY_KIND: Mapping[type[Strategy], st.SearchStrategy[Strategy]] = {
    ToEarliest: st.just(ToEarliest()),
    ToLatest: st.just(ToLatest()),
    ToCurrent: st.just(ToCurrent()),
    Heal: st.just(Heal()),
    ToOffset: st.integers(0, 300).map(ToOffset),
    ShiftBy: st.integers(-300, 300).map(ShiftBy),
    ToTime: st.integers(0, 10**12).map(ToTime),
    ToMark: st.sampled_from((MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED)).map(ToMark),
    FromFile: OFFSETS.map(from_file),
    ToHistory: st.integers(0, 300).map(lambda offset: to_history(OffsetAndMetadata(offset))),
}
STRATEGIES = st.one_of(*BY_KIND.values())
LOGS = st.tuples(st.integers(0, 150), st.integers(0, 150)).map(lambda drawn: LogOffsets(min(drawn), max(drawn)))


@given(STRATEGIES, OFFSETS, LOGS, OFFSETS, st.booleans())
def test_no_plan_ever_leaves_the_log(
    strategy: Strategy, committed: int | None, log: LogOffsets, at_time: int | None, clamp: bool
) -> None:
    commit = None if committed is None else OffsetAndMetadata(committed)
    row = plan_partition(strategy, "g", P, PartitionFacts(commit, log, at_time), clamp=clamp)
    start, end = log.log_start_offset, log.log_end_offset
    assert start is not None
    assert end is not None
    if row.new is not None:
        assert start <= row.new.offset <= end
        assert row.lag_after == end - row.new.offset >= 0
    assert (row.result is ResetResult.FAILED) == (row.to_exception() is not None)
    assert row.result in (ResetResult.PLANNED, ResetResult.UNCHANGED, ResetResult.FAILED)
    assert row.clamp is None or clamp


def test_every_kind_of_target_is_tried() -> None:
    assert set(BY_KIND) == set(get_args(Strategy))


@given(STRATEGIES, OFFSETS, st.integers(1, 300))
def test_what_is_planned_without_the_log_is_what_is_planned_with_any(strategy: Strategy, committed: int | None, end: int) -> None:
    commit = None if committed is None else OffsetAndMetadata(committed)
    blind = plan_partition(strategy, "g", P, PartitionFacts(commit, LogOffsets()))
    seen = plan_partition(strategy, "g", P, PartitionFacts(commit, LogOffsets(0, end)))
    if blind.new is not None and blind.new.offset <= end:
        assert seen.new == blind.new


@given(STRATEGIES, OFFSETS, LOGS, OFFSETS)
def test_what_was_reset_needs_no_second_reset(
    strategy: Strategy, committed: int | None, log: LogOffsets, at_time: int | None
) -> None:
    """Every strategy but the shift is idempotent."""
    commit = None if committed is None else OffsetAndMetadata(committed)
    first = plan_partition(strategy, "g", P, PartitionFacts(commit, log, at_time))
    if first.result is ResetResult.PLANNED and not isinstance(strategy, ShiftBy):
        second = plan_partition(strategy, "g", P, PartitionFacts(first.new, log, at_time))
        assert second.result is ResetResult.UNCHANGED


def test_history_restores_metadata_and_leader_epoch() -> None:
    row = plan(to_history(OffsetAndMetadata(50, "mine", 7)), 50)
    assert (row.result, row.new) == (ResetResult.PLANNED, OffsetAndMetadata(50, "mine", 7))


@pytest.mark.parametrize("committed", [50, None])
def test_what_had_no_commit_then_is_left_alone(committed: int | None) -> None:
    row = plan(ToHistory(1500, {"g": {}}), committed)
    assert (row.result, row.new, row.note) == (
        ResetResult.UNCHANGED,
        row.old,
        "the history has no commit at 1970-01-01T00:00:01.500Z; left alone",
    )


def test_what_the_history_does_not_know_fails() -> None:
    row = plan(to_history(None, IN_DOUBT), 50)
    assert (row.result, row.code, row.new, row.note) == (ResetResult.FAILED, "NOT_IN_THE_HISTORY", None, IN_DOUBT)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["t"], [TopicScope("t")]),
        (["t:3"], [TopicScope("t", ((3, 3),))]),
        (["t:0,2-5"], [TopicScope("t", ((0, 0), (2, 5)))]),
        (["t:5,3,4"], [TopicScope("t", ((3, 5),))]),
        (["t:1-3,2-6"], [TopicScope("t", ((1, 6),))]),
        (["t:1", "u", "t:0"], [TopicScope("t", ((0, 1),)), TopicScope("u")]),
        (["t:1", "t"], [TopicScope("t")]),
        (["t:0-2147483647"], [TopicScope("t", ((0, 2147483647),))]),
        ([], []),
    ],
)
def test_scopes_are_read(texts: list[str], expected: list[TopicScope]) -> None:
    assert parse_topic_scopes(texts) == tuple(expected)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "names no topic"),
        (":1", "names no topic"),
        ("t:", "'' is not a partition"),
        ("t:x", "'x' is not a partition"),
        ("t:0:1", "'0:1' is not a partition"),
        ("t:1,", "'' is not a partition"),
        ("t:-1", "'-1' is not a partition"),
        ("t:1-", "'1-' is not a partition"),
        ("t:1-2-3", "'1-2-3' is not a partition"),
        ("t:3-1", "ends before it begins"),
        ("t:2147483648", "larger than any partition number"),
        ("t:99999999999999999999", "is not a partition"),
    ],
)
def test_what_is_no_scope_is_refused(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        parse_topic_scopes([text])


def test_scopes_become_partitions() -> None:
    scopes = parse_topic_scopes(["b:2,0", "a"])
    assert resolve_scopes(scopes, {"a": 2, "b": 3, "c": 9}) == (
        TopicPartition("b", 0),
        TopicPartition("b", 2),
        TopicPartition("a", 0),
        TopicPartition("a", 1),
    )


def test_missing_topic_is_named() -> None:
    with pytest.raises(NotFoundError, match="topic 'b' does not exist"):
        resolve_scopes(parse_topic_scopes(["a", "b"]), {"a": 1})


@pytest.mark.parametrize(("text", "partition"), [("t:3", 3), ("t:0-9", 3), ("t:0,7-9", 7)])
def test_first_missing_partition_is_named(text: str, partition: int) -> None:
    with pytest.raises(NotFoundError, match=f"partition t-{partition} does not exist: topic 't' has 3 partitions") as caught:
        resolve_scopes(parse_topic_scopes([text]), {"t": 3})
    assert (caught.value.topic, caught.value.partition) == ("t", partition)


def test_enormous_range_is_refused_without_being_counted_out() -> None:
    with pytest.raises(NotFoundError, match="t-3 does not exist"):
        resolve_scopes(parse_topic_scopes(["t:0-2147483647"]), {"t": 3})


NUMBERS = st.lists(st.integers(0, 30), min_size=1, max_size=12)


@given(NUMBERS)
def test_written_numbers_are_the_partitions_meant(numbers: list[int]) -> None:
    (scope,) = parse_topic_scopes(["t:" + ",".join(map(str, numbers))])
    assert [partition.partition for partition in scope.resolve(31)] == sorted(set(numbers))
    assert [number for number in range(31) if TopicPartition("t", number) in scope] == sorted(set(numbers))
    assert TopicPartition("u", numbers[0]) not in scope


@given(NUMBERS, NUMBERS)
def test_two_scopes_of_a_topic_unite(one: list[int], other: list[int]) -> None:
    def text(numbers: list[int]) -> str:
        return "t:" + ",".join(map(str, numbers))

    assert parse_topic_scopes([text(one), text(other)]) == parse_topic_scopes([text(one + other)])
