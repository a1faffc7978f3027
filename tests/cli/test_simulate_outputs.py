"""What ``kgctl simulate run`` shows and writes beside its result."""

from __future__ import annotations

import json
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
    never = ["--check", "{check: moves < 0, when: rebalances > 99}", "--variant", "eager"]
    ran = cli.run(["simulate", "run", str(scenario), *never], variables={"GITHUB_ACTIONS": "true"})
    (line,) = [line for line in ran.err.splitlines() if line.startswith("::")]
    assert (ran.code, "(not asked: `when` held in no seed)" in line) == (0, True), line


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


UNSETTLED = """\
kgctl: 1
name: unsettled
topics: {orders: 4}
members: {app: {count: 2, on_failure: restart}}
warmup: 30s
duration: 60s
allow: [kicked, failed, missing, no_effect, not_started, stuck, unsettled]
variants: {quiet: {}, noisy: {events: [{at: 0s, name: first, restart: app/0}, {at: 59s, crash: app/1, for: 20s}]}}
events: [{at: 0s, name: first, restart: app/0}]
expect: [moves >= 0]
"""


def test_what_never_ends_in_any_seed_fails_a_comparison(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "unsettled.yaml").write_text(UNSETTLED)
    compared = cli(f"simulate compare {tmp_path}/unsettled.yaml:quiet {tmp_path}/unsettled.yaml:noisy --fail-if-worse any")
    assert compared.code == 6, compared.out + compared.err
    assert "noisy is worse than" in compared.err
    assert "-> never" in compared.err
    unknown = cli(f"simulate compare {tmp_path}/unsettled.yaml --fail-if-worse latency_p99")  # nothing is written
    assert (unknown.code, "latency_p99 cannot be compared" in unknown.err) == (6, True)


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
        ("--junit -", "- would be a file of this name: stdout has the result; name a file"),
        ("--variant eager --records-out -", "- would be a file of this name"),
    ],
)
def test_what_cannot_be_written_is_said_before_anything_is_run(
    cli: Cli, scenario: Path, tmp_path: Path, flags: str, message: str
) -> None:
    ran = cli(f"simulate run {scenario} {flags.format(folder=tmp_path)}")

    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert message in ran.err


KICKED = """\
kgctl: 1
name: slow
topics: {orders: 12}
members: {app: {count: 4, rate: 5/s, config: {max.poll.interval.ms: 30s, partition.assignment.strategy: [range]}}}
traffic: {orders: 300/s}
warmup: 60s
duration: 2m
variants: {big: {}, small: {group: {config: {max.poll.records: 50}}}}
"""


def test_what_goes_wrong_unasked_is_the_first_line_of_everything(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "slow.yaml").write_text(KICKED)
    files = {"html": "r.html", "junit": "r.xml", "markdown": "r.md", "metrics": "r.json"}
    flags = " ".join(f"--{option} {tmp_path / name}" for option, name in files.items())
    ran = cli(f"simulate run {tmp_path}/slow.yaml {flags}", variables={"GITHUB_ACTIONS": "true"})
    told = ran.out.partition("\n")[0].removeprefix("FAIL ")
    assert (ran.code, told.partition(",")[0]) == (6, "big: app-1 left the group")
    assert "past max.poll.interval.ms=30s without a poll(), at " in told
    allowed = "where that is meant, the file says allow: [kicked, stuck]\n"
    assert f"kgctl: {allowed}" in ran.err  # stdout has the rest, which is said once
    assert f"kgctl: {told}; {allowed}" in cli(f"simulate run {tmp_path}/slow.yaml -o csv").err
    text = told.removeprefix("big: ")
    assert (tmp_path / "r.md").read_text().startswith("### ❌ slow: big: app-1 left the group, past max.poll.interval.ms=30s")
    assert f'<p class="trouble">{told}</p>' in (tmp_path / "r.html").read_text()
    case = next(ET.parse(tmp_path / "r.xml").getroot().iter("testcase"))
    assert (case.get("name"), case[0].get("message")) == ("no member is kicked", f"no member is kicked: {text}")
    annotations = [line for line in ran.err.splitlines() if line.startswith("::error")]
    assert annotations[0].partition("::")[2].partition("::")[2].startswith(f"{text} in variant big")
    assert json.loads((tmp_path / "r.json").read_text())["troubles"][0]["text"] == text


def test_comparing_explaining_and_sweeping_say_it_first(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "slow.yaml").write_text(KICKED)
    compared = cli(f"simulate compare {tmp_path}/slow.yaml:small {tmp_path}/slow.yaml:big --fail-if-worse any")
    assert compared.err.startswith(f"FAIL {tmp_path}/slow.yaml:big: app-1 left the group, past max.poll.interval.ms=30s")
    assert (compared.code, "is worse than" in compared.err) == (6, True)
    explained = cli(f"simulate explain {tmp_path}/slow.yaml")
    assert explained.out.startswith("FAIL app-1 left the group, past max.poll.interval.ms=30s")
    swept = cli(f"simulate sweep {tmp_path}/slow.yaml --set group.config.max.poll.records=50,500 --variant big --must-hold")
    assert swept.err.startswith("FAIL app-1 left the group, past max.poll.interval.ms=30s")
    assert (swept.code, "did not hold in 1 of 2 runs" in swept.err) == (6, True)
