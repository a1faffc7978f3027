"""``kgctl history slo`` and ``kgctl history fleet``."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgctl.admin.times import format_instant
from kgctl.pipeline.store.warehouse import Warehouse
from tests.cli.harness import Cli
from tests.support.pipeline.example import minute
from tests.support.pipeline.gold import START_MS, commit, run, write_gold

MORNING = "--from 2026-03-02T08:00:00Z --to 2026-03-02T09:00:00Z"


def test_minutes_are_counted_and_a_missed_target_is_6(cli: Cli, tmp_path: Path) -> None:
    owners = tmp_path / "owners.csv"
    owners.write_text("group,owner,team\npay*,ana,core\n")
    ran = cli(f"history slo payments --within 3m --target 66.6 --owners {owners} {MORNING} -o json")

    row: dict[str, object] = {
        "group": "payments",
        "owner": "ana",
        "team": "core",
        "from": "2026-03-02T08:00:00.000Z",
        "to": "2026-03-02T09:00:00.000Z",
    }
    row |= {"minutes": 60, "good": 40, "bad": 20, "unknown": 0, "share": 66.666, "target": 66.6, "left": 0.04, "held": True}
    assert (ran.code, ran.data) == (0, [row])
    ran = cli(f"history slo --within 3m --target 66.7 {MORNING} -o json")
    assert (ran.code, [(row["group"], row["held"], row["unknown"]) for row in ran.data]) == (
        6,
        [("audit", False, 0), ("payments", False, 0)],
    )
    assert "2 of 2 groups missed the target." in ran.err


@pytest.mark.parametrize("line", [f"slo payments --within 3m --target 60 {MORNING}", "fleet --at 2026-03-02T08:26:00Z"])
def test_lines_of_owners_that_are_no_groups_are_told(cli: Cli, tmp_path: Path, line: str) -> None:
    owners = tmp_path / "owners.csv"
    owners.write_text("group,owner\npaymnets,ana\npay*,bob\naudit,cid\nshop-*,dan\npaymnets,eve\n")
    ran = cli(f"history {line} --owners {owners}")
    assert (ran.code, f"{owners}: no group is 'paymnets', 'shop-*'.\n" in ran.err) == (0, True), ran.err
    owners.write_text("group,owner\n" + "".join(f"g{number},ana\n" for number in range(7)))
    ran = cli(f"history {line} --owners {owners}")
    assert (ran.code, "no group is 'g0', 'g1', 'g2', 'g3', 'g4' and 2 more.\n" in ran.err) == (0, True), ran.err
    owners.write_text("group,owner\naudit,ana\npay*,bob\n")
    assert "no group is" not in cli(f"history {line} --owners {owners}").err


def test_nothing_known_is_not_well(cli: Cli) -> None:
    ran = cli("history slo --within 3m --from 2026-03-01T08:00:00Z --to 2026-03-01T09:00:00Z")
    assert (ran.code, ran.err.splitlines()[0]) == (6, "Nothing is known of that time.")
    assert cli("history slo nosuch --within 3m").code == 4
    ran = cli("history slo payments audit --within 3h --from 2026-03-02T08:40:00Z --to 2026-03-02T08:50:00Z -o json")
    assert (ran.code, [(row["group"], row["held"]) for row in ran.data]) == (6, [("payments", True)])
    assert "Nothing is known of 'audit' in that time.\n" in ran.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("", "say what a good minute is: --within 60s, --records 10000, or both"),
        ("--within 3m --target 0", "--target 0: a share of all minutes, in percent: above 0, and 100 at most"),
        ("--within 3m --target 101", "--target 101: a share of all minutes"),
        ("--within soon", "--within: "),
        ("--within 3m --owners gone.csv", "gone.csv: No such file or directory"),
    ],
)
def test_what_cannot_be_asked(cli: Cli, options: str, words: str) -> None:
    ran = cli(f"history slo {options}")
    assert ran.code == 2
    assert words in ran.err


def test_a_fleet_has_a_line_for_each_cluster_and_team(cli: Cli, tmp_path: Path) -> None:
    owners = tmp_path / "owners.csv"
    owners.write_text("group,owner,team\npay*,ana,core\n")
    ran = cli(f"history fleet --at 2026-03-02T08:26:00Z --owners {owners} -o json")

    assert ran.code == 0
    assert [(row["owner"], row["groups"], row["ok"], row["not_ok"], row["unmeasured"]) for row in ran.data] == [
        (None, 1, 0, 0, 1),
        ("ana", 1, 0, 1, 0),
    ]
    assert [(row["total_lag"], row["max_lag_ms"]) for row in ran.data] == [(None, None), (12, 120_000)], "as of then"
    (row,) = cli("history fleet --at 2026-03-02T08:42:00Z -o json").data
    place: dict[str, object] = {
        "cluster": "staging",
        "owner": None,
        "team": None,
        "groups": 1,
        "members": 1,
        "ok": 0,
        "not_ok": 1,
        "unmeasured": 0,
    }
    place |= {"total_lag": 92, "max_lag_ms": 2_520_000, "stalled_partitions": 0, "past_end": 0}
    assert row == {**place, "collected_to": "2026-03-02T09:00:00.000Z"}


def test_a_group_that_is_gone_is_in_no_fleet_and_a_cluster_without_groups_is(cli: Cli) -> None:
    for at, groups in (("08:29", 2), ("08:31", 1)):
        (row,) = cli(f"history fleet --at 2026-03-02T{at}:00Z -o json").data
        assert (row["cluster"], row["groups"]) == ("staging", groups)


def test_weeks_of_which_a_day_was_collected_are_not_kept_by_that_day(cli: Cli, tmp_path: Path) -> None:
    begin, day = START_MS // 60_000, 1_440
    health = {"group": "g", "window_start_ms": begin * 60_000, "window_ms": 60_000, "max_lag_ms": 0}
    health |= dict.fromkeys(("rebalances", "commits", "resets", "stalled_partitions", "past_end", "below_start"), 0)
    tables = {
        "coverage": [run(7, 99, START_MS, START_MS + day * 60_000)],
        "offset_commits": [commit("g", "t", 0, 5, START_MS, 50)],
        "group_health": [health],
    }
    write_gold(tmp_path / "w", tables, sampled_ms=[(begin + minute) * 60_000 for minute in range(0, day + 1, 60)])
    span = f"--to {(begin + day) * 60_000} --within 1s --target 50 --warehouse {tmp_path / 'w'} -o json"
    cli.now_ms = (begin + day) * 60_000
    ran = cli(f"history slo g {span} --from {(begin - 27 * day) * 60_000}")
    (row,) = ran.data
    assert (ran.code, row["minutes"], row["good"], row["unknown"]) == (6, 28 * day, day, 27 * day)
    ran = cli(f"history slo g {span}")
    (row,) = ran.data
    assert (ran.code, row["minutes"], row["good"], row["from"]) == (0, day, day, format_instant(begin * 60_000))


def test_a_fleet_of_which_nothing_is_known_is_not_empty(cli: Cli, tmp_path: Path) -> None:
    """Before all that was collected, and where no group was measured: no number is 0 that nobody knows."""
    (row,) = cli("history fleet --at 2026-03-02T07:00:00Z -o json").data
    assert {name for name, value in row.items() if value is not None} == {"cluster"}
    health = {"group": "g", "window_start_ms": START_MS, "window_ms": 60_000}
    health |= dict.fromkeys(("rebalances", "commits", "resets", "stalled_partitions", "past_end", "below_start"), 0)
    write_gold(tmp_path / "w", {"coverage": [run(0, 9, START_MS, START_MS + 60_000)], "group_health": [health]})
    (row,) = cli(f"history fleet --at {START_MS + 60_000} --warehouse {tmp_path / 'w'} -o json").data
    assert (row["groups"], row["ok"], row["not_ok"], row["unmeasured"]) == (1, 0, 0, 1)
    assert {row[name] for name in ("members", "total_lag", "max_lag_ms", "stalled_partitions", "past_end")} == {None}


def test_a_fleet_before_all_that_was_collected_is_told(cli: Cli) -> None:
    ran = cli("history fleet --at 2026-03-01T08:42:00Z")
    assert (ran.code, ran.err) == (0, "Cluster 'staging': Nothing from before 2026-03-02T08:00:00.000Z was collected.\n")


def test_minutes_after_a_group_has_gone_are_not_counted(cli: Cli) -> None:
    (row,) = cli(f"history slo audit --within 3m {MORNING} -o json").data
    assert (row["minutes"], row["unknown"]) == (29, 0)
    (row,) = cli("history slo audit --within 3m --from 2026-03-02T08:00:00Z --to 2026-03-02T08:25:00Z -o json").data
    assert row["minutes"] == 24


def test_records_of_a_clock_that_is_ahead_tell_not_how_far_was_collected(cli: Cli) -> None:
    """`collected_to`, and that no line says "collected up to", would be taken for a collection that goes on."""
    cli.now_ms = minute(41)
    told = "The last record is of 2026-03-02T09:00:00.000Z, which is still to come by this machine's clock: "
    told += "whether all up to now was collected is not known."

    asked = [cli(line) for line in ("history fleet", "history lag payments", "history slo payments --within 3m --target 1")]

    assert [each.err.splitlines()[-1] for each in asked] == [f"Cluster 'staging': {told}", told, told]
    assert (cli("history lag payments --at 2026-03-02T08:40:00Z").err, cli("history resets payments").err) == ("", "")
    cli.now_ms = minute(60)
    assert cli("history fleet").err == ""


def test_a_warehouse_without_a_cluster_has_no_fleet(cli: Cli, tmp_path: Path) -> None:
    """As every other question: no rows, with 0, would be a fleet in which nothing is wrong."""
    Warehouse.create(tmp_path / "w")
    ran = cli(f"history fleet --warehouse {tmp_path / 'w'}")
    assert (ran.code, ran.out, ran.err) == (4, "", f"kgctl: {tmp_path / 'w'}: nothing was collected yet\n")
