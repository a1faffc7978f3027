"""Which processes have which tasks."""

from __future__ import annotations

import pytest

from kgctl.coordinator.invariants import _broken_tasks
from kgctl.coordinator.streams.group import StreamsGroup
from kgctl.coordinator.streams.member import HeldTasks, StreamsMember, StreamsTarget
from kgctl.coordinator.streams.processes import TaskProcesses


def test_a_task_that_another_process_has_got_stays_with_it() -> None:
    processes = TaskProcesses()
    first = StreamsMember("m", process_id="p", assigned=HeldTasks({"0": {1: 2}}))
    processes.replace(None, first)
    processes.replace(None, StreamsMember("n", process_id="q", assigned=HeldTasks({"0": {1: 3}})))

    processes.replace(first, None)

    assert processes.is_processed("0", 1)
    assert processes.is_processed_by("q", "0", 1)
    assert not processes.is_processed_by("p", "0", 1)


def test_what_is_to_be_given_up_is_still_there_and_copies_are_the_processes_own() -> None:
    processes = TaskProcesses()
    member = StreamsMember(
        "m", process_id="p", assigned=HeldTasks({}, {"0": {1: 0}}, {"0": {2: 0}}), pending_revocation=HeldTasks({"0": {7: 1}})
    )
    processes.replace(None, member)

    assert [processes.is_processed("0", number) for number in (1, 7)] == [False, True]
    assert [processes.is_copied_by("p", "0", number) for number in (1, 2, 7)] == [True, True, False]
    assert not processes.is_copied_by("q", "0", 1)
    processes.replace(member, None)
    assert not processes.is_processed("0", 7)
    assert not processes.is_copied_by("p", "0", 1)


def test_targets_are_the_same_whatever_their_order() -> None:
    assert StreamsTarget({"0": (1, 17)}).as_sets() == StreamsTarget({"0": (17, 1)}).as_sets()


def test_of_two_members_of_one_process_the_first_takes_its_copy_with_it() -> None:
    """As in Kafka, whose set of processes has each of them once."""
    processes = TaskProcesses()
    first, second = (StreamsMember(name, process_id="p", assigned=HeldTasks({}, {"0": {1: 0}})) for name in ("m", "n"))
    for member in (first, second):
        processes.replace(None, member)
    processes.replace(first, None)

    assert not processes.is_copied_by("p", "0", 1)
    assert processes.agrees_with([second])


@pytest.mark.parametrize(
    ("noted", "members"),
    [
        ((), (HeldTasks({}, {"0": {1: 0}}),)),
        ((), (HeldTasks({}, {}, {"0": {1: 0}}),)),
        ((), (HeldTasks({"0": {1: 0}}),)),
        ((HeldTasks({}, {"0": {1: 0}}),), ()),
        ((HeldTasks({"0": {1: 0}}),), ()),
        ((HeldTasks({}, {"0": {1: 0}}),), (HeldTasks({}, {}, {"0": {1: 0}}),)),
    ],
)
def test_what_only_one_side_has_is_told(noted: tuple[HeldTasks, ...], members: tuple[HeldTasks, ...]) -> None:
    processes = TaskProcesses()
    for tasks in noted:
        processes.replace(None, StreamsMember("m", process_id="p", assigned=tasks))

    assert processes.agrees_with([StreamsMember("m", process_id="p", assigned=tasks) for tasks in noted])
    assert not processes.agrees_with([StreamsMember("m", process_id="p", assigned=tasks) for tasks in members])


def test_a_member_of_which_no_process_is_known_takes_nobodys_copy_with_it() -> None:
    """Only an odd log has such a member, and the process of the other has an odd name."""
    processes, tasks = TaskProcesses(), HeldTasks({}, {"0": {1: 0}})
    processes.replace(None, StreamsMember("n", process_id="", assigned=tasks))
    processes.replace(StreamsMember("m", assigned=tasks, has_metadata=False), None)

    assert processes.is_copied_by("", "0", 1)


def test_an_invariant_holds_them_beside_the_members() -> None:
    group = StreamsGroup("g")
    group.members = {"m": StreamsMember("m", process_id="p", assigned=HeldTasks({"0": {1: 0}}))}  # type: ignore[assignment]
    assert list(_broken_tasks(group)) == ["the processes of tasks are wrong"]
    group.processes.replace(None, group.members["m"])
    assert list(_broken_tasks(group)) == []
