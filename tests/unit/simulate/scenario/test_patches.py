"""Merge patches by RFC 7396, with places."""

from __future__ import annotations

from typing import Any

import pytest

from kgctl.simulate.scenario.patches import merge_patch, patched
from kgctl.yaml_files import Location, read_yaml

# The test cases of RFC 7396, appendix A.
RFC_7396: list[tuple[Any, Any, Any]] = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None),
    ({"a": "foo"}, "bar", "bar"),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


@pytest.mark.parametrize(("target", "patch", "result"), RFC_7396)
def test_merge_patch_is_that_of_the_rfc(target: Any, patch: Any, result: Any) -> None:
    assert merge_patch(target, patch) == result


def test_what_a_patch_sets_stands_where_the_patch_has_it() -> None:
    tree = read_yaml("a: {b: 1, c: 2}\nv:\n  x: {a: {b: 3}}\n", "f")
    merged = patched(tree, tree, ("v", "x"))
    assert merged.data["a"] == {"b": 3, "c": 2}
    assert (merged.location(("a", "b")), merged.location(("a", "c"))) == (Location("f", 3, 11), Location("f", 1, 11))
