"""``kgctl history offsets``."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kgctl.pipeline.store.warehouse import Warehouse
from tests.cli.harness import Cli
from tests.support.pipeline.example import minute
from tests.support.pipeline.gold import START_MS, collect, commit, run, write_gold
from tests.support.pipeline.warehouses import data_files


def test_offsets_of_a_group_at_a_time(cli: Cli) -> None:
    ran = cli("history offsets payments --at 2026-03-02T08:39:59Z")

    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        "GROUP     TOPIC   PARTITION  OFFSET  COMMITTED-AT              EXACTNESS\n"
        "payments  orders          0      70  2026-03-02T08:35:00.000Z  exact\n"
        "payments  orders          1      71  2026-03-02T08:35:00.000Z  exact\n"
        "payments  orders          2      72  2026-03-02T08:35:00.000Z  exact\n"
    )


def test_all_groups_where_none_is_named_and_topics_narrow_it(cli: Cli) -> None:
    rows = cli("history offsets --at 2026-03-02T09:12:00+01:00 --topic orders:0,2 -o json").data

    assert [(row["group"], row["partition"], row["offset"], row["leader_epoch"], row["metadata"]) for row in rows] == [
        ("audit", 0, 5, None, ""),
        ("payments", 0, 20, None, ""),
        ("payments", 2, 22, None, ""),
    ]


def test_names_are_topic_and_partition(cli: Cli) -> None:
    assert cli(f"history offsets --group payments --at {minute(12)} -o name").out == "orders:0\norders:1\norders:2\n"


def test_now_is_asked_where_no_time_is_given_and_the_end_of_the_collection_is_said(cli: Cli, tmp_path: Path) -> None:
    write_gold(
        tmp_path / "w", {"offset_commits": [commit("g", "t", 0, 7, START_MS, 0)], "coverage": [run(0, 0, START_MS, START_MS)]}
    )

    ran = cli(f"history offsets --warehouse {tmp_path / 'w'} -o csv")

    assert ran.csv == [
        {
            "group": "g",
            "topic": "t",
            "partition": "0",
            "offset": "7",
            "metadata": "",
            "leader_epoch": "",
            "committed_at": "2023-11-14T22:13:20.000Z",
            "exactness": "exact",
        }
    ]
    assert (ran.code, ran.err) == (0, "Collected up to 2023-11-14T22:13:20.000Z: what came later is not known.\n")


def test_times_before_the_collection_are_said_to_be_so(cli: Cli) -> None:
    ran = cli("history offsets payments --at 2026-03-02")

    assert (ran.code, ran.out) == (0, "")
    assert ran.err == (
        "Nothing was committed at 2026-03-02T00:00:00.000Z.\nNothing from before 2026-03-02T08:00:00.000Z was collected.\n"
    )


def test_group_without_a_commit_then_is_no_error(cli: Cli) -> None:
    ran = cli("history offsets audit --at 2026-03-02T08:45:00Z -o json")

    assert (ran.code, ran.data, ran.err) == (0, [], "Nothing was committed at 2026-03-02T08:45:00.000Z.\n")


def test_unknown_groups_are_errors_of_their_own(cli: Cli) -> None:
    one = cli("history offsets nosuch")
    assert (one.code, one.out, one.err) == (4, "", "kgctl: group 'nosuch' is not in the history of cluster 'staging'\n")

    two = cli("history offsets nosuch payments --at 2026-03-02T08:10:00Z -o json")
    assert (two.code, two.json["status"], len(two.data)) == (3, "partial", 3)
    assert [(error["code"], error["group"]) for error in two.json["errors"]] == [("NOT_FOUND", "nosuch")]


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("--at lastweek", 2, "--at: cannot read 'lastweek' as a time"),
        ("--at 2h", 2, "did you mean '2h ago'?"),
        ("--topic orders:x", 2, "'x' is not a partition"),
        ("--warehouse=", 2, "--warehouse is empty (an unset variable?)"),
        ("--cluster=", 2, "--cluster is empty (an unset variable?)"),
        ("--group=", 2, "a group id must not be empty"),
        ("--cluster other", 4, "no cluster 'other' (there: staging)"),
        ("--warehouse nosuch", 4, "nosuch: kgctl history collect makes one"),
        ("--bootstrap-server a:1", 2, "no such option --bootstrap-server"),
    ],
)
def test_what_cannot_be_answered_is_said_in_one_line(cli: Cli, line: str, code: int, message: str) -> None:
    ran = cli(f"history offsets {line}")

    assert (ran.code, ran.out, ran.err.count("\n")) == (code, "", 1)
    assert message in ran.err


@pytest.mark.parametrize(
    "line", ["offsets payments --at 2026-03-02T08:39:00Z", "lag payments --at 2026-03-02T08:41:00Z", "resets payments"]
)
def test_topics_that_none_of_the_groups_has_committed_to_are_errors(cli: Cli, line: str) -> None:
    """Nothing was found of them is no answer: they may be misspelt."""
    missing = "kgctl: topic 'ordrs': no group that is asked about has committed to it; did you mean 'orders'?"
    ran = cli(f"history {line} --topic ordrs -o json")
    assert (ran.code, ran.data, ran.err.splitlines()[0]) == (4, [], missing)
    assert not re.search("^No", ran.err, re.MULTILINE), "that there is nothing is no answer beside it"
    ran = cli(f"history {line} --topic ordrs --topic orders -o json")
    assert (ran.code, {row["topic"] for row in ran.data}, ran.err.splitlines()[0]) == (3, {"orders"}, missing)
    assert cli(f"history {line} --topic orders:0-7 --topic orders").code == cli(f"history {line} --topic orders:0-7").code == 0
    early = re.sub(" --at .*|$", f" --{'at' if 'at' in line else 'to'} 2026-03-02T08:00:00Z", line, count=1)
    assert cli(f"history {early} --topic orders:0-7").code == 0, "nothing yet, of what there is later"
    ran = cli(f"history {line} --topic orders:7")
    assert (ran.code, ran.out) == (4, "")
    assert "kgctl: topic 'orders:7': no group that is asked about has committed to it\n" in ran.err


@pytest.mark.parametrize("line", ["resets payments", "rebalances payments", "lag payments", "health payments"])
def test_from_a_time_on_means_until_now(cli: Cli, line: str) -> None:
    """What came after the last collection is not known to be nothing; of all that there is nothing is said."""
    cli.now_ms = minute(90)
    ran = cli(f"history {line} --from 2026-03-02T09:10:00Z -o json")
    assert (ran.code, ran.data) == (0, [])
    assert "Collected up to 2026-03-02T09:00:00.000Z: what came later is not known.\n" in ran.err
    some = cli(f"history {line} --from 2026-03-02T08:20:00Z -o json")
    assert (bool(some.data), "Collected up to" in some.err) == (True, True)
    assert "Collected up to" not in cli(f"history {line} --to 2026-03-02T08:50:00Z").err


def test_that_there_is_nothing_is_said_of_the_time_that_was_collected(cli: Cli) -> None:
    cli.now_ms = minute(90)
    ran = cli("history resets audit")
    told = "No resets were found.\nCollected up to 2026-03-02T09:00:00.000Z: what came later is not known.\n"
    assert (ran.code, ran.err) == (0, told)


def test_folder_that_is_no_warehouse(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    ran = cli(f"history offsets --warehouse {tmp_path}")

    assert (ran.code, ran.err) == (2, f"kgctl: {tmp_path} is not a warehouse (it has no table of clusters)\n")


def test_a_cluster_without_a_record_is_not_one_that_was_not_built(cli: Cli, tmp_path: Path) -> None:
    warehouse = Warehouse.create(tmp_path / "w")
    warehouse.tell("c1", 0)

    ran = cli(f"history offsets --warehouse {tmp_path / 'w'}")
    assert (ran.code, ran.err) == (4, f"kgctl: {warehouse.location}: no record of a group of cluster 'c1' was collected yet\n")


def test_what_was_not_built_yet_is_said(cli: Cli, tmp_path: Path) -> None:
    warehouse = Warehouse.create(tmp_path / "w")
    collect(warehouse, [0, 1])
    line = f"history offsets --warehouse {tmp_path / 'w'} --at {START_MS}"

    ran = cli(line)
    assert (ran.code, ran.err) == (
        4,
        f"kgctl: {tmp_path / 'w'}: cluster 'c1' was collected but not built yet: kgctl history build does it\n",
    )

    runs = [run(0, 1, START_MS, START_MS), run(4, 8, START_MS, START_MS)]
    write_gold(tmp_path / "w", {"offset_commits": [commit("g", "t", 0, 7, START_MS, 0)], "coverage": runs})
    collect(warehouse, [9, 10, 11])
    ran = cli(line)
    assert (ran.code, ran.err) == (0, "3 records were collected after the last build: kgctl history build brings them in.\n")

    collect(warehouse, [2, 12])
    told = "5 records were collected after the last build, 1 of them late: older than what is built, which will change"
    ran = cli(f"{line} -o json")
    assert (ran.code, ran.err) == (0, f"{told}: kgctl history build brings them in.\n")
    behind = {"records_not_built": 5, "late_records_not_built": 1, "samples_not_built": 0}
    assert {name: count for name, count in json.loads(ran.out)["summary"].items() if name in behind} == behind


def test_damaged_tables_are_named(cli: Cli, tmp_path: Path) -> None:
    warehouse = write_gold(tmp_path / "w", {"offset_commits": [commit("g", "t", 0, 7, 1, 0)], "coverage": []})
    (file,) = data_files(warehouse, "offset_commits")
    line = f"history offsets --warehouse {tmp_path / 'w'}"

    file.write_bytes(b"not Parquet")
    ran = cli(line)
    assert (ran.code, ran.err.count("\n")) == (1, 1)
    assert f"{file}: cannot be read: " in ran.err


def test_a_warehouse_of_the_old_format_names_the_command(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "warehouse.json").write_text('{"kgctl_warehouse_version": 1}')
    ran = cli(f"history offsets --warehouse {tmp_path / 'old'}")
    assert ran.code == 2
    assert f"kgctl history collect --parquet {tmp_path / 'old'} --warehouse NEW" in ran.err


def test_a_time_that_came_twice_is_told_with_both(cli: Cli) -> None:
    """Answered of the first one in silence, the second hour's troubles were not there."""
    ran = cli.run(["history", "offsets", "payments", "--at", "2025-10-26 02:30 Europe/Berlin"])
    told = "--at 2025-10-26 02:30 Europe/Berlin means 2025-10-26T00:30:00.000Z (UTC). It came twice, as clocks were turned back; "
    assert (ran.code, ran.err.splitlines()[0]) == (0, f"{told}the second is 2025-10-26T01:30:00.000Z.")


