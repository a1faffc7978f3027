"""``kgctl history health`` and ``kgctl history resets``."""

from __future__ import annotations

from tests.cli.harness import Cli


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
        ["audit", "2026-03-02T08:30:00.000Z", "-", "-", "0", "0", "-", "-", "0", "0", "0"],
        ["payments", "2026-03-02T08:40:00.000Z", "REWIND", "1", "0", "3", "92", "2520000", "1", "0", "0"],
    ]


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
