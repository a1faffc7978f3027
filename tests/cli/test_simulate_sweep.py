"""``kgctl simulate sweep``: a row for each run, from every engine the same; what goes wrong is a row, an exit code and a line."""

from __future__ import annotations

import gc
import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from kgctl.errors import InvariantViolation
from kgctl.extras import BROUGHT_BY, install_line
from kgctl.simulate.batch.judge import RunValues
from kgctl.simulate.batch.plan import Task, run_task
from kgctl.simulate.sweep import plan as sweep_run
from kgctl.simulate.sweep.plan import AFTER, BEFORE, METRIC_NAMES
from tests.cli.harness import Cli

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILE = """\
kgctl: 1
name: crash
topics: {orders: 4}
members: {app: {count: 2}}
warmup: 30s
events: [{at: 0s, crash: app/1, for: 90s}]
group: {config: {session.timeout.ms: 10s}}
expect: [max_gap < 30s]
sweep: {members.app.count: [2, 3]}
"""


@pytest.fixture(autouse=True)
def _scenario(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    (cli.folder / "crash.yaml").write_text(FILE)
    monkeypatch.chdir(cli.folder)


def test_a_summary_has_a_line_for_each_point(cli: Cli) -> None:
    ran = cli("simulate sweep crash.yaml --runs 3 --metric rebalances --jobs 1")
    assert (ran.code, ran.err) == (0, "1 run repeated here: the same\n")
    assert [line.split() for line in ran.out.splitlines()] == [
        ["MEMBERS.APP.COUNT", "RUNS", "ERRORS", "FAILED", "REBALANCES-MEDIAN", "REBALANCES-P95", "REBALANCES-MAX", "WORST-SEED"],
        ["2", "3", "0", "0", "2", "2", "2", "-"],  # they are alike
        ["3", "3", "0", "0", "2", "2", "2", "-"],
    ]


def test_a_report_says_what_is_shown_along_what(cli: Cli) -> None:
    swept = "sweep: {members.app.count: [2, 3], group.config.session.timeout.ms: [10s, 45s]}\n"
    asked = 'report: {x: app.count, y: [rebalances, "unavailable(cause detection)", detection_time(app/1)]}\n'
    text = FILE.replace("sweep: {members.app.count: [2, 3]}\n", swept + asked)
    (cli.folder / "report.yaml").write_text(text)
    ran = cli("simulate sweep report.yaml --jobs 1 --verify 0 -o json --out out.csv --html page.html --check moves>0")
    assert ran.code == 0
    points = [(row["group.config.session.timeout.ms"], row["members.app.count"]) for row in ran.data]
    assert points == [("10s", 2), ("10s", 3), ("45s", 2), ("45s", 3)]
    names = ["rebalances", "unavailable(cause detection)", "detection_time(app/1)"]
    assert list(ran.data[0])[5:] == [*(f"{name}_{key}" for name in names for key in ("median", "p95", "max")), "worst_seed"]
    times = [row["detection_time(app/1)_max"] for row in ran.data]
    assert [7 < time < 10 for time in times] == [True, True, False, False]
    head = (cli.folder / "out.csv").read_text().splitlines()[0].split(",")
    assert head[-len([*names[1:], *AFTER]) :] == [*names[1:], *AFTER]
    assert '"title":"members.app.count"' in (cli.folder / "page.html").read_text().replace(" ", "")
    other = cli("simulate sweep report.yaml --set members.app.count=2 --metric moves --jobs 1 --verify 0 -o json --check moves>0")
    assert [(row["group.config.session.timeout.ms"], row["moves_max"]) for row in other.data] == [("10s", 4), ("45s", 4)]
    assert "rebalances_max" not in other.data[0]


def test_a_report_that_is_wrong_is_told_with_its_place(cli: Cli) -> None:
    (cli.folder / "wrong.yaml").write_text(FILE + "report:\n  x: app.cuont\n  y:\n    - max_gap\n    - rebalanses\n")
    lines = [
        "kgctl: wrong.yaml:11:3: report.x: 'app.cuont' is not swept; did you mean 'app.count'?",
        "kgctl: wrong.yaml:14:7: report.y[1]: there is no metric 'rebalanses'; did you mean 'rebalances'?",
    ]
    for command in ("check -o json", "run", "sweep"):
        ran = cli(f"simulate {command} wrong.yaml")
        assert (ran.code, ran.err.splitlines()) == (2, lines)


def test_rows_are_the_runs(cli: Cli) -> None:
    ran = cli("simulate sweep crash.yaml --runs 2 --rows -o json --jobs 1 --verify 0")
    assert (ran.code, ran.err) == (0, "")
    assert [list(row) for row in ran.data] == [["members.app.count", *BEFORE, *METRIC_NAMES, *AFTER]] * 4
    assert [(row["members.app.count"], row["seed"]) for row in ran.data] == [(2, 1), (2, 2), (3, 1), (3, 2)]
    one = cli("simulate run crash.yaml --set members.app.count=3 --seed 2 -o json").data
    metrics = one["variants"]["default"]["metrics"]
    kept = [name for name in metrics if name in METRIC_NAMES]
    assert {name: ran.data[3][name] for name in kept} == {name: metrics[name]["per_seed"][0] for name in kept}
    assert sum(metrics[name]["max"] for name in metrics if name not in kept) == pytest.approx(metrics["unavailable"]["max"])


def test_every_engine_writes_the_same_bytes(cli: Cli, spark: SparkSession) -> None:
    assert spark.sparkContext.defaultParallelism == 2
    written: dict[str, bytes] = {}
    for how in ("--jobs 1", "--jobs 2", "--jobs 3", "--engine spark"):
        ran = cli(f"simulate sweep crash.yaml --runs 5 {how} --out out.parquet")
        said = [line for line in ran.err.splitlines() if not line.endswith(" runs")]  # a slow machine is told how far it is
        assert (ran.code, said) == (0, ["written: out.parquet", "1 run repeated here: the same"])
        written[how] = (cli.folder / "out.parquet").read_bytes()
    assert written == dict.fromkeys(written, written["--jobs 1"])


def test_files_of_every_kind_hold_the_same_rows(cli: Cli) -> None:
    for kind in ("parquet", "csv", "json", "jsonl"):
        assert cli(f"simulate sweep crash.yaml --runs 2 --jobs 1 --out out.{kind}").code == 0
    table = pq.read_table(cli.folder / "out.parquet")
    rows = table.to_pylist()
    document = json.loads((cli.folder / "out.json").read_text())
    lines = [json.loads(line) for line in (cli.folder / "out.jsonl").read_text().splitlines()]
    assert rows == document["rows"] == lines
    assert [str(table.schema.field(name).type) for name in ("members.app.count", "digest", "max_gap", "replay")] == [
        "int64",
        "string",
        "double",
        "string",
    ]
    assert table.schema.metadata[b"digest"].decode() == document["digest"]
    assert (cli.folder / "out.csv").read_text().splitlines()[0].split(",") == list(rows[0])
    assert sorted(path.name for path in cli.folder.glob("*out*")) == ["out.csv", "out.json", "out.jsonl", "out.parquet"]


SEARCH = "simulate sweep crash.yaml --set group.config.session.timeout.ms=10s,45s --jobs 1 --metric max_gap"


def test_a_search_says_the_smallest_point_that_holds(cli: Cli) -> None:
    ran = cli(f"{SEARCH} --verify 0 --set members.app.count=4,2,3")
    assert ran.code == 0
    assert ran.err.splitlines()[0] == (
        "the smallest that holds: group.config.session.timeout.ms=10s, members.app.count=2; but not all that are larger do: "
        "group.config.session.timeout.ms=45s, members.app.count=4"
    )
    none = cli(f"{SEARCH} --verify 0 --check max_gap<1ms")
    assert (none.code, "no point of the grid holds" in none.err) == (6, True)


def test_a_search_that_finds_nothing_for_a_variant_has_failed(cli: Cli) -> None:
    variants = "variants: {quick: {}, slow: {group: {config: {session.timeout.ms: 60s}}}}\n"
    (cli.folder / "two.yaml").write_text(FILE.replace("for: 90s", "for: 100s") + variants)
    ran = cli("simulate sweep two.yaml --jobs 1 --verify 0 --set members.app.count=2,3")
    assert (ran.code, "slow: no point of the grid holds" in ran.err, "quick" in ran.err.partition("slow:")[0]) == (6, True, False)
    assert cli("simulate sweep two.yaml --jobs 1 --verify 0 --set members.app.count=2,3 --variant quick").code == 0


def test_a_point_that_was_not_asked_is_not_the_one_that_a_search_is_after(cli: Cli) -> None:
    ran = cli.run([*SEARCH.split(), "--verify", "0", "--check", "{check: max_gap < 1ms, when: max_gap > 30s}", "--runs", "1"])
    assert (ran.code, "no point of the grid holds" in ran.err) == (6, True)


def test_expectations_that_were_never_asked_are_told_and_have_not_held(cli: Cli) -> None:
    line = ["simulate", "sweep", "crash.yaml", "--runs", "2", "--jobs", "1", "--rows", "-o", "json", "--verify", "0"]
    ran = cli.run([*line, "--check", "{check: max_gap < 1ms, when: lag(after 900m) > 1}"])
    assert (ran.code, {row["expectations_passed"] for row in ran.data}) == (0, {0})
    assert "not asked in any run" in ran.err
    assert "not asked" not in cli.run([*line, "--check", "max_gap < 1h"]).err


def test_what_goes_wrong_unasked_is_named_first_with_its_pod(cli: Cli) -> None:
    (cli.folder / "frozen.yaml").write_text(FILE.replace("crash: app/1, for: 90s", "pause_process: app/1, for: 20s"))
    ran = cli(f"{SEARCH.replace('crash', 'frozen')} --verify 0")
    assert ran.code == 0
    assert ran.err.startswith("FAIL app-1 was taken out of the group (session.timeout.ms=10s "), ran.err
    assert "(2 of 4 runs; this one: kgctl simulate run frozen.yaml --set members.app.count=2 --set" in ran.err


def test_what_one_variant_lets_through_hides_nothing_of_another(cli: Cli) -> None:
    text = FILE.replace("crash: app/1, for: 90s", "pause_process: app/1, for: 20s")
    (cli.folder / "both.yaml").write_text(f"{text}variants: {{mild: {{allow: [kicked]}}, strict: {{}}}}\n")
    told = cli("simulate sweep both.yaml --jobs 1 --verify 0").err.splitlines()
    gone = "app-1 was taken out of the group (session.timeout.ms=10s "
    assert [line.partition(gone)[0] for line in told if gone in line] == ["FAIL ", "allowed: "]


NEVER = FILE.replace(
    "events: [", "events: [{at: 1s, crash: app/1, for: 5s, when: members > 2}, {at: 0s, scale: app, to: 2}, "
).replace("warmup", "duration: 120s\nwarmup")


def test_events_that_never_happened_are_named_first(cli: Cli) -> None:
    (cli.folder / "never.yaml").write_text(NEVER.replace("at: 0s, crash", "at: 130s, crash"))
    ran = cli("simulate sweep never.yaml --jobs 1 --verify 0")
    replay = "this one: kgctl simulate run never.yaml --set members.app.count=2 --seed 1   # kgctl 0.1.0"
    assert (ran.code, ran.err.splitlines()[:3]) == (
        6,
        [
            f"FAIL event scale app has no effect at 0.0s (1 of 2 runs; {replay})",
            f"FAIL event crash app/1 did not begin: the run ended at 120.0s (2 of 2 runs; {replay})",
            "WARN event crash app/1 happens: its `when` held in no seed at 2 of 2 points",
        ],
    )


def test_a_parameter_that_changes_nothing_is_told(cli: Cli) -> None:
    both = f"{SEARCH} --verify 0 --set members.app.config.fetch.min.bytes=1,2"
    told = "members.app.config.fetch.min.bytes changes nothing: the runs are the same with each of its values"
    assert [line for line in cli(both).err.splitlines() if "changes nothing" in line] == [told]


def test_expectations_that_must_hold_are_exit_code_6_with_a_replay(cli: Cli) -> None:
    ran = cli(f"{SEARCH} -o json --must-hold")
    assert ran.code == 6
    assert [(row["group.config.session.timeout.ms"], row["failed"]) for row in ran.data] == [("10s", 0), ("45s", 1)] * 2
    (error,) = ran.json["errors"]
    assert error["code"] == "EXPECTATION_FAILED"
    replay = error["message"].partition("the first: ")[2].partition("   #")[0]
    again = cli(replay.removeprefix("kgctl "))
    assert (again.code, " FAIL max_gap < 30s" in again.out) == (6, True)


def test_parameters_that_make_no_scenario_are_exit_code_3(cli: Cli) -> None:
    ran = cli("simulate sweep crash.yaml --set events.0.crash=app/1,nobody --jobs 1 --metric moves -o json")
    assert ran.code == 3
    assert [row["errors"] for row in ran.data] == [0, 1, 0, 1]
    assert ran.data[1]["moves_median"] is None
    assert ran.json["errors"][0]["message"].startswith("2 of 4 runs failed: ")


def test_a_broken_invariant_is_a_row_and_exit_code_9(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaking(task: Task) -> RunValues | None:
        if task.seed == 2:
            raise InvariantViolation("two owners")
        return run_task(task)

    monkeypatch.setattr(sweep_run, "run_task", breaking)
    ran = cli("simulate sweep crash.yaml --runs 3 --jobs 1 --rows -o json")
    assert ran.code == 9
    assert [(row["seed"], row["error"]) for row in ran.data[:3]] == [(1, None), (2, "two owners"), (3, None)]
    assert (
        "2 of 6 runs failed: two owners; the first: kgctl simulate run crash.yaml --set members.app.count=2 --seed 2" in ran.err
    )


def test_a_run_that_comes_out_otherwise_the_second_time_is_exit_code_9(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def unsteady(task: Task) -> RunValues | None:
        seen.append(task.seed)
        return run_task(
            task if len(seen) <= 2 else Task(variant="default", scenario=task.scenario, settings={}, checks=(), seed=99)
        )

    monkeypatch.setattr(sweep_run, "run_task", unsteady)
    ran = cli("simulate sweep crash.yaml --jobs 1")
    assert ran.code == 9
    assert "kgctl: two runs of one seed differ, digests " in ran.err
    assert "1 run repeated here: 0 the same\n" in ran.err


ENDS = {
    signal.SIGINT: (130, "interrupted"),
    signal.SIGTERM: (130, "interrupted"),
    signal.SIGALRM: (1, "stopped at the time limit"),
}


@pytest.mark.parametrize("number", ENDS)
def test_what_ends_it_early_leaves_what_is_done(cli: Cli, monkeypatch: pytest.MonkeyPatch, number: signal.Signals) -> None:
    def disturbed(task: Task) -> RunValues | None:
        if task.seed == 50:
            signal.raise_signal(number)
        return run_task(task)

    before = signal.getsignal(number)
    monkeypatch.setattr(sweep_run, "run_task", disturbed)
    ran = cli("simulate sweep crash.yaml --runs 100 --jobs 1 --out out.csv --metric moves --time-limit 1h")
    code, why = ENDS[number]
    done = (cli.folder / "out.csv").read_text().splitlines()[1:]
    assert ran.code == code
    assert 0 < len(done) < 50
    assert ran.err == f"written: out.csv\nkgctl: {why}: {len(done)} of 200 runs are done\n"
    assert signal.getsignal(number) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@pytest.fixture
def no_callbacks() -> Iterator[None]:
    """A signal's exception that falls into a callback of the collector (hypothesis has one) would be a warning of Python's."""
    kept = gc.callbacks[:]
    gc.callbacks.clear()
    yield
    gc.callbacks.extend(kept)


@pytest.mark.usefixtures("no_callbacks")
def test_the_time_limit_is_kept(cli: Cli) -> None:
    ran = cli("simulate sweep crash.yaml --runs 5000 --jobs 1 --time-limit 1ms --rows -o json")
    assert ran.code == 1
    assert ran.json["errors"][0]["message"] == f"stopped at the time limit: {len(ran.data):,} of 10,000 runs are done"


REFUSED = {
    "crash.yaml --out x.txt": "--out x.txt: its name must end in one of .parquet, .csv, .json, .jsonl",
    "crash.yaml --out no/x.csv": "no/x.csv: there is no folder ",
    "crash.yaml --html -": "- would be a file of this name",
    "crash.yaml --out x.csv --html x.csv": "x.csv: each output needs a file of its own",
    "crash.yaml --metric mves": "there is no metric 'mves'; did you mean 'moves'?",
    "crash.yaml --verify 2": "--verify: '2' is no share; write one between 0% and 100%, such as 0.1%",
    "crash.yaml --set seed=1,2": "seed is no parameter: it stands for the whole file",
    "crash.yaml --set members.ap.count=1,2": "--set members.ap.count=1: there is no set of members 'ap'; did you mean 'app'?",
    "crash.yaml --variant nope": "there is no variant 'nope'",
    "crash.yaml --set members.app.count=2": "nothing to vary: give --set PATH=V1,V2, --grid, --runs, or a `sweep:` section in ",
    "crash.yaml --time-limit never": "--time-limit: 'never' is no duration",
    "crash.yaml --engine local --master local[2]": "--master is Spark's: add --engine spark",
    "crash.yaml --grid bad.yaml": "bad.yaml:1:1: members.app.count: a parameter takes a list of values, or a range such as",
}


@pytest.mark.parametrize("arguments", REFUSED)
def test_what_is_wrong_is_told_before_anything_is_run(cli: Cli, arguments: str) -> None:
    (cli.folder / "bad.yaml").write_text("members.app.count: 7\n")
    ran = cli(f"simulate sweep {arguments}")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert ran.err.startswith(f"kgctl: {REFUSED[arguments]}")


@pytest.mark.parametrize(("arguments", "module"), [("--engine spark", "pyspark"), ("--out x.parquet", "pyarrow")])
def test_a_missing_package_is_one_line(cli: Cli, monkeypatch: pytest.MonkeyPatch, arguments: str, module: str) -> None:
    monkeypatch.setattr("kgctl.extras.is_there", lambda name: name != module)
    ran = cli(f"simulate sweep crash.yaml {arguments}")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == f"kgctl: {arguments} needs {module}: {install_line(BROUGHT_BY[module])}\n"


def test_run_takes_the_file_as_it_stands_and_says_so(cli: Cli) -> None:
    ran = cli("simulate run crash.yaml")
    assert (ran.code, ran.err) == (
        0,
        "as the file stands; all values of members.app.count: kgctl simulate sweep crash.yaml\n",
    )


def test_a_page_with_charts(cli: Cli) -> None:
    ran = cli("simulate sweep crash.yaml --runs 2 --jobs 1 --html page.html --metric max_gap --verify 0")
    told = r"the worst by max_gap: kgctl simulate run crash.yaml --set members.app.count=\d --seed [12]   # kgctl"
    assert (ran.code, ran.err.partition("\n")[0]) == (0, "written: page.html")
    assert re.search(told, ran.err), ran.err
    page = (cli.folder / "page.html").read_text()
    assert "4 runs over 2 members.app.count: 0 without a result, 0 with expectations that did not hold" in page
    assert Path("page.html").stat().st_size > 500_000
