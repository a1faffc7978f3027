"""What ``kgctl simulate run`` shows and writes beside its result."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from kgctl.admin.embedded import open_embedded
from kgctl.cli.exit_codes import ExitCode
from kgctl.simulate.report.text import LEGEND
from kgctl.storage.folder import open_folder
from tests.cli.harness import Cli

RESTART = """\
kgctl: 1
name: restart
question: Who waits for a restart?
topics: {orders: 4}
group: {id: app}
members: {app: {count: 2, boot: 5s, rate: 1000/s}}
traffic: {orders: 40/s}
warmup: 30s
events:
  - {at: 0s, restart: app/0}
variants:
  eager: {group: {config: {partition.assignment.strategy: [range]}}}
  cooperative: {group: {config: {partition.assignment.strategy: [cooperative-sticky]}}}
runs: 2
expect:
  - cooperative.collateral == 0
  - eager.max_gap < 1ms
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "restart.yaml"
    path.write_text(RESTART)
    return path


def test_files_are_written_and_named_on_stderr(cli: Cli, scenario: Path, tmp_path: Path) -> None:
    names = {"html": "r.html", "junit": "r.xml", "markdown": "r.md", "metrics": "r.json", "events": "r.jsonl"}
    flags = " ".join(f"--{option} {tmp_path / name}" for option, name in names.items())

    ran = cli(f"simulate run {scenario} {flags}")

    assert ran.code == ExitCode.EXPECTATION
    assert [line for line in ran.err.splitlines() if line.startswith("written")] == [
        f"written: {tmp_path / name}" for name in names.values()
    ]
    suite = ET.parse(tmp_path / "r.xml").getroot().find("testsuite")
    assert suite is not None
    assert (suite.get("name"), suite.get("tests"), suite.get("failures")) == ("restart", "2", "1")
    assert (tmp_path / "r.md").read_text().startswith("### ❌ restart\n\nWho waits for a restart?\n")
    assert '"orders-3"' in (tmp_path / "r.html").read_text()


def test_pictures_follow_the_verdicts_when_they_are_asked_for(cli: Cli, scenario: Path) -> None:
    lines = cli(f"simulate run {scenario} --gantt").out.splitlines()

    drawn = [line for line in lines if line.startswith(("eager, seed", "cooperative, seed"))]
    why = [" (fails: eager.max_gap < 1ms)", " (most unavailable of 2 seeds)"]
    assert [line.partition("seed ")[2][1:] for line in drawn] == why
    assert lines.count(LEGEND) == 1
    assert [line.split()[0] for line in lines if line.startswith("orders-")] == [f"orders-{i}" for i in range(4)] * 2
    assert LEGEND not in cli(f"simulate run {scenario} --no-gantt").out


def test_failures_are_annotations_on_github(cli: Cli, scenario: Path) -> None:
    check = ["--check", "max_gap < 0s", "--check", "{check: moves < 0, severity: warn}", "--variant", "eager"]
    ran = cli.run(["simulate", "run", str(scenario), *check], variables={"GITHUB_ACTIONS": "true"})
    told = [line for line in ran.err.splitlines() if line.startswith("::")]
    assert ran.code == 6
    assert told[0].startswith(
        f"::error file={scenario},title=kgctl simulate::max_gap < 0s does not hold in variant eager: observed "
    )
    assert "%0Areplay: kgctl simulate run" in told[0]
    assert told[1].startswith(f"::warning file={scenario},title=kgctl simulate::moves < 0 does not hold")


def test_comparing_gives_a_verdict_and_an_exit_code(cli: Cli, scenario: Path) -> None:
    fine = cli(f"simulate compare {scenario}:eager {scenario}:cooperative --runs 2 -o json --fail-if-worse collateral")
    assert fine.code == 0
    assert "2 seeds may say little about others" in fine.err
    assert {row["metric"]: row["verdict"] for row in fine.data}["collateral"] == "better"
    worse = cli(f"simulate compare {scenario}:cooperative {scenario}:eager --runs 2 --fail-if-worse collateral")
    assert worse.code == 6
    assert f"{scenario}:eager is worse than {scenario}:cooperative: collateral 0 -> " in worse.err
    wrong = cli(f"simulate compare {scenario} --fail-if-worse colateral")
    assert (wrong.code, "did you mean 'collateral'?" in wrong.err) == (2, True)


def test_summary_of_a_job_on_github_is_added_to(cli: Cli, scenario: Path, tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")

    cli(f"simulate run {scenario} --markdown {summary}", variables={"GITHUB_STEP_SUMMARY": str(summary)})

    assert summary.read_text().startswith("before\n### ❌ restart\n")


def test_group_and_its_records_can_be_looked_at_afterwards(cli: Cli, scenario: Path, tmp_path: Path) -> None:
    state, records = tmp_path / "state", tmp_path / "records"

    cli(f"simulate run {scenario} --variant cooperative --state-out {state} --records-out {records}")

    with open_embedded(state) as admin:
        (group,) = admin.describe_groups(["app"]).values.values()
        ends = admin.list_log_offsets([*admin.list_committed_offsets(["app"]).values["app"]]).values
    assert (group.state, sorted(len(member.assignment["orders"]) for member in group.members if member.assignment)) == (
        "Stable",
        [2, 2],
    )
    assert len({bounds.log_end_offset for bounds in ends.values()}) == 1
    with open_folder(records, create=False) as folder:
        assert len(list(folder.record_log.read())) > len(list(folder.commit_log.read())) > 0


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--state-out {folder}/new", "--state-out is for one run: add --variant, one of eager, cooperative"),
        ("--variant eager --records-out {folder}", "is not empty: name a new folder"),
        ("--html {folder}/no/page.html", "there is no folder"),
    ],
)
def test_what_cannot_be_written_is_said_before_anything_is_run(
    cli: Cli, scenario: Path, tmp_path: Path, flags: str, message: str
) -> None:
    ran = cli(f"simulate run {scenario} {flags.format(folder=tmp_path)}")

    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert message in ran.err
