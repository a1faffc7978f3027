"""Options that the history commands have alike, and how what was given is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from kgctl.admin.plan.times import parse_duration_ms, parse_past_instant_ms
from kgctl.cli.completers import complete_history_groups
from kgctl.cli.environment import Environment
from kgctl.errors import UsageError

if TYPE_CHECKING:
    from kgctl.pipeline.store.location import Location

TIMES = "2024-01-31T10:00:00Z (no zone: UTC), epoch milliseconds, `now`, `2h ago`, `yesterday 14:00 Europe/Berlin`"

Warehouse = Annotated[
    str | None,
    typer.Option(
        "--warehouse",
        metavar="DIR|URL",
        help="The history: a folder, or s3://, gs://, abfss://, hdfs://. [env: KGCTL_WAREHOUSE]",
        show_default=False,
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option("--cluster", metavar="NAME", help="The cluster's name in the warehouse, if it has several.", show_default=False),
]
Groups = Annotated[
    list[str] | None,
    typer.Option(
        "--group",
        metavar="GROUP",
        help="A group id; repeatable.",
        show_default=False,
        autocompletion=complete_history_groups,
    ),
]
GroupArguments = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="GROUP",
        help="Group ids; all groups otherwise.",
        show_default=False,
        autocompletion=complete_history_groups,
    ),
]
Topics = Annotated[
    list[str] | None,
    typer.Option(
        "--topic",
        metavar="TOPIC[:PARTITIONS]",
        help="Only this topic, or some of its partitions as in orders:0,2-5; repeatable.",
        show_default=False,
    ),
]
At = Annotated[str | None, typer.Option("--at", metavar="TIME", help=f"As of this time: {TIMES}.", show_default=False)]
From = Annotated[
    str | None, typer.Option("--from", metavar="TIME", help="From this time on, written like --at.", show_default=False)
]
To = Annotated[str | None, typer.Option("--to", metavar="TIME", help="Before this time, written like --at.", show_default=False)]


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time: from ``from_ms`` on and before ``to_ms``; None for no limit."""

    from_ms: int | None = None
    to_ms: int | None = None


def warehouse_path(given: str | None, environment: Environment) -> Location:
    """The folder or URL that ``--warehouse``, KGCTL_WAREHOUSE or else the user's state folder names. It need not exist.

    Raises:
        UsageError: the option is empty, or a URL of a store that kgctl cannot write.
    """
    from kgctl.pipeline.store.location import Location

    if given is None:
        return Location.parse(environment.warehouse_folder)
    if not given:
        raise UsageError("--warehouse is empty (an unset variable?): give it a folder")
    try:
        return Location.parse(given)
    except UsageError as error:
        raise UsageError(f"--warehouse {error.message}") from None


def read_time_ms(option: str, text: str | None, environment: Environment) -> int | None:
    """What ``option`` says, in milliseconds since the epoch; None if it was not given.

    Raises:
        UsageError: it is no time; names the option.
    """
    if text is None:
        return None
    try:
        return parse_past_instant_ms(text, environment.now_ms())
    except UsageError as error:
        meant = f" (`{text} ago`?)" if _is_duration(text) else ", or `2h ago`"
        raise UsageError(f"{option}: {error.message}{meant}") from None


def _is_duration(text: str) -> bool:
    try:
        return parse_duration_ms(text) >= 0
    except UsageError:
        return False


def read_span(from_: str | None, to: str | None, environment: Environment) -> Span:
    """What ``--from`` and ``--to`` say.

    Raises:
        UsageError: one is no time, or they are in the wrong order.
    """
    span = Span(read_time_ms("--from", from_, environment), read_time_ms("--to", to, environment))
    if span.from_ms is not None and span.to_ms is not None and span.from_ms >= span.to_ms:
        raise UsageError(f"--from {from_} is not before --to {to}")
    return span
