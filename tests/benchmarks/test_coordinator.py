"""How many requests the coordinator answers in process, and how much memory groups take.

``pytest tests/benchmarks/test_coordinator.py --benchmark-enable``; without the flag each runs once, on little data.
``python -m tests.benchmarks coordinator`` prints the same as a table.
"""

from __future__ import annotations

from itertools import count

from pytest_benchmark.fixture import BenchmarkFixture

from kgctl.coordinator.effects import Effect, Reply
from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import HeartbeatResult, PartitionErrors
from tests.benchmarks.rates.load import bytes_a_member, commit_of, heartbeats, join_all, joined_group, new_coordinator

HEARTBEATS = 10_000
MOST_BYTES_A_MEMBER = 4_000


def test_heartbeats_of_1_000_members(benchmark: BenchmarkFixture) -> None:
    coordinator = new_coordinator()
    beats = heartbeats(join_all(coordinator, "g", 1_000, 0), HEARTBEATS)
    times = count(2_000)

    def beat_all() -> list[Effect]:
        now_ms = next(times)
        return [coordinator.handle(beat, now_ms)[0] for beat in beats]

    answers = benchmark(beat_all)

    assert {answer.result for answer in answers if isinstance(answer, Reply)} == {HeartbeatResult()}


def test_1_000_members_join_and_sync(benchmark: BenchmarkFixture) -> None:
    coordinator = benchmark(lambda: joined_group(1_000))

    assert coordinator.statistics().groups == {("classic", "Stable"): 1}


def test_commits_of_100_partitions(benchmark: BenchmarkFixture) -> None:
    coordinator = new_coordinator()
    (member_id,) = join_all(coordinator, "g", 1, 0)
    commit = commit_of(100, member_id)

    effects = benchmark(lambda: coordinator.handle(commit, 2_000))

    answer = effects[-1]
    assert isinstance(answer, Reply)
    assert isinstance(answer.result, PartitionErrors)
    assert {error for _, error in answer.result.partitions} == {ErrorCode.NONE}
    assert len(effects) == 101


def test_memory_of_groups_with_100_members_each(benchmark: BenchmarkFixture) -> None:
    groups = 20 if benchmark.disabled else 1_000
    used = bytes_a_member(groups, 100)
    benchmark.extra_info["bytes a member"] = used
    benchmark(new_coordinator().statistics)

    assert used < MOST_BYTES_A_MEMBER
