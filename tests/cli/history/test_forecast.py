"""``kgctl history forecast``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.harness import Cli
from tests.support.pipeline.example import minute
from tests.support.pipeline.gold import commit, run, write_gold


@pytest.fixture
def catching_up(cli: Cli, tmp_path: Path) -> Cli:
    """``g`` reads 100 records of ``t`` a minute, of which 40 are written, and has 2,000 to read at first; ``h`` reads as many.
    ``old`` was there."""
    place = {"topic": "t", "partition": 0, "kind": "commit", "lag_ms": None}
    lags = [
        {
            **place,
            "group": group,
            "time_ms": minute(number),
            "committed_offset": reads * number,
            "log_end_offset": 2_000 + 40 * number,
            "lag": 2_000 - (reads - 40) * number,
        }
        for group, reads in (("g", 100), ("h", 40))
        for number in range(31)
    ]
    commits = [commit(group, "t", 0, 40, minute(30), number) for number, group in enumerate(("g", "h"))]
    commits += [commit("old", "t", 0, 5, minute(1), 2), commit("old", "t", 0, None, minute(2), 3)]
    sampled = [minute(number) for number in range(31)]
    write_gold(
        tmp_path / "w",
        {"lag": lags, "offset_commits": commits, "coverage": [run(0, 3, minute(0), minute(30))]},
        sampled_ms=sampled,
    )
    cli.variables["KGCTL_WAREHOUSE"] = str(tmp_path / "w")
    cli.now_ms = minute(30)
    return cli


def test_when_a_group_has_caught_up_is_told_with_what_it_is_worth(catching_up: Cli) -> None:
    ran = catching_up("history forecast -o json")
    row: dict[str, object] = {"group": "g", "topic": "t", "lag": 200, "reads_per_s": 1.667, "writes_per_s": 0.667}
    row |= {"catches_up": "2026-03-02T08:32:40.000Z", "in_ms": 160_000, "tried": 0, "held": 0, "why": None}
    row |= {"earliest": "2026-03-02T08:31:20.000Z", "latest": "2026-03-02T08:35:20.000Z"}
    unknown = dict.fromkeys(("catches_up", "in_ms", "earliest", "latest"))
    other = {**row, **unknown, "group": "h", "lag": 2_000, "reads_per_s": 0.667, "why": "reads no faster than is written"}
    assert (ran.code, ran.data) == (0, [row, other])


@pytest.mark.parametrize(("limit", "late"), [("3m", "h"), ("160s", "h"), ("159s", "g h")])
def test_who_is_later_than_allowed_or_never_there_ends_with_6(catching_up: Cli, limit: str, late: str) -> None:
    ran = catching_up(f"history forecast --fail-if-later {limit}")
    assert ran.code == 6
    assert [line.split()[0] for line in ran.err.splitlines() if " at most." in line] == late.split()
    assert catching_up(f"history forecast g --fail-if-later {limit}").code == (6 if "g" in late else 0)


def test_what_is_not_known_is_not_in_time(catching_up: Cli) -> None:
    catching_up.now_ms = minute(60)
    ran = catching_up("history forecast g --fail-if-later 10d -o json")
    assert (ran.code, [(row["lag"], row["in_ms"]) for row in ran.data]) == (6, [(None, None)])
    assert catching_up("history forecast --at 2026-03-01T00:00:00Z --fail-if-later 10d").code == 6
    assert catching_up("history forecast nosuch").code == 4


def test_a_group_that_is_named_and_has_no_commit_is_not_in_time(catching_up: Cli) -> None:
    ran = catching_up("history forecast g old --fail-if-later 3m -o json")
    assert (ran.code, [row["group"] for row in ran.data]) == (6, ["g"])
    assert "No commit of 'old' is known at that time.\n" in ran.err
    assert catching_up("history forecast g old").code == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--over 30s", "--over 30s: whole minutes, one at least"),
        ("--over 90s", "--over 90s: whole minutes, one at least"),
        ("--over soon", "--over: "),
        ("--fail-if-later soon", "--fail-if-later: "),
        ("--from now", "--from now is not before now"),
    ],
)
def test_what_cannot_be_asked(catching_up: Cli, options: str, words: str) -> None:
    ran = catching_up(f"history forecast {options}")
    assert ran.code == 2
    assert words in ran.err
