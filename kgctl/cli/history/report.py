"""``kgctl history report``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from kgctl.admin.times import format_instant
from kgctl.cli.columns import GROUP
from kgctl.cli.history import asking
from kgctl.cli.history.asking import AskedHistory, HistoryQuestion, TimeSpan, ask, limits
from kgctl.cli.history.columns import CLUSTER, COMMITS, MAX_LAG, MAX_LAG_MS, REBALANCE_MS, REBALANCES, RESETS, TOLD
from kgctl.cli.parameters import option
from kgctl.cli.report import Column, Report, shows
from kgctl.cli.session import Session
from kgctl.errors import KgctlError, NotFoundError
from kgctl.files import check_place, write_whole

COLUMNS = (
    replace(CLUSTER, wide=True),
    GROUP,
    Column("status", "the worst there was of its partitions; null: none is known"),
    REBALANCES,
    REBALANCE_MS,
    RESETS,
    COMMITS,
    replace(MAX_LAG, wide=False),
    MAX_LAG_MS,
)


@shows(COLUMNS, summary=TOLD, examples="kgctl history report payments --html payments.html --from '7d ago'")
def history_report(
    session: Session,
    *,
    html: Annotated[Path, option("FILE", "Write one HTML page that needs nothing else.", "--html")],
    whom: asking.AskedGroups,
    from_: asking.From = None,
    to: asking.To = None,
    warehouse: asking.Warehouse = None,
    as_of_version: asking.AsOfVersion = None,
    cluster: asking.SomeClusters = None,
) -> Report:
    """Write the history of groups as one HTML page: health, rebalances, resets, members, lag and commit rate over time.

    Of very many groups those that were worst get charts, of a very long time the points that stand out are drawn: the page says
    what it leaves out. A warehouse with several clusters gives one page of them all.
    """
    from kgctl.charts.page import require_library

    require_library()
    check_place(html)
    span = asking.read_span(from_, to, session.environment)
    questions, errors = _questions(session, whom.ids, warehouse, cluster or [], as_of_version)
    if not questions:
        return Report(COLUMNS, errors=errors)
    from kgctl.pipeline.report.page import Asked, content, html_page

    asked = [Asked(each.history, each.groups) for each in questions]
    made = content(asked, *_bounds(questions, span), format_instant)
    page = html_page(made)
    write_whole(html, lambda file: file.write(page.encode()))
    session.notice(f"written: {html}")
    last_ms = session.environment.now_ms() if span.to_ms is None and span.from_ms is not None else span.to_ms
    told = [_of_cluster(each, line, len(questions)) for each in questions for line in limits(each, span.from_ms, last_ms)]
    return Report(
        COLUMNS if len(questions) == 1 else (CLUSTER, *COLUMNS[1:]),
        made.overview,
        errors,
        [*made.notes, *told],
        ("group",),
        something_done=True,
        summary=asking.told_of(*questions),
    )


def _of_cluster(question: HistoryQuestion, line: str, clusters: int) -> str:
    return line if clusters == 1 else f"cluster '{question.history.cluster}': {line}"


def _questions(
    session: Session, groups: list[str], warehouse: str | None, clusters: Sequence[str], as_of: int | None
) -> tuple[list[HistoryQuestion], list[KgctlError]]:
    """What is asked of each cluster, without those that know none of the groups, and the groups that no cluster knows."""
    asking.require_tables()
    from kgctl.pipeline.store.warehouse import Warehouse

    path = asking.warehouse_path(warehouse, session.environment)
    names: list[str | None] = [*dict.fromkeys(clusters)]
    names = names or [*Warehouse.open(path).clusters()] or [None]
    questions = [ask(session, groups, AskedHistory(warehouse, name, as_of)) for name in names]
    errors = [error for error in questions[0].errors if all(_has(error, question.errors) for question in questions)]
    if len(names) > 1:
        errors = [NotFoundError(f"group {error.group!r} is in the history of none of the clusters") for error in errors]
    return [question for question in questions if question.is_answerable], errors


def _has(error: KgctlError, errors: Sequence[KgctlError]) -> bool:
    return any(each.group == error.group for each in errors)


def _bounds(questions: Sequence[HistoryQuestion], span: TimeSpan) -> tuple[int, int]:
    """The stretch of time that is drawn: what was collected, and of that what was asked for.

    A group that has stopped writes no record any more, and is still measured.
    """
    reaches = [reach for each in questions if (reach := each.history.reach(each.groups)) is not None]
    measured = [each.history.measured_until(each.groups) for each in questions]
    if not reaches:
        raise NotFoundError("nothing was collected of these groups' records")
    first_ms = min(reach.first_ms for reach in reaches)
    last_ms = max([*(reach.last_ms for reach in reaches), *(at for at in measured if at is not None)])
    from_ms = first_ms if span.from_ms is None else span.from_ms
    to_ms = last_ms + 1 if span.to_ms is None else span.to_ms
    if from_ms > last_ms or to_ms <= first_ms:
        collected = f"collected from {format_instant(first_ms)} to {format_instant(last_ms)}"
        raise NotFoundError(f"{collected}: what happened outside of that is not known")
    return from_ms, to_ms
