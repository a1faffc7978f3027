"""``kgctl context``: the named clusters of the config file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kgctl.admin.connect import (
    POINTERS,
    ClusterContext,
    context_settings,
    is_pointer,
    is_secret,
    load_config_file,
    save_context,
    save_current_context,
)
from kgctl.cli.completion import complete_contexts
from kgctl.cli.report import Column, Report
from kgctl.cli.session import Session, session_of
from kgctl.cli.settings import Flags
from kgctl.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from kgctl.admin.connect import ConnectionSettings


CONTEXTS = (
    Column("context"),
    Column("current"),
    Column("bootstrap_server"),
    Column("embedded"),
    Column("zookeeper"),
    Column("command_config", wide=True),
    Column("timeout", wide=True),
)
SETTINGS = (Column("context"), Column("setting"), Column("value"))
HIDDEN = "[hidden]"
UNSETTABLE = ("bootstrap_server", "embedded", "zookeeper", "command_config", "timeout")


def contexts_report(contexts: Sequence[ClusterContext], current: str | None, notices: Sequence[str] = ()) -> Report:
    """One row a context, as written in the file; properties are left out."""
    rows = [
        {
            "context": context.name,
            "current": context.name == current,
            "bootstrap_server": context.bootstrap_server,
            "embedded": context.embedded,
            "zookeeper": context.zookeeper,
            "command_config": context.command_config,
            "timeout": context.timeout,
        }
        for context in contexts
    ]
    return Report(CONTEXTS, rows, (), notices, ("context",))


def settings_report(name: str, settings: ConnectionSettings) -> Report:
    """One row a setting, with librdkafka's names for properties; what may be a secret is hidden."""
    values = {
        "bootstrap-server": settings.bootstrap,
        "embedded": str(settings.embedded) if settings.embedded else None,
        "zookeeper": settings.zookeeper,
        "timeout": f"{settings.timeout_ms} ms",
        **{key: HIDDEN if is_secret(key) else value for key, value in sorted(settings.properties.items())},
    }
    rows = [{"context": name, "setting": key, "value": value} for key, value in values.items() if value is not None]
    return Report(SETTINGS, rows, name_keys=("setting",))


def register_list(app: typer.Typer) -> None:
    app.command(epilog="Example: kgctl context list")(context_list)


def context_list(ctx: typer.Context) -> Report:
    """List the contexts of the config file; the current one is marked."""
    environment = session_of(ctx).environment
    config = load_config_file(environment.config_file)
    notices = () if config.contexts else (f"No contexts. They are defined in {config.path}.",)
    return contexts_report(sorted(config.contexts.values(), key=lambda one: one.name), config.current_context, notices)


def register_use(app: typer.Typer) -> None:
    app.command(epilog="Example: kgctl context use staging")(context_use)


def context_use(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A context of the config file.", autocompletion=complete_contexts)],
) -> Report:
    """Make a context the current one: the cluster of every command that names none."""
    config = load_config_file(session_of(ctx).environment.config_file)
    save_current_context(config, name)
    return contexts_report([config.context(name)], name, (f"Current context: {name}.",))


def register_show(app: typer.Typer) -> None:
    app.command(epilog="Example: kgctl context show staging -o yaml")(context_show)


def context_show(
    ctx: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="A context; the current one if left out.", autocompletion=complete_contexts),
    ] = None,
) -> Report:
    """Show what a context amounts to, its files read: one row a setting, secrets hidden."""
    environment = session_of(ctx).environment
    config = load_config_file(environment.config_file)
    wanted = name or environment.variables.get("KGCTL_CONTEXT") or config.current_context
    if not wanted:
        raise UsageError(f"no context is named, and {config.path} has no current-context")
    return settings_report(wanted, context_settings(config.context(wanted)))


def register_current(app: typer.Typer) -> None:
    app.command(epilog="Example: kgctl context current")(context_current)


def context_current(ctx: typer.Context) -> Report:
    """Show which context commands use that name no cluster."""
    environment = session_of(ctx).environment
    config = load_config_file(environment.config_file)
    name = environment.variables.get("KGCTL_CONTEXT") or config.current_context
    if not name:
        raise NotFoundError(f"there is no current context ({config.path})")
    return contexts_report([config.context(name)], name)


def register_add(app: typer.Typer) -> None:
    app.command(epilog=ADD_EPILOG)(context_add)


