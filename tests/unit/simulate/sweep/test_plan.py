"""Which parameters there are, from the command line, a grid file and the scenario's own section."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from kgctl import __version__
from kgctl.errors import InvariantViolation, UsageError
from kgctl.simulate.batch.judge import RunValues
from kgctl.simulate.batch.plan import Task, run_task
from kgctl.simulate.scenario.expressions import Metric
from kgctl.simulate.scenario.load import load
from kgctl.simulate.scenario.patches import as_text, split_values, values_of
from kgctl.simulate.sweep import plan as sweep_run
from kgctl.simulate.sweep.plan import (
    AFTER,
    BEFORE,
    METRIC_NAMES,
    Axis,
    Block,
    RowLayout,
    RunRow,
    axes_of,
    blocks_of,
    checked_metrics,
    chosen,
    differences,
    digest_of_rows,
    points_of,
    require_axes_that_fit,
    rounded,
    run_block,
    settings_at,
    summary_columns,
    summary_rows,
    typed,
)
from kgctl.yaml_files import FileError, Tree, read_yaml
from tests.support.simulate.sweeps import FILE, rows_of, sweep_of

NOTHING = Tree("f", {})

SPLITS = {
    "10s,30s, 60s": ["10s", "30s", "60s"],
    "normal(35s, 3s),1m": ["normal(35s, 3s)", "1m"],
    "[range],[cooperative-sticky, range]": ["[range]", "[cooperative-sticky, range]"],
    "'a,b',c": ["'a,b'", "c"],
    "10s..60s": ["10s..60s"],
    "10s..40s step 15s": ["10s", "25s", "40s"],
    "1..10 step 4,20": ["1", "5", "9", "20"],
    "0.1..0.3 step 0.1": ["0.1", "0.2", "0.3"],
    "3..1 step -1": ["3", "2", "1"],
    "500ms..2s step 500ms": ["500ms", "1000ms", "1500ms", "2000ms"],
    "1000/s..3000/s step 1000/s": ["1000/s", "2000/s", "3000/s"],
    "7..7 step 5": ["7"],
    "": [""],
}


@pytest.mark.parametrize("text", SPLITS)
def test_values_of_a_command_line(text: str) -> None:
    assert split_values(text) == SPLITS[text]


WRONG = {
    "1..9 step 0": "'1..9 step 0' never ends: its step leads away from its end",
    "9..1 step 2": "'9..1 step 2' never ends: its step leads away from its end",
    "1s..9 step 1s": "'1s..9 step 1s' mixes the units none and s",
    "0..1 step 0.000001": "'0..1 step 0.000001' has 1,000,001 values; a parameter has at most 100,000",
}


@pytest.mark.parametrize("text", WRONG)
def test_ranges_that_are_wrong(text: str) -> None:
    with pytest.raises(ValueError, match="step") as caught:
        split_values(text)
    assert str(caught.value) == WRONG[text]


def test_values_of_a_file_are_what_set_would_take() -> None:
    assert values_of([10, "30s", [1, "a"], True, None, "yes", "true", ""]) == [
        *("10", "30s", '[1, "a"]', "true", "null", "yes", '"true"', '""')
    ]
    assert values_of("1..3 step 1") == ["1", "2", "3"]
    wrong: list[object] = ["30s", 4, {}, [], None]
    for data in wrong:
        with pytest.raises(ValueError, match="a parameter takes"):
            values_of(data)


@pytest.mark.parametrize("value", ["a: b", "- x", "5", "null", "it's", "a, b", "{", "#"])
def test_text_that_yaml_reads_as_something_else_is_quoted(value: str) -> None:
    assert read_yaml(as_text(value), "").data == value


def test_later_sources_replace_earlier_ones_and_one_value_fixes() -> None:
    tree = read_yaml("sweep: {members.app.count: [3, 4], group.config.session.timeout.ms: [10s, 45s], warmup: [1s, 2s]}", "f")
    grid = read_yaml("members.app.count: 1..3 step 1", "g")
    axes, fixed = axes_of(tree, grid, ["group.config.session.timeout.ms=60s", "members.app.boot=1s,2s"])
    assert axes == (
        Axis("members.app.count", ("1", "2", "3")),
        Axis("warmup", ("1s", "2s")),
        Axis("members.app.boot", ("1s", "2s")),
    )
    assert fixed == ("group.config.session.timeout.ms=60s",)


def test_values_that_stand_twice_are_one() -> None:
    assert axes_of(NOTHING, None, ["a.b=1,2,1"]) == ((Axis("a.b", ("1", "2")),), ())


def test_points_go_through_the_last_parameter_first() -> None:
    axes = (Axis("a", ("1", "2")), Axis("b", ("x", "y")))
    assert points_of(axes) == [("1", "x"), ("1", "y"), ("2", "x"), ("2", "y")]
    assert settings_at(axes, ("2", "x")) == ["a=2", "b=x"]
    assert points_of(()) == [()]


def test_values_have_the_type_that_all_of_them_have() -> None:
    assert typed(Axis("a", ("1", "20"))) == {"1": 1, "20": 20}
    assert typed(Axis("a", ("1", "2.5"))) == {"1": 1.0, "2.5": 2.5}
    assert isinstance(typed(Axis("a", ("1", "2.5")))["1"], float)
    assert typed(Axis("a", ("1", "10s"))) == {"1": "1", "10s": "10s"}
    assert typed(Axis("a", ("true", "false"))) == {"true": "true", "false": "false"}


REFUSED = {
    "runs=1,2": "runs is no parameter: it stands for the whole file",
    "variants=a,b": "variants is no parameter: it stands for the whole file",
    "a..b=1,2": "'a..b' is no path; write one like members.app.count or group.config.session.timeout.ms",
    "nothing": "--set takes PATH=VALUE or PATH=VALUE,VALUE,..., not 'nothing'",
    "a=1..5 step 0": "--set a=1..5 step 0: '1..5 step 0' never ends: its step leads away from its end",
}


@pytest.mark.parametrize("assignment", REFUSED)
def test_assignments_that_are_refused(assignment: str) -> None:
    with pytest.raises(UsageError) as caught:
        axes_of(NOTHING, None, [assignment])
    assert caught.value.message == REFUSED[assignment]


def test_a_grid_file_is_told_its_mistakes_with_their_places() -> None:
    grid = read_yaml("members.app.count: 5\nseed: [1, 2]\n", "g.yaml")
    with pytest.raises(FileError) as caught:
        axes_of(NOTHING, grid, [])
    assert [str(problem).split(":")[:2] for problem in caught.value.problems] == [["g.yaml", "1"], ["g.yaml", "2"]]
    with pytest.raises(FileError, match="a grid is a mapping of paths to lists"):
        axes_of(NOTHING, read_yaml("[1]", "g.yaml"), [])


def test_a_grid_beyond_all_bounds_is_refused() -> None:
    with pytest.raises(UsageError, match="the grid has 1,000,000 points; a sweep has at most 100,000"):
        axes_of(NOTHING, None, ["a=1..1000 step 1", "b=1..1000 step 1"])


def test_a_row_has_what_simulate_run_gives() -> None:
    sweep = sweep_of("members.app.count=2,3", seeds=(7,))
    rows = rows_of(sweep)
    assert [(row.number, row.variant, row.seed) for row in rows] == [
        (0, "slow", 7),
        (0, "quick", 7),
        (1, "slow", 7),
        (1, "quick", 7),
    ]
    loaded = load(sweep.tree, settings=["members.app.count=3"])
    values = []
    for variant in loaded.variants:
        task = Task(variant=variant.name, scenario=variant.scenario, settings=variant.settings, checks=loaded.checks, seed=7)
        values.append(run_task(task))
    for row, one in zip(rows[2:], values, strict=True):
        assert one is not None
        assert (row.digest, row.events, row.error, row.stopped) == (one.digest, one.events, None, None)
        assert row.metrics["max_gap"] == pytest.approx(one.metrics["max_gap"])


def test_expectations_are_counted_and_those_that_fail_are_named_with_a_replay() -> None:
    slow, quick = rows_of(sweep_of("members.app.count=2,3", seeds=(7,)))[:2]  # the other expectation, a warning, does not hold
    assert (quick.expectations_passed, quick.expectations_failed, quick.failed_checks, quick.replay) == (1, 0, None, None)
    assert (slow.expectations_passed, slow.expectations_failed, slow.failed_checks) == (0, 1, "max_gap < 30s")
    assert slow.replay == (
        f"kgctl simulate run 'crash file.yaml' --set members.app.count=2 --variant slow --seed 7   # kgctl {__version__}"
    )


def test_parameters_that_make_no_scenario_are_rows() -> None:
    sweep = sweep_of("events.0.crash=app/1,nobody/1", seeds=(1, 2))
    rows = rows_of(sweep)
    assert [(row.number, row.variant, row.seed, row.error_code) for row in rows[4:]] == [
        (1, "slow", 1, "USAGE"),
        (1, "slow", 2, "USAGE"),
        (1, "quick", 1, "USAGE"),
        (1, "quick", 2, "USAGE"),
    ]
    assert all(row.error is None for row in rows[:4])
    error, replay = rows[4].error, rows[4].replay
    assert error is not None
    assert "nobody" in error
    assert replay is not None
    assert "--set events.0.crash=nobody/1 --variant slow --seed 1" in replay


def test_a_run_that_breaks_an_invariant_or_the_simulator_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaking(task: Task) -> RunValues | None:
        if (task.variant, task.seed) == ("slow", 1):
            raise InvariantViolation("two owners", story=("a", "b"))
        if (task.variant, task.seed) == ("quick", 2):
            raise ZeroDivisionError("by\nzero")
        return run_task(task)

    monkeypatch.setattr(sweep_run, "run_task", breaking)
    rows = rows_of(sweep_of())
    assert [(row.variant, row.seed, row.error_code, row.error) for row in rows] == [
        ("slow", 1, "INVARIANT_VIOLATION", "two owners"),
        ("slow", 2, None, None),
        ("quick", 1, None, None),
        ("quick", 2, "INTERNAL_ERROR", "ZeroDivisionError: by zero"),
    ]


@pytest.mark.parametrize("slots", [1, 2, 64])
def test_the_same_rows_however_they_are_spread(slots: int) -> None:
    sweep = sweep_of("members.app.count=2,3", seeds=tuple(range(1, 6)))
    blocks = blocks_of(sweep, slots)
    rows = RowLayout(sweep).ordered(row for block in reversed(blocks) for row in run_block(sweep, block))
    assert len(rows) == sweep.run_count() == 20
    assert RowLayout(sweep).records(rows) == RowLayout(sweep).records(rows_of(sweep))
    assert digest_of_rows(rows) == digest_of_rows(rows_of(sweep))


def test_blocks_cover_every_run_once_and_are_never_too_many_or_too_large() -> None:
    sweep = sweep_of("members.app.count=1..3 step 1", seeds=tuple(range(100)))
    for slots in (1, 4, 1000):
        blocks = blocks_of(sweep, slots)
        runs = [(block.number, seed) for block in blocks for seed in block.seeds]
        assert sorted(runs) == [(number, seed) for number in range(3) for seed in range(100)]
        assert max(len(block.seeds) for block in blocks) <= 32
    assert len(blocks_of(sweep, 1000)) == 300


def test_a_sweep_and_its_blocks_can_be_sent_elsewhere() -> None:
    sweep = sweep_of("members.app.count=2,3")
    again = pickle.loads(pickle.dumps(sweep))
    assert run_block(again, Block(0, ("2",), (1,))) == run_block(sweep, Block(0, ("2",), (1,)))


def test_columns_are_parameters_then_the_run_then_its_metrics() -> None:
    sweep = sweep_of("members.app.count=2,3", "group.config.heartbeat.interval.ms=1s,3s", seeds=(1,))
    layout = RowLayout(sweep)
    names = ["members.app.count", "group.config.heartbeat.interval.ms", *BEFORE, *METRIC_NAMES, *AFTER]
    assert list(layout.kinds()) == names
    assert [layout.kinds()[name] for name in names[:4]] == [int, str, str, int]
    records = layout.records(rows_of(sweep))
    assert [list(record) for record in records] == [names] * 8
    assert [(record["members.app.count"], record["group.config.heartbeat.interval.ms"]) for record in records[::2]] == [
        (2, "1s"),
        (2, "3s"),
        (3, "1s"),
        (3, "3s"),
    ]


def test_a_parameter_that_is_called_like_a_metric_is_told_apart() -> None:
    sweep = sweep_of("warmup=30s,40s", seeds=(1,))
    assert RowLayout(sweep).parameters == ("warmup",)
    named_alike = axes_of(read_yaml("members: [1, 2]", "f"), read_yaml("members: [1, 2]", "g"), [])[0]
    clash = replace(sweep, axes=named_alike)
    assert RowLayout(clash).parameters == ("param.members",)


def test_a_summary_has_a_line_for_each_point_and_variant() -> None:
    sweep = sweep_of("members.app.count=2,3", seeds=(1, 2, 3))
    rows = rows_of(sweep)
    lines = list(summary_rows(sweep, rows, ("max_gap", "moves")))
    assert [list(line) for line in lines] == [summary_columns(sweep, ("max_gap", "moves"))] * 4
    assert [(line["members.app.count"], line["variant"], line["runs"], line["errors"], line["failed"]) for line in lines] == [
        (2, "slow", 3, 0, 3),
        (2, "quick", 3, 0, 0),
        (3, "slow", 3, 0, 3),
        (3, "quick", 3, 0, 0),
    ]
    gaps = sorted(float(row.metrics["max_gap"] or 0) for row in rows if (row.number, row.variant) == (0, "slow"))
    assert (lines[0]["max_gap_median"], lines[0]["max_gap_max"]) == (round(gaps[1], 2), round(gaps[2], 2))


def test_figures_have_four_digits_and_all_whole_ones() -> None:
    told = {0.0123456: 0.01235, 9.98839: 9.988, 707.672576: 707.7, 162873.4: 162873, 0.0: 0, 1e-9: 1e-9, float("inf"): None}
    assert {value: rounded(value) for value in told} == told


def test_metrics_are_the_usual_ones_unless_named() -> None:
    plain = load(sweep_of().tree)
    assert checked_metrics([], plain) == (Metric("rebalances"), Metric("unavailable"), Metric("max_gap"))
    assert checked_metrics(["moves", "moves"], plain) == (Metric("moves"),)
    with pytest.raises(UsageError, match="there is no metric 'movs'; did you mean 'moves'"):
        checked_metrics(["movs"], plain)
    with pytest.raises(UsageError, match="max_gap: there is no set of members 'ap'; did you mean 'app'"):
        checked_metrics(["max_gap(ap/1)"], plain)
    expected = FILE.replace(
        "expect: [", "expect: [moves < 9 and slow.lag(orders) < 5, 'state == Stable', {always: kicked == 0}, "
    )
    assert checked_metrics([], load(read_yaml(expected, "f"))) == (
        *checked_metrics([], plain),
        Metric("moves"),
        Metric("lag", ("orders",)),
    )
    with_report = load(read_yaml(FILE + "report: {y: [kicked]}", "f"))
    assert checked_metrics([], with_report) == (Metric("kicked"),)
    assert checked_metrics(["moves"], with_report) == (Metric("moves"),)


def test_a_metric_with_filters_has_a_column_of_its_own() -> None:
    sweep = replace(sweep_of(seeds=(1,)), metrics=(Metric("max_gap"), Metric("max_gap", ("not app/1",))))
    rows = rows_of(sweep)
    layout = RowLayout(sweep)
    assert layout.metrics == (*METRIC_NAMES, "max_gap(not app/1)")
    assert layout.kinds()["max_gap(not app/1)"] is float
    (record, _) = layout.records(rows)
    (line, _) = summary_rows(sweep, rows, ("max_gap", "max_gap(not app/1)"))
    gap, others = record["max_gap"], record["max_gap(not app/1)"]
    assert isinstance(gap, float)
    assert isinstance(others, float)
    assert (line["max_gap_max"], line["max_gap(not app/1)_max"]) == (rounded(gap), rounded(others))
    assert others < 5 < gap
    assert list(differences(sweep, rows)) == [None, None]


def test_a_share_of_the_runs_is_repeated_and_a_difference_is_a_bug() -> None:
    sweep = sweep_of("members.app.count=2,3", seeds=tuple(range(1, 26)))
    rows = rows_of(sweep)
    assert len(rows) == 100
    assert [len(chosen(rows, share)) for share in (0.0, 0.001, 0.1, 1.0)] == [0, 1, 10, 100]
    assert list(differences(sweep, chosen(rows, 0.03))) == [None] * 3
    wrong = RunRow(number=0, variant="slow", seed=1, digest="0" * 64, metrics=rows[0].metrics)
    (found,) = differences(sweep, [wrong])
    assert found is not None
    assert found.message.startswith("two runs of one seed differ, digests 0000")
    assert found.message.endswith(f"--set members.app.count=2 --variant slow --seed 1   # kgctl {__version__}")


WRONG_AXES = {
    "group.config.sesion.timeout.ms=1s,2s": "unknown consumer setting 'sesion.timeout.ms'",
    "members.ap.count=1,2": "--set members.ap.count=1: there is no set of members 'ap'; did you mean 'app'?",
    "topics.order.partitions=1,2": "--set topics.order.partitions=1: there is no topic 'order'; did you mean 'orders'?",
}


@pytest.mark.parametrize("setting", WRONG_AXES)
def test_a_parameter_that_fits_with_no_value_is_a_mistake(setting: str) -> None:
    with pytest.raises(UsageError) as caught:
        require_axes_that_fit(sweep_of(setting))
    assert WRONG_AXES[setting] in caught.value.message


def test_a_parameter_that_fits_with_some_value_is_none() -> None:
    require_axes_that_fit(sweep_of("events.0.crash=nobody/1,app/1"))
