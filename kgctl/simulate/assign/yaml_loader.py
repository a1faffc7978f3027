"""YAML with the lines of its mappings' keys, and with repeated keys noticed."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import yaml

from kgctl.simulate.assign.checks import RepeatedKeys


class LinedMapping(RepeatedKeys):
    """A mapping of a YAML file; ``lines`` has the line of each key."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: dict[str, int] = {}


_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Base):  # type: ignore[misc]
    """The C loader where PyYAML has it. Numbers and truth values are YAML 1.1's."""

    first_line = 1


def _construct_mapping(loader: Any, node: Any) -> Iterator[LinedMapping]:
    found = LinedMapping()
    yield found
    seen: set[Any] = set()
    for key_node, _ in node.value:
        if key_node.tag == "tag:yaml.org,2002:merge":
            continue
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, Hashable):
            raise yaml.constructor.ConstructorError(None, None, "found a key that is no text", key_node.start_mark)
        if key in seen and found.repeated is None:
            found.repeated = str(key)
        seen.add(key)
        found.lines[str(key)] = loader.first_line + key_node.start_mark.line
    # What is merged in by << comes first, so that the mapping's own keys override it.
    loader.flatten_mapping(node)
    for key_node, value_node in node.value:
        found[loader.construct_object(key_node, deep=True)] = loader.construct_object(value_node, deep=True)


_Loader.add_constructor("tag:yaml.org,2002:map", _construct_mapping)


def load_with_lines(text: str, first_line: int) -> tuple[Any, int]:
    """One document and its first line. ``first_line``: the line of the file on which ``text`` begins.

    Raises:
        yaml.YAMLError: it cannot be read; marks count from the beginning of ``text``.
    """
    loader = _Loader(text)
    loader.first_line = first_line
    try:
        node = loader.get_single_node()
        if node is None:
            return None, first_line
        return loader.construct_document(node), first_line + node.start_mark.line
    finally:
        loader.dispose()
