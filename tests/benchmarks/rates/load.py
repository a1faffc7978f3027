"""The coordinator in process under a load: groups of many members, their heartbeats and commits."""

from __future__ import annotations

import tracemalloc
from itertools import count

from kgctl.coordinator.config import CoordinatorConfig
from kgctl.coordinator.coordinator import GroupCoordinator
from kgctl.coordinator.effects import Effect, Reply
from kgctl.model.requests import (
    Heartbeat,
    JoinGroup,
    JoinGroupResult,
    JoinProtocol,
    OffsetCommit,
    OffsetCommitPartition,
    SyncGroup,
)
from tests.support.coordinator_harness import subscription

PROTOCOLS = (JoinProtocol(name="range", metadata=subscription("orders", "payments")),)
CONFIG = CoordinatorConfig(group_initial_rebalance_delay_ms=1_000)
_SYNC_IDS = count(10_000_000)


def new_coordinator() -> GroupCoordinator:
    """A coordinator whose member ids are as long as real ones."""
    numbers = count()
    return GroupCoordinator(CONFIG, lambda prefix: f"{prefix}-4d5f1c0a-7a35-4f6c-9d1e-{next(numbers):012d}")


def join_all(coordinator: GroupCoordinator, group_id: str, members: int, now_ms: int) -> list[str]:
    """Bring members into a new group and let their leader assign; their ids."""
    return join_groups(coordinator, [group_id], members, now_ms)[group_id]


def join_groups(coordinator: GroupCoordinator, group_ids: list[str], members: int, now_ms: int) -> dict[str, list[str]]:
    """Bring members into new groups, all at the same time; their ids."""
    for place, group_id in enumerate(group_ids):
        for number in range(members):
            request_id = place * members + number
            join = JoinGroup(request_id=request_id, api_version=3, group_id=group_id, client_id="consumer-1", protocols=PROTOCOLS)
            coordinator.handle(join, now_ms)
    ids: dict[str, list[str]] = {group_id: [] for group_id in group_ids}
    leaders: dict[str, str] = {}
    for effect in coordinator.expire(now_ms + 2_000):
        answer = joined(effect)
        if answer is not None and isinstance(effect, Reply):
            group_id = group_ids[effect.request_id // members]
            ids[group_id].append(answer.member_id)
            leaders[group_id] = answer.leader
    for group_id in group_ids:
        sync_all(coordinator, group_id, ids[group_id], leaders[group_id], now_ms + 2_000)
    return ids


def sync_all(coordinator: GroupCoordinator, group_id: str, ids: list[str], leader: str, now_ms: int) -> None:
    """The leader assigns a few bytes to everybody."""
    assignments = tuple((member_id, b"assignment of a few bytes") for member_id in ids)
    for member_id in ids:
        sync = SyncGroup(
            request_id=next(_SYNC_IDS),
            group_id=group_id,
            generation_id=1,
            member_id=member_id,
            assignments=assignments if member_id == leader else (),
        )
        coordinator.handle(sync, now_ms)


def joined(effect: Effect) -> JoinGroupResult | None:
    """The answer to a join, if it is one."""
    return effect.result if isinstance(effect, Reply) and isinstance(effect.result, JoinGroupResult) else None


def joined_group(members: int) -> GroupCoordinator:
    """A coordinator with one stable group."""
    coordinator = new_coordinator()
    join_all(coordinator, "g", members, 0)
    return coordinator


def heartbeats(ids: list[str], number: int) -> list[Heartbeat]:
    """So many heartbeats of the group "g", its members in turn."""
    return [Heartbeat(request_id=n, group_id="g", generation_id=1, member_id=ids[n % len(ids)]) for n in range(number)]


def commit_of(partitions: int, member_id: str) -> OffsetCommit:
    """A member's commit of so many partitions, ten a topic."""
    offsets = tuple(OffsetCommitPartition(topic=f"topic-{n // 10}", partition=n % 10, offset=42) for n in range(partitions))
    return OffsetCommit(request_id=1, group_id="g", generation_id=1, member_id=member_id, partitions=offsets)


def bytes_a_member(groups: int, members: int) -> int:
    """What a member of many stable groups takes, its part of the group included."""
    tracemalloc.start()
    coordinator = new_coordinator()
    join_groups(coordinator, [f"group-{number}" for number in range(groups)], members, 0)
    used = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert coordinator.statistics().groups == {("classic", "Stable"): groups}
    return used // (groups * members)
