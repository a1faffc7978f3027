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


CALM = FILE.replace("events: [{at: 0s, crash: app/0, for: 10s}]\n", "")


def test_a_run_in_which_less_happens_is_not_better_than_the_baseline(cli: Cli, main: Path) -> None:
    Path("deploy.yaml").write_text(CALM)
    ran = cli("simulate run deploy.yaml --baseline main.json --fail-if-worse any")
    only = "only the baseline has crash app/0 (for 10s)"
    assert ran.code == 6
    assert "is better" not in ran.out
    assert [line for line in ran.out.splitlines() if "plain" in line and "baseline" in line] == [
        f" FAIL plain: the same question as the baseline  observed - with seed 1 ({only}; events that stand for each other have"
        " the same `name`)",
        "plain is called neither better nor worse than the baseline, as they are not the same question:"
        f" {only} (4 seeds in both)",
    ]
    unasked = cli("simulate run deploy.yaml --baseline main.json")
    assert (unasked.code, "is better" in unasked.out, only in unasked.out) == (0, False, True)


BUSY = FILE + "traffic: {orders: 300/s}\n"


def test_a_run_in_which_less_is_written_is_not_better_than_the_baseline(cli: Cli, main: Path) -> None:
    Path("deploy.yaml").write_text(BUSY.replace("count: 2", "count: 2, rate: 200/s"))
    assert cli("simulate run deploy.yaml --metrics main.json").code == 0
    for written, told in (("150/s", "topic orders (partitions 4, rate 150/s)"), ("null", "topic orders (partitions 4)")):
        ran = cli(f"simulate run deploy.yaml --set traffic.orders={written} --baseline main.json --fail-if-worse any")
        assert (ran.code, "is better" in ran.out) == (6, False), ran.out
        assert f"only the baseline has topic orders (partitions 4, rate 300/s); only plain has {told}" in ran.out, ran.out


STRENGTHS = {
    "events.0.for=2s": "crash app/0 (for 2s)",
    "events.0.at=20s": "crash app/0 (at 20s, for 10s)",
    "topics.orders=2": "topic orders (partitions 2)",
    "cluster.network=50ms": "cluster (network (latency 50ms))",
    "warmup=20s": "warmup 20s",
}


@pytest.mark.parametrize("setting", STRENGTHS)
def test_a_baseline_of_another_strength_is_not_the_same_question(cli: Cli, main: Path, setting: str) -> None:
    ran = cli(f"simulate run deploy.yaml --set {setting} --baseline main.json --fail-if-worse any --seed 1 --variant plain")
    assert (ran.code, "is better" in ran.out) == (6, False), ran.out
    assert f"; only plain has {STRENGTHS[setting]}" in ran.out or f": only plain has {STRENGTHS[setting]}" in ran.out, ran.out


def test_a_baseline_whose_moves_are_counted_otherwise_is_not_the_same_question(cli: Cli, main: Path) -> None:
    ran = cli("simulate run deploy.yaml --identity member-id --baseline main.json --fail-if-worse moves --seed 1")
    assert (ran.code, "only plain has moves counted by member-id" in ran.out) == (6, True), ran.out


def test_pods_that_do_not_keep_up_are_worse_than_the_baseline(cli: Cli, main: Path) -> None:
    Path("deploy.yaml").write_text(BUSY.replace("count: 2", "count: 3, rate: 150/s"))
    assert cli("simulate run deploy.yaml --metrics main.json").code == 0
    fewer = "--set members.app.count=1 --set allow=[missing,unread]"
    ran = cli(f"simulate run deploy.yaml {fewer} --baseline main.json --fail-if-worse any")
    assert (ran.code, "plain: latency_p99 <= baseline" in ran.out) == (6, True), ran.out


def test_a_baseline_that_does_not_say_what_happened_is_no_pass(cli: Cli, main: Path) -> None:
    stored = json.loads(main.read_text())
    for variant in stored["variants"].values():
        del variant["rehearsed"]
    main.write_text(json.dumps(stored))
    ran = cli("simulate run deploy.yaml --baseline main.json --fail-if-worse any")
    assert (ran.code, "what happened in the baseline is not known" in ran.out) == (6, True)


def test_files_in_which_other_things_happen_are_not_compared(cli: Cli, main: Path) -> None:
    Path("calm.yaml").write_text(CALM)
    ran = cli("simulate compare deploy.yaml:plain calm.yaml:plain --fail-if-worse any")
    assert (ran.code, "is better than" in ran.err) == (6, False)
    assert "they are not the same question: only deploy.yaml:plain has crash app/0 (for 10s); events that" in ran.err
    assert "kgctl: calm.yaml:plain cannot be held beside deploy.yaml:plain: they are not the same question\n" in ran.err
    Path("stop.yaml").write_text(FILE.replace("crash: app/0", "name: gone, stop: app/0"))
    Path("crash.yaml").write_text(FILE.replace("crash: app/0", "name: gone, crash: app/0"))
    named = cli("simulate compare crash.yaml:plain stop.yaml:plain --fail-if-worse any")
    assert (named.code, "stop.yaml:plain is better than crash.yaml:plain" in named.err) == (0, True)


def test_variants_of_one_file_may_have_other_events_and_it_is_said(cli: Cli, main: Path) -> None:
    Path("two.yaml").write_text(FILE.replace("other: {members: {app: {boot: 3s}}}", "other: {events: [{stop: app/0, for: 10s}]}"))
    ran = cli("simulate compare two.yaml --fail-if-worse any")
    assert (ran.code, "other is better than plain: " in ran.err) == (0, True)
    assert "they do not rehearse the same: only plain has crash app/0 (for 10s); only other has stop app/0 (for 10s)\n" in ran.err


def test_events_that_never_happened_are_told_before_a_verdict_and_fail_a_comparison(cli: Cli, main: Path) -> None:
    late = "[{at: 0s, crash: app/0, for: 10s, when: members > 2}, {at: 70s, crash: app/1}, {at: 5s, scale: app, to: 2}, {at: 0s, "
    Path("never.yaml").write_text(FILE.replace("[{at: 0s, ", late))
    ran = cli("simulate compare never.yaml --runs 2")
    told = [
        "FAIL plain: event scale app has no effect at 5.0s (seed 1)",
        "FAIL plain: event crash app/1 did not begin: the run ended at 60.0s (seed 1)",
        "WARN plain: event crash app/0 happens: its `when` held in no seed",
    ]
    also = [line.replace("plain", "other") for line in told]
    assert (ran.code, ran.err.splitlines()[:6]) == (6, told + also)
    allow = "where that is meant, the file says allow: [no_effect, not_started]"
    assert ran.err.endswith(f"kgctl: event scale app has no effect at 5.0s; {allow}\n")
    allowed = cli("simulate compare never.yaml --runs 2 --set allow=[no_effect,not_started]")
    assert (allowed.code, "FAIL" in allowed.err, "WARN plain: event crash app/0 happens" in allowed.err) == (0, False, True)


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
