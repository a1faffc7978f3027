"""The questions that the history answers: offsets, lag, rebalances, resets, health, and SQL."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from kgctl.admin.times import format_instant
from kgctl.cli.columns import ASSIGNOR, GROUP, LAG, LOG_END, PARTITION, TOPIC, TYPE
from kgctl.cli.history import asking
from kgctl.cli.history.asking import (
    AskedGroups,
    AskedHistory,
    AskedTimes,
    AsOfVersion,
    HistoryQuestion,
    Shape,
    Warehouse,
    answer,
    ask,
    limits,
    require_tables,
    warehouse_path,
)
from kgctl.cli.history.columns import (
    COMMITS,
    COMMITTED,
    MAX_LAG,
    MAX_LAG_MS,
    REBALANCE_MS,
    REBALANCES,
    RESETS,
    TABLE,
    TOLD,
    TOTAL_LAG,
)
from kgctl.cli.parameters import argument, flag, option
from kgctl.cli.report import ANY, TEXTS, TIME, WHOLE, Column, Report, Row, shows
from kgctl.cli.session import Session
from kgctl.errors import NotFoundError, UsageError
from kgctl.files import check_place, write_whole

if TYPE_CHECKING:
    from kgctl.pipeline.answers.history import History

OFFSETS_COLUMNS = (
    GROUP,
    TOPIC,
    PARTITION,
    Column("offset", "the committed offset; null: not known", WHOLE),
    Column("metadata", "the text that was committed with it", wide=True),
    Column("leader_epoch", "the leader epoch that was committed with it", WHOLE, wide=True),
    Column("committed_at", "when it was committed", TIME, read="committed_ms"),
    Column("exactness", "exact, compacted (a later one may have counted) or unknown", read="exactness.value"),
)


@shows(OFFSETS_COLUMNS, summary=TOLD, examples="kgctl history offsets payments --at '2h ago'")
def history_offsets(
    session: Session, *, whom: AskedGroups, topic: asking.Topics = None, at: asking.At = None, which: AskedHistory
) -> Report:
    """What groups had committed at a moment of the past; now, if none is given. All groups, if none is named.

    A row says whether it is exact: `compacted` where records after this commit were compacted away before they were collected,
    so that a later one may have counted; `unknown`, without an offset, where only later commits were collected.
    """
    at_ms = asking.read_time_ms("--at", at, session.environment)
    if at_ms is None:
        at_ms = session.environment.now_ms()
    scopes = asking.scopes_of(topic)
    question = ask(session, whom.ids, which)
    if not question.is_answerable:
        return Report(OFFSETS_COLUMNS, errors=question.errors)
    from kgctl.pipeline.answers.series import offsets_at

    found = [
        commit
        for commit in offsets_at(question.history, question.groups, at_ms)
        if asking.is_in(commit.topic, commit.partition, scopes)
    ]
    absent = asking.unknown_topics(question, scopes, ((commit.topic, commit.partition) for commit in found))
    notices = [] if found or absent else [f"Nothing was committed at {format_instant(at_ms)}."]
    return Report(
        OFFSETS_COLUMNS,
        found,
        [*question.errors, *absent],
        [*notices, *limits(question, at_ms, at_ms)],
        ("topic", "partition"),
        something_done=len(absent) < max(len(scopes), 1),
        summary=asking.told_of(question),
    )


LAG_COLUMNS = (
    GROUP,
    TOPIC,
    PARTITION,
    Column("time", "the moment that the row is of", TIME),
    COMMITTED,
    LOG_END,
    LAG,
    Column("lag_ms", "how long ago the log's end left the committed offset behind", WHOLE, "ms"),
    Column("status", "Burrow's (OK, WARN, STALL, STOP, REWIND), PAST_END, BELOW_START or UNMEASURED"),
    Column("why", "why it is UNMEASURED", wide=True),
    Column("kind", "commit or sample: what the row comes from", wide=True),
)


@shows(LAG_COLUMNS, summary=TOLD, examples="kgctl history lag payments --from '6h ago' --topic orders -o csv")
def history_lag(
    session: Session, *, whom: AskedGroups, topic: asking.Topics = None, when: AskedTimes, which: AskedHistory
) -> Report:
    """The lag of each partition, in records and in milliseconds, as of a time or, with --from or --to, over time.

    As of now, if no time is given: the last that is known, with its own time. Lag is known where the log ends of a topic were
    sampled while collecting; between two samples it is interpolated. What is not known is left out, never 0. The status is
    Burrow's, or UNMEASURED where the log was not sampled often enough to tell (`-o wide` says why).
    """
    return answer(session, LAG_SHAPE, whom, when, which, topic=topic)


def _lag_finish(question: HistoryQuestion, rows: list[dict[str, Any]], at_ms: int | None) -> list[str]:
    from kgctl.pipeline.answers.inferred import UNMEASURED, judge, judge_each

    if at_ms is None:
        judge_each(question.history, rows, question.groups)
        return []
    judge(question.history, rows, question.groups, at_ms)
    unmeasured = [row for row in rows if row["status"] == UNMEASURED]
    if not unmeasured:
        return []
    first = "{group}, {topic}-{partition}: {why}".format_map(unmeasured[0])
    return [f"{len(unmeasured)} of {len(rows)} partitions were not measured often enough to say how they are ({first})."]


LAG_SHAPE = Shape(
    series="LAG",
    columns=LAG_COLUMNS,
    name_keys=("topic", "partition"),
    nothing="No lag is known of that time.",
    finish=_lag_finish,
)


REBALANCES_COLUMNS = (
    GROUP,
    replace(TYPE, wide=True),
    Column("generation", "the generation, or epoch", WHOLE),
    Column("started", "when the rebalance began, as far as the log tells", TIME),
    Column("stable", "when all members had it; null: overtaken before", TIME, wide=True),
    Column("duration_ms", "from `started` to `stable`", WHOLE, "ms"),
    Column("started_by", "what `started` is the time of; join_phase_ended: it began before that", wide=True),
    Column("members", "how many members it has", WHOLE),
    Column("joined", "how many of them were not there before", WHOLE),
    Column("left", "how many were there before and are not now", WHOLE),
    Column("cause", "why, where that can be told"),
    Column("inferred", "what became of each that left: left, crashed or unknown", TEXTS),
    replace(ASSIGNOR, wide=True),
    Column("leader", "the id of its leader (classic protocol)", wide=True),
    Column("members_joined", "the ids of those that joined", TEXTS, wide=True),
    Column("members_left", "the ids of those that left", TEXTS, wide=True),
)


@shows(REBALANCES_COLUMNS, summary=TOLD, examples="kgctl history rebalances payments --from '1d ago'")
def history_rebalances(session: Session, *, whom: AskedGroups, when: AskedTimes, which: AskedHistory) -> Report:
    """The generations of groups: when each began, how long it took, who came and went, and why, where that can be told.

    All that are known, or those that began between --from and --to; with --at the one that was current then. A duration is the
    least it can have been where the log of a classic group does not say when the rebalance began (started_by join_phase_ended).
    Whether members that are gone have left or crashed is inferred from their last commits and session time-outs.
    """
    return answer(session, REBALANCES_SHAPE, whom, when, which)


def _count(members: list[str] | None) -> int | None:
    return None if members is None else len(members)


def _rebalances_finish(question: HistoryQuestion, rows: list[dict[str, Any]], _at_ms: int | None) -> list[str]:
    from kgctl.pipeline.answers.inferred import infer_departures

    infer_departures(question.history, rows)
    for row in rows:
        row["generation"] = row["generation_id"]
        row["joined"], row["left"] = _count(row["members_joined"]), _count(row["members_left"])
    return []


REBALANCES_SHAPE = Shape(
    series="REBALANCES",
    columns=REBALANCES_COLUMNS,
    name_keys=("group",),
    nothing="No generation is known of that time.",
    as_of_now=False,
    finish=_rebalances_finish,
)


RESETS_COLUMNS = (
    GROUP,
    TOPIC,
    PARTITION,
    Column("time", "when it took effect", TIME),
    Column("until", "when the last of several did", TIME, wide=True),
    Column("times", "how many commits past the log's end are in this row", WHOLE, wide=True),
    Column("kind", "forward or backward", wide=True),
    Column("offset_before", "the committed offset before it", WHOLE, header="BEFORE"),
    Column("offset_after", "that after it", WHOLE, header="AFTER"),
    Column("records", "how far it went; negative is back", WHOLE, "records"),
    Column("evidence", "what speaks for it", TEXTS),
)


@shows(RESETS_COLUMNS, summary=TOLD, examples="kgctl history resets payments --from '1d ago'")
def history_resets(
    session: Session, *, whom: AskedGroups, topic: asking.Topics = None, when: AskedTimes, which: AskedHistory
) -> Report:
    """Jumps of committed offsets that reading does not explain: when, from where to where, and what speaks for it.

    All that are known, or those between --from and --to; with --at the last one of each partition up to then. Commits past the
    log's end that follow each other are one row (`times`, and with -o wide `until`). To undo one:
    kgctl reset-offsets GROUP --to-history TIME, with a time before it.
    """
    return answer(session, RESETS_SHAPE, whom, when, which, topic=topic)


def _resets_finish(_question: HistoryQuestion, rows: list[dict[str, Any]], _at_ms: int | None) -> list[str]:
    from kgctl.pipeline.answers.series import flooded

    before = len(rows)
    rows[:] = flooded(rows)
    for row in rows:
        row["kind"] = "forward" if row["records"] > 0 else "backward"
    if len(rows) == before:
        return []
    return [f"{before} jumps are {len(rows)} rows: commits past the log's end that follow each other are one (`-o wide`)."]


RESETS_SHAPE = Shape(
    series="RESETS",
    columns=RESETS_COLUMNS,
    name_keys=("topic", "partition"),
    nothing="No resets were found.",
    as_of_now=False,
    finish=_resets_finish,
)


HEALTH_COLUMNS = (
    GROUP,
    Column("window_start", "where the window begins", TIME, header="FROM"),
    Column("window_ms", "how wide it is", WHOLE, "ms", wide=True),
    Column("status", "the worst of its partitions; null: none is known to be in trouble, and not all were measured"),
    Column("members", "how many members it had in the end", WHOLE),
    REBALANCES,
    replace(REBALANCE_MS, wide=True),
    COMMITS,
    TOTAL_LAG,
    MAX_LAG,
    MAX_LAG_MS,
    RESETS,
    Column(
        "stalled_partitions",
        "partitions in STALL or STOP; null: none is known, and not all were measured",
        WHOLE,
        header="STALLED",
    ),
    Column("past_end", "partitions with a commit past the log's end; null as above", WHOLE),
    Column("below_start", "partitions with a commit before the log's start; null as above", WHOLE, wide=True),
)


@shows(HEALTH_COLUMNS, summary=TOLD, examples="kgctl history health --at '1h ago'")
def history_health(session: Session, *, whom: AskedGroups, when: AskedTimes, which: AskedHistory) -> Report:
    """How groups were, in windows of a minute: status, members, rebalances, commits, lag, resets, stalled partitions.

    The window of a time, by default the last one that is known; with --from or --to all windows in between.
    """
    return answer(session, HEALTH_SHAPE, whom, when, which)


def _health_finish(question: HistoryQuestion, rows: list[dict[str, Any]], at_ms: int | None) -> list[str]:
    """A group that looks well, and was not measured often enough, is not called well, nor are its partitions."""
    from kgctl.pipeline.answers.inferred import UNMEASURED

    told = [] if at_ms is None else _unmeasured(question, rows, at_ms)
    for row in rows:
        if row["status"] == UNMEASURED:
            row.update({name: row[name] or None for name in ("stalled_partitions", "past_end", "below_start")})
    return told


def _unmeasured(question: HistoryQuestion, rows: list[dict[str, Any]], at_ms: int) -> list[str]:
    from kgctl.pipeline.answers.inferred import UNMEASURED, unmeasured_groups

    found = unmeasured_groups(question.history, question.groups, at_ms)
    doubtful = [row for row in rows if row["status"] in ("OK", "WARN") and row["group"] in found]
    for row in doubtful:
        row["status"] = UNMEASURED
    return [f"group {row['group']!r} was not measured often enough to say how it is ({found[row['group']]})." for row in doubtful]


HEALTH_SHAPE = Shape(
    series="HEALTH",
    columns=HEALTH_COLUMNS,
    name_keys=("group",),
    nothing="Nothing is known of that time.",
    finish=_health_finish,
)


TABLES = (
    TABLE,
    Column("column", "a column of it"),
    Column("type", "its type, as Arrow calls it"),
    Column("meaning", "what it says"),
)
ANSWER = (Column("COLUMN", "a column of the query's answer; times are texts in UTC", ANY),)


@shows(ANSWER, TABLES, summary=TOLD, examples="""kgctl history sql 'SELECT topic, max(lag) FROM lag GROUP BY topic'""")
def history_sql(
    session: Session,
    query: Annotated[str | None, argument("QUERY", "One query in SQL.")] = None,
    *,
    tables: Annotated[bool, flag("--tables", "List the tables with their columns and what they mean.")] = False,
    parquet: Annotated[Path | None, option("FILE", "Write the rows as Parquet.", "--parquet")] = None,
    warehouse: Warehouse = None,
    as_of_version: AsOfVersion = None,
    cluster: asking.SomeClusters = None,
) -> Report:
    """Ask the tables of a warehouse in SQL (DuckDB's), all clusters at once; nothing can be changed by it.

    Besides the tables there are the views `members`, `assignments` and `stalls` with `from` and `to`. A column named like a word
    of SQL is quoted: "group". Times are in UTC; `-o csv` and `-o json` print the rows for other programs.
    """
    require_tables()
    from kgctl.pipeline.sql import asks_built, described
    from kgctl.pipeline.sql import query as ask

    if tables == (query is not None):
        raise UsageError("give a query, or --tables for what can be asked")
    if parquet is not None:
        if tables:
            raise UsageError("--parquet takes the rows of a query: it has no place beside --tables")
        check_place(parquet)
    if query is None:
        return Report(TABLES, described(), name_keys=("table", "column"))
    from kgctl.pipeline.answers.history import History, versions_of
    from kgctl.pipeline.store.warehouse import Warehouse as Opened

    opened = Opened.open(warehouse_path(warehouse, session.environment))
    versions = versions_of(opened, as_of_version)
    names = [opened.require_cluster(name) for name in dict.fromkeys(cluster or opened.clusters())]
    histories = [History(opened, name, versions, as_of_version) for name in names]
    missing = _unbuilt(histories, str(opened.location)) if asks_built(query) else []
    found = ask(opened, query, versions, names if cluster else None)
    asked = [HistoryQuestion(each, None, session.environment.now_ms()) for each in histories]
    told = [f"cluster '{each.history.cluster}': {line}" for each in asked for line in asking.behind_text(each.behind)]
    summary = asking.told_of(*asked)
    if parquet is not None:
        from kgctl.pipeline.store.files import write_table

        write_whole(parquet, lambda file: write_table(file, found))
        return Report(
            (), [], missing, [f"written: {parquet}, {found.num_rows} rows", *told], something_done=True, summary=summary
        )
    columns = [replace(ANSWER[0], key=name) for name in found.column_names]
    return Report(columns, [_sql_row(row) for row in found.to_pylist()], missing, told, something_done=True, summary=summary)


def _unbuilt(histories: Sequence[History], where: str) -> list[NotFoundError]:
    """The clusters without tables. Raises `NotFoundError` where none has any, `StorageError` where one's are another kgctl's."""
    missing = list[NotFoundError]()
    for each in histories:
        try:
            each.require_built(where)
        except NotFoundError as error:
            missing.append(error)
    if len(missing) == len(histories):
        raise next(iter(missing), NotFoundError(f"{where}: nothing was collected yet"))
    return missing


def _sql_row(row: dict[str, Any]) -> Row:
    return {name: _cell(value) for name, value in row.items()}


def _cell(value: Any) -> Any:
    """A value as programs take it: what is no number is null, what is nested deeper than a list JSON."""
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, float | Decimal):
        return (int(value) if isinstance(value, Decimal) and value % 1 == 0 else float(value)) if math.isfinite(value) else None
    if isinstance(value, list):
        return [json.dumps(_plain(each)) if isinstance(each, list | tuple | dict) else _cell(each) for each in value]
    if isinstance(value, dict):
        return json.dumps(_plain(value))
    if isinstance(value, bytes):
        return value.hex()
    return value if value is None or isinstance(value, str | int | bool) else str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return {str(name): _plain(each) for name, each in value.items()} if isinstance(value, dict) else _cell(value)
