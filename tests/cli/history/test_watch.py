"""``kgctl history watch``: rules on a history that others collect, its exit codes, and what it says when something is wrong."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.harness import Cli
from tests.support.pipeline.example import minute


@pytest.fixture
def cli(cli: Cli, example: Path) -> Cli:
    shutil.copytree(example, cli.folder / "own")  # it is built anew, and alerts are kept in it
    cli.variables["KGCTL_WAREHOUSE"] = str(cli.folder / "own")
    cli.now_ms = minute(41)
    return cli


WATCH = ["history", "watch", "--no-collect"]


def test_once_exits_with_6_while_an_alert_fires(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgctl.pipeline.builds.run.build", unchanged)
    ran = cli.run([*WATCH, "--once", "--alert", "reset in 10m"])
    assert (ran.code, ran.out) == (
        6,
        "TIME                      STATUS  ALERT  GROUP     TOPIC   PARTITION  SUMMARY\n"
        "2026-03-02T08:41:00.000Z  firing  reset  payments  orders          0  payments on orders-0 went from 70 to 0"
        " (went_back)\n",
    )
    cli.now_ms = minute(42)
    again = cli.run([*WATCH, "--once", "--alert", "reset in 10m", "-o", "json"])
    assert (again.code, [row["time"] for row in again.data]) == (6, ["2026-03-02T08:41:00.000Z"])
    assert list(again.data[0]) == ["time", "status", "alert", "group", "topic", "partition", "value", "since", "rule", "summary"]
    assert [error["code"] for error in again.json["errors"]] == ["ALERT"]
    cli.now_ms = minute(55)
    later = cli.run([*WATCH, "--once", "--alert", "reset in 10m"])
    assert (later.code, later.err) == (0, "No alert fires.\n")


def unchanged(*_: object, **__: object) -> object:
    """In the place of a build: the example's tables were not made of records."""
    from kgctl.pipeline.builds.run import BuildResult

    return BuildResult()


def test_what_cannot_be_measured_holds_no_threshold(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgctl.pipeline.builds.run.build", unchanged)
    cli.now_ms = minute(90)
    ran = cli.run([*WATCH, "--once", "--alert", "lag > 1000000", "-o", "json"])
    assert (ran.code, [error["code"] for error in ran.json["errors"]]) == (6, ["LAG_UNKNOWN"])
    assert "last measured 30 min before" in ran.data[0]["summary"]
    assert cli.run([*WATCH, "--once", "--alert", "lag > 1000000", "--allow-unknown", "--state", str(cli.folder / "s")]).code == 0


def test_a_run_with_an_end(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgctl.pipeline.builds.run.build", unchanged)
    ran = cli.run([*WATCH, "--for", "1s", "--every", "1s", "--alert", "lag > 5"])
    assert (ran.code, ran.out) == (6, "2026-03-02T08:41:00.000Z  firing    lag             lag of payments is 92, over 5\n")
    quick = cli.run([*WATCH, "--exit-on-alert", "--every", "1h", "--alert", "reset in 10m"])
    assert quick.code == 6
    cli.terminal = True
    shown = cli.run([*WATCH, "--for", "1s", "--every", "1s", "--alert", "lag > 5"])
    assert "1 alerts" in shown.out
    assert "REWIND" in shown.out


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        (["--alert", "lagg > 5"], 2, "--alert: there is no rule 'lagg'; did you mean lag?"),
        (["--every", "10ms"], 2, "--every 10ms: the shortest is 1s"),
        (["--once", "--for", "5s"], 2, "--once and --for exclude each other"),
        (["--no-collect", "--sample-every", "5s"], 2, "--sample-every is for a collection"),
        (["--no-collect", "--cluster", "nowhere"], 4, "no cluster 'nowhere'"),
        (["--no-collect", "--webhook", "example"], 2, "--webhook 'example'"),
        (["--no-collect", "--webhook-header", "a:b"], 2, "--webhook-header belongs to --webhook"),
        (["--no-collect", "--webhook", "http://a/", "--webhook-header", "b"], 2, "--webhook-header: write NAME:VALUE"),
        (["--no-collect", "--metrics", "9100"], 2, "--metrics 9100: write HOST:PORT"),
        (["--no-collect", "--metrics-file", "gone/file"], 2, "there is no folder"),
        (["--no-collect", "--keep", "1h"], 2, "--keep 1h: whole days are thinned"),
        (["--embedded", "data"], 2, "watch with --no-collect"),
        (["--bootstrap-server", "127.0.0.1:1"], 7, "127.0.0.1:1"),
    ],
)
def test_mistakes(cli: Cli, line: list[str], code: int, words: str) -> None:
    ran = cli.run(["history", "watch", *line])
    assert (ran.code, ran.out) == (code, "")
    assert words in ran.err
    assert "Traceback" not in ran.err
