"""Options shared by commands: those of every command that reaches a cluster, and the arguments that several commands have alike.

The shared options stand before or after a command's name. They are parsed at each level and merged, what stands later winning;
commands never see them, they ask their `Session`.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

from kgctl.cli.completion import complete_contexts, complete_groups, complete_topics
from kgctl.cli.parameters import argument, declared, flag, option
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
        option("FORMAT", "How to show the result: table, wide, json, ndjson, yaml, csv, name or name0.", "-o", "--output"),
    ] = None,
    bootstrap_server: Annotated[
        str | None, option("HOST:PORT,...", "Brokers of the cluster. [env: KGCTL_BOOTSTRAP_SERVER]")
    ] = None,
    context: Annotated[
        str | None, option("NAME", "A context of the config file. [env: KGCTL_CONTEXT]", complete=complete_contexts)
    ] = None,
    embedded: Annotated[str | None, option("DIR", "The data folder of an embedded coordinator; no broker is needed.")] = None,
    zookeeper: Annotated[
        str | None, option("HOST:PORT,.../CHROOT", "ZooKeeper, for the groups of old consumers. [env: KGCTL_ZOOKEEPER]")
    ] = None,
    command_config: Annotated[
        str | None, option("FILE", "A Kafka client's .properties file: security and other settings.")
    ] = None,
    properties: Annotated[list[str] | None, option("KEY=VALUE", "A librdkafka setting; repeatable.", "-X")] = None,
    timeout: Annotated[str | None, option("TIME", "Give up after this long: seconds, or 500ms, 2m. [default: 15]")] = None,
) -> None:
    """Declares the shared options."""


@cache
def _declared() -> dict[str, Any]:
    return {str(parameter.name): parameter for parameter in declared(_shared)}


def shared_parameters(names: tuple[str, ...]) -> list[Any]:
    return [parameter for name, parameter in _declared().items() if name in names]


def flag_text(name: str) -> str:
    return str(max(_declared()[name].opts, key=len))


GroupArguments = Annotated[list[str] | None, argument("GROUP", "Group ids, one or several.", complete=complete_groups)]
GroupOptions = Annotated[
    list[str] | None, option("GROUP", "A group id, as runbooks write it; repeatable.", "--group", complete=complete_groups)
]
TopicOptions = Annotated[
    list[str] | None,
    option(
        "TOPIC[:PARTITIONS]",
        "A topic, or some of its partitions as in orders:0,2-5; repeatable.",
        "--topic",
        complete=complete_topics,
    ),
]
Yes = Annotated[bool, flag("--yes", "-y", "Answer every question with yes.")]


def merged_groups(positional: list[str] | None, by_option: list[str] | None) -> list[str]:
    """Group ids from both ways of giving them, each once, in the order given.

    Raises:
        UsageError: one is empty, or longer than a string of the protocol can be.
    """
    group_ids = list(dict.fromkeys([*(positional or ()), *(by_option or ())]))
    if "" in group_ids:
        raise UsageError("a group id must not be empty")
    for group_id in group_ids:
        if (size := len(group_id.encode())) > MAX_STRING_BYTES:
            shown = f"{group_id[:40]}..."
            raise UsageError(f"the group id {shown!r} has {size} bytes; at most {MAX_STRING_BYTES} are possible")
    return group_ids
