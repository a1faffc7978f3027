"""``kgctl history lag``."""

from __future__ import annotations

from pathlib import Path

from tests.cli.harness import Cli
from tests.support.pipeline.gold import commit, run, write_gold


def test_lag_as_of_a_time(cli: Cli) -> None:
    ran = cli("history lag payments --at 2026-03-02T08:41:00Z")

    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        "GROUP     TOPIC   PARTITION  TIME                      COMMITTED-OFFSET  LOG-END-OFFSET  LAG   LAG-MS  STATUS\n"
        "payments  orders          0  2026-03-02T08:40:00.000Z                 0              84   84  2520000  REWIND\n"
        "payments  orders          1  2026-03-02T08:40:00.000Z                81              85    4   120000  WARN\n"
        "payments  orders          2  2026-03-02T08:40:00.000Z                82              86    4   120000  WARN\n"
    )


def test_lag_over_time_of_one_partition(cli: Cli) -> None:
    ran = cli("history lag payments --topic orders:0 --from 2026-03-02T08:35:00Z --to 2026-03-02T08:45:00Z -o csv")

    assert [(row["time"][11:16], row["committed_offset"], row["lag"]) for row in ran.csv if row["kind"] == "commit"] == [
        ("08:35", "70", "4"),
        ("08:40", "0", "84"),
    ]


def test_deleted_commit_has_no_lag(cli: Cli) -> None:
    assert [row["lag"] for row in cli("history lag audit --at 2026-03-02T08:29:00Z -o json").data] == [49]

    ran = cli("history lag audit --at 2026-03-02T08:31:00Z -o json")
    assert (ran.code, ran.data, ran.err) == (0, [], "No lag is known of that time.\n")


def test_unknown_is_null_and_never_zero(cli: Cli, tmp_path: Path) -> None:
    row = {"group": "g", "topic": "t", "partition": 0, "time_ms": 5, "committed_offset": 7, "kind": "commit"}
    tables = {"offset_commits": [commit("g", "t", 0, 7, 5, 0)], "lag": [row], "coverage": [run(0, 0, 5, 5)]}
    write_gold(tmp_path / "w", tables)

    ran = cli(f"history lag --warehouse {tmp_path / 'w'} -o json")

    assert [(row["log_end_offset"], row["lag"], row["lag_ms"]) for row in ran.data] == [(None, None, None)]
    assert ran.err == "Collected up to 1970-01-01T00:00:00.005Z: what came later is not known.\n"
