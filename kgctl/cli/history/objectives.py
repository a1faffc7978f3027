"""What is asked of many groups at once: whether they kept to an objective, and how they are, cluster by cluster."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from kgctl.cli.exit_codes import ExitCode
from kgctl.cli.history import asking
from kgctl.cli.history.columns import TOLD
from kgctl.cli.parameters import option
from kgctl.cli.report import BOOL, NUMBER, TIME, WHOLE, Column, Report, Row, shows
from kgctl.cli.session import Session
from kgctl.errors import KgctlError, UsageError, first_few

if TYPE_CHECKING:
    from kgctl.pipeline.answers.history import History
    from kgctl.pipeline.answers.objectives import Kept, Objective
    from kgctl.pipeline.answers.owners import Owners

OwnersFile = Annotated[
    Path | None,
    option("FILE", "Whose groups they are: CSV with the columns group (or a pattern with *), owner, team.", "--owners"),
]
_LABELS = (
    Column("owner", "whose it is, by `--owners`", if_any=True),
    Column("team", "whose team's it is, by `--owners`", if_any=True),
)
_DAYS_MS = 30 * 86_400_000

SLO_COLUMNS = (
    Column("group", "the consumer group"),
    *_LABELS,
    Column("from", "from when on minutes count: not before the group's first record", TIME),
    Column("to", "before when they count", TIME, wide=True),
    Column("minutes", "how many minutes that are", WHOLE),
    Column("good", "minutes in which the objective held", WHOLE),
    Column("bad", "minutes in which it did not", WHOLE),
    Column("unknown", "minutes of which it is not known; they are not good", WHOLE),
    Column("share", "good minutes of all", NUMBER, "percent"),
    Column("target", "what the share has to be at least", NUMBER, "percent"),
    Column("left", "minutes that may still be other than good; below 0: too many were", NUMBER, "minutes"),
    Column("held", "whether the target was reached", BOOL),
)


@shows(SLO_COLUMNS, summary=TOLD, examples="kgctl history slo payments --within 60s --target 99.9 --from '4 weeks ago'")
def history_slo(
    session: Session,
    *,
    whom: asking.AskedGroups,
    within: Annotated[str | None, option("TIME", "Good: at its end no partition is further behind.", "--within")] = None,
    records: Annotated[
        int | None,
        option("N", "Good: at its end there are no more records to read.", "--records", min=0),
    ] = None,
    target: Annotated[float, option("PERCENT", "Of all minutes so many have to be good.", "--target")] = 99.9,
    owners: OwnersFile = None,
    from_: asking.From = None,
    to: asking.To = None,
    which: asking.AskedHistory,
) -> Report:
    """Whether groups kept to an objective over weeks: minutes in which it held, did not hold, and of which it is not known.

    Of the last 30 days as far as they were collected, or from --from to --to. Minutes in which nothing happened count: they are
    as the last. Not known, which is not good, are those without a sample of log ends, those after the last collection and, with
    --from, those before the first one. Exit code 6 where a target was missed.
    """
    objective, span = _objective(within, records, target), _span(session, from_, to)
    labels = _labels(owners)
    question = asking.ask(session, whom.ids, which)
    if not question.is_answerable:
        return Report(SLO_COLUMNS, errors=question.errors)
    from kgctl.pipeline.answers.objectives import kept

    found = kept(question.history, question.groups, span, objective, is_whole=from_ is not None)
    missed = [each for each in found if each.left(objective.target) < 0]
    absent = question.left_out(each.group for each in found)
    told = [] if found else ["Nothing is known of that time."]
    told += [f"Nothing is known of {', '.join(map(repr, absent))} in that time."] if found and absent else []
    told += [f"{len(missed)} of {len(found)} groups missed the target."] if missed else []
    told += _unowned(labels, question.history)
    return Report(
        SLO_COLUMNS,
        [_slo_row(each, objective, labels) for each in found],
        question.errors,
        [*told, *asking.limits(question, *span)],
        ("group",),
        ExitCode.EXPECTATION if missed or absent or not found else None,
        something_done=True,
        summary=asking.told_of(question),
    )


def _objective(within: str | None, records: int | None, target: float) -> Objective:
    """Raises `UsageError` where nothing is asked for, or no share of all minutes."""
    asking.require_tables()
    from kgctl.pipeline.answers.objectives import Objective

    if within is None and records is None:
        raise UsageError("say what a good minute is: --within 60s, --records 10000, or both")
    if not 0 < target <= 100:
        raise UsageError(f"--target {target:g}: a share of all minutes, in percent: above 0, and 100 at most")
    return Objective(None if within is None else asking.span_ms("--within", within), records, Fraction(str(target)) / 100)


def _span(session: Session, from_: str | None, to: str | None) -> tuple[int, int]:
    given = asking.read_span(from_, to, session.environment)
    to_ms = session.environment.now_ms() if given.to_ms is None else given.to_ms
    from_ms = to_ms - _DAYS_MS if given.from_ms is None else given.from_ms
    if from_ms >= to_ms:
        raise UsageError(f"--from {from_} is not before now")
    return from_ms, to_ms


def _labels(owners: Path | None) -> Owners:
    asking.require_tables()
    from kgctl.pipeline.answers.owners import Owners

    return Owners(()) if owners is None else Owners.read(owners)


def _unowned(labels: Owners, *histories: History) -> list[str]:
    """A line where lines of the file are no group's: they may be misspelt."""
    groups = {group for history in histories for group in history.groups()} if labels.rows else ()
    names = list(dict.fromkeys(map(repr, labels.of_no_group(groups))))
    return [f"{labels.file}: no group is {first_few(names, _NAMED)}."] if names else []


