"""From settings to a `GroupAdmin`; and the file of contexts: named clusters with their settings, and which is the current one.

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
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgctl.errors import NotFoundError, StorageError, UsageError
from kgctl.extras import require
from kgctl.files import at_home, own_folder, text_of
from kgctl.model.values import frozen_in_order
from kgctl.yaml_files import FileError, Location, core_dumper, read_yaml
from kgctl.yaml_files import Path as TreePath

if TYPE_CHECKING:
    from kgctl.admin import GroupAdmin


ADDRESSES = ("bootstrap.servers", "metadata.broker.list")
DEFAULT_TIMEOUT_MS = 15_000
LONGEST_BARE_TIMEOUT_S = 1000
"""A larger number without a unit is one of milliseconds, copied from a line for Kafka's tools."""


@dataclass(frozen=True)
class ConnectionSettings:
    """Which groups are meant: ``bootstrap``, ``embedded`` or ``zookeeper``, beside which ``bootstrap`` names the brokers.

    ``properties`` have librdkafka's names (`kgctl.admin.properties`) or begin with ``zookeeper.``; ``timeout_ms``
    covers each call as a whole.
    """

    bootstrap: str | None = None
    embedded: Path | None = None
    zookeeper: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_ms: int = 10_000


def connect(settings: ConnectionSettings) -> GroupAdmin:
    """The caller closes it. Raises `UsageError` for settings that cannot be; a cluster is not contacted before the first call."""
    if settings.embedded is not None:
        from kgctl.admin.embedded import open_embedded

        return open_embedded(settings.embedded)
    if settings.zookeeper is not None:
        from kgctl.admin.zookeeper.admin import open_zookeeper

        has_brokers = settings.bootstrap or {*ADDRESSES} & settings.properties.keys()
        brokers = connect(replace(settings, zookeeper=None)) if has_brokers else None
        return open_zookeeper(settings.zookeeper, settings.properties, settings.timeout_ms, brokers)
    properties = {key: value for key, value in settings.properties.items() if not key.startswith("zookeeper.")}
    if not (servers := _servers(settings)):
        raise UsageError("no cluster given: use --bootstrap-server HOST:PORT")
    properties["bootstrap.servers"] = servers
    return _live(properties, settings.timeout_ms)


def _live(properties: Mapping[str, str], timeout_ms: int) -> GroupAdmin:
    from kgctl.wire.settings import not_covered

    why = not_covered(properties)
    if why is None:
        from kgctl.admin.live import LiveGroupAdmin

        return LiveGroupAdmin(properties, timeout_ms)
    import logging

    from kgctl.admin.confluent import ConfluentGroupAdmin

    admin = ConfluentGroupAdmin(properties, timeout_ms, why=why)
    logging.getLogger("kgctl.admin").warning(LOST, why)
    return admin


LOST = (
    "kgctl's own connection does not cover %s, so all goes through librdkafka: share, streams and Connect groups are not listed, "
    "epochs and the states Assigning and Reconciling are unknown, and delete-offsets and remove-members are not available"
)


def _servers(settings: ConnectionSettings) -> str | None:
    return settings.bootstrap or next(filter(None, map(settings.properties.get, ADDRESSES)), None)


def context_settings(
    context: ClusterContext, over: Mapping[str, str] | None = None, timeout: str | None = None
) -> ConnectionSettings:
    """Return what a context amounts to, under properties and a time limit that are given beside it; secrets stay where they are.

    Raises:
        UsageError: it names no cluster, or a file or value of it cannot be read.
    """
    properties = {**_properties_of(context), **(over or {})}
    if not (context.has_address() or any(name in properties for name in ADDRESSES)):
        raise UsageError(f"context {context.name!r} names no cluster")
    timeout_text = timeout or context.timeout
    return ConnectionSettings(
        bootstrap=context.bootstrap_server,
        embedded=at_home(context.embedded) if context.embedded else None,
        zookeeper=context.zookeeper,
        properties=properties,
        timeout_ms=parse_timeout_ms(timeout_text) if timeout_text else DEFAULT_TIMEOUT_MS,
    )


def _properties_of(context: ClusterContext) -> Mapping[str, str]:
    """What the context sets: its file, and over it its own properties."""
    if not (context.command_config or context.properties):
        return {}
    from kgctl.admin.properties import load_command_config, parse_x

    base = load_command_config(at_home(context.command_config)) if context.command_config else {}
    return {**base, **parse_x([f"{key}={value}" for key, value in context.properties.items()])}


def parse_timeout_ms(text: str) -> int:
    """Read a time limit: seconds, or a duration with a unit (``500ms``, ``2m``, ``PT5S``).

    Raises:
        UsageError: not a span of time, or not more than zero.
    """
    from kgctl.admin.times import parse_duration_ms

    if _is_plain_number(text) and float(text) >= LONGEST_BARE_TIMEOUT_S:
        raise UsageError(f"--timeout {text} counts seconds, unlike in Kafka's tools: write {text}ms, or {text}s if that is meant")
    try:
        milliseconds = round(float(text) * 1000) if _is_plain_number(text) else parse_duration_ms(text)
    except UsageError as error:
        raise UsageError(f"--timeout: {error.message}; a bare number counts seconds") from None
    if not 0 < milliseconds <= 86_400_000:
        raise UsageError(f"--timeout {text!r} must be more than zero and at most one day")
    return milliseconds


def _is_plain_number(text: str) -> bool:
    return text.replace(".", "", 1).isdecimal() and text.isascii()


_CURRENT = re.compile(r"^current-context[ \t]*:.*$", re.MULTILINE)


@frozen_in_order
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


_KEYS = tuple(each.name.replace("_", "-") for each in fields(ClusterContext) if each.name != "name")


