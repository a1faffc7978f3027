"""Which instance runs a task, and which one is to; what Kafka says to the same is in tests/conformance/assignors."""

from __future__ import annotations

from uuid import UUID

from kgctl.assignors.high_availability import (
    LATEST_OFFSET,
    UNKNOWN_OFFSET_SUM,
    ClientState,
    HighAvailabilityTaskAssignor,
    NumberedTask,
    TaskSettings,
    lags_of,
)

TASKS = [NumberedTask(0, number) for number in range(4)]


def assigned(*lags: list[int], settings: TaskSettings | None = None) -> tuple[bool, list[tuple[str, str]]]:
    """(whether a later look may do better, each client's active and standby tasks by their partitions)."""
    clients = [ClientState(UUID(int=number), 1, dict(zip(TASKS, own, strict=True))) for number, own in enumerate(lags)]
    probes = HighAvailabilityTaskAssignor().assign(clients, TASKS, TASKS, settings or TaskSettings())
    return probes, [(_numbers(each.active), _numbers(each.standby)) for each in clients]


def _numbers(tasks: set[NumberedTask]) -> str:
    return "".join(str(task.partition) for task in sorted(tasks))


def test_tasks_without_a_state_anywhere_are_spread() -> None:
    assert assigned([9] * 4, [9] * 4) == (False, [("02", ""), ("13", "")])


def test_a_new_instance_warms_up_what_is_to_be_its() -> None:
    runs, nothing = [LATEST_OFFSET] * 4, [50_000] * 4
    assert assigned(runs, nothing) == (True, [("0123", ""), ("", "13")])
    assert assigned(runs, nothing, settings=TaskSettings(max_warmup_replicas=1)) == (True, [("0123", ""), ("", "1")])
    assert assigned(runs, [50_000, 10_000, 50_000, 10_001]) == (True, [("023", ""), ("1", "3")])
    assert assigned(runs, nothing, settings=TaskSettings(acceptable_recovery_lag=50_000)) == (False, [("02", ""), ("13", "")])


def test_a_standby_that_is_far_enough_takes_over() -> None:
    """The first instance has lost everything; the others have copies."""
    lags = ([50_000] * 4, [LATEST_OFFSET, 0, 50_000, 50_000], [50_000, 50_000, LATEST_OFFSET, 0])
    found = assigned(*lags, settings=TaskSettings(num_standby_replicas=1))
    assert found[0]
    assert [active for active, _ in found[1]] == ["", "01", "23"]


def test_standbys_are_with_other_instances() -> None:
    found = assigned([0] * 4, [0] * 4, settings=TaskSettings(num_standby_replicas=3))
    assert found == (False, [("02", "13"), ("13", "02")])


def test_lags_are_what_is_missing_of_the_changelogs() -> None:
    ends = dict(zip(TASKS, (100, 100, 100, 100), strict=True))
    sums = {TASKS[0]: LATEST_OFFSET, TASKS[1]: 30, TASKS[2]: 101}
    assert list(lags_of(sums, ends).values()) == [LATEST_OFFSET, 70, 100, 100]
    assert lags_of({TASKS[0]: UNKNOWN_OFFSET_SUM}, {TASKS[0]: 5}) == {TASKS[0]: UNKNOWN_OFFSET_SUM}
