"""Which cluster is meant, and how to speak to it: flag before environment before the current context."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from kgctl.cli.environment import Environment
from kgctl.cli.report import OutputFormat
from kgctl.errors import UsageError
from kgctl.files import at_home
from kgctl.model.values import frozen_in_order

if TYPE_CHECKING:
    from kgctl.admin.connect import ClusterContext, ConnectionSettings

NO_CLUSTER = (
    "no cluster given: use --bootstrap-server HOST:PORT, --embedded DIR or --zookeeper HOST:PORT, "
    "set KGCTL_BOOTSTRAP_SERVER or KGCTL_ZOOKEEPER, or make a context (kgctl context --help)"
)


@frozen_in_order
class Flags:
    """The shared options as given on the command line; None or empty where not given."""

    output: OutputFormat | None = None
    bootstrap_server: str | None = None
    context: str | None = None
    embedded: str | None = None
    zookeeper: str | None = None
    command_config: str | None = None
    properties: tuple[str, ...] = ()
    timeout: str | None = None

    def merged(self, later: Mapping[str, Any]) -> Self:
        """Return these flags overridden by those given later (nearer to the end of the line); properties add up."""
        given = {key: value for key, value in later.items() if value not in (None, (), [])}
        if "properties" in given:
            given["properties"] = (*self.properties, *given["properties"])
        return replace(self, **given)

    def cluster_arguments(self) -> list[str]:
        """The flags that name the cluster and how to log in, for a command line that is to be repeated, without secrets."""
        from kgctl.admin.connect import ADDRESSES, is_pointer, is_secret

        given = [(key.strip(), value) for key, _, value in (text.partition("=") for text in self.properties)]
        by_x = [value for key, value in given if key in ADDRESSES]
        login = [(key, value) for key, value in given if key.startswith(("security.", "sasl.", "ssl."))]
        shown = [f"{key}={value}" for key, value in login if not is_secret(key) or is_pointer(value)]
        named = {
            "--bootstrap-server": self.bootstrap_server or "".join(by_x[-1:]),
            "--context": self.context,
            "--embedded": self.embedded,
            "--zookeeper": self.zookeeper,
            "--command-config": self.command_config,
        }
        words = [*((flag, value) for flag, value in named.items() if value), *(("-X", each) for each in shown)]
        return [word for pair in words for word in pair]

    def given(self) -> tuple[str, ...]:
        return tuple(field.name for field in fields(self) if getattr(self, field.name) not in (None, ()))


def connection_settings(flags: Flags, environment: Environment) -> ConnectionSettings:
    """What to connect to.

    An address given by flag or variable stands alone: the current context, its credentials too, is then left out, unless a
    context is named by the same means. An address among the properties given by flag is one by flag: `-X`'s as good as
    ``--bootstrap-server``, that of a file behind every flag that names a cluster. Brokers may stand beside ``--zookeeper``, for
    the ends of the logs, and only there; those of a context too that is named beside it.

    Raises:
        UsageError: no cluster, two of them, an unknown context, an unreadable file or value.
    """
    from kgctl.admin.connect import context_settings, resolved

    context, by_file, by_x = _named(flags, environment)
    if not (context.name or context.has_address() or _has_address({**by_file, **by_x})):
        raise UsageError(NO_CLUSTER)
    settings = context_settings(context, {**by_file, **by_x}, flags.timeout)
    return replace(settings, properties=resolved(settings.properties, os.environ))


def secret_warnings(flags: Flags, environment: Environment, settings: ConnectionSettings) -> list[str]:
    """What to say of secrets that others can read: on the command line, in the config file's context in use, in
    ``--command-config FILE``, and on the way to another machine."""
    from kgctl.admin.connect import POINTERS, literal_secrets, plain_password_warning, warning
    from kgctl.cli.project import read_contexts

    context, by_file, by_x = _named(flags, environment)
    typed = ", ".join(literal_secrets(by_x))
    told = [
        f"-X {typed}: all users of this machine can see it in the list of processes; write {POINTERS}" if typed else None,
        warning(read_contexts(environment).file_of(context.name), context.properties) if context.properties else None,
        warning(at_home(flags.command_config), by_file) if flags.command_config else None,
        plain_password_warning(settings),
    ]
    return [each for each in told if each]


def naming_project_file(flags: Flags, environment: Environment) -> Path | None:
    """The folder's ``.kgctl.yml``, where the cluster is that of one of its contexts."""
    from kgctl.cli.project import read_contexts

    contexts = read_contexts(environment)
    context, *_ = _named(flags, environment)
    return contexts.project.path if contexts.project and context.name in contexts.project.contexts else None


