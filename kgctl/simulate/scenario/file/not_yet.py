"""Parts of the language that are known but not supported yet: they get a clear answer instead of an unknown key's."""

from __future__ import annotations

from collections.abc import Iterator

from kgctl.yaml_files import Path, Problem, Tree

_KEYS: dict[Path, str] = {
    ("groups",): "one scenario has one `group`",
    ("group", "from"): "`kgctl simulate init --from-group` writes a scenario from a group",
}


def split_off(tree: Tree) -> Iterator[Problem]:
    """A problem for each such key; the keys are taken out of the tree, which is the caller's own copy."""
    for path, advice in _KEYS.items():
        parent = tree.data
        for step in path[:-1]:
            parent = parent.get(step) if isinstance(parent, dict) else None
        if isinstance(parent, dict) and path[-1] in parent:
            del parent[path[-1]]
            yield Problem(tree.location(path), path, f"not supported yet; {advice}", rule="not-supported")
