"""``kgctl history watch``."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from kgctl.admin.times import format_instant, parse_duration_ms
from kgctl.cli.columns import GROUP, PARTITION, TOPIC
from kgctl.cli.exit_codes import ExitCode
from kgctl.cli.history import asking
from kgctl.cli.history.asking import LiveOptions, live_options, require_tables, span_ms, warehouse_path
from kgctl.cli.history.collect import AFTER_TROUBLE_S, LiveSource, ending_on_signals
from kgctl.cli.history.columns import CLUSTER, MAX_LAG_MS, TOTAL_LAG
from kgctl.cli.history.watches import Builder, Change, Watches, warm_engine
from kgctl.cli.parameters import flag, option
from kgctl.cli.render import RENDERERS, printable
from kgctl.cli.report import NUMBER, TIME, WHOLE, Column, OutputFormat, Report, Row, shows
from kgctl.cli.session import Session
from kgctl.errors import ExpectationError, KgctlError, StorageError, UsageError
from kgctl.pipeline.engines import EngineName, EngineOptions

if TYPE_CHECKING:
    from kgctl.pipeline.watch.loop import Watch
    from kgctl.pipeline.watch.outlets import Metrics, Webhook
    from kgctl.pipeline.watch.rules import Alert, Rule

_CLUSTER = replace(CLUSTER, wide=True)
COLUMNS = (
    Column("time", "when it fired, or was resolved", TIME, read=lambda change: _changed_ms(change.alert)),
    Column("status", "pending, firing or resolved", read="alert.status"),
    Column("alert", "the name of its rule", read="alert.name"),
    _CLUSTER,
    GROUP.of("alert.group"),
    TOPIC.of("alert.topic"),
    PARTITION.of("alert.partition"),
    Column("value", "what was measured, in the rule's unit", NUMBER, wide=True, read="alert.value"),
    Column("since", "since when the rule holds", TIME, wide=True, read="alert.since_ms"),
    Column("rule", "the rule, as it was given", wide=True, read="alert.rule"),
    Column("summary", "what it is about, in words", read="alert.summary"),
)
GROUPS = (
    GROUP,
    Column("status", "the worst of its partitions"),
    Column("members", "how many members it has", WHOLE),
    TOTAL_LAG,
    MAX_LAG_MS,
    Column("measured_at", "when its oldest lag was measured", TIME),
    Column("alerts", "how many alerts fire", WHOLE),
)
_DEFAULT_EVERY_MS = 30_000
_SHORTEST_EVERY_MS = 1_000
_DAY_MS = 86_400_000
_CLEAR = "\x1b[H\x1b[2J\x1b[3J"


@dataclass(frozen=True)
class AskedOutlets:
    """Who is told of alerts, and where they are measured."""

    webhook: Annotated[str | None, option("URL", "POST changes of alerts there, as Alertmanager does. [env: KGCTL_WEBHOOK]")] = (
        None
    )
    webhook_header: Annotated[
        list[str] | None, option("NAME:VALUE", "Send it with each post; repeatable. [env: KGCTL_WEBHOOK_HEADER]")
    ] = None
    metrics: Annotated[str | None, option("HOST:PORT", "Serve a page of metrics for Prometheus.")] = None
    metrics_file: Annotated[Path | None, option("FILE", "Write the metrics there, as the node exporter reads them.")] = None


@shows(COLUMNS, examples="kgctl history watch --alert 'lag > 10000 for 5m' --alert stopped --webhook http://127.0.0.1:9000/")
def history_watch(
    session: Session,
    *,
    alert: Annotated[
        list[str] | None,
        option(
            "RULE", "NAME [> LIMIT] [in TIME] [for TIME] [on GROUP,...], as 'lag > 1000 for 5m on pay*'; repeatable.", "--alert"
        ),
    ] = None,
    every: Annotated[str | None, option("TIME", "Build and judge so often. [default: 30s]")] = None,
    once: Annotated[bool, flag("--once", "Collect what is there, judge, and end: 6 if an alert fires.")] = False,
    for_: Annotated[str | None, option("TIME", "End after so long.", "--for")] = None,
    exit_on_alert: Annotated[bool, flag("--exit-on-alert", "End with 6 as soon as an alert fires.")] = False,
    allow_unknown: Annotated[bool, flag("--allow-unknown", "A rule on something that cannot be measured does not fire.")] = False,
    outlets: AskedOutlets,
    state: Annotated[
        Path | None, option("FILE", "Where alerts are kept from run to run. [default: in kgctl's state folder]")
    ] = None,
    keep: Annotated[str | None, option("TIME", "Thin what is older than so long, as 30d, every hour.")] = None,
    no_collect: Annotated[bool, flag("--no-collect", "Somebody else collects: build and judge only.")] = False,
    warehouse: asking.Warehouse = None,
    cluster: Annotated[
        list[str] | None,
        option(
            "NAME",
            "The cluster's name in the warehouse, else its id; with --no-collect repeatable, else all that are there.",
            "--cluster",
        ),
    ] = None,
    how_live: asking.AskedLive,
    engine: Annotated[EngineName, option("", "Who builds: this process, or Spark, which is kept warm.")] = EngineName.AUTO,
    spark: asking.AskedSpark,
) -> Report | int:
    """Collect and build on and on, and tell when groups are in trouble: rules, a webhook, metrics, exit code.

    It ends with 0 on Ctrl-C and SIGTERM, everything written, and goes on where it was when it is started again: alerts that fired
    are not told twice, and those that ended meanwhile are told as resolved. A cluster, a warehouse or a webhook that is away is
    said once and waited for. With --once and --for the exit code is 6 if an alert fires, or has fired.

    With --no-collect one watch is enough for all clusters of a warehouse, and what goes wrong with one harms no other.

    A threshold does not hold on what cannot be measured: such an alert says so, after 2 minutes, with --once and at the end of
    --for at once.
    """
    rules, every_ms = _read_rules(alert or ()), _every_ms(every)
    live = live_options(how_live, once=once, for_=for_)
    names = _check(live, cluster or (), is_collecting=not no_collect)
    jobs = None if spark.master or spark.remote else 1
    how = EngineOptions(name=engine, jobs=jobs, what="history watch --engine spark", **vars(spark))
    keep_ms = None if keep is None else _keep_ms(keep)
    hook = _webhook(session, outlets)
    require_tables(how)
    from kgctl.pipeline.watch.loop import WatchSettings

    place = warehouse_path(warehouse, session.environment)
    with ExitStack() as stack:
        source = None if no_collect else stack.enter_context(LiveSource.open(session, live, place, next(iter(names), None)))
        builder = Builder(session.environment, place, warm_engine(how, stack), keep_ms, is_single=once)
        settings = WatchSettings(rules, allow_unknown, is_patient=not once)
        page = _metrics(session, stack, outlets)
        watches = Watches(builder, settings, [source.cluster] if source else names, state, hook, page)
        if source is None:
            watches.require()
        told = _Told(session, watches, exit_on_alert=exit_on_alert, is_single=once)
        if once:
            told.errors += source.collect(live.plan(), threading.Event()).errors if source else []
            told.look()
        else:
            _follow(session, told, source, every_ms, live.for_ms)
        calm = ("No alert fires." if once else "No alert has fired.") if rules else "No --alert is given: nothing was judged."
        return told.report(calm, is_bounded=once or for_ is not None or exit_on_alert)


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


def _webhook(session: Session, asked: AskedOutlets) -> Webhook | None:
    from kgctl.pipeline.watch.outlets import Webhook

    variable = session.environment.variable
    chosen = variable("KGCTL_WEBHOOK") if asked.webhook is None else asked.webhook
    if not chosen:
        if asked.webhook == "":
            raise UsageError("--webhook is empty (an unset variable?): give it a URL")
        if asked.webhook_header:
            raise UsageError("--webhook-header belongs to --webhook")
        return None
    found = {}
    for text in [*(asked.webhook_header or ()), *filter(None, [variable("KGCTL_WEBHOOK_HEADER")])]:
        name, colon, value = text.partition(":")
        if not colon or not name.strip() or any(character in text for character in "\r\n"):
            raise UsageError("--webhook-header: write NAME:VALUE")
        found[name.strip()] = value.strip()
    return Webhook(chosen, found)


def _metrics(session: Session, stack: ExitStack, asked: AskedOutlets) -> Metrics | None:
    address, file = asked.metrics, asked.metrics_file
    if address is None and file is None:
        return None
    from kgctl.files import check_place
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
        self.away: KgctlError | None = None
        """Why the cluster is not collected any more."""

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
        return (
            f"{format_instant(_changed_ms(alert))}  {alert.status:8}  {alert.name:14}  {self._watches.of(cluster, alert.summary)}"
        )

    def _screen(self) -> str:
        return "\n".join(map(self._screen_of, self._watches))

    def _screen_of(self, watch: Watch) -> str:
        firing = watch.alerts.firing()
        show = RENDERERS[self._session.flags.output or OutputFormat.TABLE]
        groups = Report(GROUPS, _group_rows(watch), notices=())
        alerts = Report(COLUMNS, [Change(watch.cluster, each) for each in firing]) if firing else None
        head = f"{watch.cluster}, {format_instant(self._session.environment.now_ms())}: {len(firing)} alerts\n"
        parts = [show(each, self._session.command, self._session.environment) for each in (alerts, groups) if each is not None]
        return head + "\n" + "\n".join(parts)

    def report(self, calm: str, *, is_bounded: bool) -> Report | int:
        """What remains to be said; ``calm`` where no alert fired.

        The exit code is 6 if an alert fires (``--once``), or has fired in a run with an end. The last look of such a run has to
        be whole: what it lacks is an error.
        """
        firing = self._watches.firing()
        has_fired = bool(firing) or self._watches.fired > 0
        failed = [
            self._not_whole(each)
            for each in self._watches
            if each.measured.looked_ms is None or (is_bounded and (each.why_not() or self.away))
        ]
        code = ExitCode.EXPECTATION if is_bounded and has_fired else None
        if self._is_for_people:
            for error in failed if self.away else ():
                self._session.notice(f"kgctl: {error.message}")
            lacks = ExitCode.PARTIAL if len(failed) < len(self._watches) else ExitCode.FAILED
            return code or (lacks if is_bounded and failed else ExitCode.OK)
        return Report(
            [replace(each, wide=each.wide and len(self._watches) == 1) if each is _CLUSTER else each for each in COLUMNS],
            firing if self._is_single else self._changes,
            [*self.errors, *failed, *(self._error(change) for change in firing if is_bounded)],
            [] if has_fired or failed else [calm],
            ("alert", "group"),
            fixed_exit_code=code if code is not None or is_bounded else ExitCode.OK,
            something_done=len(failed) < len(self._watches),
        )

    def _not_whole(self, watch: Watch) -> KgctlError:
        what = "the rules could not be judged" if watch.measured.looked_ms is None else "that nothing else fires is not known"
        why = watch.why_not() or (self.away.message if self.away else "")
        return StorageError(self._watches.of(watch.cluster, f"{what}: {why}"))

    def _error(self, change: Change) -> ExpectationError:
        from kgctl.pipeline.watch.rules import RULES

        cluster, alert = change
        unknown = "UNKNOWN" if RULES[alert.name].of_events else "LAG_UNKNOWN"
        code = unknown if alert.is_unknown else "ALERT"
        text = self._watches.of(cluster, alert.summary)
        return ExpectationError(text, code=code, group=alert.group, topic=alert.topic, partition=alert.partition)


def _changed_ms(alert: Alert) -> int:
    return next((at for at in (alert.resolved_ms, alert.fired_ms) if at is not None), alert.since_ms)


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
        "measured_at": min(measured, default=None),
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


def _is_through(session: Session, told: _Told, follow: Callable[[], KgctlError | None]) -> bool:
    """Whether the collection came to its end; after trouble with the cluster or the warehouse it is begun again."""
    from kgctl.pipeline.collect.live import AWAY

    try:
        told.away = follow()
    except (StorageError, *AWAY) as error:
        if not told.has_looked:
            raise
        told.away = error
        session.notice(f"kgctl: {error.message}; trying again in {AFTER_TROUBLE_S:g} s")
        told.look()
        return False
    return True
