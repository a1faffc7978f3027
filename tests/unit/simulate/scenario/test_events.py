"""A kind of events is known by its class alone: nobody else has its name."""

from __future__ import annotations

import ast

import pytest

from kgctl.simulate.scenario.event import Event
from kgctl.simulate.scenario.event_port import EventPort
from kgctl.simulate.scenario.events import EVENT_KINDS
from tests.repo.project import python_files

OTHER_MEANINGS = frozenset({"start", "stop", "restart", "crash", "stall", "slow", "scale", "network"})
"""Also what becomes of a pod, a cluster's key, words of charts: told apart by what they are compared with."""


def strings(node: ast.AST) -> set[str]:
    return {each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str)}


def names_in(text: str) -> set[str]:
    """The kinds' names that a module has as strings, those with other meanings only where a kind is compared with them."""
    tree = ast.parse(text)
    compared = [node for node in ast.walk(tree) if isinstance(node, ast.Compare)]
    of_kinds = [
        node
        for node in compared
        if any(isinstance(each, ast.Attribute) and each.attr in ("kind", "event_kind") for each in ast.walk(node))
    ]
    return EVENT_KINDS.keys() & ((strings(tree) - OTHER_MEANINGS) | {word for node in of_kinds for word in strings(node)})


def test_the_name_of_a_kind_stands_in_its_class_only() -> None:
    found = {path: names_in(text) for path, text in python_files("kgctl/simulate", "kgctl/cli/simulate")}
    assert {path: names for path, names in found.items() if names and "/scenario/kinds/" not in path} == {}


@pytest.mark.parametrize("line", ['each.kind == "stall"', 'any(each.event_kind in ("slow",) for each in found)', 'x = "drain"'])
def test_a_name_elsewhere_is_found(line: str) -> None:
    assert names_in(line)


def test_a_class_without_a_name_is_no_kind() -> None:
    class Common(Event):
        def begin(self, run: EventPort) -> None:
            run.over()

    assert "kind" not in vars(Common)
    assert all(vars(kind)["kind"] == name for name, kind in EVENT_KINDS.items())