_NAMED = 5


def _slo_row(each: Kept, objective: Objective, labels: Owners) -> Row:
    return {
        "group": each.group,
        **labels.of(each.group),
        "from": each.from_ms,
        "to": each.to_ms,
        **{name: getattr(each, name) for name in ("minutes", "good", "bad", "unknown")},
        "share": _floor(each.share * 100),
        "target": float(objective.target * 100),
        "left": _floor(each.left(objective.target)),
        "held": each.left(objective.target) >= 0,
    }


def _floor(value: Fraction) -> float:
    """To three places, downwards: 99.9996 is not 100."""
    return value * 1000 // 1 / 1000


FLEET_COLUMNS = (
    Column("cluster", "the cluster's name in the warehouse"),
    *_LABELS,
    Column("groups", "how many groups; null: nothing was collected of that time", WHOLE),
    Column("members", "their members, as far as the log tells; null: of none", WHOLE, wide=True),
    Column("ok", "groups in state OK", WHOLE),
    Column("not_ok", "groups in another one", WHOLE),
    Column("unmeasured", "groups of which it is not known", WHOLE),
    Column("total_lag", "what all groups of known lag have to read", WHOLE, "records"),
    Column("max_lag_ms", "how far the partition furthest behind is", WHOLE, "milliseconds"),
    Column("stalled_partitions", "partitions in STALL or STOP; null: no group was measured", WHOLE, header="STALLED"),
    Column("past_end", "partitions with a commit past the log's end; null: no group was measured", WHOLE),
    Column("collected_to", "the time of the last record that was collected", TIME),
)


@shows(FLEET_COLUMNS, summary=TOLD, examples="kgctl history fleet --owners owners.csv")
def history_fleet(
    session: Session,
    *,
    at: asking.At = None,
    owners: OwnersFile = None,
    warehouse: asking.Warehouse = None,
) -> Report:
    """How all groups of all clusters of a warehouse are: a line for each cluster, with --owners one for each team's groups in it.

    As of now, or of a time. A group that was not measured often enough to say how it is counts as `unmeasured`, not as `ok`.
    """
    given_ms, now_ms = asking.read_time_ms("--at", at, session.environment), session.environment.now_ms()
    at_ms = now_ms if given_ms is None else given_ms
    labels = _labels(owners)
    from kgctl.pipeline.store.warehouse import Warehouse as Opened

    opened = Opened.open(asking.warehouse_path(warehouse, session.environment))
    rows: list[Row] = []
    errors: list[KgctlError] = []
    asked, told = list[asking.HistoryQuestion](), list[str]()
    for name in opened.clusters() or [opened.require_cluster(None)]:
        try:
            history = asking.open_history(session, str(opened.location), name)
            rows += _fleet_rows(history, at_ms, labels)
            limits = [*asking.before_all(history, at_ms), *asking.still_to_come(history, now_ms)]
            told += [f"Cluster {name!r}: {limit}" for limit in limits]
            asked.append(asking.HistoryQuestion(history, None, now_ms))
        except KgctlError as error:
            errors.append(error)
    return Report(
        FLEET_COLUMNS,
        rows,
        errors,
        [*told, *_unowned(labels, *(each.history for each in asked))],
        ("cluster", "owner", "team"),
        summary=asking.told_of(*asked),
    )


def _fleet_rows(history: History, at_ms: int, labels: Owners) -> list[Row]:
    from kgctl.pipeline.answers.inferred import unmeasured_groups
    from kgctl.pipeline.answers.series import HEALTH, gone, rows_at

    reach = history.reach()
    if reach is None or at_ms < reach.first_ms:
        return [{**dict.fromkeys(column.key for column in FLEET_COLUMNS), "cluster": history.cluster}]
    doubtful, ended = unmeasured_groups(history, None, at_ms), gone(history, None, at_ms)
    by_labels: dict[tuple[str | None, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in rows_at(history, HEALTH, None, at_ms):
        if row["group"] in ended:
            continue
        by_labels[tuple(labels.of(row["group"]).values())].append(row)
    by_labels = by_labels or {(None, None): []}  # a cluster without a group is there
    found: list[Row] = []
    for owner, team in sorted(by_labels, key=lambda each: [text or "" for text in each]):
        counted = _counted(by_labels[owner, team], doubtful)
        place = {"cluster": history.cluster, "owner": owner, "team": team}
        found.append({**place, **counted, "collected_to": reach.last_ms})
    return found


def _counted(rows: list[dict[str, Any]], doubtful: Mapping[str, str]) -> Row:
    measured = [row for row in rows if not _is_unmeasured(row, doubtful)]
    how = Counter(row["status"] for row in measured)

    def known(name: str) -> list[int]:
        return [row[name] for row in measured if row[name] is not None and row["group"] not in doubtful]

    def together(found: list[int]) -> int | None:
        return sum(found) if found or not rows else None

    return {
        "groups": len(rows),
        "members": together([row["members"] for row in rows if row["members"] is not None]),
        "ok": how["OK"],
        "unmeasured": len(rows) - len(measured),
        "not_ok": len(measured) - how["OK"],
        "total_lag": sum(known("total_lag")) if known("total_lag") else None,
        "max_lag_ms": max(known("max_lag_ms"), default=None),
        "stalled_partitions": together(known("stalled_partitions")),
        "past_end": together(known("past_end")),
    }


def _is_unmeasured(row: Mapping[str, Any], doubtful: Mapping[str, str]) -> bool:
    return row["status"] is None or (row["status"] in ("OK", "WARN") and row["group"] in doubtful)
