"""``kgctl serve commits``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kgctl.cli.output.report import Column, Report, Row
from kgctl.cli.session import session_of
from kgctl.errors import UsageError

if TYPE_CHECKING:
    from kgctl.storage.protocols import CommitEntry

COLUMNS = (
    Column("time"),
    Column("group"),
    Column("topic"),
    Column("partition"),
    Column("offset"),
    Column("metadata", wide=True),
    Column("leader_epoch", wide=True),
    Column("member"),
)


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: kgctl serve commits ./coordinator --group payments --since -PT1H")(commits)


def commits(
    ctx: typer.Context,
    folder: Annotated[str, typer.Argument(metavar="DIR", help="A data folder; a server may have it open.")],
    *,
    group: Annotated[list[str] | None, typer.Option(metavar="GROUP", help="Only this group's; repeatable.")] = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="From here on: ISO 8601, milliseconds, or a span back from now (PT1H).")
    ] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Up to here.")] = None,
    at: Annotated[str | None, typer.Option(metavar="TIME", help="What was committed at this moment, instead of the log.")] = None,
) -> Report:
    """The commit log of a data folder: who committed which offset when, and what was deleted (an offset of `-`).

    With --at, the offsets that groups had at a moment, replayed from the log.
    """
    from kgctl.storage.sqlite_files import BulkReader

    now_ms = session_of(ctx).environment.now_ms()
    since_ms, until_ms, at_ms = (_instant(text, now_ms) for text in (since, until, at))
    if at_ms is not None and (since_ms is not None or until_ms is not None):
        raise UsageError("--at shows one moment, --since and --until a stretch: choose")
    with BulkReader(Path(folder)) as reader:
        groups = list(dict.fromkeys(group or ()))
        if at_ms is not None:
            entries = [entry for name in groups or reader.committing_groups() for entry in reader.offsets_at(name, at_ms)]
        else:
            entries = list(reader.commits(groups, since_ms=since_ms, until_ms=until_ms))
    notices = () if entries else ("No commits.",)
    return Report(COLUMNS, list(_rows(entries)), (), notices, ("group", "topic", "partition"))


def _instant(text: str | None, now_ms: int) -> int | None:
    from kgctl.admin.plan.times import parse_duration_ms, parse_instant_ms

    if text is None:
        return None
    span = text.removeprefix("-")
    if span[:1] in ("P", "p") or span[-1:] in ("s", "m", "h", "d"):
        return now_ms - parse_duration_ms(span)
    return parse_instant_ms(text)


def _rows(entries: Iterable[CommitEntry]) -> Iterable[Row]:
    from kgctl.admin.plan.times import format_instant

    for entry in entries:
        yield {
            "time": format_instant(entry.timestamp_ms),
            "group": entry.group,
            "topic": entry.topic,
            "partition": entry.partition,
            "offset": entry.offset,
            "metadata": entry.metadata or None,
            "leader_epoch": entry.leader_epoch if entry.leader_epoch >= 0 else None,
            "member": entry.member_id,
        }
