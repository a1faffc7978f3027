"""The JSON Schema of a scenario file: what editors put into a file is what the file means without it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kgctl.simulate.scenario.load import load
from kgctl.simulate.scenario.schema import scenario_schema
from kgctl.yaml_files import Tree

SCHEMA = scenario_schema()
FILE: dict[str, Any] = {
    "kgctl": 1,
    "name": "x",
    "topics": {"t": {}},
    "members": {
        "app": {"rate": "10/s", "poll": {}, "callbacks": {}},
        "s": {"group": "b", "streams": {"subtopologies": {"a": {}}}},
    },
    "groups": {"a": {}, "b": {}},
    "traffic": {"t": {"rate": "5/s"}},
    "cluster": {"network": {"between": {}}},
    "autoscale": {"members": "app", "target": 1000, "scale_up": {}, "scale_down": {}},
    "nemesis": {"rate": "1 per 5m"},
    "assign_time": {},
    "output": {},
    "report": {},
}
FILE["members"]["app"]["group"] = "a"
WHERE = {
    "Topic": ("topics", "t"),
    "MemberSet": ("members", "app"),
    "PollLoop": ("members", "app", "poll"),
    "Callbacks": ("members", "app", "callbacks"),
    "StreamsApplication": ("members", "s", "streams"),
    "TopologyPart": ("members", "s", "streams", "subtopologies", "a"),
    "Group": ("groups", "a"),
    "Traffic": ("traffic", "t"),
    "Cluster": ("cluster",),
    "Network": ("cluster", "network"),
    "Between": ("cluster", "network", "between"),
    "Autoscale": ("autoscale",),
    "ScalingRules": ("autoscale", "scale_up"),
    "Nemesis": ("nemesis",),
    "AssignTime": ("assign_time",),
    "Output": ("output",),
    "SweepReport": ("report",),
}


def defaults() -> Iterator[tuple[tuple[str, ...], Any]]:
    forms = {(): SCHEMA, **{path: SCHEMA["$defs"][name] for name, path in WHERE.items()}}
    for path, form in forms.items():
        for key, value in form["properties"].items():
            if value.get("default") is not None:
                yield (*path, key), value["default"]


def changed(node: Any, path: tuple[str, ...], value: Any) -> Any:
    return value if not path else {**node, path[0]: changed(node.get(path[0]), path[1:], value)}


def scenarios(data: Any) -> list[Any]:
    return [variant.scenario for variant in load(Tree("f.yaml", data, {})).variants]


def test_every_section_is_looked_at() -> None:
    assert {*SCHEMA["$defs"]} == {*WHERE}


@pytest.mark.parametrize(("path", "default"), [*defaults()], ids=lambda each: ".".join(each) if isinstance(each, tuple) else "")
def test_a_default_stands_in_a_file_as_it_is_and_changes_nothing(path: tuple[str, ...], default: Any) -> None:
    assert scenarios(changed(FILE, path, default)) == scenarios(FILE)


TOLD = {
    ("warmup",): "until stable",
    ("duration",): "auto",
    ("members", "app", "boot"): "5s",
    ("members", "app", "on_stop"): "leave",
    ("members", "app", "on_failure"): "stay",
    ("members", "app", "commit"): "auto",
    ("members", "s", "streams", "store"): 0,
    ("traffic", "t", "keys"): "even",
    ("topics", "t", "poisoned"): "0%",
    ("cluster", "append"): "lognormal(5ms, 8ms)",
    ("autoscale", "every"): "15s",
    ("autoscale", "tolerance"): "10%",
    ("assign_time", "per_partition"): "2us",
    ("nemesis", "until"): "30m",
}


def test_defaults_are_told_in_the_words_of_a_file() -> None:
    found = dict(defaults())
    assert {path: found.get(path) for path in TOLD} == TOLD
