"""``kgctl reset-offsets``: the options read into a strategy and a scope, the plan, and the change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from kgctl.admin import EARLIEST_LOCAL, LATEST_TIERED, GroupAdmin
from kgctl.admin.notation import FromFile, PlannedOffset, parse_offset_file
from kgctl.admin.offset_reset import (
    Heal,
    ResetPlan,
    ResetRequest,
    ShiftBy,
    Strategy,
    ToCurrent,
    ToEarliest,
    ToHistory,
    ToLatest,
    ToMark,
    ToOffset,
    TopicScope,
    ToTime,
    parse_topic_scopes,
)
from kgctl.admin.resets import from_group as copied
from kgctl.admin.resets import plan_reset
from kgctl.admin.times import format_instant, parse_duration_ms, parse_past_instant_ms
from kgctl.cli.completion import complete_groups
from kgctl.cli.groups.changes import (
    COLUMNS,
    SUMMARY,
    Change,
    DryRun,
    Execute,
    OtherCluster,
    PerPartition,
    Summary,
    wait_until_empty,
)
from kgctl.cli.groups.undo_files import Backup, check_cluster, check_file_name, check_new_file
from kgctl.cli.history.asking import from_history, open_for_undo
from kgctl.cli.options import GroupArguments, GroupOptions, TopicOptions, Yes, merged_groups
from kgctl.cli.report import Report, shows
from kgctl.cli.selection import (
    AllGroupsOption,
    ExcludeOption,
    MatchOption,
    MaxGroupsOption,
    NameFilter,
    Selection,
    check_count,
    check_selection,
    name_filter,
    select_groups,
    with_neighbours,
)
from kgctl.cli.session import Session, session_of
from kgctl.cli.settings import connection_settings
from kgctl.errors import UnsupportedError, UsageError
from kgctl.model.groups import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from kgctl.pipeline.answers.history import History


AllTopics = Annotated[bool, typer.Option("--all-topics", help="Every partition with a committed offset.")]
ToEarliestFlag = Annotated[bool, typer.Option("--to-earliest", help="To the start of the log.")]
ToLatestFlag = Annotated[bool, typer.Option("--to-latest", help="To the end of the log.")]
ToCurrentFlag = Annotated[
    bool,
    typer.Option("--to-current", help="Keep what is valid, bring what is outside the log back into it, else to the log end."),
]
ToOffsetOption = Annotated[int | None, typer.Option("--to-offset", metavar="N", help="To this offset.")]
ToOffsetsOption = Annotated[
    list[str] | None,
    typer.Option("--to-offsets", metavar="TOPIC:P=N,...", help="To an offset for each partition: orders:0=5,1=10; repeatable."),
]
ShiftByOption = Annotated[int | None, typer.Option("--shift-by", metavar="N", help="By N records; back if N is negative.")]
ToDatetimeOption = Annotated[
    str | None,
    typer.Option(
        "--to-datetime",
        metavar="TIME",
        help="To the first record at or after TIME: 2024-01-31T10:00:00Z (no zone: UTC), 2024-01-31, `2h ago`, or epoch ms.",
    ),
]
ByDurationOption = Annotated[
    str | None, typer.Option("--by-duration", metavar="SPAN", help="To the first record of the last SPAN: PT1H, P7D, 1h30m, 2d.")
]
ToEarliestLocalFlag = Annotated[
    bool, typer.Option("--to-earliest-local", help="Tiered storage: to the first record that the broker has itself.")
]
ToLatestTieredFlag = Annotated[
    bool, typer.Option("--to-latest-tiered", help="Tiered storage: to the last record that is in remote storage.")
]
ToMaxTimestampFlag = Annotated[bool, typer.Option("--to-max-timestamp", help="To the record with the largest timestamp.")]
FromFileOption = Annotated[
    str | None,
    typer.Option(
        "--from-file", metavar="FILE", help="To what a plan, an undo file, kgctl's output or Kafka's own CSV says; - is stdin."
    ),
]
ToHistoryOption = Annotated[
    str | None,
    typer.Option(
        "--to-history",
        metavar="TIME",
        help="To what was committed at TIME, by the collected history; like --to-datetime, or `2h ago`.",
    ),
]
HealFlag = Annotated[
    bool, typer.Option("--heal", help="Only bring commits that lie outside their log back into it; leave the rest alone.")
]
FromGroupOption = Annotated[
    str | None,
    typer.Option("--from-group", metavar="GROUP", help="To what another group has committed.", autocompletion=complete_groups),
]
PlanOption = Annotated[
    str | None, typer.Option("--plan", metavar="FILE", help="To what a plan of --plan-out says, if the cluster is still so.")
]
PlanOut = Annotated[str | None, typer.Option("--plan-out", metavar="FILE", help="Write the plan of a dry run here, for --plan.")]
SkipMissing = Annotated[bool, typer.Option("--skip-missing", help="Leave out topics and partitions that do not exist.")]
WaitEmpty = Annotated[
    str | None, typer.Option("--wait-empty", metavar="SPAN", help="With --execute: wait this long for members to leave first.")
]
HistoryWarehouse = Annotated[
    str | None,
    typer.Option(
        "--warehouse", metavar="DIR", help="Where the history of --to-history is. [env: KGCTL_WAREHOUSE]", show_default=False
    ),
]
HistoryCluster = Annotated[
    str | None,
    typer.Option(
        "--history-cluster", metavar="NAME", help="This cluster's name in the warehouse, if it has several.", show_default=False
    ),
]
Clamp = Annotated[
    bool,
    typer.Option(
        "--clamp/--no-clamp", help="Bring offsets outside the log to its nearer end (the default), or fail.", show_default=False
    ),
]
Export = Annotated[
    bool, typer.Option("--export", help="Write the new offsets as kafka-consumer-groups.sh does: CSV without a header.")
]
Create = Annotated[bool, typer.Option("--create", help="Make groups that do not exist yet.")]


@dataclass(frozen=True, slots=True)
class GivenStrategy:
    """The options of the command line, one field each; None or False where not given."""

    to_earliest: bool = False
    to_latest: bool = False
    to_current: bool = False
    to_offset: int | None = None
    shift_by: int | None = None
    to_datetime: str | None = None
    by_duration: str | None = None
    to_history: str | None = None
    from_file: str | None = None
    heal: bool = False
    from_group: str | None = None
    plan: str | None = None
    to_max_timestamp: bool = False
    to_earliest_local: bool = False
    to_latest_tiered: bool = False
    to_offsets: tuple[str, ...] | None = None

    def chosen(self) -> str:
        """The name of the one option given.

        Raises:
            UsageError: none, or several.
        """
        given = [name for name in self.__slots__ if getattr(self, name) is not None and getattr(self, name) is not False]
        shown = [_option(name) for name in given]
        if len(given) > 1:
            raise UsageError(f"{' and '.join(shown)} exclude each other: give one")
        if not given:
            raise UsageError(f"no target given: use one of {', '.join(map(_option, self.__slots__))}")
        return given[0]


def read_strategy(given: GivenStrategy, group_ids: Sequence[str], now_ms: int, stdin: TextIO) -> tuple[Strategy, tuple[str, ...]]:
    """The strategy, and what should be said of it: times are repeated in UTC. `ToHistory` is still without what was committed.

    Raises:
        UsageError: none or several, or a value or file that cannot be read.
    """
    chosen = given.chosen()
    if chosen in _TIMES:
        return _time_strategy(chosen, getattr(given, chosen), now_ms)
    builders: dict[str, Callable[[], Strategy]] = {
        "to_earliest": ToEarliest,
        "to_latest": ToLatest,
        "to_current": ToCurrent,
        "to_max_timestamp": ToMark,
        "to_earliest_local": lambda: ToMark(EARLIEST_LOCAL),
        "to_latest_tiered": lambda: ToMark(LATEST_TIERED),
        "to_offset": lambda: _to_offset(given.to_offset or 0),
        "to_offsets": lambda: _to_offsets(given.to_offsets or (), group_ids),
        "shift_by": lambda: ShiftBy(given.shift_by or 0),
        "from_file": lambda: read_file(given.from_file or "", group_ids, stdin),
        "heal": Heal,
        "from_group": FromFile,
        "plan": lambda: _read_plan(given.plan or "", group_ids, stdin),
    }
    return builders[chosen](), ()


def read_scopes(strategy: Strategy, topics: Sequence[str], *, all_topics: bool) -> tuple[TopicScope, ...] | None:
    """The scope; None for all topics with a commit.

    Raises:
        UsageError: both, none for a strategy that has no partitions of its own, or one beside a file.
    """
    if isinstance(strategy, FromFile) and strategy.groups:
        if topics or all_topics:
            raise UsageError("the offsets say which partitions are meant: --topic and --all-topics have no place beside them")
        return None
    if topics and all_topics:
        raise UsageError("--topic and --all-topics exclude each other")
    if not topics and not all_topics and not isinstance(strategy, ToHistory | Heal | FromFile):
        raise UsageError("no scope given: use --topic TOPIC, --topic TOPIC:0,2-5 or --all-topics")
    return parse_topic_scopes(topics) if topics else None


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def _to_offset(offset: int) -> ToOffset:
    if offset < 0:
        raise UsageError(f"--to-offset {offset} is negative: offsets begin at 0")
    return ToOffset(offset)


def _to_offsets(texts: Sequence[str], group_ids: Sequence[str]) -> FromFile:
    """An offset for each partition, the same for every group that is named."""
    found: dict[TopicPartition, PlannedOffset] = {}
    for text in texts:
        topic, _, pairs = text.rpartition(":")
        for pair in pairs.split(","):
            number, _, offset = pair.partition("=")
            if not (topic and all(part.isdecimal() and part.isascii() and len(part) < 19 for part in (number, offset))):
                raise UsageError(f"--to-offsets {text!r}: write TOPIC:PARTITION=OFFSET, as in orders:0=5,1=10")
            if (partition := TopicPartition(topic, int(number))) in found:
                raise UsageError(f"--to-offsets: {partition} is given twice")
            found[partition] = PlannedOffset(OffsetAndMetadata(int(offset)))
    if not group_ids:
        raise UsageError("--to-offsets needs groups by name")
    return FromFile(dict.fromkeys(group_ids, found))


def _time_strategy(chosen: str, text: str, now_ms: int) -> tuple[Strategy, tuple[str, ...]]:
    try:
        at_ms = _TIMES[chosen](text, now_ms)
    except UsageError as error:
        raise UsageError(f"{_option(chosen)}: {error.message}") from None
    if at_ms > now_ms + _CLOCKS_APART_MS:
        instead = "--to-latest goes to the end of the log" if chosen == "to_datetime" else "a history has no commits of it"
        raise UsageError(f"{_option(chosen)} {text} means {format_instant(at_ms)} (UTC), which lies in the future; {instead}")
    strategy = ToHistory(at_ms) if chosen == "to_history" else ToTime(at_ms)
    return strategy, (f"{_option(chosen)} {text} means {format_instant(at_ms)} (UTC).",)


_CLOCKS_APART_MS = 60_000
"""A time that is no further in the future may be the present of another clock."""

_TIMES: dict[str, Callable[[str, int], int]] = {
    "to_datetime": parse_past_instant_ms,
    "by_duration": lambda text, now_ms: max(0, now_ms - parse_duration_ms(text)),
    "to_history": parse_past_instant_ms,
}
"""How the strategies that name a time read it."""


def _read_plan(path: str, group_ids: Sequence[str], stdin: TextIO) -> FromFile:
    """A plan, which must be one of ``--plan-out``: it knows its cluster, and what each partition had."""
    strategy = read_file(path, group_ids, stdin, "--plan")
    if strategy.header is None or strategy.header.kind != "plan":
        raise UsageError(f"{path} is no plan that --plan-out wrote; --from-file takes other files")
    return strategy


def read_file(path: str, group_ids: Sequence[str], stdin: TextIO, option: str = "--from-file") -> FromFile:
    """What a file of offsets says; ``-`` is stdin.

    Raises:
        UsageError: it cannot be read, or is not as it should be; names the line.
    """
    check_file_name(option, path)
    return parse_offset_file(*read_text(path, stdin), group_ids)


def read_text(path: str, stdin: TextIO) -> tuple[str, str]:
    """The text of a file, ``-`` for stdin, and what messages call it.

    Raises:
        UsageError: it cannot be read, or is no text.
    """
    try:
        if path == "-":
            return stdin.read(), "stdin"
        return Path(path).expanduser().read_bytes().decode("utf-8"), path  # line ends inside of quotes must stay what they are
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path}, line {line}: not UTF-8 text") from None


EPILOG = """Examples:

