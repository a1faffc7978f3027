"""Which cluster is meant, and how to speak to it: flag before environment before the current context."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from kgctl.cli.config_file import ClusterContext, load_config_file
from kgctl.cli.environment import Environment
from kgctl.cli.output.formats import OutputFormat
from kgctl.errors import UsageError

if TYPE_CHECKING:
    from kgctl.admin.connect import ConnectionSettings

DEFAULT_TIMEOUT_MS = 15_000

NO_CLUSTER = (
    "no cluster given: use --bootstrap-server HOST:PORT or --embedded DIR, set KGCTL_BOOTSTRAP_SERVER, "
    "or make a context (kgctl context --help)"
)


@dataclass(frozen=True, slots=True)
class Flags:
    """The shared options as given on the command line; None or empty where not given."""

    output: OutputFormat | None = None
    bootstrap_server: str | None = None
    context: str | None = None
    embedded: str | None = None
    command_config: str | None = None
    properties: tuple[str, ...] = ()
    timeout: str | None = None

    def merged(self, later: Mapping[str, Any]) -> Self:
        """These, overridden by what was given later (nearer to the end of the line); properties add up."""
        given = {key: value for key, value in later.items() if value}
        if "properties" in given:
            given["properties"] = (*self.properties, *given["properties"])
        return replace(self, **given)

    def cluster_arguments(self) -> list[str]:
        """The flags that name the cluster, for a command line that is to be repeated; ``-X`` may hold secrets and is left out."""
        named = {
            "--bootstrap-server": self.bootstrap_server,
            "--context": self.context,
            "--embedded": self.embedded,
            "--command-config": self.command_config,
        }
        return [word for flag, value in named.items() if value for word in (flag, value)]

    def given(self) -> tuple[str, ...]:
        """The names of the options that were given."""
        return tuple(field.name for field in fields(self) if getattr(self, field.name))


def connection_settings(flags: Flags, environment: Environment) -> ConnectionSettings:
    """What to connect to.

    An address given by flag or variable stands alone: the current context, its credentials too, is then left out, unless a
    context is named by the same means.

    Raises:
        UsageError: no cluster, two of them, an unknown context, an unreadable file or value.
    """
    context = _context(flags, environment)
    return _build(context, flags.command_config, flags.properties, flags.timeout)


def context_settings(context: ClusterContext) -> ConnectionSettings:
    """What a context alone amounts to."""
    return _build(context, None, (), None)


def _context(flags: Flags, environment: Environment) -> ClusterContext:
    if flags.bootstrap_server and flags.embedded:
        raise UsageError("--bootstrap-server and --embedded exclude each other")
    by_flag = (flags.bootstrap_server, flags.embedded, flags.context)
    bootstrap, embedded, name = by_flag if any(by_flag) else _from_variables(environment)
    if not (bootstrap or embedded or name):
        name = load_config_file(environment.config_file).current_context
    context = load_config_file(environment.config_file).context(name) if name else ClusterContext("")
    if bootstrap or embedded:
        return replace(context, bootstrap_server=bootstrap, embedded=embedded)
    return context


def _from_variables(environment: Environment) -> tuple[str | None, str | None, str | None]:
    variables = environment.variables
    return variables.get("KGCTL_BOOTSTRAP_SERVER") or None, None, variables.get("KGCTL_CONTEXT") or None


def _build(
    context: ClusterContext, command_config: str | None, given: tuple[str, ...], timeout: str | None
) -> ConnectionSettings:
    from kgctl.admin.connect import ConnectionSettings

    properties = _properties(context, command_config, given)
    if not (context.bootstrap_server or context.embedded or "bootstrap.servers" in properties):
        raise UsageError(f"context {context.name!r} names no cluster" if context.name else NO_CLUSTER)
    timeout_text = timeout or context.timeout
    return ConnectionSettings(
        bootstrap=context.bootstrap_server,
        embedded=Path(context.embedded).expanduser() if context.embedded else None,
        properties=properties,
        timeout_ms=parse_timeout_ms(timeout_text) if timeout_text else DEFAULT_TIMEOUT_MS,
    )


def _properties(context: ClusterContext, command_config: str | None, given: tuple[str, ...]) -> Mapping[str, str]:
    if not (context.command_config or context.properties or command_config or given):
        return {}
    from kgctl.admin.properties import load_command_config, parse_x

    files = [path for path in (context.command_config, command_config) if path]
    loaded = [load_command_config(Path(path).expanduser()) for path in files]
    base = loaded[0] if context.command_config else {}
    flag_file = loaded[-1] if command_config else {}
    own = parse_x([f"{key}={value}" for key, value in context.properties.items()])
    return {**base, **own, **flag_file, **parse_x(list(given))}


def parse_timeout_ms(text: str) -> int:
    """Read a time limit: seconds, or a duration with a unit (``500ms``, ``2m``, ``PT5S``).

    Raises:
        UsageError: not a span of time, or not more than zero.
    """
    from kgctl.admin.plan.times import parse_duration_ms

    try:
        milliseconds = round(float(text) * 1000) if _is_plain_number(text) else parse_duration_ms(text)
    except UsageError as error:
        raise UsageError(f"--timeout: {error.message}; a bare number counts seconds") from None
    if not 0 < milliseconds <= 86_400_000:
        raise UsageError(f"--timeout {text!r} must be more than zero and at most one day")
    return milliseconds


def _is_plain_number(text: str) -> bool:
    return text.replace(".", "", 1).isdecimal() and text.isascii()
