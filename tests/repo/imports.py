"""Who imports whom in ``kgctl``: every import counts, lazy ones and those for a type checker too."""

from __future__ import annotations

import functools
from collections import defaultdict
from pathlib import PurePosixPath

from tests.repo.project import outline, python_files


@functools.cache
def modules() -> dict[str, str]:
    """Return the text of each module by its dotted name."""
    return {module_name(path): text for path, text in python_files("kgctl")}


def module_name(path: str) -> str:
    parts = PurePosixPath(path).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def imports() -> dict[str, set[str]]:
    """Return the modules of kgctl that each module imports: of ``from a import b`` the module ``a.b``, or ``a``."""
    return {
        name: {found for module, names in outline(text).imports for found in _named(module, names) if found in modules()} - {name}
        for name, text in modules().items()
    }


def _named(module: str, names: tuple[str, ...]) -> list[str]:
    inner = [f"{module}.{name}" for name in names]
    return [name if name in modules() else module for name in inner] or [module]


@functools.cache
def importers() -> dict[str, set[str]]:
    """Return the modules that import each module."""
    found: dict[str, set[str]] = defaultdict(set)
    for name, imported in imports().items():
        for other in imported:
            found[other].add(name)
    return found


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Return the sets of modules that reach each other, the largest first: two searches in depth, forth and then back."""
    backwards: dict[str, set[str]] = defaultdict(set)
    for name, others in graph.items():
        for other in others:
            backwards[other].add(name)
    found: list[set[str]] = []
    done: set[str] = set()
    for name in reversed(_finished_in_order(graph)):
        if name not in done:
            circle = set(_reached(name, backwards, done))
            done |= circle
            found.append(circle)
    return sorted((circle for circle in found if len(circle) > 1), key=len, reverse=True)


def _finished_in_order(graph: dict[str, set[str]]) -> list[str]:
    """Return the modules in the order in which a search in depth leaves them."""
    left: list[str] = []
    seen: set[str] = set()
    for start in graph:
        path = [start] if start not in seen else []
        seen.add(start)
        while path:
            onward = next((other for other in graph[path[-1]] if other not in seen), None)
            if onward is None:
                left.append(path.pop())
            else:
                seen.add(onward)
                path.append(onward)
    return left


def _reached(start: str, graph: dict[str, set[str]], without: set[str]) -> list[str]:
    """Return what can be reached from ``start`` by way of others than ``without``."""
    found = [start]
    for name in found:
        found += [other for other in graph[name] if other not in without and other not in found]
    return found


def is_package(name: str) -> bool:
    return any(other.startswith(f"{name}.") for other in modules())


if __name__ == "__main__":
    print(f"kgctl: {len(modules())} files, circles of imports: {[len(circle) for circle in circles(imports())]}")
