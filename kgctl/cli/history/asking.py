"""How a command asks the history: which one, about which groups, and what should be said of the answer's limits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kgctl.admin.plan.offset_reset import TopicScope, is_within, parse_topic_scopes
from kgctl.admin.plan.times import format_instant
from kgctl.cli.history.options import Span, read_span, read_time_ms, warehouse_path
from kgctl.cli.options import merged_groups
from kgctl.cli.output.report import Column, Report, Row
from kgctl.cli.session import Session
from kgctl.errors import KgctlError, NotFoundError, UsageError
from kgctl.model.groups import TopicPartition

if TYPE_CHECKING:
    from kgctl.pipeline.answers.history import History
    from kgctl.pipeline.answers.series import Series


@dataclass(frozen=True, slots=True)
class Question:
    """An opened history, and the groups that are asked about and known to it; None stands for all of them.

    ``errors`` has the groups that it never heard of.
    """

    history: History
    groups: Sequence[str] | None
    errors: tuple[KgctlError, ...] = ()

    @property
    def is_answerable(self) -> bool:
        """Whether there is a group left to ask about."""
        return self.groups is None or bool(self.groups)


def ask(session: Session, groups: list[str], warehouse: str | None, cluster: str | None, as_of: int | None = None) -> Question:
    """Open the history that the options name. No group given: all of them.

    Raises:
        KgctlError: there is none, it was not built yet, or it cannot be read.
    """
    if "" in groups:
        raise UsageError("a group id must not be empty")
    history = open_history(session, warehouse, cluster, as_of=as_of)
    return ask_about(history, groups) if groups else Question(history, None)


def open_history(
    session: Session, warehouse: str | None, cluster: str | None, option: str = "--cluster", *, as_of: int | None = None
) -> History:
    """The built history of a cluster; ``option`` is what the command calls the cluster's name.

    Raises:
        KgctlError: there is none, it was not built yet, or it cannot be read.
    """
    from kgctl.pipeline.extras import leave_pandas_out

    if session.environment.is_own_process:
        leave_pandas_out()
    from kgctl.pipeline.answers.history import History

    if cluster == "":
        raise UsageError(f"{option} is empty (an unset variable?): leave it out, or give it a name")
    return History.open(warehouse_path(warehouse, session.environment), cluster, as_of)


def ask_about(history: History, groups: Sequence[str]) -> Question:
    """The groups that the history knows, and errors for those that it does not."""
    unknown = history.unknown(groups)
    errors = tuple(_unknown(group, history) for group in unknown)
    return Question(history, [group for group in groups if group not in unknown], errors)


def _unknown(group: str, history: History) -> NotFoundError:
    return NotFoundError(f"group {group!r} is not in the history of cluster {history.cluster!r}", group=group)


def limits(question: Question, first_ms: int | None, last_ms: int | None) -> list[str]:
    """What a reader must know of an answer about the time between these two, both included; None: no limit."""
    notices = []
    reach = question.history.reach(question.groups)
    if reach is not None and first_ms is not None and first_ms < reach.first_ms:
        notices.append(f"Nothing from before {format_instant(reach.first_ms)} was collected.")
    if reach is not None and last_ms is not None and last_ms > reach.last_ms:
        notices.append(f"Collected up to {format_instant(reach.last_ms)}: what came later is not known.")
    if behind := question.history.records_behind():
        notices.append(f"{behind} records were collected after the last build: kgctl history build brings them in.")
    return notices


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
    as_of: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How a command shows a series, and what it says where there are no rows.

    ``made``: the cells that are not a column of the table as it is. ``as_of_now``: without a time it is asked as of now, else for
    all that there is. ``finish`` makes rows whole, in place, as of a moment or (None) over time, and says what there is to say.
    """

    columns: Sequence[Column]
    made: Callable[[dict[str, Any]], Row]
    name_keys: tuple[str, ...]
    nothing: str
    as_of_now: bool = True
    finish: Callable[[Question, list[dict[str, Any]], int | None], list[str]] | None = None

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
    groups = merged_groups(asked.groups, asked.group)
    question = ask(session, groups, asked.warehouse, asked.cluster, asked.as_of)
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
    if shape.finish is not None:
        told = [*shape.finish(question, rows, at_ms), *told]
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
