"""Where things are in this checkout, for the tests about the project itself."""

from __future__ import annotations

import ast
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def pyproject() -> dict[str, Any]:
    """pyproject.toml as data."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


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


def python_files(*folders: str) -> Iterator[tuple[str, str]]:
    """(path inside the project, text) of each Python file under ``folders``."""
    for path in project_files():
        name = path.relative_to(ROOT).as_posix()
        if path.suffix == ".py" and name.startswith(tuple(f"{folder}/" for folder in folders)):
            yield name, path.read_text()


def definitions(source: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    """Every function and class of a module, nested ones too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node


def line_count(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> int:
    """Lines from ``def`` or ``class`` to the end, without the docstring."""
    last = node.end_lineno or node.lineno
    first_statement = node.body[0]
    documented = ast.get_docstring(node) is not None
    docstring = (first_statement.end_lineno or 0) - first_statement.lineno + 1 if documented else 0
    return last - node.lineno + 1 - docstring
