"""Which parameters there are, from the command line, a grid file and the scenario's own section."""

from __future__ import annotations

import pytest

from kgctl.errors import UsageError
from kgctl.simulate.scenario.patches import as_text, split_values, values_of
from kgctl.simulate.sweep.plan import Axis, axes_of, points_of, settings_at, typed
from kgctl.yaml_files import FileError, Tree, read_yaml

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