ADD_EPILOG = """Examples:

\b
kgctl context add staging --bootstrap-server broker1:9092,broker2:9092 --use
kgctl context add prod --bootstrap-server b:9093 --command-config prod.properties -X sasl.password=env:PROD_PASSWORD
"""


def context_add(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What to call it.")],
    *,
    use: Annotated[bool, typer.Option("--use", help="Make it the current context.")] = False,
) -> Report:
    """Add a context: the cluster options of this line are kept under a name.

    A password is written as env:NAME, file:PATH, cmd:COMMAND or keyring:NAME, and read when it is needed.
    """
    session = session_of(ctx)
    config = load_config_file(session.environment.config_file)
    if name in config.contexts:
        raise UsageError(f"there is a context {name!r} already: kgctl context set {name} changes it")
    context = _given(ClusterContext(name), session.flags)
    if not (context.bootstrap_server or context.embedded or context.zookeeper or context.command_config):
        raise UsageError("say which cluster: --bootstrap-server, --embedded, or --command-config with a file that names it")
    return _saved(session, name, context, use=use)


def register_set(app: typer.Typer) -> None:
    app.command(epilog="Example: kgctl context set staging --timeout 30s")(context_set)


def context_set(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A context of the config file.", autocompletion=complete_contexts)],
    *,
    unset: Annotated[
        list[str] | None, typer.Option("--unset", metavar="SETTING", help="Take a setting or property away; repeatable.")
    ] = None,
) -> Report:
    """Change settings of a context: those given on this line replace its own, the rest stays."""
    session = session_of(ctx)
    kept = load_config_file(session.environment.config_file).context(name)
    context = _given(kept, session.flags)
    if not unset and _given(ClusterContext(name), session.flags) == ClusterContext(name):
        raise UsageError("say what to set: --bootstrap-server, --timeout, -X and the like, or --unset SETTING")
    for setting in unset or ():
        field = setting.removeprefix("--").replace("-", "_")
        if setting in context.properties:
            context = replace(context, properties={key: value for key, value in context.properties.items() if key != setting})
        elif getattr(context, field, None) and field in (
            "bootstrap_server",
            "embedded",
            "zookeeper",
            "command_config",
            "timeout",
        ):
            gone: dict[str, Any] = {field: None}
            context = replace(context, **gone)
        else:
            raise UsageError(f"context {name!r} has no setting {setting!r}")
    return _saved(session, name, context, use=False)


def register_delete(app: typer.Typer) -> None:
    app.command(epilog="Example: kgctl context delete staging")(context_delete)


def context_delete(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A context of the config file.", autocompletion=complete_contexts)],
) -> Report:
    """Take a context out of the config file; the cluster itself is not touched."""
    session = session_of(ctx)
    config = load_config_file(session.environment.config_file)
    gone = config.context(name)
    save_context(config, name, None)
    told = [f"Context {name!r} is deleted."]
    if config.current_context == name:
        told.append("It was the current one: kgctl context use NAME chooses another.")
    return contexts_report([gone], None, told)


def _given(context: ClusterContext, flags: Flags) -> ClusterContext:
    """Return the context with what the flags say."""
    if flags.context:
        raise UsageError("--context has no place here: the context is named by its argument")
    given = dict(text.partition("=")[::2] for text in flags.properties)
    for key, value in given.items():
        if is_secret(key) and not is_pointer(value):
            raise UsageError(f"-X {key}: a secret is not kept as it stands; write {POINTERS}")
    if flags.bootstrap_server and flags.embedded:
        raise UsageError("--bootstrap-server and --embedded exclude each other")
    address = {"bootstrap_server": flags.bootstrap_server, "embedded": flags.embedded, "zookeeper": flags.zookeeper}
    settings = {"command_config": flags.command_config, "timeout": flags.timeout}
    changed: dict[str, Any] = {key: value for key, value in settings.items() if value}
    if any(address.values()):
        changed |= address
    return replace(context, properties={**context.properties, **given}, **changed)


def _saved(session: Session, name: str, context: ClusterContext, *, use: bool) -> Report:
    context_settings(context)  # what cannot be connected with is not kept
    path = session.environment.config_file
    save_context(load_config_file(path), name, context)
    if use:
        save_current_context(load_config_file(path), name)
    config = load_config_file(path)
    return contexts_report([config.context(name)], config.current_context, (f"Written to {path}.",))