def cluster_reference(flags: Flags, environment: Environment) -> tuple[str, tuple[str, ...]]:
    """How the user knows the cluster (an address, or ``context NAME``), and the flags that name it wherever they are typed.

    An address that came from a variable or from the current context is among these flags: where the line is repeated, both may be
    others.
    """
    from kgctl.admin.connect import ADDRESSES

    context, by_file, by_x = _named(flags, environment)
    arguments = tuple(flags.cluster_arguments())
    given = {**by_file, **by_x}
    addresses = [given[name] for name in ADDRESSES if given.get(name)]
    own = _address_text(context)
    if context.name and own and not (flags.bootstrap_server or flags.embedded or flags.zookeeper or addresses):
        by_variable = environment.variables.get("KGCTL_BOOTSTRAP_SERVER") or environment.variables.get("KGCTL_ZOOKEEPER")
        if not by_variable or flags.context:
            return f"context {context.name}", (*arguments, *(() if flags.context else ("--context", context.name)))
    label = own or "".join(addresses[:1]) or f"context {context.name}"
    if not (flags.bootstrap_server or flags.embedded or flags.zookeeper or flags.context or addresses):
        named = (("--zookeeper", context.zookeeper), ("--bootstrap-server", context.bootstrap_server))
        arguments = (*arguments, *(word for flag, value in named if value for word in (flag, value)))
    return label, arguments


def _address_text(context: ClusterContext) -> str:
    if context.zookeeper:
        return f"ZooKeeper {context.zookeeper}"
    if context.embedded:
        return f"the data folder {at_home(context.embedded).absolute()}"
    return context.bootstrap_server or ""


def without_properties(argv: Sequence[str]) -> list[str]:
    """The words of a command line without ``-X`` and what follows it."""
    kept, skip = [], False
    for word in argv:
        if not skip and not word.startswith("-X"):
            kept.append(word)
        skip = word == "-X"
    return kept


def _named(flags: Flags, environment: Environment) -> tuple[ClusterContext, Mapping[str, str], Mapping[str, str]]:
    """The context that is meant, and what `_properties_by_flag` returns."""
    by_file, by_x = _properties_by_flag(flags)
    return _context(flags, environment, by_file, by_x), by_file, by_x


def _context(flags: Flags, environment: Environment, by_file: Mapping[str, str], by_x: Mapping[str, str]) -> ClusterContext:
    from kgctl.admin.connect import ClusterContext
    from kgctl.cli.project import read_contexts

    _check_one_address(flags, by_x)
    by_flag = (flags.bootstrap_server, flags.embedded, flags.zookeeper, flags.context)
    if not any(by_flag) and _has_address({**by_file, **by_x}):
        return ClusterContext("")
    bootstrap, embedded, zookeeper, name = by_flag if any(by_flag) else _from_variables(environment)
    is_by_address = not name and (bootstrap or embedded or zookeeper)
    context = ClusterContext("") if is_by_address else read_contexts(environment).context(name)
    if zookeeper:
        return replace(context, bootstrap_server=bootstrap or context.bootstrap_server, embedded=None, zookeeper=zookeeper)
    if bootstrap or embedded or _has_address(by_x):
        return replace(context, bootstrap_server=bootstrap, embedded=embedded, zookeeper=None)
    return context


def _check_one_address(flags: Flags, by_x: Mapping[str, str]) -> None:
    named = [flag for flag, value in (("--bootstrap-server", flags.bootstrap_server), ("--embedded", flags.embedded)) if value]
    if _has_address(by_x):
        named.append("-X bootstrap.servers")
    if flags.embedded and flags.zookeeper:
        named.append("--zookeeper")
    if len(named) > 1:
        raise UsageError(f"{named[0]} and {named[1]} exclude each other")


def _has_address(properties: Mapping[str, str]) -> bool:
    from kgctl.admin.connect import ADDRESSES

    return any(name in properties for name in ADDRESSES)


def _from_variables(environment: Environment) -> tuple[str | None, str | None, str | None, str | None]:
    """Raises `UsageError` for a name that is nearly one of these: the command would go to the current context's cluster."""
    bootstrap, zookeeper, name = map(environment.variable, ("KGCTL_BOOTSTRAP_SERVER", "KGCTL_ZOOKEEPER", "KGCTL_CONTEXT"))
    return bootstrap, None, zookeeper, name


def _properties_by_flag(flags: Flags) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """What ``--command-config`` sets, and what ``-X`` sets."""
    if not (flags.command_config or flags.properties):
        return {}, {}
    from kgctl.admin.properties import load_command_config, parse_x

    by_file = load_command_config(at_home(flags.command_config)) if flags.command_config else {}
    return by_file, parse_x(list(flags.properties))
