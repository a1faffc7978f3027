"""What durability costs: commits a second into a data folder, and how long a folder takes to load.

``pytest tests/benchmarks/test_storage.py --benchmark-enable``; without the flag each runs once, on little data.
"""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from kgctl.coordinator.config import CoordinatorConfig
from kgctl.storage.folder import load_coordinator
from tests.support.storage import KINDS, commit, contents, new_folder

PARTITIONS = 100
GROUPS = 1_000


@pytest.mark.parametrize("kind", KINDS)
def test_append_a_commit_of_100_partitions(benchmark: BenchmarkFixture, kind: str, tmp_path: Path) -> None:
    numbers = count(1)
    with new_folder(kind, tmp_path, 50) as folder:
        effects = [commit("payments", partition, partition, member="member-1") for partition in range(PARTITIONS)]
        benchmark(lambda: folder.record_log.append(effects, next(numbers)))

        assert len(contents(folder)) == PARTITIONS * (next(numbers) - 1)


@pytest.mark.parametrize("kind", KINDS)
def test_load_100_000_committed_offsets(benchmark: BenchmarkFixture, kind: str, tmp_path: Path) -> None:
    groups = 10 if benchmark.disabled else GROUPS
    with new_folder(kind, tmp_path, 50) as folder:
        for group in range(groups):
            folder.record_log.append([commit(f"group-{group}", partition, 5) for partition in range(PARTITIONS)], group)
        coordinator = benchmark(lambda: load_coordinator(folder, CoordinatorConfig(), str, 0))

    assert coordinator.statistics().offsets == groups * PARTITIONS
