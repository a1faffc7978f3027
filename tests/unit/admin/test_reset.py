"""Resets on a cluster in memory: what holds whatever the offsets, logs and strategy are. Examples are in tests/cli."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kgctl.admin.plan.offset_file import parse_offset_file, undo_rows
from kgctl.admin.plan.offset_reset import (
    PastOffset,
    ResetResult,
    ShiftBy,
    Strategy,
    ToCurrent,
    ToEarliest,
    ToHistory,
    ToLatest,
    ToOffset,
    TopicScope,
)
from kgctl.admin.reset import ResetPlan, ResetRequest, execute_reset, plan_reset
from kgctl.model.groups import MemberDescription, OffsetAndMetadata, TopicPartition
from tests.cli.fake_admin import FakeGroupAdmin, FakeLog

PARTITIONS = 4
LOGS = st.lists(
    st.tuples(st.integers(0, 100), st.integers(0, 100)).map(lambda drawn: (min(drawn), max(drawn))),
    min_size=PARTITIONS,
    max_size=PARTITIONS,
)
COMMITS = st.dictionaries(
    st.integers(0, PARTITIONS - 1).map(lambda number: TopicPartition("t", number)),
    st.builds(OffsetAndMetadata, st.integers(0, 120), st.text("ab", max_size=2), st.integers(-1, 5)),
    max_size=PARTITIONS,
)
Commits = dict[TopicPartition, OffsetAndMetadata]


def to_history(commits: Commits) -> ToHistory:
    return ToHistory(0, {"g": {partition: PastOffset(commit) for partition, commit in commits.items()}})


STRATEGIES = st.one_of(
    st.just(ToEarliest()),
    st.just(ToLatest()),
    st.just(ToCurrent()),
    st.integers(0, 120).map(ToOffset),
    st.integers(-120, 120).map(ShiftBy),
    COMMITS.map(to_history),
)


def cluster(logs: list[tuple[int, int]], commits: Commits) -> FakeGroupAdmin:
    admin = FakeGroupAdmin()
    admin.topic("t", *(FakeLog(start, end) for start, end in logs))
    admin.group("g", commits)
    return admin


def planned(admin: FakeGroupAdmin, strategy: Strategy) -> ResetPlan:
    return plan_reset(admin, ResetRequest(("g",), strategy, (TopicScope("t"),)))


@given(LOGS, COMMITS, STRATEGIES)
def test_planning_changes_nothing_and_executing_does_what_was_planned(
    logs: list[tuple[int, int]], commits: Commits, strategy: Strategy
) -> None:
    admin = cluster(logs, commits)
    plan = planned(admin, strategy)
    assert admin.groups["g"].offsets == commits
    execute_reset(admin, plan)
    expected = dict(commits)
    expected.update({row.partition: row.new for row in plan.to_change() if row.new})
    assert admin.groups["g"].offsets == expected


@given(LOGS, COMMITS, STRATEGIES)
def test_backup_of_an_executed_reset_restores_every_commit_inside_the_log(
    logs: list[tuple[int, int]], commits: Commits, strategy: Strategy
) -> None:
    inside = {partition: commit for partition, commit in commits.items() if _is_inside(logs[partition.partition], commit)}
    admin = cluster(logs, inside)
    plan = planned(admin, strategy)
    backup = undo_rows([(row.group_id, row.partition, row.old) for row in plan.to_change()])
    execute_reset(admin, plan)
    if plan.to_change():
        restored = parse_offset_file(backup, "backup", ())
        execute_reset(admin, plan_reset(admin, ResetRequest(("g",), restored)))
    assert admin.groups["g"].offsets == inside


def _is_inside(log: tuple[int, int], commit: OffsetAndMetadata) -> bool:
    return log[0] <= commit.offset <= log[1]


@given(LOGS, COMMITS, STRATEGIES)
def test_active_group_is_planned_and_never_changed(logs: list[tuple[int, int]], commits: Commits, strategy: Strategy) -> None:
    admin = cluster(logs, commits)
    idle_plan = planned(admin, strategy)
    admin.group("g", commits, [MemberDescription("m")])
    plan = planned(admin, strategy)
    assert [row for row in plan.rows if row.result is not ResetResult.FAILED] == [
        row for row in idle_plan.rows if row.result is not ResetResult.FAILED
    ]
    assert plan.to_change() == ()
    done = execute_reset(admin, plan).plan
    assert (done.groups, len(done.errors)) == ((), 1)
    assert admin.groups["g"].offsets == commits


@given(COMMITS, COMMITS)
def test_history_without_a_scope_covers_what_was_committed_then_and_what_is_now(then: Commits, now: Commits) -> None:
    admin = cluster([(0, 200)] * PARTITIONS, now)
    plan = plan_reset(admin, ResetRequest(("g",), to_history(then)))
    assert [row.partition for row in plan.rows] == sorted({*then, *now})
    execute_reset(admin, plan)
    assert {p: each.offset for p, each in admin.groups["g"].offsets.items()} == {
        p: each.offset for p, each in {**now, **then}.items()
    }