@pytest.mark.parametrize(
    ("line", "variable", "meant"),
    [
        ("history offsets payments", "KGCTL_WAREHOUS", "KGCTL_WAREHOUSE"),
        ("history watch --once --alert stopped --no-collect", "KGCTL_WEB_HOOK", "KGCTL_WEBHOOK"),
    ],
)
def test_a_variable_whose_name_is_nearly_right_is_not_passed_over(cli: Cli, line: str, variable: str, meant: str) -> None:
    """Another history would answer, and nobody would be told of alerts."""
    ran = cli(line, variables={variable: "http://127.0.0.1:1/"})
    assert (ran.code, ran.out, ran.err) == (2, "", f"kgctl: {variable} is no variable of kgctl; did you mean {meant}?\n")


@pytest.mark.parametrize("line", ["resets payments", "lag payments", "health payments", "slo payments --within 3m", "fleet"])
def test_programs_are_told_how_far_was_collected(cli: Cli, line: str) -> None:
    """No rows of the last hour, with 0, say nothing if nobody collected: the note on stderr is not for programs."""
    cli.now_ms = minute(90)
    of_time = "" if line == "fleet" else " --from 2026-03-02T09:10:00Z"
    summary = cli(f"history {line}{of_time} -o json").json["summary"]
    assert (summary["collected_from"], summary["collected_to"]) == ("2026-03-02T08:00:00.000Z", "2026-03-02T09:00:00.000Z")
