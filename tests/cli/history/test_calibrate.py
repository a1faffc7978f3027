"""``kgctl history calibrate``: what a simulation wrote is found again, and what is not known is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kgctl.cli.history.calibrate import _died_ms
from kgctl.pipeline.answers.inferred import CRASHED, LEFT, UNKNOWN
from kgctl.pipeline.answers.recorded import MemberStay
from tests.cli.harness import Cli

SCENARIO = """\
kgctl: 1
name: recorded
topics: {orders: {partitions: 8}}
cluster:
  config: {group.consumer.heartbeat.interval.ms: 10000, group.consumer.max.heartbeat.interval.ms: 15000}
group: {id: modern, config: {group.protocol: consumer}}
members:
  app: {count: 2, boot: 0s, commit: every 2s, poll: 0ms..100ms, rate: 5000/s}
  late: {count: 1, start: never, boot: 0s, commit: every 2s, poll: 0ms..100ms, rate: 5000/s}
traffic: {orders: 200/s}
warmup: 60s
duration: 2m
events:
  - {at: 20s, start: late/0}
  - {at: 80s, stop: late/0}
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The warehouse of a group that a simulation wrote."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "recorded.yaml").write_text(SCENARIO)
    cli = Cli(folder)
    for line in (
        f"simulate run {folder / 'recorded.yaml'} --seed 7 --runs 1 --records-out {folder / 'records'}",
        f"history collect --record-log {folder / 'records'} --warehouse {folder / 'w'} --cluster sim",
        f"history build --warehouse {folder / 'w'} --engine local -j 1",
    ):
        ran = cli(line)
        assert ran.code == 0, ran.err
    return folder / "w"


ROWS = [
    ["generations", 4.0, 4.0, 4.0, 4.0, True, 4.0],
    ["overtaken", 0.0, 0.0, 0.0, 0.0, True, 0.0],
    ["rebalance_s", 38.143, 37.994, 38.026, 38.058, True, 12.04],
    ["longest_unrest_s", 20.127, 20.093, 20.098, 20.103, True, 6.098],
    ["partitions_moved", 8.0, 8.0, 8.0, 8.0, True, 8.0],
    ["members_at_end", 2.0, 2.0, 2.0, 2.0, True, 2.0],
    ["commit_interval_s", 2.038, 2.005, 2.005, 2.006, True, 2.005],
    ["longest_commit_gap_s", 13.364, 12.866, 12.967, 13.068, False, 5.388],
]
"""Metric, recorded, lowest, median and highest of the seeds, whether inside, the median with the defaults."""


def test_what_was_simulated_is_found_again(cli: Cli, recorded: Path, tmp_path: Path) -> None:
    out = tmp_path / "found.yaml"
    ran = cli(f"history calibrate modern --warehouse {recorded} --runs 2 --out {out} -o json")

    document = json.loads(ran.out)
    assert (ran.code, document["status"]) == (0, "ok")
    assert [[each[key] for key in each if key != "meaning"] for each in document["data"]] == ROWS
    assert document["summary"] == {
        "collected_from": document["summary"]["collected_from"],
        "collected_to": document["summary"]["collected_to"],
        "pause_ms": 0,  # one of 100 ms makes no difference to members whose heartbeats are not their application's
        "heartbeat_ms": 10_000,
        "session_ms": 45_000,
        "latency_ms": 1,
        "distance": 0.0029,
        "distance_before": 0.1794,
        "records_not_built": 0,
        "late_records_not_built": 0,
        "samples_not_built": 0,
    }
    assert ran.err.splitlines() == [
        "Played: 3 members, 3 came, 1 went, 0 of them crashed (inferred).",
        "Fits best: heartbeat interval 10000 ms (default 3000 ms): "
        "distance 0.003, 0.179 with the defaults (0 the same, 1 nothing like it), 43 runs.",
        f"written: {out}: kgctl simulate run {out}",
    ]
    again = cli(f"simulate run {out} --runs 1 -o json")
    assert again.code == 0, again.err


@pytest.mark.parametrize(
    ("options", "code", "told"),
    [
        ("nosuch", 4, "group 'nosuch' is not in the history of cluster 'sim'"),
        ("modern --client jav", 2, "--client jav: there are java, librdkafka, kafka-go, franz-go, kafka-python, aiokafka"),
        ("modern --from 2000-01-01T00:00:00Z --to now", 4, "what it did outside of that is not known"),
        ("modern --from 2026-01-01T00:02:30Z --to 2026-01-01T00:02:50Z", 4, "had no rebalance between 2026-01-01T00:02:30"),
        ("modern --from 2026-01-01T00:02:50Z --to 2026-01-01T00:02:30Z", 2, "is not before --to"),
        ("modern --out /nosuch/folder/x.yaml", 2, "/nosuch/folder"),
    ],
)
def test_what_cannot_be_compared_is_said(cli: Cli, recorded: Path, options: str, code: int, told: str) -> None:
    ran = cli(f"history calibrate {options} --warehouse {recorded}")

    assert (ran.code, ran.out) == (code, "")
    assert told in ran.err


@pytest.mark.parametrize(
    ("ending", "instance", "committed_s", "is_replaced", "died_s"),
    [
        (LEFT, None, 99, False, None),
        (CRASHED, None, 80, False, 82.5),
        (UNKNOWN, None, 88, False, 90),
        (UNKNOWN, None, 95, False, None),
        (UNKNOWN, None, None, False, None),
        (UNKNOWN, "pod-1", None, False, 90),
        (LEFT, "pod-1", 95, False, None),
        (UNKNOWN, "pod-1", 90, True, 92.5),
        (UNKNOWN, "pod-1", 99, True, 99),
        (UNKNOWN, "pod-1", None, True, 99),
    ],
)
def test_a_member_that_did_not_leave_died_before_it_was_missed(
    ending: str, instance: str | None, committed_s: int | None, is_replaced: bool, died_s: float | None
) -> None:
    """It was missed at 100 s; its session is 10 s, and a commit comes every 5."""
    last_ms = None if committed_s is None else committed_s * 1000
    stay = MemberStay("m", "c", instance, 10_000, None, 0, 100_000, ending, last_ms)
    found = _died_ms(stay, 100_000, 5_000, is_replaced=is_replaced)
    assert found == (None if died_s is None else died_s * 1000)