@frozen_in_order
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
        return at_home(path)
    return own_folder("config") / "config.yaml"


def load_config_file(path: Path) -> ConfigFile:
    """Read the file; one that does not exist is an empty one.

    Raises:
        UsageError: it cannot be read, or is not as it should be; names file and line.
    """
    try:
        return parse_config_file(path, text_of(path, missing=NotFoundError))
    except NotFoundError:
        return ConfigFile(path)


def parse_config_file(path: Path, text: str) -> ConfigFile:
    """Return what the text of a file says. Raises as `load_config_file`."""
    return _Reader(path).read(text)


def save_context(config: ConfigFile, name: str, context: ClusterContext | None) -> None:
    """Write a context in the place of the one of this name, or behind the others; None takes it away.

    The rest of the file, comments too, stays as it is; a new file is for its owner alone.

    Raises:
        UsageError: the file is written in a way (all on one line) that this cannot be changed in.
        StorageError: it cannot be written, and is as it was.
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

    settings = {key: getattr(context, key.replace("-", "_")) for key in _KEYS}
    body = {key: dict(value) if isinstance(value, Mapping) else value for key, value in settings.items() if value}
    text = yaml.dump({context.name: body}, Dumper=core_dumper(), sort_keys=False, allow_unicode=True, width=4096)
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
        UsageError: no such context.
        StorageError: the file cannot be written, and is as it was.
    """
    config.context(name)
    line = "current-context: " + _quoted(name)
    text = config.path.read_text(encoding="utf-8")
    _write(config.path, _CURRENT.sub(lambda _: line, text, count=1) if _CURRENT.search(text) else f"{line}\n{text}")


def _write(path: Path, text: str) -> None:
    """The whole file at once, with the rights that it has; a new one, and its folder, for its owner alone.

    A link stays one: the file that it points to is replaced.
    """
    target = path.resolve()
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            draft.chmod(target.stat().st_mode & 0o777)
        draft.replace(target)
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror or error}; it is as it was") from None
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


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
        properties = {each: self._text(given, each, (*path, "properties")) or "" for each in given}
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
POINTERS = "env:NAME, file:PATH, cmd:COMMAND or keyring:NAME"
"""What may stand in the place of a secret."""


def is_secret(key: str) -> bool:
    """Whether a property of this name may hold a secret."""
    return any(word in key for word in _SECRET)


def is_pointer(value: str) -> bool:
    """Whether a value says where the secret is, and is none itself."""
    return value.startswith(("env:", "file:", "cmd:", "keyring:"))


_PUBLIC = (".url", "ssl.ca.pem", "ssl.certificate.pem")
"""How names end of what has the word of a secret in it and is none."""


def literal_secrets(properties: Mapping[str, str]) -> list[str]:
    """Return the properties that are secrets and not pointers to them."""
    return sorted(
        key for key, value in properties.items() if is_secret(key) and not is_pointer(value) and not key.endswith(_PUBLIC)
    )


def resolved(properties: Mapping[str, str], variables: Mapping[str, str]) -> dict[str, str]:
    """The properties with each secret in the place of what points to it.

    Raises:
        UsageError: a variable is not set, a file cannot be read, a command fails, a key store has nothing; names the property.
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
            return at_home(rest).read_text(encoding="utf-8").rstrip("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{key}: cannot read {rest}: {getattr(error, 'strerror', None) or 'not UTF-8 text'}") from None
    return _kept(key, rest) if kind == "keyring" else _output(key, rest, variables)


KEYRING_SERVICE = "kgctl"


def _kept(key: str, name: str) -> str:
    """The password that the operating system's key store has for the service ``kgctl`` under this name."""
    require(f"{key}: a secret in the system's key store", "keyring")
    import keyring
    from keyring.errors import KeyringError

    try:
        found = keyring.get_password(KEYRING_SERVICE, name)
    except (KeyringError, RuntimeError) as error:
        raise UsageError(f"{key}: the system's key store cannot be asked: {error}") from None
    if not found:
        raise UsageError(f"{key}: the system's key store has no {name!r}: keyring set {KEYRING_SERVICE} {shlex.quote(name)}")
    return found


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


def plain_password_warning(settings: ConnectionSettings) -> str | None:
    """What to say where a password or a token goes to another machine in the clear; None where none does.

    SCRAM and GSSAPI send neither.
    """
    properties = settings.properties
    mechanism = properties.get("sasl.mechanism") or properties.get("sasl.mechanisms") or "GSSAPI"
    if properties.get("security.protocol", "").upper() != "SASL_PLAINTEXT" or mechanism.upper() not in ("PLAIN", "OAUTHBEARER"):
        return None
    hosts = [address.strip().rpartition(":")[0].strip("[]") for address in (_servers(settings) or "").split(",")]
    others = [host for host in hosts if host and not _is_this_machine(host)]
    what = "The token" if mechanism.upper() == "OAUTHBEARER" else "The password"
    return f"{what} goes to {others[0]} unencrypted (SASL_PLAINTEXT): SASL_SSL hides it." if others else None


def _is_this_machine(host: str) -> bool:
    from ipaddress import ip_address

    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def warning(path: Path, properties: Mapping[str, str]) -> str | None:
    """What to say of a file that others can read and that holds a secret itself; None where all is well."""
    literal = literal_secrets(properties)
    try:
        mode = path.stat().st_mode
    except OSError:
        return None
    if not literal or os.name != "posix" or not mode & (stat.S_IRGRP | stat.S_IROTH):
        return None
    held = ", ".join(literal)
    return f"Others can read {path}, which holds {held}: chmod 600 it, or write {POINTERS} there."
