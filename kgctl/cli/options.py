"""Options shared by commands: those of every command that reaches a cluster, and the arguments that several commands have alike.

The shared options stand before or after a command's name. They are parsed at each level and merged, what stands later winning;
commands never see them, they ask their `Session`.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

import typer

from kgctl.cli.completion import complete_contexts, complete_groups, complete_topics
from kgctl.cli.report import OutputFormat
from kgctl.errors import UsageError

MAX_STRING_BYTES = 2**15 - 1
"""Kafka's strings have a length of two bytes; a longer one makes a request that brokers cannot read."""

OUTPUT = ("output",)
CLUSTER = ("bootstrap_server", "context", "embedded", "zookeeper", "command_config", "properties", "timeout")
ALL = (*OUTPUT, *CLUSTER)


def _shared(
    *,
    output: Annotated[
        OutputFormat | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FORMAT",
            help="How to show the result: table, wide, json, ndjson, yaml, csv, name or name0.",
        ),
    ] = None,
    bootstrap_server: Annotated[
        str | None, typer.Option(metavar="HOST:PORT,...", help="Brokers of the cluster. [env: KGCTL_BOOTSTRAP_SERVER]")
    ] = None,
    context: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A context of the config file. [env: KGCTL_CONTEXT]", autocompletion=complete_contexts),
    ] = None,
    embedded: Annotated[
        str | None, typer.Option(metavar="DIR", help="The data folder of an embedded coordinator; no broker is needed.")
    ] = None,
    zookeeper: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT,.../CHROOT", help="ZooKeeper, for the groups of old consumers. [env: KGCTL_ZOOKEEPER]"),
    ] = None,
    command_config: Annotated[
        str | None, typer.Option(metavar="FILE", help="A Kafka client's .properties file: security and other settings.")
    ] = None,
    properties: Annotated[
        list[str] | None, typer.Option("-X", metavar="KEY=VALUE", help="A librdkafka setting; repeatable.")
    ] = None,
    timeout: Annotated[
        str | None, typer.Option(metavar="TIME", help="Give up after this long: seconds, or 500ms, 2m. [default: 15]")
    ] = None,
) -> None:
    """Declares the shared options; typer reads the signature, nothing calls it."""


@cache
def _declared() -> dict[str, Any]:
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command()(_shared)
    return {str(parameter.name): parameter for parameter in typer.main.get_command(app).params}


def shared_parameters(names: tuple[str, ...]) -> list[Any]:
    return [parameter for name, parameter in _declared().items() if name in names]


def flag_text(name: str) -> str:
    return str(max(_declared()[name].opts, key=len))


GroupArguments = Annotated[
    list[str] | None,
    typer.Argument(metavar="GROUP", help="Group ids, one or several.", show_default=False, autocompletion=complete_groups),
]
GroupOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--group", metavar="GROUP", help="A group id, as runbooks write it; repeatable.", autocompletion=complete_groups
    ),
]
TopicOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--topic",
        metavar="TOPIC[:PARTITIONS]",
        help="A topic, or some of its partitions as in orders:0,2-5; repeatable.",
        autocompletion=complete_topics,
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Answer every question with yes.")]


def merged_groups(positional: list[str] | None, by_option: list[str] | None) -> list[str]:
    """Group ids from both ways of giving them, each once, in the order given.

    Raises:
        UsageError: one is longer than a string of the protocol can be.
    """
    group_ids = list(dict.fromkeys([*(positional or ()), *(by_option or ())]))
    for group_id in group_ids:
        if (size := len(group_id.encode())) > MAX_STRING_BYTES:
            shown = f"{group_id[:40]}..."
            raise UsageError(f"the group id {shown!r} has {size} bytes; at most {MAX_STRING_BYTES} are possible")
    return group_ids
