"""``kgctl completion``, and completion of names that only the cluster knows.

Fast or nothing: any failure, and any delay, completes to no names.

Names are handed to a shell's completion script, which may evaluate them; those with characters outside Kafka's own alphabet for
topic names are not offered, nor those that begin like an option.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kgctl.cli.parameters import argument
from kgctl.cli.report import shows
from kgctl.cli.session import Session

if TYPE_CHECKING:
    from kgctl.admin import GroupAdmin
    from kgctl.cli.environment import Environment
    from kgctl.model.groups import MemberDescription


COMPLETION_TIMEOUT_MS = 1500
_SAFE = r"[\w.\x80-\U0010ffff][\w.\x80-\U0010ffff-]*(:[0-9]+)?"
"""Names that no shell reads as more than a word; letters, digits and signs of all scripts are none that a shell knows. To compile
it takes 5 ms, which no other command has to wait for."""


Completer = Callable[[typer.Context, list[str], str], list[str]]


def _completer(names: Callable[[typer.Context, str], Iterable[str]]) -> Completer:
    """Return what offers, of ``names``, those that begin like what was typed: what typer asks; silent whatever happens."""

    def complete(ctx: typer.Context, args: list[str], incomplete: str) -> list[str]:  # noqa: ARG001
        try:
            found = names(ctx, incomplete)
            return sorted(
                name for name in found if name.startswith(incomplete) and name.isprintable() and re.fullmatch(_SAFE, name)
            )
        except Exception:  # noqa: BLE001 - completion must stay silent whatever happens
            return []

    return complete


complete_groups = _completer(lambda ctx, _: _from_cluster(ctx, lambda admin: admin.list_groups().values))
complete_topics = _completer(lambda ctx, typed: _from_cluster(ctx, lambda admin: _topics(ctx, admin, typed)))
complete_members = _completer(lambda ctx, _: _from_cluster(ctx, lambda admin: [one.member_id for one in _members(ctx, admin)]))
complete_instances = _completer(
    lambda ctx, _: _from_cluster(ctx, lambda admin: [one.group_instance_id or "" for one in _members(ctx, admin)])
)


def _members(ctx: typer.Context, admin: GroupAdmin) -> Iterable[MemberDescription]:
    described = admin.describe_groups(_groups(ctx)).values
    return [member for description in described.values() for member in description.members]


def _groups(ctx: typer.Context) -> list[str]:
    return [*(ctx.params.get("groups") or ()), *(ctx.params.get("group") or ())]


def _topics(ctx: typer.Context, admin: GroupAdmin, incomplete: str) -> Iterable[str]:
    """The topics of the groups that the line names, else all; behind ``orders:`` the partitions."""
    topic, colon, _ = incomplete.partition(":")
    if colon:
        count = admin.list_topics([topic]).get(topic, 0)
        return [f"{topic}:{number}" for number in range(count)]
    groups = _groups(ctx)
    if not groups:
        return admin.list_topics()
    committed = admin.list_committed_offsets(groups).values
    return {partition.topic for offsets in committed.values() for partition in offsets}


@_completer
def complete_contexts(ctx: typer.Context, _: str) -> Iterable[str]:
    from kgctl.cli.project import read_contexts

    return read_contexts(_environment(ctx)).all()


@_completer
def complete_undo_ids(ctx: typer.Context, _: str) -> Iterable[str]:
    from kgctl.cli.groups.undo_files import LAST, undo_files

    return [*(file.id for file in undo_files(_environment(ctx)).files if not file.is_gone), LAST]


def _environment(ctx: typer.Context) -> Environment:
    from kgctl.cli.environment import Environment
    from kgctl.cli.session import Session

    return ctx.obj.environment if isinstance(ctx.obj, Session) else Environment()


def _from_cluster(ctx: typer.Context, ask: Callable[[GroupAdmin], Iterable[str]]) -> Iterable[str]:
    from dataclasses import replace

    from kgctl.cli.settings import Flags, connection_settings

    environment = _environment(ctx)
    settings = connection_settings(_given_flags(ctx, Flags()), environment)
    limit = min(settings.timeout_ms, COMPLETION_TIMEOUT_MS)
    with environment.connect(replace(settings, timeout_ms=limit)) as admin:
        return list(ask(admin))


def _given_flags(ctx: Any, flags: Any) -> Any:
    if ctx.parent is not None:
        flags = _given_flags(ctx.parent, flags)
    known = set(flags.__slots__)
    given = {name: value for name, value in ctx.params.items() if name in known}
    if given.get("properties"):
        given["properties"] = tuple(given["properties"])
    return flags.merged(given)


@_completer
def complete_scenarios(_: typer.Context, __: str) -> Iterable[str]:
    from kgctl.simulate.scenario.sources import builtin_names

    return builtin_names()


@_completer
def complete_pages(_: typer.Context, __: str) -> Iterable[str]:
    from kgctl.cli.manual import page_names

    return page_names()


@_completer
def complete_history_groups(ctx: typer.Context, _: str) -> Iterable[str]:
    from kgctl.pipeline.answers.history import History

    where, named = ctx.params.get("warehouse") or _environment(ctx).warehouse, ctx.params.get("cluster")
    clusters = [named] if named is None or isinstance(named, str) else named or [None]  # a report is of several
    return {group for cluster in clusters for group in History.open(where, cluster).groups()}


class Shell(StrEnum):
    """The shells that have a script."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@shows(examples="source <(kgctl completion bash)")
def completion(session: Session, shell: Annotated[Shell, argument("SHELL", "bash, zsh or fish.", show_default=False)]) -> int:
    """Print the completion script of a shell: commands, options, and the names of groups, topics, members and contexts."""
    session.environment.stdout.write(script(shell))
    return 0


def script(shell: str) -> str:
    # Not typer's: that for bash knows of no words with a colon (behind ``orders:`` it asks for nothing), that for zsh lets it
    # guess where a value ends, and that for fish asks twice for each Tab and knows of no ``--option=value``.
    from importlib import resources

    return (resources.files("kgctl") / "cli" / "scripts" / f"kgctl.{shell}").read_text(encoding="utf-8")
