"""``kgctl history health`` and ``kgctl history resets``."""

from __future__ import annotations

from pathlib import Path

from kgctl.admin.times import format_instant
from tests.cli.harness import Cli
from tests.support.pipeline.gold import START_MS, commit, run, write_gold


def test_health_of_all_groups_at_a_time(cli: Cli) -> None:
    ran = cli("history health --at 2026-03-02T08:42:00Z")

    assert (ran.code, ran.err) == (0, "")
    assert [line.split() for line in ran.out.splitlines()] == [
        [
            "GROUP",
            "FROM",
            "STATUS",
            "MEMBERS",
            "REBALANCES",
            "COMMITS",
            "TOTAL-LAG",
            "MAX-LAG-MS",
            "RESETS",
            "STALLED",
            "PAST-END",
        ],
        ["audit", "2026-03-02T08:30:00.000Z", "-", "-", "0", "0", "-", "-", "0", "-", "-"],
        ["payments", "2026-03-02T08:40:00.000Z", "REWIND", "1", "0", "3", "92", "2520000", "1", "0", "0"],
    ]


def test_partitions_that_were_not_measured_are_not_said_to_be_in_no_trouble(cli: Cli) -> None:
    """At noon the last sample is three hours old; a partition that was seen past its end stays told."""
    (audit, payments) = cli("history health --at 2026-03-02T12:00:00Z -o json").data
    counts = ("stalled_partitions", "past_end", "below_start")
    assert [payments["status"], *(payments[name] for name in counts)] == ["REWIND", 0, 0, 0]
    assert [audit["status"], *(audit[name] for name in counts)] == [None, None, None, None]


def test_counts_of_what_is_known_are_told_of_a_group_that_is_not_measured_whole(cli: Cli, tmp_path: Path) -> None:
    health = {"group": "g", "window_start_ms": START_MS, "window_ms": 60_000, "past_end": 2}
    health |= dict.fromkeys(("rebalances", "commits", "resets"), 0)
    write_gold(tmp_path / "w", {"coverage": [run(0, 9, START_MS, START_MS + 60_000)], "group_health": [health]})
    for asked in (f"--at {START_MS + 60_000}", f"--from {START_MS}"):
        (row,) = cli(f"history health {asked} --warehouse {tmp_path / 'w'} -o json").data
        assert (row["stalled_partitions"], row["past_end"], row["below_start"]) == (None, 2, None)


def test_health_over_time(cli: Cli) -> None:
    rows = cli("history health payments --from 2026-03-02T08:15:00Z --to 2026-03-02T08:40:00Z -o json").data

    assert [(row["window_start"][11:16], row["members"], row["rebalances"], row["total_lag"]) for row in rows] == [
        ("08:15", 1, 0, 12),
        ("08:20", 2, 1, 12),
        ("08:25", 2, 0, 12),
        ("08:30", 2, 0, 12),
        ("08:35", 1, 1, 12),
    ]


def test_window_that_has_begun_before_is_there(cli: Cli) -> None:
    rows = cli("history health payments --from 2026-03-02T08:20:59.999Z --to 2026-03-02T08:25:00.001Z -o json").data
    assert [row["window_start"][11:16] for row in rows] == ["08:20", "08:25"]
    rows = cli("history health payments --from 2026-03-02T08:21:00Z --to 2026-03-02T08:25:00Z -o json").data
    assert rows == []


def test_resets_are_found(cli: Cli) -> None:
    ran = cli("history resets")

    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        "GROUP     TOPIC   PARTITION  TIME                      BEFORE  AFTER  RECORDS  EVIDENCE\n"
        "payments  orders          0  2026-03-02T08:40:00.000Z      70      0      -70  went_back\n"
    )
    assert cli("history resets -o json").data[0]["evidence"] == ["went_back"]
    ran = cli("history resets payments --to 2026-03-02T08:40:00Z -o name")
    assert (ran.code, ran.out, ran.err) == (0, "", "No resets were found.\n")


def test_what_happened_in_a_hole_of_the_collection_is_not_said_to_be_nothing(cli: Cli, tmp_path: Path) -> None:
    minute = 60_000
    health = {"group": "payments", "window_start_ms": START_MS, "window_ms": minute}
    health |= dict.fromkeys(("rebalances", "commits", "resets", "stalled_partitions", "past_end", "below_start"), 0)
    ends = (run(0, 9, START_MS, START_MS + minute), run(20, 29, START_MS + 5 * minute, START_MS + 9 * minute))
    committed = commit("payments", "t", 0, 5, START_MS, 5)
    write_gold(tmp_path / "w", {"coverage": ends, "group_health": [health], "offset_commits": [committed]})
    between = f"{format_instant(START_MS + minute)} and {format_instant(START_MS + 5 * minute)}"
    line = f"Records between {between} were not collected, or compacted away before: what they told is not known.\n"
    asked = f"--warehouse {tmp_path / 'w'} --from {START_MS + 2 * minute}"

    ran = cli(f"history resets payments {asked} --to {START_MS + 3 * minute}")
    assert (ran.code, ran.err) == (0, f"No resets were found.\n{line}")
    assert cli(f"history rebalances payments {asked} --to {START_MS + 8 * minute}").err.endswith(line)
    assert line not in cli(f"history resets payments --warehouse {tmp_path / 'w'} --from {START_MS} --to {START_MS + minute}").err
    assert line in cli(f"history health payments --warehouse {tmp_path / 'w'} --at {START_MS + 3 * minute}").err
