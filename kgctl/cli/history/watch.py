"""``kgctl history watch``."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kgctl.admin.times import format_instant, parse_duration_ms
from kgctl.cli.columns import GROUP, PARTITION, TOPIC
from kgctl.cli.exit_codes import ExitCode
from kgctl.cli.history import asking
from kgctl.cli.history.asking import LiveOptions, live_options, require_tables, span_ms, warehouse_path
from kgctl.cli.history.collect import AFTER_TROUBLE_S, LiveSource, RecordReader, ending_on_signals
from kgctl.cli.history.columns import CLUSTER, MAX_LAG_MS, TOTAL_LAG
from kgctl.cli.history.watches import Builder, Change, Watches, warm_engine, watch_settings
from kgctl.cli.render import RENDERERS, printable
from kgctl.cli.report import Column, JsonKind, OutputFormat, Report, Row, shows
from kgctl.cli.session import Session, session_of
from kgctl.errors import ExpectationError, KgctlError, StorageError, UsageError
from kgctl.pipeline.engines import EngineName, EngineOptions

if TYPE_CHECKING:
    from kgctl.pipeline.watch.loop import Watch
    from kgctl.pipeline.watch.outlets import Metrics, Webhook
    from kgctl.pipeline.watch.rules import Rule

_CLUSTER = replace(CLUSTER, wide=True)
COLUMNS = (
    Column("time", kind=JsonKind.TIME, meaning="when it fired, or was resolved"),
    Column("status", meaning="pending, firing or resolved"),
    Column("alert", meaning="the name of its rule"),
    _CLUSTER,
    GROUP,
    TOPIC,
    PARTITION,
    Column("value", wide=True, kind=JsonKind.NUMBER, meaning="what was measured, in the rule's unit"),
    Column("since", wide=True, kind=JsonKind.TIME, meaning="since when the rule holds"),
    Column("rule", wide=True, meaning="the rule, as it was given"),
    Column("summary", meaning="what it is about, in words"),
)
GROUPS = (
    GROUP,
    Column("status", meaning="the worst of its partitions"),
    Column("members", kind=JsonKind.WHOLE, meaning="how many members it has"),
    TOTAL_LAG,
    MAX_LAG_MS,
    Column("measured_at", kind=JsonKind.TIME, meaning="when its oldest lag was measured"),
    Column("alerts", kind=JsonKind.WHOLE, meaning="how many alerts fire"),
)
_DEFAULT_EVERY_MS = 30_000
_SHORTEST_EVERY_MS = 1_000
_DAY_MS = 86_400_000
_UPKEEP_EVERY_MS = 3_600_000
_CLEAR = "\x1b[H\x1b[2J\x1b[3J"


_Alert = Annotated[
    list[str] | None,
    typer.Option(
        "--alert",
        metavar="RULE",
        help="NAME [> LIMIT] [in TIME] [for TIME] [on GROUP,...], as 'lag > 1000 for 5m on pay*'; repeatable.",
        show_default=False,
    ),
]
_Every = Annotated[str | None, typer.Option(metavar="TIME", help="Build and judge so often. [default: 30s]", show_default=False)]
_Once = Annotated[bool, typer.Option("--once", help="Collect what is there, judge, and end: 6 if an alert fires.")]
_For = Annotated[str | None, typer.Option("--for", metavar="TIME", help="End after so long.", show_default=False)]
_ExitOnAlert = Annotated[bool, typer.Option("--exit-on-alert", help="End with 6 as soon as an alert fires.")]
_AllowUnknown = Annotated[
    bool, typer.Option("--allow-unknown", help="A rule on something that cannot be measured does not fire.")
]
_Webhook = Annotated[
    str | None,
    typer.Option(
        metavar="URL", help="POST changes of alerts there, as Alertmanager does. [env: KGCTL_WEBHOOK]", show_default=False
    ),
]
_WebhookHeader = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME:VALUE", help="Send it with each post; repeatable. [env: KGCTL_WEBHOOK_HEADER]", show_default=False
    ),
]
_Metrics = Annotated[
    str | None, typer.Option(metavar="HOST:PORT", help="Serve a page of metrics for Prometheus.", show_default=False)
]
_MetricsFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write the metrics there, as the node exporter reads them.", show_default=False),
]
_State = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Where alerts are kept from run to run. [default: in kgctl's state folder]", show_default=False
    ),
]
_Keep = Annotated[
    str | None, typer.Option(metavar="TIME", help="Thin what is older than so long, as 30d, every hour.", show_default=False)
]
_NoCollect = Annotated[bool, typer.Option("--no-collect", help="Somebody else collects: build and judge only.")]
_Cluster = Annotated[
    list[str] | None,
    typer.Option(
        "--cluster",
        metavar="NAME",
        help="The cluster's name in the warehouse, else its id; with --no-collect repeatable, else all that are there.",
        show_default=False,
    ),
]
_SampleEvery = Annotated[
    str | None, typer.Option(metavar="TIME", help="Sample the topics' log offsets so often. [default: 10s]", show_default=False)
]
_AllTopics = Annotated[bool, typer.Option("--all-topics", help="Sample every topic, not only those that groups have commits on.")]
_Reader = Annotated[RecordReader, typer.Option(help="Who reads; auto takes confluent where only it can log in.")]
_Engine = Annotated[EngineName, typer.Option(help="Who builds: this process, or Spark, which is kept warm.")]
_Master = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Spark's master: spark://HOST:PORT, yarn; local[*] otherwise.", show_default=False),
]

_Remote = Annotated[
    str | None, typer.Option(metavar="URL", help="A server of Spark Connect: sc://HOST:PORT.", show_default=False)
]


@shows(COLUMNS, examples="kgctl history watch --alert 'lag > 10000 for 5m' --alert stopped --webhook http://127.0.0.1:9000/")
def history_watch(
    ctx: typer.Context,
    *,
    alert: _Alert = None,
    every: _Every = None,
    once: _Once = False,
    for_: _For = None,
    exit_on_alert: _ExitOnAlert = False,
    allow_unknown: _AllowUnknown = False,
    webhook: _Webhook = None,
    webhook_header: _WebhookHeader = None,
    metrics: _Metrics = None,
    metrics_file: _MetricsFile = None,
    state: _State = None,
    keep: _Keep = None,
    no_collect: _NoCollect = False,
    warehouse: asking.Warehouse = None,
    cluster: _Cluster = None,
    sample_every: _SampleEvery = None,
    all_topics: _AllTopics = False,
    reader: _Reader = RecordReader.AUTO,
    engine: _Engine = EngineName.AUTO,
    master: _Master = None,
    remote: _Remote = None,
) -> Report | int:
    """Collect and build on and on, and tell when groups are in trouble: rules, a webhook, metrics, exit code.

    It ends with 0 on Ctrl-C and SIGTERM, everything written, and goes on where it was when it is started again: alerts that fired
    are not told twice, and those that ended meanwhile are told as resolved. A cluster, a warehouse or a webhook that is away is
    said once and waited for. With --once and --for the exit code is 6 if an alert fires, or has fired.

    With --no-collect one watch is enough for all clusters of a warehouse, and what goes wrong with one harms no other.

    A threshold does not hold on what cannot be measured: such an alert says so, after 2 minutes, with --once and at the end of
    --for at once.
    """
    session = session_of(ctx)
    rules = _read_rules(alert or ())
    every_ms = _every_ms(every)
    live = live_options(once=once, for_=for_, sample_every=sample_every, all_topics=all_topics, reader=reader.value)
    names = _check(live, cluster or (), is_collecting=not no_collect)
    how = EngineOptions(
        name=engine, jobs=None if master or remote else 1, master=master, remote=remote, what="history watch --engine spark"
    )
    keep_ms = None if keep is None else _keep_ms(keep)
    hook = _webhook(session, webhook, webhook_header)
    require_tables(how)
    place = warehouse_path(warehouse, session.environment)
    with ExitStack() as stack:
        source = None if no_collect else stack.enter_context(LiveSource.open(session, live, place, next(iter(names), None)))
        builder = Builder(session.environment, place, warm_engine(how, stack), keep_ms, is_single=once)
        settings = watch_settings(rules, allow_unknown=allow_unknown, is_patient=not once)
        page = _metrics(session, stack, metrics, metrics_file)
        watches = Watches(builder, settings, [source.cluster] if source else names, state, hook, page)
        if source is None:
            watches.require()
        told = _Told(session, watches, exit_on_alert=exit_on_alert, is_single=once)
        if once:
            told.errors += source.collect(live.plan(), threading.Event()).errors if source else []
            told.look()
        else:
            _follow(session, told, source, every_ms, live.for_ms)
        return told.report(is_bounded=once or for_ is not None or exit_on_alert)


def _every_ms(text: str | None) -> int:
    found = _DEFAULT_EVERY_MS if text is None else span_ms("--every", text)
    if found < _SHORTEST_EVERY_MS:
        raise UsageError(f"--every {text}: the shortest is 1s")
    return found


def _check(live: LiveOptions, clusters: Sequence[str], *, is_collecting: bool) -> list[str]:
    """The clusters that are named, each once."""
    names = list(dict.fromkeys(clusters))
    if "" in names:
        raise UsageError("--cluster is empty (an unset variable?): leave it out, or give it a name")
    if is_collecting and len(names) > 1:
        raise UsageError("--cluster: one cluster is collected; of several that others collect, watch with --no-collect")
    given = [flag for flag in live.given if flag not in ("--once", "--for")]
    if given and not is_collecting:
        raise UsageError(f"{given[0]} is for a collection, and --no-collect makes none")
    return names


def _read_rules(texts: Sequence[str]) -> list[Rule]:
    from kgctl.pipeline.watch.rules import parse_rule

    try:
        return [parse_rule(text, parse_duration_ms) for text in dict.fromkeys(texts)]
    except UsageError as error:
        raise UsageError(f"--alert: {error.message}") from None


def _keep_ms(text: str) -> int:
    found = span_ms("--keep", text)
    if found < _DAY_MS:
        raise UsageError(f"--keep {text}: whole days are thinned; the shortest is 1d")
    return found


def _webhook(session: Session, url: str | None, headers: list[str] | None) -> Webhook | None:
    from kgctl.pipeline.watch.outlets import Webhook

    variables = session.environment.variables
    chosen = variables.get("KGCTL_WEBHOOK") if url is None else url
    if not chosen:
        if url == "":
            raise UsageError("--webhook is empty (an unset variable?): give it a URL")
        if headers:
            raise UsageError("--webhook-header belongs to --webhook")
        return None
    found = {}
    for text in [*(headers or ()), *filter(None, [variables.get("KGCTL_WEBHOOK_HEADER")])]:
        name, colon, value = text.partition(":")
        if not colon or not name.strip() or any(character in text for character in "\r\n"):
            raise UsageError("--webhook-header: write NAME:VALUE")
        found[name.strip()] = value.strip()
    return Webhook(chosen, found)


def _metrics(session: Session, stack: ExitStack, address: str | None, file: Path | None) -> Metrics | None:
    if address is None and file is None:
        return None
    from kgctl.cli.files import check_place
    from kgctl.pipeline.watch.outlets import Metrics

    if file is not None:
        check_place(file)
    metrics = Metrics(file)
    if address is not None:
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal() or int(port) > 65_535:
            raise UsageError(f"--metrics {address}: write HOST:PORT")
        found = metrics.listen(host.strip("[]"), int(port))
        stack.callback(metrics.close)
        session.notice(f"metrics on http://{host}:{found}/metrics")
    return metrics


class _Told:
    """Looks of a watch as a person or a program sees them."""

    def __init__(self, session: Session, watches: Watches, *, exit_on_alert: bool, is_single: bool) -> None:
        output = session.flags.output or OutputFormat.TABLE
        self._watches = watches
        self.errors: list[KgctlError] = []
        self.is_over = False
        self._session = session
        self._exit_on_alert = exit_on_alert
        self._is_single = is_single
        self._is_for_people = output in (OutputFormat.TABLE, OutputFormat.WIDE) and not is_single
        self._redraws = self._is_for_people and session.environment.stdout_is_terminal
        self._changes: list[Change] = []
        self.has_looked = False

    def look(self, *, is_last: bool = False) -> None:
        """One look; what changed is written at once, on a terminal as a table of the groups that is drawn anew."""
        changes = self._watches.look(is_last=is_last)
        self.has_looked = True
        self._changes += changes
        if self._redraws:
            self._write(_CLEAR + self._screen())
        elif self._is_for_people:
            self._write("".join(f"{printable(self._line(change))}\n" for change in changes))
        elif not self._is_single:
            for change in changes:
                self._session.notice(printable(self._line(change)))
        if self._exit_on_alert and self._watches.fired:
            self.is_over = True

    def _write(self, text: str) -> None:
        """Write what happened; a reader that has gone ends the run, as its end would."""
        try:
            self._session.environment.stdout.write(text)
            self._session.environment.stdout.flush()
        except BrokenPipeError:
            self._session.environment.leave_stdout()
            self.is_over = True

    def _line(self, change: Change) -> str:
        cluster, alert = change
        return f"{_row(change)['time']}  {alert.status:8}  {alert.name:14}  {self._watches.of(cluster, alert.summary)}"

    def _screen(self) -> str:
        return "\n".join(map(self._screen_of, self._watches))

    def _screen_of(self, watch: Watch) -> str:
        firing = watch.alerts.firing()
        show = RENDERERS[self._session.flags.output or OutputFormat.TABLE]
        groups = Report(GROUPS, _group_rows(watch), notices=())
        alerts = Report(COLUMNS, [_row((watch.cluster, each)) for each in firing]) if firing else None
        head = f"{watch.cluster}, {format_instant(self._session.environment.now_ms())}: {len(firing)} alerts\n"
        parts = [show(each, self._session.command, self._session.environment) for each in (alerts, groups) if each is not None]
        return head + "\n" + "\n".join(parts)

    def report(self, *, is_bounded: bool) -> Report | int:
        """What remains to be said. The exit code is 6 if an alert fires (``--once``), or has fired in a run with an end. The last
        look of such a run has to be whole: what it lacks is an error."""
        firing = self._watches.firing()
        has_fired = bool(firing) or self._watches.fired > 0
        failed = [
            self._not_whole(each) for each in self._watches if each.measured.looked_ms is None or (is_bounded and each.why_not())
        ]
        code = ExitCode.EXPECTATION if is_bounded and has_fired else None
        if self._is_for_people:
            return code or (ExitCode.FAILED if is_bounded and failed else ExitCode.OK)
        return Report(
            [replace(each, wide=each.wide and len(self._watches) == 1) if each is _CLUSTER else each for each in COLUMNS],
            [_row(each) for each in (firing if self._is_single else self._changes)],
            [*self.errors, *failed, *(self._error(change) for change in firing if is_bounded)],
            [] if has_fired or failed else ["No alert fires." if self._is_single else "No alert has fired."],
            ("alert", "group"),
            fixed_exit_code=code if code is not None or is_bounded else ExitCode.OK,
            something_done=len(failed) < len(self._watches),
        )

    def _not_whole(self, watch: Watch) -> KgctlError:
        what = "the rules could not be judged" if watch.measured.looked_ms is None else "that nothing else fires is not known"
        return StorageError(self._watches.of(watch.cluster, f"{what}: {watch.why_not()}"))

    def _error(self, change: Change) -> ExpectationError:
        from kgctl.pipeline.watch.rules import RULES

        cluster, alert = change
        unknown = "UNKNOWN" if RULES[alert.name].of_events else "LAG_UNKNOWN"
        code = unknown if alert.is_unknown else "ALERT"
        text = self._watches.of(cluster, alert.summary)
        return ExpectationError(text, code=code, group=alert.group, topic=alert.topic, partition=alert.partition)


def _row(change: Change) -> Row:
    cluster, alert = change
    changed_ms = next((at for at in (alert.resolved_ms, alert.fired_ms) if at is not None), alert.since_ms)
    return {
        "time": format_instant(changed_ms),
        "status": alert.status,
        "alert": alert.name,
        "cluster": cluster,
        "group": alert.group,
        "topic": alert.topic,
        "partition": alert.partition,
        "value": alert.value,
        "since": format_instant(alert.since_ms),
        "rule": alert.rule,
        "summary": alert.summary,
    }


def _group_rows(watch: Watch) -> list[Row]:
    """Return a row for each group, those with alerts first."""
    from kgctl.pipeline.answers.inferred import worst_status

    members = dict(watch.measured.members)
    alerts = Counter(alert.group for alert in watch.alerts.firing())
    groups: dict[str, list[dict[str, Any]]] = {group: [] for group in members}
    for row in watch.measured.standings:
        groups.setdefault(row["group"], []).append(row)
    rows = [_group_row(group, found, members.get(group), alerts[group], worst_status(found)) for group, found in groups.items()]
    return sorted(rows, key=lambda row: (-alerts[str(row["group"])], str(row["group"])))


def _group_row(group: str, found: Sequence[dict[str, Any]], members: int | None, alerts: int, status: str | None) -> Row:
    inside = [row for row in found if row["log_end_offset"] is None or row["lag"] is not None]
    lags = [row["lag"] for row in inside]
    waits = [row["lag_ms"] for row in inside]
    measured = [row["time_ms"] for row in found]
    return {
        "group": group,
        "status": status,
        "members": members,
        "total_lag": _over(lags, sum),
        "max_lag_ms": _over(waits, max),
        "measured_at": format_instant(min(measured)) if measured else None,
        "alerts": alerts,
    }


def _over(values: Sequence[Any], together: Callable[[Sequence[int]], int]) -> int | None:
    """Of nothing, and where one is unknown, nothing is known."""
    return together(values) if values and None not in values else None


def _follow(session: Session, told: _Told, source: LiveSource | None, every_ms: int, for_ms: int | None) -> None:
    """Look again and again, until a signal, the end of ``--for``, or the alert that ``--exit-on-alert`` waits for.

    Raises `UnreachableError` and `AuthError` before the first look.
    """
    halt = threading.Event()
    ends_s = None if for_ms is None else time.monotonic() + for_ms / 1000

    def stop() -> None:
        halt.set()
        if source is not None:
            source.stop()

    def looked() -> None:
        told.look()
        if told.is_over:
            stop()

    def rest_s() -> float | None:
        return None if ends_s is None else ends_s - time.monotonic()

    with ending_on_signals(stop):
        while not halt.is_set() and not ((left_s := rest_s()) is not None and left_s <= 0):
            if source is None:
                looked()
                halt.wait(every_ms / 1000 if left_s is None else min(every_ms / 1000, left_s))
            elif _is_through(session, told, lambda: source.follow(every_ms / 1000, left_s, looked, halt)):
                break
            else:
                halt.wait(AFTER_TROUBLE_S)
        if not told.is_over and (source is not None or for_ms is not None):
            told.look(is_last=for_ms is not None)  # what came since the last look


def _is_through(session: Session, told: _Told, follow: Callable[[], object]) -> bool:
    """Whether the collection came to its end; after trouble with the cluster or the warehouse it is begun again."""
    from kgctl.pipeline.collect.live import AWAY

    try:
        follow()
    except (StorageError, *AWAY) as error:
        if not told.has_looked:
            raise
        session.notice(f"kgctl: {error.message}; trying again in {AFTER_TROUBLE_S:g} s")
        told.look()
        return False
    return True
