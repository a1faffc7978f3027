"""``kgctl simulate run`` and ``compare``: verdicts, exit codes, the result, files beside it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kgctl.cli.simulate.compare import _odd
from kgctl.simulate.batch import plan
from kgctl.simulate.engine.invariants import Invariants
from kgctl.simulate.metrics.troubles import Trouble
from tests.cli.harness import Cli

SCENARIO = """\
kgctl: 1
name: small
question: What does one restart cost?
topics: {orders: 6}
group: {config: {partition.assignment.strategy: [range]}}
members: {app: {count: 3, boot: 2s}}
warmup: 30s
events:
  - {at: 0s, restart: app/1}
variants:
  eager: {}
  cooperative: {group: {config: {partition.assignment.strategy: [cooperative-sticky]}}}
expect:
  - cooperative.collateral == 0
  - max_gap < 15s
"""
METRIC_KEYS = ["min", "median", "p95", "max", "per_seed"]
EXPECTATION_KEYS = ["check", "variant", "passed", "observed", "seed", "severity", "replay"]


@pytest.fixture
def scenario(cli: Cli) -> Path:
    path = cli.folder / "small.yaml"
    path.write_text(SCENARIO)
    return path


def test_all_expectations_hold(cli: Cli, scenario: Path) -> None:
    ran = cli(f"simulate run {scenario}")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("small   What does one restart cost?\n")
    assert " PASS cooperative.collateral == 0" in ran.out


def test_a_static_member_that_restarts_moves_its_partitions_by_member_id_only(cli: Cli, scenario: Path) -> None:
    moves = {}
    for identity in ("pod", "member-id"):
        words = f"--set members.app.instance_id=$name --variant eager --check moves>2 --identity {identity}"
        ran = cli(f"simulate run {scenario} {words} -o json")
        moves[identity] = ran.data["variants"]["eager"]["metrics"]["moves"]["per_seed"]
        assert ("--identity member-id" in ran.data["expectations"][0]["replay"]) == (identity == "member-id")
    assert moves == {"pod": [0], "member-id": [2]}


def test_explain_takes_the_variant_of_which_an_expectation_fails(cli: Cli, scenario: Path) -> None:
    ran = cli(f"simulate explain {scenario}")
    assert ran.err.startswith("variant eager; others by --variant: cooperative")
    scenario.write_text(SCENARIO.replace("  - max_gap < 15s\n", "  - cooperative.max_gap < 1s\n"))
    ran = cli(f"simulate explain {scenario}")
    assert (ran.code, ran.err) == (
        0,
        "variant cooperative, the first of which an expectation fails; others by --variant: eager\n",
    )
    assert "\nfails: cooperative.max_gap < 1s: max_gap is " in ran.out
    assert cli(f"simulate explain {scenario} --variant eager").err == ""


def test_a_rollout_that_was_given_up_is_told(cli: Cli, scenario: Path) -> None:
    events = SCENARIO.replace("restart: app/1", "rollout: app, never_ready: true, deadline: 1m")
    scenario.write_text(events[: events.index("expect:")])
    ran = cli(f"simulate run {scenario} --runs 2 --variant eager")
    told = "event rollout app is aborted at 60.0s (with 2 of 2 seeds)"
    assert (ran.code, ran.out.partition("\n")[0]) == (6, f"FAIL {told}")
    assert ran.err == "kgctl: where that is meant, the file says allow: [no_effect]\n"


def test_what_is_allowed_is_told_in_every_output(cli: Cli, scenario: Path) -> None:
    events = SCENARIO.replace("restart: app/1", "rollout: app, never_ready: true, deadline: 1m")
    scenario.write_text(f"{events[: events.index('expect:')]}allow: [no_effect]\n")
    files = {name: cli.folder / name for name in ("junit", "markdown", "html")}
    written = " ".join(f"--{name} {path}" for name, path in files.items())
    ran = cli(f"simulate run {scenario} --runs 2 --variant eager {written}")
    told = "allowed: event rollout app is aborted at 60.0s (with 2 of 2 seeds)"
    assert (ran.code, told in ran.out.splitlines(), "FAIL" in ran.out) == (0, True, False)
    junit = files["junit"].read_text()
    assert f"<system-out>{told}</system-out>" in junit
    assert 'tests="1" failures="0"' in junit
    assert told in files["html"].read_text()
    assert told in files["markdown"].read_text().replace("\\", "")
    found = cli(f"simulate run {scenario} --variant eager -o json").data
    assert (found["troubles"], [each["check"] for each in found["allowed"]]) == ([], ["each event has an effect"])
    assert "allowed: event rollout app is aborted at 60.0s\n" in cli(f"simulate explain {scenario} --variant eager").out
    assert "allowed: eager: event rollout app is aborted at 60.0s (seed 1)\n" in cli(f"simulate compare {scenario}").err
    assert "allowed: event rollout app is aborted at 60.0s (2 of 2 runs)\n" in cli(f"simulate sweep {scenario}").err


def test_an_expectation_that_is_not_asked_decides_nothing_in_silence(cli: Cli, scenario: Path) -> None:
    fails = SCENARIO.replace("kgctl: 1\n", "kgctl: 1\nduration: 2m\n").replace(
        "app/1}", "app, set: {partition.assignment.strategy: [sticky]}}"
    )
    scenario.write_text(fails.replace("restart", "rollout").replace("max_gap < 15s", "errors < 9"))
    words = f"simulate run {scenario} --variant eager"
    assert "allowed: app-3 failed at" in cli(f"{words} --check moves<99").out
    assert "allowed:" not in cli(f"{words} --check errors<9").out


def test_check_of_a_rank_says_which(cli: Cli, scenario: Path) -> None:
    words = ["--variant", "eager", "--runs", "3", "--check", "max_gap < 15s", "--check", "{check: max_gap < 15s, at: p50}"]
    found = cli.run(["simulate", "run", str(scenario), *words, "-o", "json"]).data["expectations"]
    assert [each["check"] for each in found] == ["max_gap < 15s", "p50: max_gap < 15s"]


def test_what_passed_by_its_rank_held_in_some_seeds_alone(cli: Cli, scenario: Path) -> None:
    words = ["simulate", "run", str(scenario), "--variant", "eager", "--runs", "5"]
    gaps = cli.run([*words, "-o", "json"]).data["variants"]["eager"]["metrics"]["max_gap"]["per_seed"]
    limit, held = sorted(gaps)[2], 3
    ran = cli.run([*words, "--check", f"{{check: max_gap <= {limit}s, at: p50}}"])
    assert (ran.code, f"held in some of 5 seeds: p50: max_gap <= {limit}s in {held}" in ran.out) == (0, True)
    assert "held in" not in cli.run([*words, "--check", f"{{check: max_gap <= {max(gaps)}s, at: mean}}"]).out


def test_time_limit_is_told_once(cli: Cli, scenario: Path) -> None:
    ran = cli(f"simulate run {scenario} --time-limit 1us")
    assert (ran.code, ran.out.count("limit")) == (1, 1)


LONG = """\
kgctl: 1
name: long
topics: {orders: 200}
members: {app: {count: 40, boot: 2s}}
traffic: {orders: 1000/s}
warmup: 30s
duration: 20h
events: [{at: 10s, every: 60s, times: 1000, restart: app}]
allow: [not_started, not_ended]
expect: [max_gap < 1h]
"""


def test_a_part_of_a_run_passes_nothing_and_is_compared_with_nothing(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "long.yaml").write_text(LONG)
    (tmp_path / "short.yaml").write_text(LONG.replace("20h", "1ms").replace("1000,", "1,"))
    ran = cli(f"simulate run {tmp_path}/long.yaml --time-limit 1s")
    assert (ran.code, "PASS" in ran.out) == (1, False)
    assert "stopped at the time limit: 0 of 1 seeds were run in every variant" in ran.err
    compared = cli(f"simulate compare {tmp_path}/long.yaml {tmp_path}/short.yaml --time-limit 1s")
    assert (compared.code, compared.err.splitlines()[-1]) == (1, "kgctl: the time limit left nothing to compare")


def test_seeds_that_were_left_out_are_no_comparison_of_all(cli: Cli, scenario: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_all = plan.run_all
    monkeypatch.setattr(plan, "run_all", lambda tasks, *others: run_all(tasks[:-1], *others))
    ran = cli(f"simulate compare {scenario}:eager {scenario}:eager --runs 3 --fail-if-worse any")
    assert (ran.code, ran.err.splitlines()[-1]) == (1, "kgctl: stopped at the time limit: 2 of 3 seeds were run on both sides")


@pytest.mark.parametrize("command", ["run", "sweep --set members.app.count=2,3"])
def test_a_check_of_a_variant_that_is_not_run_is_refused(cli: Cli, scenario: Path, command: str) -> None:
    name, _, more = command.partition(" ")
    ran = cli.run(["simulate", name, str(scenario), *more.split(), "--variant", "eager", "--check", "cooperative.max_gap < 1s"])
    assert (ran.code, ran.out, ran.err) == (
        2,
        "",
        "kgctl: --check 'cooperative.max_gap < 1s' cannot be asked: its variants are not run; name them by --variant, too\n",
    )


KICKED = """\
kgctl: 1
name: kicked
topics: {orders: 4}
members: {app: {count: 2, boot: 2s}}
warmup: 30s
duration: 120s
events: [{at: 10s, pause_process: app/0, for: 60s}]
variants: {a: {}, b: {}}
"""


@pytest.mark.parametrize(
    ("expect", "decided"),
    [
        ("kicked <= 2", ["a", "b"]),
        ("{always: kicked <= 2}", ["a", "b"]),
        ("b.kicked <= 2", ["b"]),
        ("{check: kicked <= 2, variants: [b]}", ["b"]),
        ("{check: kicked <= 2, when: lag(after 900s) > 1}", []),
        ("kicked(before 1s) == 0", []),
        ("kicked(app/1) == 0", []),
        ("{eventually: kicked == 0}", []),
    ],
)
def test_what_an_expectation_does_not_decide_fails_a_run_unasked(
    cli: Cli, tmp_path: Path, expect: str, decided: list[str]
) -> None:
    (tmp_path / "kicked.yaml").write_text(
        f"{KICKED}expect: [{expect!r}]\n" if expect[0] != "{" else f"{KICKED}expect: [{expect}]\n"
    )
    ran = cli(f"simulate run {tmp_path}/kicked.yaml -o json")
    assert [each["variant"] for each in ran.data["troubles"]] == [name for name in "ab" if name not in decided]


def test_result_has_the_documented_keys(cli: Cli, scenario: Path) -> None:
    data = cli(f"simulate run {scenario} --runs 2 -o json").data
    assert list(data) == ["scenario", "kgctl", "digest", "seeds", "variants", "troubles", "allowed", "expectations"]
    assert (data["scenario"], data["seeds"], list(data["variants"])) == ("small", [1, 2], ["eager", "cooperative"])
    eager = data["variants"]["eager"]
    assert list(eager) == ["metrics", "final_assignment", "longest_gaps", "assumptions", "rehearsed"]
    assert all(list(metric) == METRIC_KEYS and len(metric["per_seed"]) == 2 for metric in eager["metrics"].values())
    assert sorted(len(topics["orders"]) for topics in eager["final_assignment"].values()) == [2, 2, 2]
    assert all(list(each) == EXPECTATION_KEYS for each in data["expectations"])
    verdicts = [(each["check"], each["variant"], each["passed"]) for each in data["expectations"]]
    assert verdicts == [
        ("cooperative.collateral == 0", "cooperative", True),
        ("max_gap < 15s", "eager", True),
        ("max_gap < 15s", "cooperative", True),
    ]


def test_same_seeds_same_bytes_in_any_number_of_processes(cli: Cli, scenario: Path) -> None:
    alone = cli(f"simulate run {scenario} --runs 2 --jobs 1 -o json")
    assert cli(f"simulate run {scenario} --runs 2 --jobs 2 --check-determinism -o json").out == alone.out


def test_broken_expectation_exits_6_and_ends_with_its_replay(cli: Cli, scenario: Path) -> None:
    ran = cli.run(["simulate", "run", str(scenario), "--check", "max_gap < 1ms", "--runs", "2"])
    assert (ran.code, ran.err) == (6, "kgctl: 1 of 1 expectations did not hold (2 of 2 cases: one a variant)\n")
    replay = ran.out.splitlines()[-1]
    assert replay.startswith(f"replay: kgctl simulate run {scenario} --variant cooperative --seed ")
    assert " --check 'max_gap < 1ms'   # kgctl " in replay


def test_replay_shows_the_same_digest(cli: Cli, scenario: Path) -> None:
    line = ["simulate", "run", str(scenario), "--check", "eager.max_gap < 1ms", "-o", "json"]
    replay = cli.run([*line, "--runs", "3"]).data["expectations"][0]["replay"]
    seed = replay.split("--seed ")[1].split(" ")[0]
    again = cli.run([*line, "--variant", "eager", "--seed", seed])
    assert replay.endswith(f"digest {again.data['digest'][:8]}")


def test_a_mere_warning_does_not_fail(cli: Cli, scenario: Path) -> None:
    ran = cli.run(["simulate", "run", str(scenario), "--check", "{check: max_gap < 1ms, severity: warn, why: just so}"])
    assert ran.code == 0
    assert " WARN eager: max_gap < 1ms" in ran.out


def test_every_mistake_is_told_with_its_place(cli: Cli) -> None:
    path = cli.folder / "bad.yaml"
    path.write_text("kgctl: 1\nname: x\ntopics: {orders: 6}\nmembers: {app: {cuont: 3, boot: 8}}\n")
    ran = cli(f"simulate run {path}")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.splitlines() == [
        f"kgctl: {path}:4:17: members.app.cuont: unknown key; did you mean 'count'?",
        f"kgctl: {path}:4:27: members.app.boot: 8 has no unit; write 8s, or 8ms",
    ]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ("--variant eagr", "there is no variant 'eagr'; did you mean 'eager'?"),
        ("--set members.app.count", "--set takes PATH=VALUE, not 'members.app.count'"),
        ("--time-limit soon", "--time-limit: 'soon' is no duration; write one such as 500ms, 45s, 1m30s or 2h"),
    ],
)
def test_wrong_option_is_explained(cli: Cli, scenario: Path, options: str, complaint: str) -> None:
    ran = cli(f"simulate run {scenario} {options}")
    assert (ran.code, ran.err) == (2, f"kgctl: {complaint}\n")


def test_set_wins_over_file_and_variants(cli: Cli, scenario: Path) -> None:
    sticky = "--set group.config.partition.assignment.strategy=[sticky]"
    ran = cli(f"simulate run {scenario} --set members.app.count=2 {sticky} -o json")
    assert [each["passed"] for each in ran.data["expectations"]] == [False, True, True]  # nothing is cooperative any more
    assert [len(each["final_assignment"]) for each in ran.data["variants"].values()] == [2, 2]


def test_a_broken_invariant_exits_9_with_the_story_of_the_group(
    cli: Cli, scenario: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kgctl.simulate.engine.invariants.Invariants.generation", _break)
    ran = cli(f"simulate run {scenario} --variant eager --jobs 1")
    first, *story = ran.err.splitlines()
    assert (ran.code, ran.out) == (9, "")
    assert first.startswith("kgctl: group 'group': variant eager, seed 1: I2 broke at ")
    assert story
    assert all(" ms: " in line for line in story)


def _break(check: Invariants, before: int, after: int) -> None:
    if after > 1:
        check._broken("I2", f"{before}, {after}")


def test_pods_go_to_none_and_come_back(cli: Cli, scenario: Path) -> None:
    scenario.write_text(
        SCENARIO.replace("{at: 0s, restart: app/1}", "{at: 0s, scale: app, to: 0}\n  - {at: 30s, scale: app, to: 2}")
    )
    ran = cli(f"simulate run {scenario} --variant eager -o json --check replicas(min)==0 --check replicas(end)==2")
    assert [expectation["observed"] for expectation in ran.data["expectations"]] == [0, 2]


def test_scenario_comes_from_stdin(cli: Cli) -> None:
    assert cli("simulate run - --variant eager", stdin=SCENARIO).code == 0


def test_file_that_is_not_there_exits_4(cli: Cli) -> None:
    ran = cli("simulate run rolling-restrt")
    assert ran.code == 4
    assert "did you mean 'rolling-restart'?" in ran.err


def test_compare_shows_what_differs_seed_by_seed(cli: Cli, scenario: Path) -> None:
    rows = cli(f"simulate compare {scenario}:eager {scenario}:cooperative --runs 3 -o json").data
    collateral = next(row for row in rows if row["metric"] == "collateral")
    assert (collateral["b_mean"], collateral["b_better"], collateral["seeds"]) == (0, 3, 3)
    assert collateral["low"] <= collateral["difference"] <= collateral["high"] < 0


def test_compare_of_one_file_holds_its_variants_against_the_first(cli: Cli, scenario: Path) -> None:
    rows = cli(f"simulate compare {scenario} -o json").data
    assert {(row["a"], row["b"]) for row in rows} == {("eager", "cooperative")}


def test_compare_of_one_seed_has_no_interval(cli: Cli, scenario: Path) -> None:
    (one, *_), (several, *_) = (cli(f"simulate compare {scenario} --runs {runs} -o json").data for runs in (1, 2))
    assert (one["low"], one["high"], None in several.values()) == (None, None, False)


def test_what_is_assumed_is_told_on_request_and_stands_in_the_result(cli: Cli, scenario: Path) -> None:
    ran = cli(f"simulate run {scenario} --runs 1 --assumptions -o json")
    assumed = ran.data["variants"]["eager"]["assumptions"]
    assert assumed["app: client"] == "java, classic protocol"
    told = cli(f"simulate run {scenario} --runs 1 --assumptions").out
    assert "app: partition.assignment.strategy" in told.partition("\nassumed:\n")[2]
    assert "assumed:" not in cli(f"simulate run {scenario} --runs 1").out


def test_each_partitions_longest_gap_stands_in_the_result(cli: Cli, scenario: Path) -> None:
    eager = cli(f"simulate run {scenario} --runs 1 -o json").data["variants"]["eager"]
    lengths = list(eager["longest_gaps"].values())
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] == eager["metrics"]["max_gap"]["max"]


def test_compare_tells_a_wrong_side_before_it_runs_the_other(cli: Cli, scenario: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgctl.simulate.batch.plan.run_all", None)
    ran = cli(f"simulate compare {scenario}:eager {scenario}")
    assert (ran.code, ran.err) == (
        2,
        f"kgctl: {scenario} has several variants; say which, as {scenario}:eager (there are eager, cooperative)\n",
    )
    ran = cli(f"simulate compare {scenario} --fail-if-worse max_gp")
    assert (ran.code, ran.err) == (2, "kgctl: --fail-if-worse: there is no metric 'max_gp'; did you mean 'max_gap'?\n")
    ran = cli(f"simulate compare {scenario}:eagr")
    assert (ran.code, ran.err) == (2, "kgctl: there is no variant 'eagr'; did you mean 'eager'?\n")


def test_compare_needs_one_variant_of_each_side(cli: Cli, scenario: Path) -> None:
    ran = cli(f"simulate compare {scenario} {scenario}:eager")
    assert (ran.code, ran.err) == (
        2,
        f"kgctl: {scenario} has several variants; say which, as {scenario}:eager (there are eager, cooperative)\n",
    )


DOUBTFUL = """\
name: doubtful
kgctl: 1
topics: {orders: 4, returns: 2, refunds: 2, audits: 2, sums: 2}
group: {id: pay}
members: {app: {count: 2, subscribe: [orders]}}
traffic: {returns: 100/s}
events: [{at: 10s, restart: app/0}]
expect: [lag < 10]
"""


def test_what_the_file_says_and_hardly_means_is_told_beside_the_result(cli: Cli) -> None:
    """Nobody reads what is written, so that there is no lag: the run goes by it, and says so."""
    file = cli.folder / "doubtful.yaml"
    file.write_text(DOUBTFUL)

    ran = cli(f"simulate run {file}")

    told = [line.partition("subscribes to ")[2].partition(":")[0] for line in ran.err.splitlines()[:3]]
    assert told == ["'returns'", "'refunds'", "'audits'"]
    assert ran.err.splitlines()[3:] == [f"and 1 warning more: kgctl simulate check {file}"]
    assert "PASS lag < 10" in ran.out


def test_what_is_let_through_with_one_seed_hides_nothing_of_another() -> None:
    def values(text: str, *, is_allowed: bool) -> SimpleNamespace:
        trouble = (Trouble("failed", 1, text, is_allowed),)
        return SimpleNamespace(troubles=() if is_allowed else trouble, allowed=trouble if is_allowed else (), left_out=())

    seeds: Any = {1: values("app-1 failed late", is_allowed=True), 2: values("app-0 failed early", is_allowed=False)}
    assert [*_odd("a", seeds)] == ["FAIL a: app-0 failed early (seed 2)", "allowed: a: app-1 failed late (seed 1)"]
