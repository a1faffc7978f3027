"""Where things are in this checkout, for the tests about the project itself."""

from __future__ import annotations

import ast
import functools
import gc
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def pyproject() -> dict[str, Any]:
    """pyproject.toml as data."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


@functools.cache
def project_files() -> list[Path]:
    """Every file that belongs to the project: known to git, or new and not ignored; in an sdist what is not hidden or built."""
    try:
        command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, capture_output=True, check=True).stdout.decode()
    except (OSError, subprocess.CalledProcessError):
        return sorted(path for path in ROOT.rglob("*") if path.is_file() and not _is_left_out(path.relative_to(ROOT)))
    return [ROOT / name for name in sorted(set(listed.split("\0"))) if name and (ROOT / name).is_file()]


def _is_left_out(path: Path) -> bool:
    return any(
        (part.startswith(".") and part not in (".ci", ".github")) or part in ("__pycache__", "build", "dist", "PKG-INFO")
        for part in path.parts
    )


@functools.cache
def python_files(*folders: str) -> list[tuple[str, str]]:
    """(path inside the project, text) of each Python file under ``folders``."""
    beginnings = tuple(f"{folder}/" for folder in folders)
    named = [(path.relative_to(ROOT).as_posix(), path) for path in project_files() if path.suffix == ".py"]
    return [(name, path.read_text()) for name, path in named if name.startswith(beginnings)]


@dataclass(frozen=True)
class Outline:
    """What the tests ask about a module; its tree is not kept, since thousands of nodes make every collection of garbage long."""

    has_docstring: bool
    definitions: tuple[tuple[str, str, int], ...]
    """(``"class"`` or ``"def"``, name, lines without its docstring), nested ones too."""
    statements: tuple[tuple[str, int], ...]
    """(kind of node, line) of each statement outside of functions and classes."""
    undocumented: tuple[tuple[str, int], ...]
    """(name, line) of each function and class of the module itself that has no docstring."""
    imports: tuple[tuple[str, tuple[str, ...]], ...]
    """(``a``, ()) of ``import a``, (``a``, (``b``, ``c``)) of ``from a import b, c``; lazy ones too."""


@functools.cache
def outline(source: str) -> Outline:
    """Return the outline of a module's text, made once for all tests that look at it."""
    was_collecting = gc.isenabled()
    gc.disable()
    try:
        tree = ast.parse(source)
        nodes = list(ast.walk(tree))
        return Outline(
            ast.get_docstring(tree) is not None,
            tuple(
                ("class" if isinstance(node, ast.ClassDef) else "def", node.name, line_count(node))
                for node in nodes
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            ),
            tuple((type(node).__name__, node.lineno) for node in tree.body),
            tuple(
                (node.name, node.lineno)
                for node in tree.body
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and ast.get_docstring(node) is None
            ),
            tuple(found for node in nodes for found in _imported(node)),
        )
    finally:
        if was_collecting:
            gc.enable()


def _imported(node: ast.AST) -> list[tuple[str, tuple[str, ...]]]:
    if isinstance(node, ast.Import):
        return [(alias.name, ()) for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module:
        return [(node.module, tuple(alias.name for alias in node.names))]
    return []


def line_count(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> int:
    """Lines from ``def`` or ``class`` to the end, without the docstring."""
    last = node.end_lineno or node.lineno
    first_statement = node.body[0]
    documented = ast.get_docstring(node) is not None
    docstring = (first_statement.end_lineno or 0) - first_statement.lineno + 1 if documented else 0
    return last - node.lineno + 1 - docstring
