"""The sticky assignor of tasks: small groups that show its rules; tests/differential/streams has the rest from Kafka itself."""

from __future__ import annotations

from typing import Any

import pytest

from kgctl.assignors.spec import AssignorError
from kgctl.assignors.streams_sticky import StickyTaskAssignor
from kgctl.assignors.task_spec import SubtopologySize, TaskId, TaskMember, TaskSpec, TaskTarget

STATEFUL = (SubtopologySize("0", 4, is_stateful=True),)


def assigned(*members: TaskMember, replicas: int = 0, sizes: tuple[SubtopologySize, ...] = STATEFUL) -> dict[str, TaskTarget]:
    return StickyTaskAssignor().assign_tasks(TaskSpec(members, sizes, replicas))


def active(targets: dict[str, TaskTarget]) -> dict[str, Any]:
    return {name: target.active for name, target in targets.items()}


def test_new_members_take_turns() -> None:
    assert assigned(TaskMember("a", "p1"), TaskMember("b", "p2")) == {
        "a": TaskTarget({"0": (0, 2)}, {}),
        "b": TaskTarget({"0": (1, 3)}, {}),
    }


def test_members_keep_what_they_run_up_to_their_share() -> None:
    targets = assigned(TaskMember("a", "p1", {"0": [0, 1, 2, 3]}), TaskMember("b", "p2"))

    assert active(targets) == {"a": {"0": (0, 1)}, "b": {"0": (2, 3)}}


def test_a_task_goes_to_where_it_is_on_standby() -> None:
    targets = assigned(TaskMember("a", "p1", standby={"0": [3, 1]}), TaskMember("b", "p2"))

    assert active(targets) == {"a": {"0": (1, 3)}, "b": {"0": (0, 2)}}


def test_a_copy_is_never_in_the_process_of_its_task() -> None:
    targets = assigned(TaskMember("a", "p1"), TaskMember("b", "p1"), TaskMember("c", "p2"), replicas=1)

    assert {name: (target.active, target.standby) for name, target in targets.items()} == {
        "a": ({"0": (0,)}, {"0": (3,)}),
        "b": ({"0": (2,)}, {"0": (1,)}),
        "c": ({"0": (1, 3)}, {"0": (0, 2)}),
    }


def test_tasks_without_stores_have_no_copies() -> None:
    sizes = (SubtopologySize("0", 2, is_stateful=False),)

    assert not any(
        target.standby for target in assigned(TaskMember("a", "p1"), TaskMember("b", "p2"), replicas=1, sizes=sizes).values()
    )


def test_nobody_can_run_tasks_of_an_empty_group() -> None:
    with pytest.raises(AssignorError, match=r"No process available to assign active task 0_0\."):
        assigned()
    assert assigned(sizes=()) == {}


def test_a_task_is_called_as_kafka_does() -> None:
    assert str(TaskId("word-count", 3)) == "word-count_3"
