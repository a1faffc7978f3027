"""Each invariant notices what it is there for."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kgctl.coordinator.classic.group import DEAD, EMPTY, PREPARING_REBALANCE, ClassicGroup
from kgctl.coordinator.invariants import check_shard
from kgctl.errors import InvariantViolation
from kgctl.model.coordinator_records import OffsetCommitKey, OffsetCommitValue
from tests.support.coordinator_harness import CoordinatorHarness

Damage = Callable[[CoordinatorHarness, ClassicGroup], object]


def member_of(group: ClassicGroup) -> str:
    """Its only member."""
    return next(iter(group.members))


DAMAGES: dict[str, Damage] = {
    "the number of parked joins is wrong": lambda _, g: setattr(g, "parked_joins", 3),
    "the static members are not those among the members": lambda _, g: g.static_members.clear(),
    "the counts of supported protocols are wrong": lambda _, g: g.supported_protocols.update(["sticky"]),
    "a member is pending as well": lambda _, g: g.pending_joins.update({member_of(g): None}),
    "the leader None is no member, or there is none": lambda _, g: setattr(g, "leader_id", None),
    "the leader 'ghost' is no member": lambda _, g: setattr(g, "leader_id", "ghost"),
    "it has members in Empty": lambda _, g: setattr(g, "state", EMPTY),
    "a SyncGroup is parked in Stable": lambda _, g: setattr(g.members[member_of(g)], "parked_sync", 5),
    "a JoinGroup is parked in Stable": lambda _, g: g.park_join(g.members[member_of(g)], 5),
    "its protocol is None in Stable": lambda _, g: setattr(g, "protocol_name", None),
    "the join timer is wrong in PreparingRebalance": lambda _, g: setattr(g, "state", PREPARING_REBALANCE),
    "the sync timer is wrong in Stable": lambda h, g: h.shard.arm(g.sync_timer, 5),
    "has no session timer": lambda h, g: h.shard.disarm(g.members[member_of(g)].session_timer),
    "pending id 'p' has no timer": lambda _, g: g.pending_joins.update({"p": None}),
    "it is registered under another id": lambda _, g: setattr(g, "group_id", "other"),
    "it has no members in Stable": lambda _, g: g.remove(member_of(g)),
}


@pytest.mark.parametrize("what", DAMAGES)
def test_damage_is_noticed_with_the_group_s_story(what: str) -> None:
    harness = CoordinatorHarness()
    harness.stable_group(instances=["i"])
    check_shard(harness.shard)

    DAMAGES[what](harness, harness.group())

    with pytest.raises(InvariantViolation) as caught:
        harness.driver.coordinator.check()
    assert what in caught.value.message
    assert "\n" not in caught.value.message
    assert any("stable, generation 1" in line for line in caught.value.story) or "registered" in what
    assert str(caught.value).splitlines() == [caught.value.message, *(f"  {line}" for line in caught.value.story)]


def test_offsets_without_a_group_are_noticed() -> None:
    harness = CoordinatorHarness()
    harness.shard.offsets.put(OffsetCommitKey("lost", "t", 0), OffsetCommitValue(1))

    with pytest.raises(InvariantViolation, match="group 'lost' at 0 ms: there are offsets but no group"):
        harness.driver.coordinator.check()


def test_a_dead_group_is_not_looked_at() -> None:
    harness = CoordinatorHarness()
    harness.stable_group()
    harness.group().transition_to(DEAD, 1)
    harness.group().leader_id = None

    harness.driver.coordinator.check()
