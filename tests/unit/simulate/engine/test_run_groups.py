"""Several groups of one scenario: each with members, coordinator and offsets of its own, on the same topics at the same time."""

from __future__ import annotations

from typing import Any

import pytest

from kgctl.simulate.batch.plan import BatchOptions, run_all, tasks_of
from kgctl.simulate.lint.rules import lint
from kgctl.simulate.metrics.result import RunResult, run
from kgctl.simulate.scenario.fields import changed
from kgctl.simulate.scenario.load import LoadedFile, load
from kgctl.simulate.scenario.model import Scenario
from kgctl.yaml_files import FileError, read_yaml

FILE = """
kgctl: 1
name: several
topics: {orders: 6}
groups:
  one: {config: {heartbeat.interval.ms: 1s}}
  two: {id: two.v2, config: {partition.assignment.strategy: [cooperative-sticky]}}
members:
  a: {group: one, count: 3, boot: 1s, rate: 100/s}
  b: {group: two, count: 2, boot: 1s, rate: 100/s, config: {session.timeout.ms: 10s}}
traffic: {orders: 60/s}
warmup: 30s
duration: 120s
"""


def loaded(more: str = "", **options: Any) -> LoadedFile:
    return load(read_yaml(FILE + more, "s.yaml"), **options)


def results(more: str) -> dict[str, RunResult]:
    return {variant.name: run(variant.scenario, 1) for variant in loaded(more).variants}


def test_each_group_has_its_members_settings_and_column() -> None:
    one, two = loaded().variants

    assert [(each.name, each.scenario.group_id) for each in (one, two)] == [("one", "one"), ("two", "two.v2")]
    assert [[members.name for members in each.scenario.members] for each in (one, two)] == [["a"], ["b"]]
    assert (one.settings["heartbeat.interval.ms"], two.settings["heartbeat.interval.ms"]) == (1, 3)
    assert (one.settings["session.timeout.ms"], two.settings["session.timeout.ms"]) == (45, 10)
    assert lint(loaded("events: [{at: 0s, crash: a/0, for: 5s}, {at: 1s, restart: b}]")) == []


def test_variants_are_of_every_group_and_each_can_be_asked_for() -> None:
    text = "variants: {x: {}, y: {groups: {one: {config: {heartbeat.interval.ms: 2s}}}}}\nexpect: [y-one.max_gap < 9s]"
    found = loaded(text)

    assert found.variant_names == ("x-one", "x-two", "y-one", "y-two")
    assert [each.settings["heartbeat.interval.ms"] for each in found.variants] == [1, 3, 2, 3]
    for asked, names in {"x": ["x-one", "x-two"], "two": ["x-two", "y-two"], "y-one": ["y-one"]}.items():
        assert [each.name for each in loaded(text, variants=(asked,)).variants] == names


def test_what_happens_to_one_group_is_not_felt_by_the_other() -> None:
    found = results("events: [{at: 10s, name: deploy, restart: a}, {after: deploy, at: 5s, crash: b/0}]")

    assert found["one"].metric("rebalances") == 1
    assert found["one"].metric("members") == 3
    assert found["two"].metric("members") == 1
    gap = found["two"].metric("max_gap")
    assert isinstance(gap, float)
    assert 6 < gap < 20
    marks = {name: [(at_us, what) for at_us, _, what, _ in result.events_marks()] for name, result in found.items()}
    assert marks["one"] == marks["two"]


def test_topics_and_brokers_are_everybodys() -> None:
    found = results("events: [{at: 10s, broker_down: 2, for: 30s}, {at: 60s, add_partitions: orders, to: 8}]\n")

    dark = [result.metric("unavailable", ("cause broker",)) for result in found.values()]
    assert dark[0] == dark[1]
    assert isinstance(dark[0], float)
    assert dark[0] > 10
    assert [len(result.lanes()) for result in found.values()] == [8, 8]


def test_a_group_is_the_same_whichever_is_measured() -> None:
    text = "nemesis: {rate: 1 per 20s, until: 60s}\n"
    first, again = results(text), results(text)
    assert {name: result.digest for name, result in first.items()} == {name: result.digest for name, result in again.items()}
    one = loaded(text).variants[0].scenario
    assert [part.group_id for part in one.together] == ["one", "two.v2"]


def test_groups_that_run_together_are_measured_of_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    events = "events: [{at: 10s, name: deploy, restart: a}, {after: deploy, at: 5s, crash: b/0}]\n"
    alone = {name: (each.digest, each.summary()) for name, each in results(events).items()}
    runs: list[str] = []

    def counted(scenario: Scenario, *arguments: Any, **options: Any) -> Any:
        runs.append(scenario.group_id)
        return run(scenario, *arguments, **options)

    monkeypatch.setattr("kgctl.simulate.batch.plan.run", counted)
    tasks = tasks_of(loaded(events), [1, 2], BatchOptions(), None)
    found = run_all(tasks, 1, lambda _: None)
    assert [(each.variant, each.seed) for each in found] == [("one", 1), ("two", 1), ("one", 2), ("two", 2)]
    for each in found[:2]:
        digest, summary = alone[each.variant]
        assert each.digest == digest
        assert {name: each.metrics[name] for name in summary} == summary
    assert runs == ["one", "one"]
    watched = loaded(f"{events}expect: [{{always: owners(partition) <= 1}}]\n")
    run_all(tasks_of(watched, [1], BatchOptions(), None), 1, lambda _: None)
    assert runs == ["one", "one", "one", "two.v2"]


def test_what_is_changed_in_the_measured_group_is_changed_for_all() -> None:
    """As the ablations of `explain` do: a run without an event is one without it in every group."""
    scenario = loaded("events: [{at: 10s, broker_down: 2, for: 30s}]").variants[1].scenario
    assert run(changed(scenario, events=()), 1).metric("unavailable") == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("group: {id: x}", "14:1: group: one scenario has one `group` or several `groups`"),
        ("variants: {x: {groups: {three: {}}}}", "14:16: groups: are the same in every variant"),
        ("variants: {x: {members: {a: {group: thre}}}}", "members.a.group: there is no group 'thre'; known: one, two"),
        ("variants: {x: {members: {c: {count: 1}}}}", "members.c.group: says which group: one of one, two"),
    ],
)
def test_groups_that_do_not_fit_together_are_refused(text: str, message: str) -> None:
    with pytest.raises(FileError) as raised:
        loaded(text)
    assert message in "\n".join(map(str, raised.value.problems))


def test_a_members_group_needs_groups() -> None:
    text = "kgctl: 1\nname: x\ntopics: {t: 1}\nmembers: {a: {group: one}}\n"
    with pytest.raises(FileError, match=r"members.a.group: there is no group 'one'; write groups: \{\.\.\.\}"):
        load(read_yaml(text, "s.yaml"))
