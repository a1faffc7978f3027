"""``simulate run --baseline``: a stored result of the main branch, and what is worse than it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.cli.harness import Cli

FILE = """\
kgctl: 1
name: deploy
topics: {orders: 4}
members: {app: {count: 2, boot: 2s}}
warmup: 30s
duration: 60s
events: [{at: 0s, crash: app/0, for: 10s}]
group: {config: {session.timeout.ms: 10s}}
variants: {plain: {}, other: {members: {app: {boot: 3s}}}}
runs: 4
expect: [max_gap < 1h]
"""
SLOWER = "--set group.config.session.timeout.ms=20s"


@pytest.fixture
def main(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("deploy.yaml").write_text(FILE)
    assert cli("simulate run deploy.yaml --metrics main.json").code == 0
    return tmp_path / "main.json"


def test_the_same_is_no_worse(cli: Cli, main: Path) -> None:
    ran = cli("simulate run deploy.yaml --baseline main.json --fail-if-worse any")
    assert (ran.code, " PASS no worse than the baseline\n" in ran.out) == (0, True)
    assert "plain is neither better nor worse than the baseline (4 seeds in both)" in ran.out


def test_what_is_worse_fails_in_every_report_with_a_replay(cli: Cli, main: Path) -> None:
    ran = cli(f"simulate run deploy.yaml {SLOWER} --baseline main.json --fail-if-worse max_gap --junit r.xml --markdown r.md")
    assert ran.code == 6
    (line,) = [line for line in ran.out.splitlines() if line.startswith(" FAIL plain: max_gap <= baseline")]
    assert "on average, worse with 4 of 4 seeds" in line
    assert "worse with 4 of 4 seeds" in Path("r.md").read_text()
    names = [case.get("name") for case in ET.parse("r.xml").getroot().iter("testcase") if case.find("failure") is not None]
    assert len(names) == 2
    replay = next(line for line in ran.out.splitlines() if line.startswith("replay: ")).removeprefix("replay: kgctl ")
    again = cli(replay.partition("   #")[0])
    assert (again.code, "max_gap <= baseline" in again.out) == (6, True)
    unasked = cli(f"simulate run deploy.yaml {SLOWER} --baseline main.json")
    assert (unasked.code, "and worse in unavailable" in unasked.out) == (0, True), unasked.out


def test_what_is_better_when_it_is_higher_is_worse_when_it_is_lower(cli: Cli, main: Path) -> None:
    ran = cli(f"simulate run deploy.yaml {SLOWER} --baseline main.json --fail-if-worse availability --metrics new.json")
    (line,) = [line for line in ran.out.splitlines() if line.startswith(" FAIL plain: availability >= baseline")]
    fell = {seed: old - new for seed, (old, new) in enumerate(zip(values("main.json"), values("new.json"), strict=True), start=1)}
    assert (ran.code, min(fell.values()) > 0) == (6, True)
    assert f"with seed {max(fell, key=fell.__getitem__)} " in line


def values(file: str, metric: str = "availability") -> list[float]:
    found: list[float] = json.loads(Path(file).read_text())["variants"]["plain"]["metrics"][metric]["per_seed"]
    return found


def test_what_never_ends_is_worse_than_what_did(cli: Cli, main: Path) -> None:
    late = "--set events.0.at=58s --set allow=[missing,no_effect,not_started,unsettled]"
    ran = cli(f"simulate run deploy.yaml {late} --baseline main.json --fail-if-worse time_to_stable --metrics new.json")
    stored = json.loads(Path("new.json").read_text())["variants"]["plain"]["metrics"]["time_to_stable"]
    assert (stored["median"], stored["never"]) == (None, [1, 2, 3, 4])
    assert (ran.code, "-> never" in ran.out) == (6, True)


def test_variants_that_only_one_of_them_has_are_named_and_so_is_another_kgctl(cli: Cli, main: Path) -> None:
    other = "other is in the baseline only"
    assert other in cli("simulate run deploy.yaml --variant plain --baseline main.json").out.splitlines()
    told = cli("simulate run deploy.yaml --variant plain --metrics part.json --baseline main.json --fail-if-worse any")
    assert told.code == 0
    whole = cli("simulate run deploy.yaml --baseline part.json").out
    assert ("other is not in the baseline" in whole.splitlines(), other in whole, "made by kgctl" in whole) == (
        True,
        False,
        False,
    )
    stored = json.loads(main.read_text())
    main.write_text(json.dumps({**stored, "kgctl": "0.0.9"}))
    assert "the baseline was made by kgctl 0.0.9, this run by" in cli("simulate run deploy.yaml --baseline main.json").out


REFUSED = {
    "--fail-if-worse any": "--fail-if-worse: worse than what? name a stored result by --baseline FILE",
    "--baseline none.json": "--baseline none.json: No such file or directory",
    "--baseline deploy.yaml": "--baseline deploy.yaml is no result of kgctl simulate run --metrics FILE",
    "--baseline main.json --set name=x": "--baseline main.json is a result of 'deploy', and this is 'x'",
    "--baseline main.json --seed 9": "--baseline main.json has none of the seeds 9 to 9: say --seed and --runs as there",
    "--baseline main.json --fail-if-worse gap": "--fail-if-worse: there is no metric 'gap'",
}


@pytest.mark.parametrize("options", REFUSED)
def test_what_cannot_be_held_beside_it_is_refused_before_anything_runs(cli: Cli, main: Path, options: str) -> None:
    ran = cli(f"simulate run deploy.yaml {options}")
    assert (ran.code, ran.out, ran.err.startswith(f"kgctl: {REFUSED[options]}")) == (2, "", True), ran.err


def test_long_work_is_told_in_a_pipe_too(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("kgctl.cli.environment.TOLD_S", 0.01)
    (tmp_path / "deploy.yaml").write_text(FILE)
    ran = cli(f"simulate run {tmp_path}/deploy.yaml --jobs 1 --runs 20")
    told = [line for line in ran.err.splitlines() if re.fullmatch(r"deploy: \d+ s, \d+ of 40 runs", line)]
    assert (ran.code, len(told) > 1) == (0, True), ran.err
