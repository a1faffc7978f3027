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
      old:
        zookeeper: zk1:2181,zk2:2181/kafka
        bootstrap-server: broker1:9092
"""

from __future__ import annotations

import os
import re
import shlex
import stat
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kgctl.errors import UsageError
from kgctl.yaml_files import FileError, Location, read_yaml
from kgctl.yaml_files import Path as TreePath

_KEYS = ("bootstrap-server", "embedded", "zookeeper", "command-config", "timeout", "properties")
_CURRENT = re.compile(r"^current-context[ \t]*:.*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ClusterContext:
    """One named cluster, as written in the file."""

    name: str
    bootstrap_server: str | None = None
    embedded: str | None = None
    zookeeper: str | None = None
    command_config: str | None = None
    timeout: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)

    def has_address(self) -> bool:
        """Whether it says where the cluster is, other than by its properties."""
        return bool(self.bootstrap_server or self.embedded or self.zookeeper)


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


def config_path(variables: Mapping[str, str]) -> Path:
    """Return where contexts are kept: KGCTL_CONFIG, else ``config.yaml`` in the user's configuration folder for kgctl."""
    if path := variables.get("KGCTL_CONFIG"):
        return Path(path).expanduser()
    import platformdirs

    return platformdirs.user_config_path("kgctl") / "config.yaml"


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


def save_context(config: ConfigFile, name: str, context: ClusterContext | None) -> None:
    """Write a context in the place of the one of this name, or behind the others; None takes it away.

    The rest of the file, comments too, stays as it is; a new file is for its owner alone.

    Raises:
        UsageError: the file cannot be written, or is written in a way (all on one line) that this cannot be changed in.
    """
    text = config.path.read_text(encoding="utf-8") if config.path.exists() else ""
    lines = text.splitlines()
    block = [] if context is None else _block(context)
    start, end = _lines_of(lines, name)
    if start is None and not any(line.rstrip() == "contexts:" for line in lines):
        if config.contexts:
            raise UsageError(f"{config.path}: its contexts are on one line; edit the file, or give each its own")
        lines = [line for line in lines if not line.startswith("contexts:")] + ["contexts:"]
    if start is None:
        start = end = next(at for at, line in enumerate(lines) if line.rstrip() == "contexts:") + 1
    lines[start:end] = block
    if context is None and len(config.contexts) == 1:
        lines = ["contexts: {}" if line.rstrip() == "contexts:" else line for line in lines]
    changed = "\n".join(lines) + "\n"
    _Reader(config.path).read(changed)
    _write(config.path, changed)


def _block(context: ClusterContext) -> list[str]:
    """The context as lines of YAML, indented below ``contexts:``."""
    import yaml

    settings = {key: getattr(context, key.replace("-", "_")) for key in _KEYS if key != "properties"}
    body: dict[str, Any] = {key: value for key, value in settings.items() if value}
    if context.properties:
        body["properties"] = dict(context.properties)
    text = yaml.safe_dump({context.name: body}, sort_keys=False, allow_unicode=True, width=4096)
    return [f"  {line}" for line in text.splitlines()]


def _lines_of(lines: Sequence[str], name: str) -> tuple[int | None, int]:
    """Where the block of a context begins and ends; None where there is none that has lines of its own."""
    top = next((at for at, line in enumerate(lines) if line.rstrip() == "contexts:"), None)
    if top is None:
        return None, 0
    key = re.compile(rf"""(\s+)["']?{re.escape(name)}["']?\s*:(\s|$)""")
    for at in range(top + 1, len(lines)):
        if (found := key.match(lines[at])) and len(found[1]) == _indent(lines, top):
            end = at + 1
            while end < len(lines) and (not lines[end].strip() or len(lines[end]) - len(lines[end].lstrip()) > len(found[1])):
                end += 1
            return at, end
        if lines[at].strip() and not lines[at][0].isspace() and not lines[at].startswith("#"):
            break
    return None, 0


def _indent(lines: Sequence[str], top: int) -> int:
    """How far the contexts are indented: as far as the first of them."""
    first = next((line for line in lines[top + 1 :] if line.strip() and not line.lstrip().startswith("#")), "  ")
    return len(first) - len(first.lstrip())


def save_current_context(config: ConfigFile, name: str) -> None:
    """Make ``name`` the current context, leaving the rest of the file, comments too, as it is.

    Raises:
        UsageError: no such context, or the file cannot be written.
    """
    config.context(name)
    line = "current-context: " + _quoted(name)
    text = config.path.read_text(encoding="utf-8")
    _write(config.path, _CURRENT.sub(lambda _: line, text, count=1) if _CURRENT.search(text) else f"{line}\n{text}")


def _write(path: Path, text: str) -> None:
    """The whole file at once, with the rights that it has; a new one, and its folder, for its owner alone."""
    temporary = path.with_name(path.name + ".new")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8")
        temporary.chmod(path.stat().st_mode & 0o777 if path.exists() else 0o600)
        temporary.replace(path)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error}") from None


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z][A-Za-z0-9_.-]*", name) else "'" + name.replace("'", "''") + "'"


