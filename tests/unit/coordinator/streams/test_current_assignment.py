"""The order of subtopologies in what a member has, which Java's maps decide."""

from __future__ import annotations

import pytest

from kgctl.coordinator.streams.current_assignment import StreamsReconciliation, reconcile
from kgctl.coordinator.streams.member import HeldTasks, StreamsMember, StreamsTarget
from kgctl.coordinator.streams.processes import TaskProcesses

TWELVE = tuple(str(number) for number in range(12))


@pytest.mark.parametrize(
    ("more", "order"),
    [
        ({"0": (0, 1), "12": (0,)}, "11 0 12 1 2 3 4 5 6 7 8 9 10"),
        ({"0": (0, 1), "13": (0,)}, "11 0 1 13 2 3 4 5 6 7 8 9 10"),
        ({"0": (0, 1), "12": (0,), "13": (0,)}, "11 12 13 0 1 2 3 4 5 6 7 8 9 10"),
        ({"12": (0,), "10": (0, 1)}, "11 12 0 1 2 3 4 5 6 7 8 9 10"),
    ],
)
def test_a_table_that_is_too_full_grows_with_the_next_subtopology_that_gets_a_task(
    more: dict[str, tuple[int, ...]], order: str
) -> None:
    """As ``HashMap`` has them in Java 17, by the steps of Kafka's CurrentAssignmentBuilder and TasksTupleWithEpochs#merge."""
    member = StreamsMember("m", member_epoch=1, assigned=HeldTasks({key: {0: 1} for key in TWELVE}))
    target = StreamsTarget({**dict.fromkeys(TWELVE, (0,)), **more})

    has = reconcile(member, StreamsReconciliation(2, target, None, TaskProcesses())).assigned.active

    assert " ".join(has) == order
    assert all(has[key] == {number: 1 if number == 0 and key in TWELVE else 2 for number in target.active[key]} for key in has)
