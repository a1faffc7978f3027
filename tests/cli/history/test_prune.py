"""``kgctl history prune --older-than``: so long ago, or a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgctl.pipeline.upkeep import sources_of
from tests.cli.harness import Cli
from tests.support.pipeline.example import minute
from tests.support.pipeline.warehouses import LOG, add, collected

DAY_MS = 86_400_000


@pytest.mark.parametrize("when", ["100d", "100d ago", "2025-11-22T08:41:00Z", "2025-11-22 09:41 Europe/Berlin", "1763800860000"])
def test_a_span_and_a_time_mean_the_same(cli: Cli, tmp_path: Path, when: str) -> None:
    warehouse = collected(tmp_path / "w", LOG[:1])
    add(warehouse, "c2", LOG[1])
    cli.now_ms = minute(41)

    ran = cli.run(["history", "prune", "--warehouse", str(tmp_path / "w"), "--older-than", when], stdin="n\n")

    assert (ran.code, ran.out) == (1, "")
    assert f"Thin what was collected before 2025-11-22T08:41:00.000Z in {warehouse.location}?" in ran.err


@pytest.mark.parametrize(
    ("when", "told"),
    [
        ("2h", "--older-than 2h: whole days are thinned; the shortest is 1d"),
        ("2h ago", "--older-than 2h ago: whole days are thinned; the shortest is 1d"),
        ("now", "--older-than now: whole days are thinned; the shortest is 1d"),
        ("yesterdy", "--older-than: cannot read 'yesterdy' as a time"),
    ],
)
def test_less_than_a_day_and_no_time(cli: Cli, tmp_path: Path, when: str, told: str) -> None:
    collected(tmp_path / "w", LOG[:1])
    ran = cli.run(["history", "prune", "--warehouse", str(tmp_path / "w"), "--older-than", when])
    assert (ran.code, ran.out) == (2, "")
    assert told in ran.err


def test_a_source_that_nothing_was_collected_from_is_not_found(cli: Cli, tmp_path: Path) -> None:
    warehouse = collected(tmp_path / "w", LOG[:1])
    (cluster,) = warehouse.clusters()
    (source,) = sources_of(warehouse, cluster)
    line = ["history", "forget", cluster, "--warehouse", str(tmp_path / "w"), "--yes", "--source"]
    ran = cli.run([*line, "misspelt"])
    told = f"kgctl: cluster '{cluster}' has no records of source 'misspelt' (it has: {source})\n"
    assert (ran.code, ran.out, ran.err) == (4, "", told)
    assert cli.run([*line, source]).code == 0
    assert cli.run([*line, source]).code == 4