class _Reader:
    """Checks the tree of a file; every complaint names its line."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self, text: str) -> ConfigFile:
        try:
            self._tree = read_yaml(text, str(self._path))
        except FileError as error:
            raise self._wrong(error.problems[0].message, error.problems[0].location) from None
        if self._tree.data is None:
            return ConfigFile(self._path)
        parts = self._mapping((), "the file", ("current-context", "contexts"))
        contexts = self._mapping(("contexts",), "contexts") if "contexts" in parts else {}
        current = self._text(parts, "current-context", ())
        return ConfigFile(self._path, current, {name: self._context(name) for name in contexts})

    def _context(self, name: str) -> ClusterContext:
        path = ("contexts", name)
        parts = self._mapping(path, f"context {name!r}", _KEYS)
        given = self._mapping((*path, "properties"), "properties") if "properties" in parts else {}
        properties = {key: self._text(given, key, (*path, "properties")) or "" for key in given}
        texts = {key.replace("-", "_"): self._text(parts, key, path) for key in parts if key != "properties"}
        for other in ("bootstrap_server", "zookeeper"):
            if other in texts and "embedded" in texts:
                problem = f"context {name!r} has both {other.replace('_', '-')} and embedded"
                raise self._wrong(problem, self._tree.location((*path, next(iter(parts)))))
        return ClusterContext(name, properties=properties, **texts)

    def _mapping(self, path: TreePath, what: str, known: tuple[str, ...] = ()) -> Mapping[str, Any]:
        found = self._tree.data
        for step in path:
            found = found[step]
        if not isinstance(found, dict):
            raise self._wrong(f"{what} must be a mapping", self._tree.location(path))
        for key in found:
            if known and key not in known:
                location = self._tree.location((*path, key))
                raise self._wrong(f"{what} has no setting {key!r}; known: {', '.join(known)}", location)
        return found

    def _text(self, parts: Mapping[str, Any], key: str, path: TreePath) -> str | None:
        """Return a setting as a properties file has it; None where it is left out, or has no value."""
        value = parts.get(key)
        if isinstance(value, dict | list):
            raise self._wrong(f"{key} must be a single value", self._tree.location((*path, key)))
        if isinstance(value, bool):
            return "true" if value else "false"
        return None if value is None else str(value)

    def _wrong(self, problem: str, location: Location) -> UsageError:
        return UsageError(f"{self._path}, line {location.line}: {problem}")


_SECRET = ("password", "secret", "jaas", "pem", "token", "credentials")
_COMMAND_TIMEOUT_S = 30


def is_secret(key: str) -> bool:
    """Whether a property of this name may hold a secret."""
    return any(word in key for word in _SECRET)


def is_pointer(value: str) -> bool:
    """Whether a value says where the secret is, and is none itself."""
    return value.startswith(("env:", "file:", "cmd:"))


def resolved(properties: Mapping[str, str], variables: Mapping[str, str]) -> dict[str, str]:
    """The properties with each secret in the place of what points to it.

    Raises:
        UsageError: a variable is not set, a file cannot be read, a command fails; names the property.
    """
    return {
        key: _read(key, value, variables) if is_secret(key) and is_pointer(value) else value for key, value in properties.items()
    }


def _read(key: str, value: str, variables: Mapping[str, str]) -> str:
    kind, _, rest = value.partition(":")
    if kind == "env":
        if not variables.get(rest):
            raise UsageError(f"{key}: the variable {rest} is not set")
        return variables[rest]
    if kind == "file":
        try:
            return Path(rest).expanduser().read_text(encoding="utf-8").rstrip("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{key}: cannot read {rest}: {getattr(error, 'strerror', None) or 'not UTF-8 text'}") from None
    return _output(key, rest, variables)


def _output(key: str, command: str, variables: Mapping[str, str]) -> str:
    """The first line that the command writes; it runs without a shell."""
    try:
        words = shlex.split(command)
        ran = subprocess.run(  # noqa: S603 - the user's own configuration names it
            words, capture_output=True, text=True, timeout=_COMMAND_TIMEOUT_S, check=False, env=dict(variables)
        )
    except (OSError, ValueError, IndexError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"{key}: cannot run {command!r}: {getattr(error, 'strerror', None) or error}") from None
    if ran.returncode or not ran.stdout.strip():
        raise UsageError(
            f"{key}: {command!r} ended with {ran.returncode} and {'no' if not ran.stdout.strip() else 'some'} output"
        )
    return ran.stdout.splitlines()[0].strip()


def warning(path: Path, properties: Mapping[str, str]) -> str | None:
    """What to say of a file that others can read and that holds a secret itself; None where all is well."""
    literal = sorted(key for key, value in properties.items() if is_secret(key) and not is_pointer(value))
    try:
        mode = path.stat().st_mode
    except OSError:
        return None
    if not literal or os.name != "posix" or not mode & (stat.S_IRGRP | stat.S_IROTH):
        return None
    held = ", ".join(literal)
    return f"Others can read {path}, which holds {held}: chmod 600 it, or write env:NAME, file:PATH or cmd:COMMAND there."