\b
kgctl reset-offsets payments --topic orders --to-earliest
kgctl reset-offsets payments --topic orders:0,2-5 --shift-by -100 --execute
kgctl reset-offsets payments --all-topics --by-duration PT1H --execute
kgctl reset-offsets payments --to-history '2h ago'
kgctl reset-offsets --all-groups --heal --execute
kgctl reset-offsets payments --all-topics --to-latest --plan-out plan.csv
kgctl reset-offsets --plan plan.csv --execute --wait-empty 60s
"""


def register(app: typer.Typer) -> None:
    app.command(epilog=EPILOG)(reset_offsets)


@shows(COLUMNS, SUMMARY)
def reset_offsets(
    ctx: typer.Context,
    groups: GroupArguments = None,
    *,
    group: GroupOptions = None,
    all_groups: AllGroupsOption = False,
    match: MatchOption = None,
    exclude: ExcludeOption = None,
    max_groups: MaxGroupsOption = None,
    topic: TopicOptions = None,
    all_topics: AllTopics = False,
    to_earliest: ToEarliestFlag = False,
    to_latest: ToLatestFlag = False,
    to_current: ToCurrentFlag = False,
    to_offset: ToOffsetOption = None,
    to_offsets: ToOffsetsOption = None,
    shift_by: ShiftByOption = None,
    to_datetime: ToDatetimeOption = None,
    by_duration: ByDurationOption = None,
    to_max_timestamp: ToMaxTimestampFlag = False,
    to_earliest_local: ToEarliestLocalFlag = False,
    to_latest_tiered: ToLatestTieredFlag = False,
    to_history: ToHistoryOption = None,
    warehouse: HistoryWarehouse = None,
    history_cluster: HistoryCluster = None,
    heal: HealFlag = False,
    from_group: FromGroupOption = None,
    from_file: FromFileOption = None,
    plan: PlanOption = None,
    plan_out: PlanOut = None,
    skip_missing: SkipMissing = False,
    wait_empty: WaitEmpty = None,
    summary: Summary = False,
    other_cluster: OtherCluster = False,
    clamp: Clamp = True,
    create: Create = False,
    per_partition: PerPartition = False,
    execute: Execute = False,
    dry_run: DryRun = False,
    export: Export = False,
    backup: Backup,
    yes: Yes = False,
) -> Report:
    """Move the committed offsets of groups. A dry run, which changes nothing and joins nothing, unless --execute is given.

    The plan shows old and new offset, delta, and lag after the reset, for active groups too. An offset outside the log is
    brought to the nearer end of it, with a warning. Executing refuses active groups, asks where groups are selected rather than
    named, saves the previous offsets to a file first (kgctl undo brings them back), and says what became of each partition.
    """
    wait_ms = _wait_ms(wait_empty, plan_out, execute=execute, dry_run=dry_run)
    session, group_ids, names = session_of(ctx), merged_groups(groups, group), name_filter(match, exclude)
    if (from_file is None and plan is None) or all_groups or names:
        check_selection(group_ids, all_groups=all_groups, names=names)
    targets = (to_earliest, to_latest, to_current, to_offset, shift_by, to_datetime, by_duration, to_history)
    marks = (to_max_timestamp, to_earliest_local, to_latest_tiered)
    given = GivenStrategy(*targets, from_file, heal, from_group, plan, *marks, tuple(to_offsets) if to_offsets else None)
    strategy, remarks = read_strategy(given, group_ids, session.environment.now_ms(), session.environment.stdin)
    scopes = read_scopes(strategy, topic or (), all_topics=all_topics)
    history = _history(session, strategy, warehouse, history_cluster)
    with session.connect() as admin:
        cluster = session.cluster(admin)
        header = strategy.header if isinstance(strategy, FromFile) else None
        check_cluster(header, cluster, other_cluster=other_cluster, name=str(from_file or plan))
        chosen = _chosen(admin, group_ids, names, strategy)
        check_count(len(chosen.group_ids), max_groups)
        if from_group is not None:
            strategy = copied(admin, from_group, chosen.group_ids, scopes or ())
        if history is not None:
            chosen, strategy, told = from_history(history, strategy, chosen, cluster.cluster_id)
            remarks = (*remarks, *told)
        wait_until_empty(session, admin, chosen.group_ids, wait_ms)
        request = ResetRequest(chosen.group_ids, strategy, scopes, clamp, create, skip_missing, per_partition)
        planned = (again := partial(_planned, session, admin, chosen, request))()
        remarks = (*remarks, *(_hidden(admin) if all_topics and planned.groups else ()))
        change = Change(session, cluster, remarks, backup, export=export, summary=summary)
        if execute:
            return change.execute(admin, planned, again if all_groups or names else None, yes=yes)
        return change.show(planned, plan_out)


def _planned(session: Session, admin: GroupAdmin, chosen: Selection, request: ResetRequest) -> ResetPlan:
    with session.waiting():
        planned = plan_reset(admin, request)
    return replace(planned, errors=with_neighbours(admin, (*chosen.errors, *planned.errors)))


def _history(session: Session, strategy: Strategy, warehouse: str | None, cluster: str | None) -> History | None:
    """As `open_for_undo`; raises UnsupportedError for groups of which no history is collected."""
    if isinstance(strategy, ToHistory) and connection_settings(session.flags, session.environment).zookeeper is not None:
        raise UnsupportedError("--to-history: there is no history of groups in ZooKeeper; undo files have what kgctl took away")
    return open_for_undo(session, strategy, warehouse, cluster)


def _hidden(admin: GroupAdmin) -> Iterator[str]:
    if lacks := admin.sight().lacks_topics:
        yield f"{lacks}: commits on others are not shown, and stay as they are."


def _wait_ms(wait_empty: str | None, plan_out: str | None, *, execute: bool, dry_run: bool) -> int:
    """How long to wait for members to leave; checks what only a dry run, or only the deed, can take."""
    if execute and dry_run:
        raise UsageError("--execute and --dry-run exclude each other")
    if plan_out is not None and execute:
        raise UsageError("--plan-out keeps the plan of a dry run: --execute has no place beside it")
    check_new_file("--plan-out", plan_out)
    if wait_empty is None:
        return 0
    if not execute:
        raise UsageError("--wait-empty waits before --execute only: a dry run works on active groups too")
    try:
        return parse_duration_ms(wait_empty)
    except UsageError as error:
        raise UsageError(f"--wait-empty: {error.message}") from None


def _chosen(admin: GroupAdmin, group_ids: list[str], names: NameFilter, strategy: Strategy) -> Selection:
    if not isinstance(strategy, FromFile) or not strategy.groups:
        return select_groups(admin, group_ids, names)
    found = [group_id for group_id in strategy.groups if names(group_id)]
    if not found:
        raise UsageError("the file has no offsets for a group that matches")
    return Selection(tuple(found))
