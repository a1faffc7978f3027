"""The house is cut by subject: no large circle of imports, no crumbs of files, no more of both than is listed here, and a size.

``python -m tests.repo.imports`` prints the shape. The lists are of what is still to go: they shrink.
"""

from __future__ import annotations

import ast
from collections import Counter

import pytest

import kgctl
from tests.repo.imports import circles, importers, imports, is_package, modules
from tests.repo.project import ROOT, outline, python_files
from tests.repo.rooms import MOST_FILES, ROOMS, Room, code_lines, judged, sizes

pytestmark = pytest.mark.xdist_group("tests/repo/test_tidy.py")  # outlines of all sources: a process makes them once

CIRCLE_FILES = 3

SMALL_LINES = 40
ROOMS_OF_SMALL_FILES = {
    "kgctl.server.api": "one file an API",
    "kgctl.assignors": "one file an assignor",
    "kgctl.pipeline.tables": "one file a table",
}
SMALL_FILES: dict[str, str] = {}
"""A module of fewer lines with a single importer -> why it is a file of its own."""

DOCUMENTED = (
    *("kgctl/model", "kgctl/assignors", "kgctl/coordinator", "kgctl/member", "kgctl/admin", "kgctl/storage", "kgctl/group"),
    "kgctl/share",
    *("kgctl/pipeline/functions", "kgctl/simulate/recording"),
)
"""Folders whose public functions and classes say what they guarantee, as all that `kgctl` exports does."""


def test_no_circle_of_imports_is_large() -> None:
    assert [sorted(circle) for circle in circles(imports()) if len(circle) > CIRCLE_FILES] == []


def test_no_small_file_has_a_single_importer() -> None:
    crumbs = [
        name
        for name, text in modules().items()
        if len(text.splitlines()) < SMALL_LINES
        and len(importers().get(name, ())) == 1
        and not name.startswith(tuple(ROOMS_OF_SMALL_FILES))
        and not is_package(name)
    ]
    assert [name for name in crumbs if name not in SMALL_FILES] == []


def test_the_house_does_not_grow() -> None:
    assert (judged(sizes(), ROOMS), len(modules()) <= MOST_FILES) == ([], True), len(modules())


def test_the_guard_of_sizes_bites() -> None:
    rooms = {"grown": Room(100, ((10, "a reason"),)), "cut": Room(100), "kept": Room(100)}
    assert judged({"grown": 111, "cut": 59, "kept": 60, "new": 5}, rooms) == [
        "cut: 59 lines of code, and 100 allowed: a cut lowers the bound, write Room(59)",
        "grown: 111 lines of code, 110 at most: cut, or add (lines, reason) to its `raised`",
        "new: a new room of 5 lines: name it in ROOMS",
    ]


def test_lines_of_code_are_counted_without_prose() -> None:
    text = '"""A module."""\n\nimport os  # why\n# a comment\n\n\ndef f():\n    """Two\n    lines."""\n    return os\n'
    assert code_lines(text) == 3


def test_unit_tests_lie_and_are_called_as_their_modules() -> None:
    """``tests/unit/wire/test_cluster_routing.py`` is of ``kgctl/wire/cluster.py``; what is of a package has its name."""
    strangers = []
    for path in (ROOT / "tests" / "unit").rglob("test_*.py"):
        folder = path.parent.relative_to(ROOT / "tests" / "unit")
        inside = {each.stem for each in (ROOT / "kgctl" / folder).glob("*") if each.suffix in ("", ".py")}
        name = path.stem.removeprefix("test_")
        if not any(name == module or name.startswith(f"{module}_") for module in (*inside, folder.name)):
            strangers.append(f"{folder}/{path.name}")
    assert sorted(strangers) == []


SHARED_NAMES = {
    "ClassicMember",
    "Cluster",
    "ConsumerGroup",
    "ConsumerMember",
    "Generation",
    "Group",
    "Measured",
    "Member",
    "MemberIdentity",
    "MemberInfo",
    "MemberState",
    "Record",
    "Request",
    "Table",
}
"""Names that two classes have: the same thing on two sides of a border (a member here and at the coordinator), or public."""


def test_a_class_has_a_name_of_its_own() -> None:
    names = Counter(
        node.name for _, text in python_files("kgctl") for node in ast.parse(text).body if isinstance(node, ast.ClassDef)
    )
    assert {name for name, count in names.items() if count > 1 and not name.startswith("_")} == SHARED_NAMES


def test_public_names_say_what_they_guarantee() -> None:
    undocumented = [
        f"{file}:{line} {name}"
        for file, text in python_files(*DOCUMENTED)
        for name, line in outline(text).undocumented
        if not name.startswith("_")
    ]
    exported = [name for name in getattr(kgctl, "__all__", ()) if not name.startswith("_") and not getattr(kgctl, name).__doc__]
    assert (undocumented, exported) == ([], [])
