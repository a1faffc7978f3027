"""How a command asks the history: its options, which history, about which groups, and what is said of the answer's limits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

from kgctl.admin.times import format_instant, parse_duration_ms, parse_past_instant_ms, second_reading
from kgctl.cli.completion import complete_history_groups
from kgctl.cli.environment import Environment
from kgctl.cli.options import merged_groups
from kgctl.cli.parameters import argument, flag, option
from kgctl.cli.report import TIME, Column, Report, Row
from kgctl.cli.session import Session
from kgctl.errors import KgctlError, NotFoundError, RefusedError, UsageError, did_you_mean
from kgctl.model.values import frozen, frozen_in_order

if TYPE_CHECKING:
    from kgctl.admin.offset_reset import PastOffset, Strategy
    from kgctl.admin.topic_scopes import TopicScope
    from kgctl.cli.selection import Selection
    from kgctl.model.groups import TopicPartition
    from kgctl.pipeline.answers.history import Behind, History
    from kgctl.pipeline.answers.series import CommitAt, TableSeries
    from kgctl.pipeline.collect.live import CollectPlan
    from kgctl.pipeline.engines import EngineOptions
    from kgctl.pipeline.store.files import StoreLocation


TIMES = "2024-01-31T10:00:00Z (no zone: UTC), epoch milliseconds, `now`, `2h ago`, `yesterday 14:00 Europe/Berlin`"

Warehouse = Annotated[
    str | None,
    option("DIR|URL", "The history: a folder, or s3://, gs://, abfss://, hdfs://. [env: KGCTL_WAREHOUSE]", "--warehouse"),
]
Cluster = Annotated[
    str | None,
    option("NAME", "The cluster's name in the warehouse, if it has several.", "--cluster"),
]
SomeClusters = Annotated[
    list[str] | None,
    option("NAME", "A cluster in the warehouse; repeatable. [default: all of them]", "--cluster"),
]
Groups = Annotated[
    list[str] | None,
    option("GROUP", "A group id; repeatable.", "--group", complete=complete_history_groups),
]
GroupArguments = Annotated[
    list[str] | None,
    argument("GROUP", "Group ids; all groups otherwise.", complete=complete_history_groups),
]
Topics = Annotated[
    list[str] | None,
    option("TOPIC[:PARTITIONS]", "Only this topic, or some of its partitions as in orders:0,2-5; repeatable.", "--topic"),
]
At = Annotated[str | None, option("TIME", f"As of this time: {TIMES}.", "--at")]
AsOfVersion = Annotated[
    int | None,
    option("N", "Ask the tables as an earlier build left them; history build tells its version.", "--as-of-version", min=0),
]
From = Annotated[str | None, option("TIME", "From this time on, written like --at.", "--from")]
To = Annotated[str | None, option("TIME", "Before this time, written like --at.", "--to")]


@dataclass(frozen=True)
class AskedGroups:
    """Which groups, as arguments or options; none: all of them."""

    groups: GroupArguments = None
    group: Groups = None

    @property
    def ids(self) -> list[str]:
        """Return each once. Raises as `merged_groups`."""
        return merged_groups(self.groups, self.group)


@dataclass(frozen=True)
class AskedTimes:
    """As of when, or of which stretch of time."""

    at: At = None
    from_: From = None
    to: To = None


@dataclass(frozen=True)
class AskedHistory:
    """Which history, and which version of its tables."""

    warehouse: Warehouse = None
    cluster: Cluster = None
    as_of_version: AsOfVersion = None


@frozen_in_order
class TimeSpan:
    """A stretch of time: from ``from_ms`` on and before ``to_ms``; None for no limit."""

    from_ms: int | None = None
    to_ms: int | None = None


def require_tables(engine: EngineOptions | None = None) -> None:
    """Refuse a command that reads or writes tables, by an engine, where what it needs for that is not installed.

    The modules of the pipeline import pyarrow and numpy: this comes before the first of them.

    Raises:
        UsageError: a package is missing; the message has the line that installs it.
    """
    from kgctl.extras import require

    more = () if engine is None else engine.modules
    require(engine.what if engine is not None and more else "kgctl history", "pyarrow", "numpy", "deltalake", *more)


def warehouse_path(given: str | None, environment: Environment) -> StoreLocation:
    """The folder or URL that ``--warehouse``, KGCTL_WAREHOUSE or else the user's state folder names. It need not exist.

    Raises:
        UsageError: the option is empty, or a URL of a store that kgctl cannot write; or what reads tables is not installed.
    """
    require_tables()
    from kgctl.pipeline.store.files import StoreLocation

    if given == "":
        raise UsageError("--warehouse is empty (an unset variable?): give it a folder")
    place = environment.warehouse if given is None else given
    try:
        return StoreLocation.parse(place)
    except UsageError as error:
        raise UsageError(f"{'KGCTL_WAREHOUSE' if given is None else '--warehouse'} {error.message}") from None


def read_time_ms(option: str, text: str | None, environment: Environment) -> int | None:
    """What ``option`` says, in milliseconds since the epoch; None if it was not given. Of a time that came twice both are told.

    Raises:
        UsageError: it is no time; names the option.
    """
    if text is None:
        return None
    now_ms = environment.now_ms()
    try:
        found = parse_past_instant_ms(text, now_ms)
    except UsageError as error:
        raise UsageError(f"{option}: {error.message}") from None
    if twice := second_reading(text, now_ms):
        environment.notice(f"{option} {text} means {format_instant(found)} (UTC).{twice}")
    return found


def read_span(from_: str | None, to: str | None, environment: Environment) -> TimeSpan:
    """What ``--from`` and ``--to`` say.

    Raises:
        UsageError: one is no time, or they are in the wrong order.
    """
    span = TimeSpan(read_time_ms("--from", from_, environment), read_time_ms("--to", to, environment))
    if span.from_ms is not None and span.to_ms is not None and span.from_ms >= span.to_ms:
        raise UsageError(f"--from {from_} is not before --to {to}")
    return span


class RecordReader(StrEnum):
    """The values of ``--reader``."""

    AUTO = "auto"
    WIRE = "wire"
    CONFLUENT = "confluent"


@dataclass(frozen=True)
class AskedLive:
    """How a live cluster is collected."""

    sample_every: Annotated[
        str | None, option("TIME", "Of a live cluster: sample the topics' log offsets so often. [default: 10s]")
    ] = None
    all_topics: Annotated[
        bool, flag("--all-topics", "Of a live cluster: sample every topic, not only those that groups have commits on.")
    ] = False
    reader: Annotated[RecordReader, option("", "Who reads a live cluster; auto takes confluent where only it can log in.")] = (
        RecordReader.AUTO
    )


@dataclass(frozen=True)
class AskedSpark:
    """Where Spark runs."""

    master: Annotated[str | None, option("URL", "Spark's master: spark://HOST:PORT, yarn; local[*] otherwise.")] = None
    remote: Annotated[str | None, option("URL", "A server of Spark Connect: sc://HOST:PORT.")] = None


_SHORTEST_SAMPLE_MS = 1_000
_DEFAULT_SAMPLE_MS = 10_000


@frozen_in_order
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

    def plan(self) -> CollectPlan:
        """Return the options as the collector takes them."""
        from kgctl.pipeline.collect.live import CollectPlan

        return CollectPlan(
            once=self.once,
            for_s=None if self.for_ms is None else self.for_ms / 1000,
            sample_every_s=self.sample_every_ms / 1000,
            all_topics=self.all_topics,
        )


def live_options(asked: AskedLive, *, once: bool, for_: str | None) -> LiveOptions:
    """Read them. Raises `UsageError` for what is no span of time, and for ``--once`` with ``--for``."""
    flags = {
        "--once": once,
        "--for": for_ is not None,
        "--sample-every": asked.sample_every is not None,
        "--all-topics": asked.all_topics,
        "--reader": asked.reader is not RecordReader.AUTO,
    }
    if once and for_ is not None:
        raise UsageError("--once and --for exclude each other")
    every_ms = _DEFAULT_SAMPLE_MS if asked.sample_every is None else span_ms("--sample-every", asked.sample_every)
    if every_ms < _SHORTEST_SAMPLE_MS:
        raise UsageError(f"--sample-every {asked.sample_every}: the shortest is 1s")
    for_ms = None if for_ is None else span_ms("--for", for_)
    return LiveOptions(
        once, for_ms, every_ms, asked.all_topics, asked.reader.value, tuple(flag for flag, is_given in flags.items() if is_given)
    )


def span_ms(flag: str, text: str) -> int:
    """What ``flag`` says, a span of time. Raises `UsageError` where it is none, or nothing."""
    try:
        found = parse_duration_ms(text)
    except UsageError as error:
        raise UsageError(f"{flag}: {error.message}") from None
    if found <= 0:
        raise UsageError(f"{flag} {text} must be more than zero")
    return found


@dataclass(frozen=True)
class HistoryQuestion:
    """An opened history, and the groups that are asked about and known to it; None stands for all of them.

    ``errors`` has the groups that it never heard of. ``now_ms``: when it is asked.
    """

    history: History
    groups: Sequence[str] | None
    now_ms: int
    errors: tuple[KgctlError, ...] = ()

    @cached_property
    def behind(self) -> Behind:
        """What was collected and is not in the tables."""
        return self.history.behind()

    @property
    def is_answerable(self) -> bool:
        """Return whether a group is left to ask about."""
        return self.groups is None or bool(self.groups)

    def left_out(self, answered: Iterable[str]) -> list[str]:
        """The groups that were named and that the answer says nothing of."""
        there = set(answered)
        return [group for group in self.groups or () if group not in there]


def ask(session: Session, groups: list[str], asked: AskedHistory) -> HistoryQuestion:
    """Open the history that the options name. No group given: all of them.

    Raises:
        KgctlError: there is none, it was not built yet, or it cannot be read.
    """
    if "" in groups:
        raise UsageError("a group id must not be empty")
    history = open_history(session, asked.warehouse, asked.cluster, as_of=asked.as_of_version)
    return ask_about(history, groups or None, session.environment.now_ms())


def open_history(
    session: Session, warehouse: str | None, cluster: str | None, option: str = "--cluster", *, as_of: int | None = None
) -> History:
    """The built history of a cluster; ``option`` is what the command calls the cluster's name.

    Raises:
        KgctlError: there is none, it was not built yet, or it cannot be read.
    """
    from kgctl.pipeline.no_pandas import leave_pandas_out

    if session.environment.is_own_process:
        leave_pandas_out()
    from kgctl.pipeline.answers.history import History

    if cluster == "":
        raise UsageError(f"{option} is empty (an unset variable?): leave it out, or give it a name")
    return History.open(warehouse_path(warehouse, session.environment), cluster, as_of)


def ask_about(history: History, groups: Sequence[str] | None, now_ms: int) -> HistoryQuestion:
    """The groups that the history knows, and errors for those that it does not; None: all of them."""
    if groups is None:
        return HistoryQuestion(history, None, now_ms)
    unknown = history.unknown(groups)
    errors = tuple(_unknown(group, history) for group in unknown)
    return HistoryQuestion(history, [group for group in groups if group not in unknown], now_ms, errors)


def _unknown(group: str, history: History) -> NotFoundError:
    near = did_you_mean(group, history.groups(), quoted=True)
    return NotFoundError(f"group {group!r} is not in the history of cluster {history.cluster!r}{near}", group=group)


def limits(question: HistoryQuestion, first_ms: int | None, last_ms: int | None) -> list[str]:
    """What a reader must know of an answer about the time between these two, both included; None: no limit."""
    reach = question.history.reach(question.groups)
    notices = before_all(question.history, first_ms, question.groups)
    if reach is not None and last_ms is not None and last_ms > reach.last_ms:
        notices.append(f"Collected up to {format_instant(reach.last_ms)}: what came later is not known.")
    elif last_ms is not None and last_ms >= question.now_ms:
        notices += still_to_come(question.history, question.now_ms, question.groups)
    return [*notices, *_missed(question, first_ms, last_ms), *behind_text(question.behind)]


def _missed(question: HistoryQuestion, first_ms: int | None, last_ms: int | None) -> list[str]:
    """A line where records of that time are missing."""
    holes = question.history.holes(question.groups)
    found = [hole for hole in holes if (last_ms is None or hole[0] < last_ms) and (first_ms is None or hole[1] > first_ms)]
    if not found:
        return []
    of_many = f" in {len(found)} stretches" if len(found) > 1 else ""
    between = f"{format_instant(min(low for low, _ in found))} and {format_instant(max(high for _, high in found))}"
    return [f"Records between {between}{of_many} were not collected, or compacted away before: what they told is not known."]


def before_all(history: History, first_ms: int | None, groups: Sequence[str] | None = None) -> list[str]:
    """A line where a time is earlier than all that was collected."""
    reach = history.reach(groups)
    is_early = reach is not None and first_ms is not None and first_ms < reach.first_ms
    return [f"Nothing from before {format_instant(reach.first_ms)} was collected."] if reach is not None and is_early else []


def still_to_come(history: History, now_ms: int, groups: Sequence[str] | None = None) -> list[str]:
    """A line where a record is from the future: a clock was ahead, and how far was collected nobody can tell."""
    reach = history.reach(groups)
    if reach is None or reach.last_ms <= now_ms + _CLOCKS_DIFFER_MS:
        return []
    ahead = f"The last record is of {format_instant(reach.last_ms)}, which is still to come by this machine's clock"
    return [f"{ahead}: whether all up to now was collected is not known."]


_CLOCKS_DIFFER_MS = 60_000


def behind_text(behind: Behind) -> Iterator[str]:
    """What a reader must know of records and samples that no build has brought in."""
    late = f", {behind.late} of them late: older than what is built, which will change" if behind.late else ""
    if behind.records:
        yield f"{behind.records} records were collected after the last build{late}: kgctl history build brings them in."
    elif behind.samples:
        yield f"{behind.samples} samples of log ends were collected after the last build: kgctl history build brings them in."


def told_of(*questions: HistoryQuestion) -> dict[str, str | int | None]:
    """Return the same for programs, of one cluster or several, and from when to when what is asked about was collected of all."""
    behind = [each.behind for each in questions]
    reaches = [each.history.reach(each.groups) for each in questions]
    whole = [] if None in reaches else [reach for reach in reaches if reach is not None]
    return {
        "collected_from": format_instant(max(reach.first_ms for reach in whole)) if whole else None,
        "collected_to": format_instant(min(reach.last_ms for reach in whole)) if whole else None,
        "records_not_built": sum(each.records for each in behind),
        "late_records_not_built": sum(each.late for each in behind),
        "samples_not_built": sum(each.samples for each in behind),
    }


@frozen
class Shape:
    """How a command shows ``series``, a name in `kgctl.pipeline.answers.series`, and what it says where there are no rows.

    ``as_of_now``: without a time it is asked as of now, else for all that there is. ``finish`` makes rows whole, in place, as of
    a moment or (None) over time, and says what there is to say.
    """

    series: str
    columns: Sequence[Column]
    name_keys: tuple[str, ...]
    nothing: str
    finish: Callable[[HistoryQuestion, list[dict[str, Any]], int | None], list[str]]
    as_of_now: bool = True

    def row(self, found: dict[str, Any]) -> Row:
        """Return the cells; those of times are milliseconds in the table."""
        return {each.key: found[f"{each.key}_ms" if each.kind is TIME else each.key] for each in self.columns}


def answer(
    session: Session,
    shape: Shape,
    whom: AskedGroups,
    when: AskedTimes,
    which: AskedHistory,
    *,
    topic: Sequence[str] | None = None,
) -> Report:
    """The report of one of these commands.

    Raises:
        KgctlError: times or topics that are none, or no history to ask.
    """
    at_ms, span = _times(session, when, shape)
    scopes = scopes_of(topic)
    question = ask(session, whom.ids, which)
    if not question.is_answerable:
        return Report(shape.columns, errors=question.errors)
    from kgctl.pipeline.answers import series

    chosen: TableSeries = getattr(series, shape.series)
    if at_ms is not None:
        rows = series.rows_at(question.history, chosen, question.groups, at_ms)
    else:
        rows = series.rows_between(question.history, chosen, question.groups, span.from_ms, span.to_ms)
    rows = [row for row in rows if not scopes or is_in(row["topic"], row["partition"], scopes)]
    is_to_now = span.to_ms is None and (span.from_ms is not None or not rows)
    last_ms = session.environment.now_ms() if is_to_now else span.to_ms
    told = limits(question, span.from_ms, last_ms) if at_ms is None else limits(question, at_ms, at_ms)
    absent = unknown_topics(question, scopes, ((row["topic"], row["partition"]) for row in rows) if scopes else ())
    told = [*shape.finish(question, rows, at_ms), *told]
    nothing = [] if rows or absent else [shape.nothing]
    return Report(
        shape.columns,
        [shape.row(row) for row in rows],
        [*question.errors, *absent],
        [*nothing, *told],
        shape.name_keys,
        something_done=len(absent) < max(len(scopes), 1),
        summary=told_of(question),
    )


def _times(session: Session, asked: AskedTimes, shape: Shape) -> tuple[int | None, TimeSpan]:
    at_ms = read_time_ms("--at", asked.at, session.environment)
    span = read_span(asked.from_, asked.to, session.environment)
    if at_ms is not None and span != TimeSpan():
        raise UsageError("--at is a moment, --from and --to are a stretch of time: give one of the two")
    if at_ms is None and span == TimeSpan() and shape.as_of_now:
        at_ms = session.environment.now_ms()
    return at_ms, span


def scopes_of(topics: Sequence[str] | None) -> Sequence[TopicScope]:
    """What ``--topic`` asks for; nothing: all. Raises `UsageError`."""
    if not topics:
        return ()
    from kgctl.admin.topic_scopes import parse_topic_scopes

    return parse_topic_scopes(topics)


def is_in(topic: str, partition: int, scopes: Sequence[TopicScope]) -> bool:
    """Whether ``--topic`` asks for this partition."""
    if not scopes:
        return True
    from kgctl.admin.topic_scopes import is_within
    from kgctl.model.groups import TopicPartition

    return is_within(TopicPartition(topic, partition), scopes)


def unknown_topics(question: HistoryQuestion, scopes: Sequence[TopicScope], found: Iterable[tuple[str, int]]) -> list[KgctlError]:
    """Errors for what ``--topic`` names and none of the groups has ever committed to; ``found``: the partitions of an answer."""
    from kgctl.admin.topic_scopes import absent
    from kgctl.model.groups import TopicPartition
    from kgctl.pipeline.store.tables import LATEST_MS

    there = {TopicPartition(*each) for each in found}
    missing = [scope for scope in absent(scopes, there) if scope in scopes]
    if missing:
        rows = question.history.looked_back("offset_commits", ("topic", "partition"), question.groups, LATEST_MS)
        there = {TopicPartition(*each) for each in zip(*(column.to_pylist() for column in rows.columns), strict=True)}
    return [_unknown_topic(scope, {each.topic for each in there}) for scope in absent(missing, there) if scope in missing]


def _unknown_topic(scope: TopicScope, topics: Collection[str]) -> NotFoundError:
    near = "" if scope.topic in topics else did_you_mean(scope.topic, sorted(topics), quoted=True)
    return NotFoundError(f"topic {str(scope)!r}: no group that is asked about has committed to it{near}", topic=scope.topic)


def open_for_undo(session: Session, strategy: Strategy, warehouse: str | None, cluster: str | None) -> History | None:
    """The history that ``--warehouse`` and ``--history-cluster`` name; None for a reset to somewhere else.

    Raises:
        UsageError: the options stand beside another strategy.
        KgctlError: as `kgctl.cli.history.asking.open_history`.
    """
    from kgctl.admin.offset_reset import ToHistory

    if isinstance(strategy, ToHistory):
        return open_history(session, warehouse, cluster, "--history-cluster")
    for name, given in (("--warehouse", warehouse), ("--history-cluster", cluster)):
        if given is not None:
            raise UsageError(f"{name} has a place beside --to-history only")
    return None


def from_history(
    history: History, strategy: Strategy, chosen: Selection, cluster_id: str | None, now_ms: int
) -> tuple[Selection, Strategy, list[str]]:
    """The strategy with what the chosen groups had committed, and what must be said of it.

    Groups that the history never heard of are errors of the selection from here on. Raises `RefusedError` where the history is
    known to be another cluster's than that with this id.
    """
    from kgctl.admin.offset_reset import ToHistory
    from kgctl.cli.selection import Selection
    from kgctl.model.groups import TopicPartition
    from kgctl.pipeline.answers.series import offsets_at

    assert isinstance(strategy, ToHistory)
    where = _whose(history, cluster_id)
    question = ask_about(history, chosen.group_ids, now_ms)
    known = tuple(question.groups or ())
    groups: dict[str, dict[TopicPartition, PastOffset]] = {group: {} for group in known}
    for commit in offsets_at(history, known, strategy.timestamp_ms):
        groups[commit.group][TopicPartition(commit.topic, commit.partition)] = _past(commit, history, strategy.timestamp_ms)
    told = [where, *limits(question, strategy.timestamp_ms, strategy.timestamp_ms)]
    return Selection(known, (*chosen.errors, *question.errors)), ToHistory(strategy.timestamp_ms, groups), told


def _whose(history: History, cluster_id: str | None) -> str:
    where = f"Offsets are those of the history of cluster {history.cluster!r}"
    if history.cluster_id is None or cluster_id is None:
        return f"{where}; whether that is this cluster cannot be told, as one of the two has no id."
    if history.cluster_id != cluster_id:
        raise RefusedError(
            f"the history of {history.cluster!r} is of the cluster with the id {history.cluster_id}, and this one's is "
            f"{cluster_id}: offsets of one cluster mean nothing in another"
        )
    return f"{where}."


def _past(commit: CommitAt, history: History, at_ms: int) -> PastOffset:
    from kgctl.admin.offset_reset import PastOffset
    from kgctl.model.groups import NO_LEADER_EPOCH, OffsetAndMetadata
    from kgctl.pipeline.answers.series import Exactness

    moment = format_instant(at_ms)
    if commit.offset is None:
        return PastOffset(None, f"what was committed at {moment} was not collected")
    metadata, notes = commit.metadata or "", []
    reach = history.reach([commit.group])
    if commit.exactness is Exactness.COMPACTED:
        notes.append(f"later commits before {moment} may have been compacted away")
    elif reach is not None and at_ms > reach.last_ms:
        notes.append(f"commits between {format_instant(reach.last_ms)} and {moment} are not known")
    if "\0" in metadata:
        metadata = ""
        notes.append("its metadata has a NUL, which librdkafka cannot write: left out")
    target = OffsetAndMetadata(commit.offset, metadata, NO_LEADER_EPOCH if commit.leader_epoch is None else commit.leader_epoch)
    return PastOffset(target, "; ".join(notes) or None)
