"""The file of contexts: named clusters with their settings, and which of them is the current one.

::

    current-context: staging
    contexts:
      staging:
        bootstrap-server: broker1:9092,broker2:9092
        command-config: ~/staging.properties
        properties:
          client.id: kgctl
        timeout: 20s
      desk:
        embedded: ~/kgctl-data
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kgctl.errors import UsageError

if TYPE_CHECKING:
    import yaml

_KEYS = ("bootstrap-server", "embedded", "command-config", "timeout", "properties")
_CURRENT = re.compile(r"^current-context[ \t]*:.*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ClusterContext:
    """One named cluster, as written in the file."""

    name: str
    bootstrap_server: str | None = None
    embedded: str | None = None
    command_config: str | None = None
    timeout: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """The whole file; empty where there is none."""

    path: Path
    current_context: str | None = None
    contexts: Mapping[str, ClusterContext] = field(default_factory=dict)

    def context(self, name: str) -> ClusterContext:
        """The context of this name.

        Raises:
            UsageError: there is none; lists those there are.
        """
        if name not in self.contexts:
            known = ", ".join(sorted(self.contexts)) or f"none; they are defined in {self.path}"
            raise UsageError(f"unknown context {name!r}; known contexts: {known}")
        return self.contexts[name]


def load_config_file(path: Path) -> ConfigFile:
    """Read the file; one that does not exist is an empty one.

    Raises:
        UsageError: it cannot be read, or is not as it should be; names file and line.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ConfigFile(path)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {error}") from None
    return _Reader(path).read(text)


def save_current_context(config: ConfigFile, name: str) -> None:
    """Make ``name`` the current context, leaving the rest of the file, comments too, as it is.

    Raises:
        UsageError: no such context, or the file cannot be written.
    """
    config.context(name)
    line = "current-context: " + _quoted(name)
    text = config.path.read_text(encoding="utf-8")
    changed = _CURRENT.sub(lambda _: line, text, count=1) if _CURRENT.search(text) else f"{line}\n{text}"
    temporary = config.path.with_name(config.path.name + ".new")
    try:
        temporary.write_text(changed, encoding="utf-8")
        temporary.chmod(config.path.stat().st_mode & 0o777)
        temporary.replace(config.path)
    except OSError as error:
        raise UsageError(f"cannot write {config.path}: {error}") from None


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z][A-Za-z0-9_.-]*", name) else "'" + name.replace("'", "''") + "'"


class _Reader:
    """Walks the YAML tree by its nodes, so that every complaint can name its line."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self, text: str) -> ConfigFile:
        import yaml

        try:
            root = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            problem = getattr(error, "problem", None) or "not readable as YAML"
            raise self._wrong(problem, mark.line if mark else 0) from None
        if root is None:
            return ConfigFile(self._path)
        parts = self._mapping(root, "the file", ("current-context", "contexts"))
        contexts = self._mapping(parts["contexts"], "contexts") if "contexts" in parts else {}
        current = self._text(parts["current-context"], "current-context") if "current-context" in parts else None
        return ConfigFile(self._path, current, {name: self._context(name, node) for name, node in contexts.items()})

    def _context(self, name: str, node: yaml.Node) -> ClusterContext:
        parts = self._mapping(node, f"context {name!r}", _KEYS)
        properties = self._mapping(parts.pop("properties"), "properties") if "properties" in parts else {}
        texts = {key.replace("-", "_"): self._text(value, key) for key, value in parts.items()}
        if "bootstrap_server" in texts and "embedded" in texts:
            raise self._wrong(f"context {name!r} has both bootstrap-server and embedded", node.start_mark.line)
        return ClusterContext(name, properties={k: self._text(v, k) for k, v in properties.items()}, **texts)

    def _mapping(self, node: yaml.Node, what: str, known: tuple[str, ...] = ()) -> dict[str, yaml.Node]:
        import yaml

        if not isinstance(node, yaml.MappingNode):
            raise self._wrong(f"{what} must be a mapping", node.start_mark.line)
        found: dict[str, yaml.Node] = {}
        for key_node, value_node in node.value:
            key = self._text(key_node, "a key")
            if known and key not in known:
                raise self._wrong(f"{what} has no setting {key!r}; known: {', '.join(known)}", key_node.start_mark.line)
            found[key] = value_node
        return found

    def _text(self, node: yaml.Node, what: str) -> str:
        import yaml

        if not isinstance(node, yaml.ScalarNode):
            raise self._wrong(f"{what} must be a single value", node.start_mark.line)
        return str(node.value)

    def _wrong(self, problem: str, line: int) -> UsageError:
        return UsageError(f"{self._path}, line {line + 1}: {problem}")
