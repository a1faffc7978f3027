"""Merge patches (RFC 7396) that keep the places: what a patch sets stands where the patch has it."""

from __future__ import annotations

from typing import Any

from kgctl.yaml_files import Path, Tree


def merge_patch(target: Any, patch: Any) -> Any:
    """The target with the patch merged in: mappings key by key, null deletes, anything else replaces. Neither is changed."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def patched(base: Tree, patch: Tree, at: Path = ()) -> Tree:
    """``base`` with what ``patch`` has at the path ``at`` merged in."""
    value = patch.data
    for step in at:
        value = value[step]
    places = dict(base.locations)
    for path, place in patch.locations.items():
        if path[: len(at)] == at and len(path) > len(at):
            places[path[len(at) :]] = place
    return Tree(base.file, merge_patch(base.data, value), places)
