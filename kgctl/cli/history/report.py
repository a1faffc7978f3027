"""``kgctl history report``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kgctl.admin.plan.times import format_instant
from kgctl.cli.history import options
from kgctl.cli.history.asking import Question, ask, limits
from kgctl.cli.history.options import Span
from kgctl.cli.output.report import Column, Report, Row
from kgctl.cli.session import session_of
from kgctl.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from kgctl.pipeline.report.overview import GroupOverview

COLUMNS = (
    Column("group"),
    Column("status"),
    Column("rebalances"),
    Column("rebalance_ms"),
    Column("resets"),
    Column("commits"),
    Column("max_lag"),
    Column("max_lag_ms"),
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: kgctl history report payments --html payments.html --from '7d ago'")(history_report)


def history_report(
    ctx: typer.Context,
    groups: options.GroupArguments = None,
    *,
    html: Annotated[
        Path, typer.Option("--html", metavar="FILE", help="Write one HTML page that needs nothing else.", show_default=False)
    ],
    group: options.Groups = None,
    from_: options.From = None,
    to: options.To = None,
    warehouse: options.Warehouse = None,
    cluster: options.Cluster = None,
) -> Report:
    """Write the history of groups as one HTML page: health, rebalances, resets, members, lag and commit rate over time.

    Of very many groups those that were worst get charts, of a very long time the points that stand out are drawn: the page says
    what it leaves out.
    """
    from kgctl.charts.library import require_library

    session = session_of(ctx)
    require_library()
    _check(html)
    span = options.read_span(from_, to, session.environment)
    question = ask(session, groups, group, warehouse, cluster)
    if not question.is_answerable:
        return Report(COLUMNS, errors=question.errors)
    from kgctl.cli.output.files import write_whole
    from kgctl.pipeline.report.content import content
    from kgctl.pipeline.report.page import html_page

    made = content(question.history, question.groups, *_bounds(question, span), format_instant)
    page = html_page(made)
    write_whole(html, lambda file: file.write(page.encode()))
    session.notice(f"written: {html}")
    return Report(
        COLUMNS,
        [_row(each) for each in made.overview],
        question.errors,
        [*made.notes, *limits(question, span.from_ms, span.to_ms)],
        ("group",),
        something_done=True,
    )


def _bounds(question: Question, span: Span) -> tuple[int, int]:
    """The stretch of time that is drawn: what was collected, and of that what was asked for."""
    reach = question.history.reach(question.groups)
    if reach is None:
        raise NotFoundError("nothing was collected of these groups' records")
    from_ms = reach.first_ms if span.from_ms is None else span.from_ms
    to_ms = reach.last_ms + 1 if span.to_ms is None else span.to_ms
    return from_ms, max(to_ms, from_ms + 1)


def _check(path: Path) -> None:
    """Before the work: say what could not be written after it."""
    if path.is_dir() or not path.name:
        raise UsageError(f"--html {path} is a folder: give it a file")
    if not path.parent.is_dir():
        raise UsageError(f"--html {path}: there is no folder {path.parent}")


def _row(each: GroupOverview) -> Row:
    return {column.key: getattr(each, column.key) for column in COLUMNS}
