"""``kgctl context``: the named clusters of the config file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

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
from kgctl.cli.options import Yes
from kgctl.cli.parameters import argument, flag, option
from kgctl.cli.project import Contexts, project_file, read_contexts, read_project_file, trust
from kgctl.cli.render import printable
from kgctl.cli.report import BOOL, Column, Report, Row, shows
from kgctl.cli.selection import confirm
from kgctl.cli.session import Session
from kgctl.cli.settings import Flags
from kgctl.errors import NotFoundError, UsageError
from kgctl.files import at_home

if TYPE_CHECKING:
    from kgctl.admin.connect import ConnectionSettings


ContextName = Annotated[str, argument("NAME", "A context of the config file.", complete=complete_contexts)]
CONTEXT = Column("context", "the context's name")
CONTEXTS = (
    CONTEXT,
    Column("current", "whether it is the current one", BOOL),
    Column("bootstrap_server", "the brokers' addresses"),
    Column("embedded", "the data folder of an embedded coordinator"),
    Column("zookeeper", "the addresses of ZooKeeper"),
    Column("command_config", "the file of properties", wide=True),
    Column("timeout", "the time limit, as written", wide=True),
)
SETTINGS = (
    CONTEXT,
    Column("setting", "the setting's name; librdkafka's for a property"),
    Column("value", "its value; secrets are `[hidden]`"),
)
HIDDEN = "[hidden]"
UNSETTABLE = ("bootstrap_server", "embedded", "zookeeper", "command_config", "timeout")


def contexts_report(contexts: Sequence[ClusterContext], current: str | None, notices: Sequence[str] = ()) -> Report:
    rows = [
        {"context": one.name, "current": one.name == current, **{name: getattr(one, name) for name in UNSETTABLE}}
        for one in contexts
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


@shows(CONTEXTS, examples="kgctl context list")
def context_list(session: Session) -> Report:
    """List the contexts of the config file; the current one is marked."""
    contexts = read_contexts(session.environment)
    notices = () if contexts.all() else (f"No contexts. They are defined in {contexts.user.path}.",)
    if contexts.project:
        notices = (*notices, f"{contexts.project.path} comes first{', once it is trusted' if contexts.doubts else ''}.")
    return contexts_report(sorted(contexts.all().values(), key=lambda one: one.name), contexts.current, notices)


@shows(CONTEXTS, examples="kgctl context use staging")
def context_use(session: Session, name: ContextName) -> Report:
    """Make a context the current one: the cluster of every command that names none."""
    contexts = read_contexts(session.environment)
    _check_is_own(contexts, name)
    save_current_context(contexts.user, name)
    notices = [f"Current context: {name}."]
    if contexts.current not in (name, contexts.user.current_context) and contexts.project:
        notices.append(f"In this folder it is {contexts.current}: {contexts.project.path} comes first.")
    return contexts_report([contexts.user.context(name)], name, notices)


def _check_is_own(contexts: Contexts, name: str) -> None:
    if contexts.project and name in contexts.project.contexts and name not in contexts.user.contexts:
        raise UsageError(f"context {name!r} is of {contexts.project.path}: edit that file")


@shows(SETTINGS, examples="kgctl context show staging -o yaml")
def context_show(
    session: Session,
    name: Annotated[str | None, argument("NAME", "A context; the current one if left out.", complete=complete_contexts)] = None,
) -> Report:
    """Show what a context amounts to, its files read: one row a setting, secrets hidden."""
    environment = session.environment
    contexts = read_contexts(environment)
    wanted = name or environment.variables.get("KGCTL_CONTEXT") or contexts.current
    if not wanted:
        raise UsageError(f"no context is named, and {contexts.user.path} has no current-context")
    return settings_report(wanted, context_settings(contexts.context(wanted)))


@shows(SETTINGS, examples="kgctl context trust")
def context_trust(
    session: Session,
    file: Annotated[str | None, argument("FILE", "A project's file; the nearest .kgctl.yml if left out.")] = None,
    *,
    forget: Annotated[bool, flag("--forget", "Trust it no longer.")] = False,
    yes: Yes = False,
) -> Report:
    """Show what a project's .kgctl.yml says, and trust it from now on, as it is. Asks first, unless --yes.

    A file that only says where clusters are needs no trust. One of another user's, or one that runs a command, reads a secret or
    a file, or sets more than that, is not used before; and not after a change of it, until it is trusted again.
    """
    path = at_home(file) if file else project_file(session.environment.variables)
    if path is None:
        raise NotFoundError("there is no .kgctl.yml from here upwards (nor is one looked for where KGCTL_CONFIG is set)")
    text, config = read_project_file(path)
    rows = [row for context in config.contexts.values() for row in _as_written(context)]
    if not forget:
        for row in rows:
            session.notice(printable(f"{row['context']}: {row['setting']} = {row['value']}"))
        confirm(session, f"Trust {path}, with what it runs and reads?", yes=yes)
    trust(path, text, is_trusted=not forget)
    told = f"{path} is trusted no longer." if forget else f"{path} is trusted as it is; a change of it is asked about again."
    return Report(SETTINGS, rows, notices=(told,), name_keys=("setting",))


def _as_written(context: ClusterContext) -> Iterator[Row]:
    """Yield one row a setting; a secret that stands there itself is hidden."""
    settings = {name.replace("_", "-"): getattr(context, name) for name in UNSETTABLE}
    settings |= {key: HIDDEN if is_secret(key) and not is_pointer(value) else value for key, value in context.properties.items()}
    yield from ({"context": context.name, "setting": key, "value": value} for key, value in settings.items() if value)


@shows(CONTEXTS, examples="kgctl context current")
def context_current(session: Session) -> Report:
    """Show which context commands use that name no cluster."""
    environment = session.environment
    contexts = read_contexts(environment)
    name = environment.variables.get("KGCTL_CONTEXT") or contexts.current
    if not name:
        raise NotFoundError(f"there is no current context ({contexts.user.path})")
    return contexts_report([contexts.context(name)], name)


ADD_EXAMPLES = """
kgctl context add staging --bootstrap-server broker1:9092,broker2:9092 --use
kgctl context add prod --bootstrap-server b:9093 --command-config prod.properties -X sasl.password=env:PROD_PASSWORD
"""


@shows(CONTEXTS, examples=ADD_EXAMPLES)
def context_add(
    session: Session,
    name: Annotated[str, argument("NAME", "What to call it.")],
    *,
    use: Annotated[bool, flag("--use", "Make it the current context.")] = False,
) -> Report:
    """Add a context: the cluster options of this line are kept under a name.

    A password is written as env:NAME, file:PATH, cmd:COMMAND or keyring:NAME, and read when it is needed.
    """
    config = load_config_file(session.environment.config_file)
    if name in config.contexts:
        raise UsageError(f"there is a context {name!r} already: kgctl context set {name} changes it")
    context = _given(ClusterContext(name), session.flags)
    if not (context.bootstrap_server or context.embedded or context.zookeeper or context.command_config):
        raise UsageError("say which cluster: --bootstrap-server, --embedded, or --command-config with a file that names it")
    return _saved(session, name, context, use=use)


@shows(CONTEXTS, examples="kgctl context set staging --timeout 30s")
def context_set(
    session: Session,
    name: ContextName,
    *,
    unset: Annotated[list[str] | None, option("SETTING", "Take a setting or property away; repeatable.")] = None,
) -> Report:
    """Change settings of a context: those given on this line replace its own, the rest stays."""
    _check_is_own(read_contexts(session.environment), name)
    kept = load_config_file(session.environment.config_file).context(name)
    context = _given(kept, session.flags)
    if not unset and _given(ClusterContext(name), session.flags) == ClusterContext(name):
        raise UsageError("say what to set: --bootstrap-server, --timeout, -X and the like, or --unset SETTING")
    for setting in unset or ():
        field = setting.removeprefix("--").replace("-", "_")
        if setting in context.properties:
            context = replace(context, properties={key: value for key, value in context.properties.items() if key != setting})
        elif getattr(context, field, None) and field in UNSETTABLE:
            gone: dict[str, Any] = {field: None}
            context = replace(context, **gone)
        else:
            raise UsageError(f"context {name!r} has no setting {setting!r}")
    return _saved(session, name, context, use=False)


@shows(CONTEXTS, examples="kgctl context delete staging")
def context_delete(session: Session, name: ContextName) -> Report:
    """Take a context out of the config file; the cluster itself is not touched."""
    _check_is_own(read_contexts(session.environment), name)
    config = load_config_file(session.environment.config_file)
    gone = config.context(name)
    save_context(config, name, None)
    told = [f"Context {name!r} is deleted."]
    if config.current_context == name:
        told.append("It was the current one: kgctl context use NAME chooses another.")
    return contexts_report([gone], None, told)


def _given(context: ClusterContext, flags: Flags) -> ClusterContext:
    if flags.context:
        raise UsageError("--context has no place here: the context is named by its argument")
    given = dict(text.partition("=")[::2] for text in flags.properties)
    for key, value in given.items():
        if is_secret(key) and not is_pointer(value):
            raise UsageError(f"-X {key}: a secret is not kept as it stands; write {POINTERS}")
    if flags.bootstrap_server and flags.embedded:
        raise UsageError("--bootstrap-server and --embedded exclude each other")
    address = {"bootstrap_server": flags.bootstrap_server, "embedded": flags.embedded, "zookeeper": flags.zookeeper}
    settings: dict[str, Any] = {"command_config": flags.command_config, "timeout": flags.timeout}
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
