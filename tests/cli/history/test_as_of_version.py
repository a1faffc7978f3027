"""``--as-of-version``: what an earlier build said."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.harness import Cli
from tests.support.pipeline.gold import START_MS, commit, run, write_gold


@pytest.fixture
def twice(cli: Cli) -> Path:
    """Two builds: the group was at 5, and is at 9."""
    folder = cli.folder / "twice"
    first = commit("g", "t", 0, 5, START_MS, 0)
    write_gold(folder, {"offset_commits": [first], "coverage": [run(0, 0, START_MS, START_MS)]})
    write_gold(folder, {"offset_commits": [commit("g", "t", 0, 9, START_MS + 10, 1)], "coverage": []})
    cli.variables["KGCTL_WAREHOUSE"] = str(folder)
    return folder


@pytest.mark.usefixtures("twice")
def test_an_earlier_build_is_asked(cli: Cli) -> None:
    now, before = (cli(f"history offsets {how} -o json").data for how in ("", "--as-of-version 0"))
    assert ([row["offset"] for row in now], [row["offset"] for row in before]) == ([9], [5])
    counted = cli.run(["history", "sql", "SELECT count(*) AS n FROM offset_commits", "--as-of-version", "0", "-o", "json"])
    assert counted.data == [{"n": 1}]


@pytest.mark.usefixtures("twice")
def test_versions_that_are_not_there(cli: Cli) -> None:
    ran = cli("history lag --as-of-version 7")
    assert (ran.code, ran.out) == (4, "")
    assert "there is no version 7: the last one is 1" in ran.err
    assert cli("history lag --as-of-version -1").code == 2


def test_a_damaged_file_of_an_earlier_version_is_not_made_anew(cli: Cli, twice: Path) -> None:
    file = next(twice.glob("offset_commits/data/*/*.parquet"))
    for each in twice.glob("offset_commits/data/*/*.parquet"):
        each.write_bytes(b"PAR1 damaged PAR1")

    now, before = cli("history offsets"), cli("history offsets --as-of-version 0")

    assert (now.code, before.code) == (1, 1)
    assert now.err.rstrip().endswith("; kgctl history build --rebuild makes it anew")
    assert before.err.rstrip().endswith(
        "; no build makes version 0 again: without --as-of-version the tables are asked as they are now"
    )
    assert file.parent.name in before.err
