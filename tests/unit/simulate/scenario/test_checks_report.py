"""``report:``: which parameter and which metrics are meant, and what is told where that is not clear."""

from __future__ import annotations

import pytest

from kgctl.simulate.scenario.checks import FilterNames
from kgctl.simulate.scenario.expressions import Metric
from kgctl.simulate.scenario.load import EMPTY_REPORT, LoadedFile, load, metric_of, parameter_named
from kgctl.yaml_files import FileError, read_yaml

FILE = """\
kgctl: 1
name: x
topics: {orders: 12}
members: {app: {count: 3}, web: {count: 2}}
sweep: {group.config.session.timeout.ms: [10s, 45s], members.app.count: [3, 4], members.web.count: [2, 3]}
"""
SWEPT = ("group.config.session.timeout.ms", "members.app.count", "members.web.count")
AROUND = FilterNames(("orders",), ("app", "web"))


def loaded(report: str) -> LoadedFile:
    return load(read_yaml(FILE + report, "f"))


def test_a_file_without_a_report_asks_for_the_usual() -> None:
    assert loaded("").report == EMPTY_REPORT
    assert loaded("").swept == SWEPT


@pytest.mark.parametrize("name", ["session.timeout.ms", "timeout.ms", "group.config.session.timeout.ms"])
def test_x_is_a_path_or_its_end(name: str) -> None:
    assert loaded(f"report: {{x: {name}}}").report.x == "group.config.session.timeout.ms"


def test_a_whole_path_comes_before_the_end_of_another() -> None:
    assert parameter_named("warmup", ("members.warmup", "warmup")) == "warmup"


def test_y_is_a_metric_or_several_each_once() -> None:
    assert loaded("report: {y: rebalances}").report.y == (Metric("rebalances"),)
    found = loaded('report: {y: [rebalances, "unavailable( cause  rebalance )", max_gap(app/1), rebalances]}').report.y
    assert found == (Metric("rebalances"), Metric("unavailable", ("cause rebalance",)), Metric("max_gap", ("app/1",)))


MISTAKES = {
    "report: {x: sesion.timeout.ms}": "6:10: report.x: 'sesion.timeout.ms' is not swept; did you mean 'session.timeout.ms'?",
    "report: {x: boot}": "6:10: report.x: 'boot' is not swept; swept: group.config.session.timeout.ms, members.app.count, memb",
    "report: {x: count}": "6:10: report.x: 'count' may be each of members.app.count, members.web.count; write the whole path",
    "report: {x: 5}": "6:10: report.x: must be text, not 5; write it in quotes",
    "report: {x: app.count, z: 5}": "6:24: report.z: unknown key; known: x, y",
    "report: {y: [max_gap, rebalanses]}": "6:23: report.y[1]: there is no metric 'rebalanses'; did you mean 'rebalances'?",
    "report: {y: rebalanses}": "6:10: report.y: there is no metric 'rebalanses'; did you mean 'rebalances'?",
    "report: {y: [max_gap(ap/3)]}": "6:14: report.y[0]: max_gap: there is no set of members 'ap'; did you mean 'app'?",
    "report: {y: [unavailable(cause rebalanc)]}": "6:14: report.y[0]: unavailable: there is no cause 'rebalanc'; did you mean ",
    "report: {y: [max_gap * 2]}": "6:14: report.y[0]: 'max_gap * 2' is no metric; write one, such as max_gap or unavail",
    "report: {y: [max_gap(]}": "6:14: report.y[0]: the parenthesis is never closed, at letter 8 of `max_gap(`",
    "report: {y: [state]}": "6:14: report.y[0]: 'state' is no number",
    "report: {y: []}": "6:10: report.y: must be a metric such as max_gap, or a list of them, not []",
    "report: {y: [5]}": "6:10: report.y: must be a metric such as max_gap, or a list of them, not [5]",
    "report: [max_gap]": "6:1: report: must be a mapping, not a list",
    "variants: {a: {report: {x: app.count}}}": "6:16: variants.a.report: stands for the whole file, not in a variant",
}


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_is_told_with_its_place(line: str) -> None:
    with pytest.raises(FileError) as caught:
        loaded(line)
    (problem,) = caught.value.problems
    assert str(problem).startswith(f"f:{MISTAKES[line]}")


def test_nothing_is_swept_without_a_sweep() -> None:
    with pytest.raises(FileError, match=r"f:5:10: report\.x: 'app\.count' is not swept: the file has no `sweep:`"):
        load(read_yaml("\n".join([*FILE.splitlines()[:4], "report: {x: app.count}"]), "f"))


def test_a_metric_may_be_one_that_no_result_lists() -> None:
    assert metric_of("owners(partition)", AROUND).filters == ("partition",)
