"""Where things are in this checkout, for the tests about the project itself."""

from __future__ import annotations

import ast
import functools
import subprocess
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def pyproject() -> dict[str, Any]:
    """pyproject.toml as data."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


@functools.cache
def project_files() -> list[Path]:
    """Every file that belongs to the project: known to git, or new and not ignored; without git all but hidden folders."""
    try:
        command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, capture_output=True, check=True).stdout.decode()
    except (OSError, subprocess.CalledProcessError):
        return sorted(path for path in ROOT.rglob("*") if path.is_file() and not _is_left_out(path.relative_to(ROOT)))
    return [ROOT / name for name in sorted(set(listed.split("\0"))) if name and (ROOT / name).is_file()]


def _is_left_out(path: Path) -> bool:
    return any((part.startswith(".") and part != ".ci") or part in ("__pycache__", "build", "dist") for part in path.parts)


@functools.cache
def python_files(*folders: str) -> list[tuple[str, str]]:
    """(path inside the project, text) of each Python file under ``folders``."""
    beginnings = tuple(f"{folder}/" for folder in folders)
    named = [(path.relative_to(ROOT).as_posix(), path) for path in project_files() if path.suffix == ".py"]
    return [(name, path.read_text()) for name, path in named if name.startswith(beginnings)]


parsed = functools.cache(ast.parse)
"""A module's text as a tree, made once for all tests that look at it."""


@functools.cache
def definitions(source: str) -> list[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    """Every function and class of a module, nested ones too."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return [node for node in ast.walk(parsed(source)) if isinstance(node, kinds)]


def line_count(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> int:
    """Lines from ``def`` or ``class`` to the end, without the docstring."""
    last = node.end_lineno or node.lineno
    first_statement = node.body[0]
    documented = ast.get_docstring(node) is not None
    docstring = (first_statement.end_lineno or 0) - first_statement.lineno + 1 if documented else 0
    return last - node.lineno + 1 - docstring
