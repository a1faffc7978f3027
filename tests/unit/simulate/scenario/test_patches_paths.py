"""``--set PATH=VALUE``."""

from __future__ import annotations

from typing import Any

import pytest

from kgctl.errors import UsageError
from kgctl.simulate.scenario.patches import split_path, with_setting
from kgctl.yaml_files import Location, Tree


def test_all_behind_the_first_config_is_one_key() -> None:
    assert split_path("group.config.session.timeout.ms") == ("group", "config", "session.timeout.ms")
    assert split_path("members.app.config.a.config.b") == ("members", "app", "config", "a.config.b")
    assert split_path("events.0.at") == ("events", 0, "at")


SET: list[tuple[str, Any]] = [
    ("a.b=3", {"a": {"b": 3}, "l": [{"x": 1}]}),
    ("a.c=45s", {"a": {"b": 1, "c": "45s"}, "l": [{"x": 1}]}),
    ("a.b=null", {"a": {}, "l": [{"x": 1}]}),
    ("l.0.x=[p, q]", {"a": {"b": 1}, "l": [{"x": ["p", "q"]}]}),
    ("new.deep.er={y: 1}", {"a": {"b": 1}, "l": [{"x": 1}], "new": {"deep": {"er": {"y": 1}}}}),
    ("a=", {"a": "", "l": [{"x": 1}]}),
]


@pytest.mark.parametrize(("assignment", "expected"), SET)
def test_setting_replaces_what_is_at_its_path(assignment: str, expected: Any) -> None:
    tree = Tree("f", {"a": {"b": 1}, "l": [{"x": 1}]})
    found = with_setting(tree, assignment)
    assert found.data == expected
    assert tree.data == {"a": {"b": 1}, "l": [{"x": 1}]}
    assert found.location(split_path(assignment.partition("=")[0])) == Location(f"--set {assignment}")


@pytest.mark.parametrize(
    ("assignment", "complaint"),
    [
        ("a.b", "--set takes PATH=VALUE, not 'a.b'"),
        ("=1", "'' is no path; write one like members.app.count or group.config.session.timeout.ms"),
        ("l.1.x=1", "--set l.1.x=1: 1 is no entry of a list of 1"),
        ("a.b.c=1", "--set a.b.c=1: there is nothing below 1 to set 'c' in"),
    ],
)
def test_path_that_leads_nowhere_is_refused(assignment: str, complaint: str) -> None:
    with pytest.raises(UsageError) as caught:
        with_setting(Tree("f", {"a": {"b": 1}, "l": [{"x": 1}]}), assignment)
    assert caught.value.message == complaint
