"""The code stays in small pieces, and this project's text stays free of the place where it was written."""

from __future__ import annotations

import functools
import re
from collections import Counter
from pathlib import PurePosixPath

import pytest

from tests.repo.project import ROOT, outline, project_files, python_files

MODULE_LINES = 600
FUNCTION_LINES = 60
CLASS_LINES = 400
FOLDER_FILES = 30

# What may be larger, each with its reason: nothing else may.
LARGER_MODULES: dict[str, tuple[int, str]] = {}
LARGER_FUNCTIONS: dict[str, tuple[int, str]] = {}
LARGER_CLASSES: dict[str, tuple[int, str]] = {}
FULLER_FOLDERS: dict[str, tuple[int, str]] = {}
BUSY_INIT_FILES = {
    "kgctl/__init__.py": "imports the public names only when they are used",
    "kgctl/simulate/__init__.py": "is a function of the public API, too",
    "kgctl/server/api/__init__.py": "imports the APIs only when a server asks for the list",
    "kgctl/testing/__init__.py": "imports the server only when a test of a user's needs it",
    "kgctl/admin/__init__.py": "is the interface behind which its modules stand",
    "kgctl/admin/zookeeper/__init__.py": "is the format that its modules read and write",
    "kgctl/wire/__init__.py": "has the deadline that its modules and their callers share",
}

CODE = ("kgctl", "tests", ".ci")


def test_modules_are_short() -> None:
    sizes = {name: len(text.splitlines()) for name, text in python_files(*CODE)}
    assert over_cap(sizes, MODULE_LINES, LARGER_MODULES) == []


def test_functions_are_short() -> None:
    assert over_cap(definition_sizes("def"), FUNCTION_LINES, LARGER_FUNCTIONS) == []


def test_classes_are_short() -> None:
    assert over_cap(definition_sizes("class"), CLASS_LINES, LARGER_CLASSES) == []


def test_folders_are_not_full() -> None:
    sizes = Counter(PurePosixPath(name).parent.as_posix() for name, _ in python_files(*CODE))
    assert over_cap(sizes, FOLDER_FILES, FULLER_FOLDERS) == []


def over_cap(sizes: dict[str, int], cap: int, larger: dict[str, tuple[int, str]]) -> list[str]:
    """What is over its cap, and what has a larger cap that it no longer needs."""
    too_large = [
        f"{name}: {size} > {larger.get(name, (cap,))[0]}" for name, size in sizes.items() if size > larger.get(name, (cap,))[0]
    ]
    needless = [f"{name}: {sizes.get(name, 0)} needs no exception" for name in larger if sizes.get(name, 0) <= cap]
    return sorted(too_large + needless)


def definition_sizes(kind: str) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for name, text in python_files(*CODE):
        for found, defined, lines in outline(text).definitions:
            if found == kind:
                key = f"{name}:{defined}"
                sizes[key] = max(sizes.get(key, 0), lines)
    return sizes


def test_package_init_files_only_document_and_re_export() -> None:
    allowed = ("Import", "ImportFrom", "Expr", "Assign", "AnnAssign")
    found = [
        f"{name}:{line}"
        for name, text in python_files("kgctl")
        if name.endswith("__init__.py") and name not in BUSY_INIT_FILES
        for kind, line in outline(text).statements
        if kind not in allowed
    ]
    assert found == []


def test_every_module_says_what_it_is_for() -> None:
    assert [name for name, text in python_files(*CODE) if not outline(text).has_docstring] == []


def test_nothing_is_left_to_do_later() -> None:
    marks = re.compile("|".join(["TO" + "DO", "FIX" + "ME", "raise NotImplemented" + "Error"]))
    found = [f"{name}:{number}" for name, number, line in lines_of_text() if marks.search(line)]
    assert found == []


# Words of the place where the project is written, put together here so that this file has none of them.
FOREIGN = [
    "/wo" + "rk/", "/ro" + "ot/", "/tmp/kg" + "ctl-",
    "pypi" + ".org", "pythonhosted" + ".org", "npmjs" + ".org", "maven" + ".org", "apache.org/m" + "aven2", "debian" + ".org",
    "hel" + "per [0-9]", "sub" + "agent", "Cl" + "aude", "Anth" + "ropic", "shared/DES" + "IGN", "the " + "CEO",
    "\\bis" + "sue [0-9]",
]  # fmt: skip


@pytest.mark.parametrize("word", FOREIGN)
def test_no_word_of_the_place_where_it_was_written(word: str) -> None:
    pattern = re.compile(word)
    assert [f"{name}:{number}: {line.strip()[:80]}" for name, number, line in lines_of_text() if pattern.search(line)] == []


@functools.cache
def lines_of_text() -> list[tuple[str, int, str]]:
    """(path, line number, line) of every text file of the project but data files larger than 200 kB."""
    found = []
    for path in project_files():
        if not path.exists():  # another test had it here for a moment
            continue
        if path.stat().st_size <= 200_000:
            text = path.read_bytes().decode(errors="replace")
            found += [(path.relative_to(ROOT).as_posix(), number, line) for number, line in enumerate(text.splitlines(), 1)]
    return found


def test_the_visible_top_level_is_small() -> None:
    top = {path.relative_to(ROOT).parts[0] for path in project_files()}
    visible = {name for name in top if not name.startswith(".")}
    assert visible <= {"pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", "completions", "kgctl", "tests"}
