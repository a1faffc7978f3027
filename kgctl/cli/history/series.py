"""The commands whose answer is a table over time: `lag`, `rebalances`, `health`, `resets`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kgctl.admin.plan.scope import TopicScope, is_within, parse_topic_scopes
from kgctl.admin.plan.times import format_instant
from kgctl.cli.history.asking import ask, limits
from kgctl.cli.history.options import Span, read_span, read_time_ms
from kgctl.cli.output.report import Column, Report, Row
from kgctl.cli.session import Session
from kgctl.errors import UsageError
from kgctl.model.partitions import TopicPartition

if TYPE_CHECKING:
    from kgctl.pipeline.answers.series import Series


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The options that these commands share, as given."""

    groups: list[str] | None
    group: list[str] | None
    topic: list[str] | None = None
    at: str | None
    from_: str | None
    to: str | None
    warehouse: str | None
    cluster: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How a command shows a series, and what it says where there are no rows.

    ``made``: the cells that are not a column of the table as it is. ``as_of_now``: without a time it is asked as of now, else for
    all that there is.
    """

    columns: Sequence[Column]
    made: Callable[[dict[str, Any]], Row]
    name_keys: tuple[str, ...]
    nothing: str
    as_of_now: bool = True

    def row(self, found: dict[str, Any]) -> Row:
        """A row of the report."""
        made = self.made(found)
        return {column.key: made[column.key] if column.key in made else found[column.key] for column in self.columns}


def answer(session: Session, asked: Asked, shape: Shape, series_name: str) -> Report:
    """The report of one of these commands; ``series_name`` is a name in `kgctl.pipeline.answers.series`.

    Raises:
        KgctlError: times or topics that are none, or no history to ask.
    """
    at_ms, span = _times(session, asked, shape)
    scopes = parse_topic_scopes(asked.topic or ())
    question = ask(session, asked.groups, asked.group, asked.warehouse, asked.cluster)
    if not question.is_answerable:
        return Report(shape.columns, errors=question.errors)
    from kgctl.pipeline.answers import series

    chosen: Series = getattr(series, series_name)
    if at_ms is not None:
        rows = series.rows_at(question.history, chosen, question.groups, at_ms)
        told = limits(question, at_ms, at_ms)
    else:
        rows = series.rows_between(question.history, chosen, question.groups, span.from_ms, span.to_ms)
        told = limits(question, span.from_ms, span.to_ms)
    rows = [row for row in rows if _is_in(row, scopes)]
    nothing = [] if rows else [shape.nothing]
    return Report(
        shape.columns,
        [shape.row(row) for row in rows],
        question.errors,
        [*nothing, *told],
        shape.name_keys,
        something_done=True,
    )


def moment(value: int | None) -> str | None:
    """A time of a table, for people and programs."""
    return None if value is None else format_instant(value)


def _times(session: Session, asked: Asked, shape: Shape) -> tuple[int | None, Span]:
    at_ms = read_time_ms("--at", asked.at, session.environment)
    span = read_span(asked.from_, asked.to, session.environment)
    if at_ms is not None and span != Span():
        raise UsageError("--at is a moment, --from and --to are a stretch of time: give one of the two")
    if at_ms is None and span == Span() and shape.as_of_now:
        at_ms = session.environment.now_ms()
    return at_ms, span


def _is_in(row: dict[str, Any], scopes: Sequence[TopicScope]) -> bool:
    return not scopes or is_within(TopicPartition(row["topic"], row["partition"]), scopes)
