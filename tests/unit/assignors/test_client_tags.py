"""Copies on instances with other tags."""

from __future__ import annotations

from uuid import UUID

from kgctl.assignors.client_tags import TagValues, UsedTags, agree
from kgctl.assignors.high_availability import ClientState, HighAvailabilityTaskAssignor, NumberedTask, TaskSettings

ZONES = {(0, number): {"zone": zone} for number, zone in enumerate("aabc")}
TASK = NumberedTask(0, 0)


def test_a_value_is_used_until_all_are() -> None:
    used = UsedTags(TagValues(ZONES, ["zone"]))
    used.use((0, 0), 1)
    used.use((0, 2), 2)
    after_two = [used.shares_with(instance) for instance in ZONES]
    used.use((0, 3), 3)

    assert after_two == [True, True, True, False]
    assert [used.shares_with(instance) for instance in ZONES] == [False] * 4


def test_tags_that_are_not_asked_for_do_not_count() -> None:
    used = UsedTags(TagValues(ZONES, ["cluster"]))
    used.use((0, 0), 1)

    assert not used.shares_with((0, 1))


def test_a_copy_moves_where_all_tags_are_the_same() -> None:
    assert [agree({"zone": "a"}, to) for to in ({"zone": "a", "x": "y"}, {"zone": "b"}, {})] == [True, False, False]


def test_copies_are_in_other_zones() -> None:
    clients = [ClientState(UUID(int=number), 1, {TASK: 0}, tags) for (_, number), tags in ZONES.items()]
    settings = TaskSettings(num_standby_replicas=2, rack_aware_assignment_tags=("zone",))
    HighAvailabilityTaskAssignor().assign(clients, [TASK], [TASK], settings)

    assert [(client.active, client.standby) for client in clients] == [
        ({TASK}, set()),
        (set(), set()),
        (set(), {TASK}),
        (set(), {TASK}),
    ]
