"""How many requests the coordinator answers in process, and how much memory groups take.

``pytest tests/benchmarks/test_coordinator.py --benchmark-enable``; without the flag each runs once, on little data.
"""

from __future__ import annotations

import tracemalloc
from itertools import count

from pytest_benchmark.fixture import BenchmarkFixture

from kgctl.coordinator.config import CoordinatorConfig
from kgctl.coordinator.coordinator import GroupCoordinator
from kgctl.coordinator.effects import Effect, Reply
from kgctl.coordinator.requests import (
    Heartbeat,
    JoinGroup,
    JoinProtocol,
    OffsetCommit,
    OffsetCommitPartition,
    SyncGroup,
)
from kgctl.coordinator.results import HeartbeatResult, JoinGroupResult, PartitionErrors
from kgctl.model.error_codes import ErrorCode
from tests.support.coordinator_harness import subscription

HEARTBEATS = 10_000
PROTOCOLS = (JoinProtocol(name="range", metadata=subscription("orders", "payments")),)
CONFIG = CoordinatorConfig(group_initial_rebalance_delay_ms=1_000)
_SYNC_IDS = count(10_000_000)


def new_coordinator() -> GroupCoordinator:
    """A coordinator whose member ids are as long as real ones."""
    numbers = count()
    return GroupCoordinator(CONFIG, lambda prefix: f"{prefix}-4d5f1c0a-7a35-4f6c-9d1e-{next(numbers):012d}")


def join_all(coordinator: GroupCoordinator, group_id: str, members: int, now_ms: int) -> list[str]:
    """Bring members into a new group and let their leader assign; their ids."""
    for number in range(members):
        join = JoinGroup(request_id=number, api_version=3, group_id=group_id, client_id="consumer-1", protocols=PROTOCOLS)
        coordinator.handle(join, now_ms)
    answers = [join for join in map(joined, coordinator.expire(now_ms + 2_000)) if join is not None]
    ids = [answer.member_id for answer in answers]
    assignments = tuple((member_id, b"assignment of a few bytes") for member_id in ids)
    for member_id in ids:
        sync = SyncGroup(
            request_id=next(_SYNC_IDS),
            group_id=group_id,
            generation_id=1,
            member_id=member_id,
            assignments=assignments if member_id == answers[0].leader else (),
        )
        coordinator.handle(sync, now_ms + 2_000)
    return ids


def joined(effect: Effect) -> JoinGroupResult | None:
    """The answer to a join, if it is one."""
    return effect.result if isinstance(effect, Reply) and isinstance(effect.result, JoinGroupResult) else None


def test_heartbeats_of_1_000_members(benchmark: BenchmarkFixture) -> None:
    coordinator = new_coordinator()
    ids = join_all(coordinator, "g", 1_000, 0)
    times = count(2_000)
    beats = [Heartbeat(request_id=n, group_id="g", generation_id=1, member_id=ids[n % len(ids)]) for n in range(HEARTBEATS)]

    def beat_all() -> list[Effect]:
        now_ms = next(times)
        return [coordinator.handle(beat, now_ms)[0] for beat in beats]

    answers = benchmark(beat_all)

    assert {answer.result for answer in answers if isinstance(answer, Reply)} == {HeartbeatResult()}


def test_1_000_members_join_and_sync(benchmark: BenchmarkFixture) -> None:
    coordinator = benchmark(lambda: joined_group(1_000))

    assert coordinator.statistics().groups == {("classic", "Stable"): 1}


def joined_group(members: int) -> GroupCoordinator:
    """A coordinator with one stable group."""
    coordinator = new_coordinator()
    join_all(coordinator, "g", members, 0)
    return coordinator


def test_commits_of_100_partitions(benchmark: BenchmarkFixture) -> None:
    coordinator = new_coordinator()
    (member_id,) = join_all(coordinator, "g", 1, 0)
    partitions = tuple(OffsetCommitPartition(topic=f"topic-{n // 10}", partition=n % 10, offset=42) for n in range(100))
    commit = OffsetCommit(request_id=1, group_id="g", generation_id=1, member_id=member_id, partitions=partitions)

    effects = benchmark(lambda: coordinator.handle(commit, 2_000))

    answer = effects[-1]
    assert isinstance(answer, Reply)
    assert isinstance(answer.result, PartitionErrors)
    assert {error for _, error in answer.result.partitions} == {ErrorCode.NONE}
    assert len(effects) == 101


def test_memory_of_groups_with_100_members_each(benchmark: BenchmarkFixture) -> None:
    groups = 20 if benchmark.disabled else 1_000
    tracemalloc.start()
    coordinator = new_coordinator()
    for number in range(groups):
        join_all(coordinator, f"group-{number}", 100, number * 10)
    used = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    benchmark.extra_info["bytes a member"] = used // (groups * 100)
    benchmark(coordinator.statistics)

    assert used < groups * 100 * 4_000
