"""Options that the history commands have alike, and how what was given is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from kgctl.admin.plan.times import parse_duration_ms, parse_past_instant_ms
from kgctl.cli.completion import complete_history_groups
from kgctl.cli.environment import Environment
from kgctl.errors import UsageError

if TYPE_CHECKING:
    from kgctl.pipeline.collect.live import Plan
    from kgctl.pipeline.store.files import Location

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
AsOfVersion = Annotated[
    int | None,
    typer.Option(
        "--as-of-version",
        metavar="N",
        min=0,
        help="Ask the tables as an earlier build left them; history build tells its version.",
        show_default=False,
    ),
]
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
    from kgctl.pipeline.store.files import Location

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


_SHORTEST_SAMPLE_MS = 1_000
_DEFAULT_SAMPLE_MS = 10_000


@dataclass(frozen=True, slots=True)
class LiveOptions:
    """``given`` are the flags that were given: none of them goes with files."""

    once: bool
    for_ms: int | None
    sample_every_ms: int
    all_topics: bool
    reader: str
    given: tuple[str, ...]

    def refuse_with(self, flag: str) -> None:
        """Raise `UsageError` where one was given although ``flag`` says that files are read."""
        if self.given:
            raise UsageError(f"{self.given[0]} is for a live cluster, and {flag} reads files")

    def plan(self) -> Plan:
        """As the collector takes it."""
        from kgctl.pipeline.collect.live import Plan

        return Plan(
            once=self.once,
            for_s=None if self.for_ms is None else self.for_ms / 1000,
            sample_every_s=self.sample_every_ms / 1000,
            all_topics=self.all_topics,
        )


def live_options(*, once: bool, for_: str | None, sample_every: str | None, all_topics: bool, reader: str) -> LiveOptions:
    """Read them. Raises `UsageError` for what is no span of time, and for ``--once`` with ``--for``."""
    flags = {
        "--once": once,
        "--for": for_ is not None,
        "--sample-every": sample_every is not None,
        "--all-topics": all_topics,
        "--reader": reader != "auto",
    }
    if once and for_ is not None:
        raise UsageError("--once and --for exclude each other")
    every_ms = _DEFAULT_SAMPLE_MS if sample_every is None else span_ms("--sample-every", sample_every)
    if every_ms < _SHORTEST_SAMPLE_MS:
        raise UsageError(f"--sample-every {sample_every}: the shortest is 1s")
    for_ms = None if for_ is None else span_ms("--for", for_)
    return LiveOptions(once, for_ms, every_ms, all_topics, reader, tuple(flag for flag, is_given in flags.items() if is_given))


def span_ms(flag: str, text: str) -> int:
    """What ``flag`` says, a span of time. Raises `UsageError` where it is none, or nothing."""
    try:
        found = parse_duration_ms(text)
    except UsageError as error:
        raise UsageError(f"{flag}: {error.message}") from None
    if found <= 0:
        raise UsageError(f"{flag} {text} must be more than zero")
    return found
