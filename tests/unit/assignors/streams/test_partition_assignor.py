"""The leader of a Kafka Streams application: a few rebalances that show its rules; tests/differential/streams has the rest."""

from __future__ import annotations

from uuid import UUID

import pytest

from kgctl.assignors.high_availability import LATEST_OFFSET, NumberedTask, TaskSettings
from kgctl.assignors.spec import AssignorError
from kgctl.assignors.streams.partition_assignor import (
    ApplicationAssignment,
    Leader,
    StreamThread,
    TaskTopology,
    ThreadAssignment,
    assign_streams,
)
from kgctl.assignors.streams.user_data import AssignmentInfo, SubscriptionInfo
from kgctl.model.groups import TopicPartition

FIRST, SECOND = UUID(int=1), UUID(int=2)
TOPOLOGY = TaskTopology((("in",),), frozenset({0}))
TASKS = [NumberedTask(0, number) for number in range(2)]
IN = [TopicPartition("in", number) for number in range(2)]
ENDS = dict.fromkeys(TASKS, 1_000_000)


def member(name: str, process: UUID, *owned: int, error_code: int = 0) -> StreamThread:
    sums = {TASKS[number]: LATEST_OFFSET for number in owned}
    return StreamThread(name, SubscriptionInfo(process, sums, error_code=error_code), tuple(IN[number] for number in owned))


def assigned(*members: StreamThread, settings: TaskSettings | None = None, partitions: int = 2) -> ApplicationAssignment:
    return assign_streams(
        members, TOPOLOGY, {"in": partitions}, lambda _: ENDS, Leader(FIRST, 1_000, settings or TaskSettings(), 600_000)
    )


def told(*active: int, **info: object) -> ThreadAssignment:
    return ThreadAssignment(
        tuple(IN[number] for number in active),
        AssignmentInfo(tuple(TASKS[number] for number in active), **info),  # type: ignore[arg-type]
    )


def test_a_task_has_the_partitions_of_its_number_of_each_topic() -> None:
    """In the order of Java's sets."""
    found = TaskTopology((("orders", "pays"), ("clicks",))).tasks({"orders": 2, "pays": 1, "clicks": 1})

    assert found == {
        NumberedTask(0, 0): (TopicPartition("pays", 0), TopicPartition("orders", 0)),
        NumberedTask(0, 1): (TopicPartition("orders", 1),),
        NumberedTask(1, 0): (TopicPartition("clicks", 0),),
    }


def test_an_instance_that_joins_warms_up_first() -> None:
    """The leader's instance is to look again."""
    assert assigned(member("a", FIRST, 0, 1), member("b", SECOND)) == ApplicationAssignment(
        {"a": told(0, 1, next_rebalance_ms=601_000), "b": told(standby={TASKS[1]: (IN[1],)})}, is_stable=False
    )


def test_a_task_moves_when_its_copy_has_caught_up_and_its_owner_has_let_it_go() -> None:
    """Until then the copy stays, and the group is to come together again at once."""
    caught_up = StreamThread("b", SubscriptionInfo(SECOND, {TASKS[1]: 995_000}))
    later = StreamThread("b", SubscriptionInfo(SECOND, {TASKS[1]: 1_000_000}))

    assert assigned(member("a", FIRST, 0, 1), caught_up) == ApplicationAssignment(
        {"a": told(0), "b": told(standby={TASKS[1]: (IN[1],)}, next_rebalance_ms=0)}, is_stable=False
    )
    assert assigned(member("a", FIRST, 0), later) == ApplicationAssignment({"a": told(0), "b": told(1)}, is_stable=True)


def test_threads_of_an_instance_share_its_tasks() -> None:
    assert assigned(member("a", FIRST, 0), member("b", FIRST)).members == {"a": told(0), "b": told(1)}


def test_standby_tasks_are_on_other_instances() -> None:
    found = assigned(member("a", FIRST, 0), member("b", SECOND, 1), settings=TaskSettings(num_standby_replicas=1))

    assert found.members == {"a": told(0, standby={TASKS[1]: (IN[1],)}), "b": told(1, standby={TASKS[0]: (IN[0],)})}


def test_a_shutdown_and_a_missing_topic_are_told_to_all() -> None:
    ends = {name: told(error_code=4) for name in "ab"}
    missing = {name: told(error_code=1) for name in "ab"}

    assert assigned(member("a", FIRST, 0), member("b", SECOND, error_code=4)) == ApplicationAssignment(ends, is_stable=True)
    assert assigned(member("a", FIRST), member("b", SECOND), partitions=0) == ApplicationAssignment(missing, is_stable=True)


def test_partitions_of_no_task_end_the_leader_as_in_kafka() -> None:
    with pytest.raises(AssignorError, match="Must initialize prevActiveTasks"):
        assigned(StreamThread("a", SubscriptionInfo(FIRST), (TopicPartition("old", 0),)))
