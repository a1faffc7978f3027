"""The rules of a watch: ``lag > 1000 for 5m on payments*``. `RULES` is the only list of them.

A rule is judged on what the tables say of a moment. What it is about and could not be measured is a finding too, an unknown one:
no threshold holds on something that nobody knows.

`Alerts` follow what a rule found from its first sight over its firing to its end; they are kept between runs in a small file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgctl.errors import StorageError, UsageError, did_you_mean
from kgctl.files import check_named
from kgctl.model.values import frozen_in_order
from kgctl.pipeline.answers.causes import spells
from kgctl.pipeline.answers.forecast import Outlook, outlooks
from kgctl.pipeline.answers.inferred import BELOW_START, FRESH_MS, PAST_END, UNMEASURED, span_text, standings, why_unseen
from kgctl.pipeline.answers.series import REBALANCES, RESETS, Row, removed, rows_at, rows_between

if TYPE_CHECKING:
    from kgctl.pipeline.answers.history import History


_MINUTE_MS = 60_000
_PACE_MS = 10 * _MINUTE_MS
_GLOB = re.compile(r"[*?\[]")


@frozen_in_order
class AlertFinding:
    """One thing that a rule is about. ``marker`` tells events of the same place apart (the log offset of a reset)."""

    group: str
    summary: str
    value: float | None = None
    topic: str | None = None
    partition: int | None = None
    marker: int | None = None
    is_unknown: bool = False


@frozen_in_order
class Rule:
    """One ``--alert``, read. ``hold_ms``: how long it must hold before it fires; ``span_ms``: how far back events count."""

    text: str
    name: str
    limit: int = 0
    span_ms: int = 0
    hold_ms: int = 0
    groups: tuple[str, ...] = ("*",)

    def concerns(self, group: str) -> bool:
        """Return whether the rule is about this group."""
        return any(fnmatchcase(group, pattern) for pattern in self.groups)

    def findings(self, picture: WatchPicture, *, is_patient: bool = True) -> list[AlertFinding]:
        """What holds now, of the groups that it is about. ``is_patient``: those that a pattern means may still come."""
        kind = RULES[self.name]
        found = [each for each in kind.judge(picture, self) if self.concerns(each.group)]
        missing = {**dict(self._missing(picture, kind)), **({} if is_patient else self.of_nobody(picture))}
        unknown = [AlertFinding(name, text, is_unknown=True) for name, text in missing.items()]
        return [*found, *(self._unseen(picture, kind) if kind.of_events else ()), *unknown]

    def of_nobody(self, picture: WatchPicture) -> Mapping[str, str]:
        """Say which patterns of ``on`` no group matches."""
        patterns = [name for name in self.groups if _GLOB.search(name) and name != "*"]
        return {name: f"no group is {name!r}" for name in patterns if not any(fnmatchcase(each, name) for each in picture.groups)}

    def _missing(self, picture: WatchPicture, kind: RuleKind) -> Iterator[tuple[str, str]]:
        """What ``on`` names and is not there: nothing is known of it."""
        if not picture.groups and picture.why_unseen:
            yield "*", f"no group is known: {picture.why_unseen}"
        for name in self.groups:
            if not _GLOB.search(name):
                if kind.of_events and picture.history.unknown([name]):
                    yield name, f"of {name} nothing is known"
                elif not kind.of_events and name not in picture.by_group:
                    yield name, f"of {name} no committed offset is known"

    def _unseen(self, picture: WatchPicture, kind: RuleKind) -> Iterator[AlertFinding]:
        """The groups that are there, while nobody collects, or did not in the rule's span: what happened to them is not known."""
        there = {group for group, row in picture.generations.items() if row["cause"] != "group_deleted"}
        for group in sorted({*there, *picture.by_group}):
            why = self.concerns(group) and (
                picture.why_unseen or (picture.hole_of(group, self.span_ms) if kind.is_of_each else "")
            )
            if why:
                yield AlertFinding(group, f"whether {group} {kind.of_events} is not known: {why}", is_unknown=True)


@frozen_in_order
class RuleKind:
    """What a name means, by the manual. ``limit``: ``count``, ``time``, "" where none is taken; ``span_ms``: 0 without ``in``.

    ``of_events``: of a rule about what happens to a group, that in words; "": it is about lag. ``is_of_each``: all that happened
    in its span counts, not what came last alone. ``is_behind``: it finds groups that fell behind.
    """

    meaning: str
    judge: Callable[[WatchPicture, Rule], Iterator[AlertFinding]]
    limit: str = ""
    span_ms: int = 0
    of_events: str = ""
    is_of_each: bool = False
    is_behind: bool = False

    def form(self, name: str) -> str:
        """Return how the rule is written."""
        limit = {"count": " > N", "time": " > TIME"}.get(self.limit, "")
        return f"{name}{limit}{' [in TIME]' if self.span_ms else ''}"


class WatchPicture:
    """What the tables of a cluster say of ``now_ms``; each is read when a rule asks for it."""

    def __init__(self, history: History, now_ms: int) -> None:
        self.history = history
        self.now_ms = now_ms

    @cached_property
    def standings(self) -> list[Row]:
        """The lag of every partition with its status."""
        return standings(self.history, None, self.now_ms)

    @cached_property
    def by_group(self) -> Mapping[str, list[Row]]:
        """The same by group."""
        found: dict[str, list[Row]] = {}
        for row in self.standings:
            found.setdefault(row["group"], []).append(row)
        return found

    @cached_property
    def groups(self) -> Collection[str]:
        """Every group of which something is known, those that are gone among them."""
        return {*self.by_group, *self.generations, *self.removed, *self.history.groups()}

    @cached_property
    def why_unseen(self) -> str:
        """Why what happened last is not known of any group; empty where the cluster was looked at."""
        return why_unseen(self.history, self.now_ms)

    def hole_of(self, group: str, span_ms: int) -> str:
        """Why what happened to a group in the last ``span_ms`` is not all known; empty where its log was collected as usual."""
        from_ms, of_each = self.now_ms - span_ms, self._holes
        all_holes = (hole for partition in self.history.partitions([group]) for hole in of_each.get(partition, ()))
        holes = (hole for hole in all_holes if hole[1] > from_ms and hole[0] < self.now_ms)
        found = max(holes, key=lambda hole: hole[1] - hole[0], default=None)
        return "" if found is None else f"records of {span_text(found[1] - found[0])} were not collected"

    @cached_property
    def _holes(self) -> Mapping[int, Sequence[tuple[int, int]]]:
        """Of each partition of the log those that are longer than a look may be old."""
        self.history.partitions(sorted({*self.by_group, *self.generations}))  # looked for together
        of_each = ((partition, pairwise(self.history.coverage(partition))) for partition in self.history.partitions())
        return {
            partition: [(before.last_ms, after.first_ms) for before, after in runs if after.first_ms - before.last_ms > FRESH_MS]
            for partition, runs in of_each
        }

    @cached_property
    def outlooks(self) -> list[Outlook]:
        """When groups will have caught up, by the last ten minutes."""
        return outlooks(self.history, None, self.now_ms, _PACE_MS, self.now_ms - _PACE_MS - _MINUTE_MS)

    @cached_property
    def generations(self) -> Mapping[str, Row]:
        """The last generation of each group that has one."""
        return {row["group"]: row for row in rows_at(self.history, REBALANCES, None, self.now_ms)}

    @cached_property
    def removed(self) -> Mapping[str, Row]:
        """Of each group whose commits are all removed the last removal: what a group that never had a member ends with."""
        return removed(self.history, None, self.now_ms)

    @cached_property
    def _rebalances(self) -> list[Row]:
        return rows_between(self.history, REBALANCES, None, self.now_ms - _LONGEST_MS, self.now_ms + 1)

    def rebalances(self, span_ms: int) -> Mapping[str, list[Row]]:
        """Rebalances that began in the last ``span_ms``, by group."""
        found: dict[str, list[Row]] = {}
        for row in self._rebalances:
            began = row["started_ms"] if row["started_ms"] is not None else row["stable_ms"]
            if began is not None and began > self.now_ms - span_ms and row["cause"] != "group_deleted":
                found.setdefault(row["group"], []).append(row)
        return found

    @cached_property
    def _resets(self) -> list[Row]:
        return rows_between(self.history, RESETS, None, self.now_ms - _LONGEST_MS, self.now_ms + 1)

    def resets(self, span_ms: int) -> list[Row]:
        """Resets of the last ``span_ms``."""
        return [row for row in self._resets if row["time_ms"] > self.now_ms - span_ms]


_LONGEST_MS = 7 * 86_400_000
"""The longest ``in``."""


def _lag(picture: WatchPicture, rule: Rule) -> Iterator[AlertFinding]:
    for group, rows in picture.by_group.items():
        total = unread(rows)
        if total > rule.limit:
            yield AlertFinding(group, f"lag of {group} is {total}, over {rule.limit}", total)
        elif unknown := _unknown(rows):
            yield AlertFinding(group, f"lag of {group} is not known: {unknown}", is_unknown=True)


def unread(rows: Sequence[Row]) -> int:
    """What a group has to read of the partitions whose lag is known: of the others, nothing is taken off it."""
    return sum(row["lag"] for row in rows if _is_known(row))


def _partition_lag(picture: WatchPicture, rule: Rule) -> Iterator[AlertFinding]:
    for row in picture.standings:
        if not _is_known(row):
            yield _of(row, f"lag of {_name(row)} is not known: {row['why']}", is_unknown=True)
        elif row["lag"] > rule.limit:
            yield _of(row, f"lag of {_name(row)} is {row['lag']}, over {rule.limit}", row["lag"])


def _time_lag(picture: WatchPicture, rule: Rule) -> Iterator[AlertFinding]:
    for group, rows in picture.by_group.items():
        known = [row["lag_ms"] for row in rows if _is_known(row) and row["lag_ms"] is not None]
        if known and max(known) > rule.limit:
            seconds = max(known) / 1000
            yield AlertFinding(group, f"time lag of {group} is {seconds:g} s, over {rule.limit / 1000:g} s", seconds)
        elif len(known) < len(rows):
            unknown = _unknown(rows) or "too few samples"
            yield AlertFinding(group, f"time lag of {group} is not known: {unknown}", is_unknown=True)


def _catch_up(picture: WatchPicture, rule: Rule) -> Iterator[AlertFinding]:
    for each in picture.outlooks:
        name, limit_s = f"{each.group} on {each.topic}", rule.limit / 1000
        if each.pace is None:
            yield AlertFinding(each.group, f"when {name} catches up is not known: {each.why}", topic=each.topic, is_unknown=True)
        elif each.in_ms is None:
            text = f"{name} does not catch up: it has {each.unread} to read, and {each.why}"
            yield AlertFinding(each.group, text, topic=each.topic)
        elif each.in_ms > rule.limit:
            text = f"{name} catches up in {each.in_ms / 1000:g} s, over {limit_s:g} s"
            yield AlertFinding(each.group, text, each.in_ms / 1000, each.topic)


def _with_status(status: str, words: str) -> Callable[[WatchPicture, Rule], Iterator[AlertFinding]]:
    def judge(picture: WatchPicture, _: Rule) -> Iterator[AlertFinding]:
        for row in picture.standings:
            if row["status"] == status:
                lag = "" if row["lag"] is None else f", lag {row['lag']}"
                yield _of(row, f"{_name(row)} {words}{lag}", row["lag"])
            elif row["status"] in (None, UNMEASURED):
                yield _of(row, f"{_name(row)}: whether it {words} is not known: {row['why']}", is_unknown=True)

    return judge


def _unmeasured(picture: WatchPicture, _: Rule) -> Iterator[AlertFinding]:
    for row in picture.standings:
        if row["status"] in (None, UNMEASURED):
            yield _of(row, f"{_name(row)} is not measured: {row['why']}")


def _rebalances(picture: WatchPicture, rule: Rule) -> Iterator[AlertFinding]:
    for group, rows in picture.rebalances(rule.span_ms).items():
        if len(rows) > rule.limit:
            causes = ", ".join(dict.fromkeys(row["cause"] for row in rows))
            within = f"in {rule.span_ms // 1000} s"
            yield AlertFinding(group, f"{group} rebalanced {len(rows)} times {within} ({causes}), over {rule.limit}", len(rows))


def _reset(picture: WatchPicture, rule: Rule) -> Iterator[AlertFinding]:
    for row in picture.resets(rule.span_ms):
        text = f"{_name(row)} went from {row['offset_before']} to {row['offset_after']} ({', '.join(row['evidence'])})"
        yield _of(row, text, row["records"], row["log_offset"])


def _empty(picture: WatchPicture, _: Rule) -> Iterator[AlertFinding]:
    for group, row in picture.generations.items():
        if row["members"] == 0 and row["cause"] != "group_deleted":
            yield AlertFinding(group, f"{group} has no member")


def _gone(picture: WatchPicture, rule: Rule) -> Iterator[AlertFinding]:
    for group, row in picture.generations.items():
        at_ms = row["started_ms"] if row["started_ms"] is not None else row["stable_ms"]
        if row["cause"] == "group_deleted" and at_ms is not None and at_ms > picture.now_ms - rule.span_ms:
            yield AlertFinding(group, f"{group} was deleted, or has expired", marker=row["log_offset"])
    for group, row in picture.removed.items():
        if group not in picture.generations and row["time_ms"] > picture.now_ms - rule.span_ms:
            yield AlertFinding(group, f"{group} was deleted, or has expired", marker=row["effect_offset"])


RULES: Mapping[str, RuleKind] = {
    "lag": RuleKind("a group has more records to read than N", _lag, "count", is_behind=True),
    "partition-lag": RuleKind("it has more than N records to read of one partition", _partition_lag, "count", is_behind=True),
    "time-lag": RuleKind(
        "the next record of one of its partitions has waited longer than TIME", _time_lag, "time", is_behind=True
    ),
    "catch-up": RuleKind(
        "it will not catch up with a topic within TIME, going on as in the last ten minutes", _catch_up, "time", is_behind=True
    ),
    "growing": RuleKind("its lag only grows (`WARN`)", _with_status("WARN", "is falling behind"), is_behind=True),
    "stalled": RuleKind("its commits do not move (`STALL`)", _with_status("STALL", "is stalled"), is_behind=True),
    "stopped": RuleKind("it commits no more, with records to read (`STOP`)", _with_status("STOP", "has stopped"), is_behind=True),
    "past-end": RuleKind(
        "a commit lies past its log's end (`PAST_END`)", _with_status(PAST_END, "is committed past the log's end"), is_behind=True
    ),
    "below-start": RuleKind(
        "a commit lies before its log's start (`BELOW_START`)",
        _with_status(BELOW_START, "is committed before the log's start"),
        is_behind=True,
    ),
    "unmeasured": RuleKind("its lag is not known, or not measured often enough", _unmeasured),
    "rebalances": RuleKind(
        "it rebalanced more than N times in TIME (10m)", _rebalances, "count", 10 * _MINUTE_MS, "rebalanced", is_of_each=True
    ),
    "reset": RuleKind(
        "offsets were moved in a way that reading does not explain, in the last TIME (1h)",
        _reset,
        span_ms=60 * _MINUTE_MS,
        of_events="was reset",
        is_of_each=True,
    ),
    "empty": RuleKind("it has no member", _empty, of_events="has members"),
    "gone": RuleKind(
        "it was deleted, or has expired, in the last TIME (1d)", _gone, span_ms=24 * 60 * _MINUTE_MS, of_events="is gone"
    ),
}
"""Every rule by its name."""

_RULE = re.compile(
    r"(?P<name>[a-z-]+)(?:\s*>\s*(?P<limit>[^\s>]+))?(?:\s+in\s+(?P<span>\S+))?(?:\s+for\s+(?P<hold>\S+))?(?:\s+on\s+(?P<groups>\S.*))?"
)


def parse_rule(text: str, duration_ms: Callable[[str], int]) -> Rule:
    """Read ``NAME [> LIMIT] [in TIME] [for TIME] [on GROUP,GROUP*]``; ``duration_ms`` reads a time.

    Raises:
        UsageError: it is no rule; the message names what is wrong.
    """
    match = _RULE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"cannot read the rule {text!r}: write NAME [> LIMIT] [in TIME] [for TIME] [on GROUP,...]")
    kind = RULES.get(match["name"])
    if kind is None:
        raise UsageError(f"there is no rule {match['name']!r}{did_you_mean(match['name'], RULES)} (there are {', '.join(RULES)})")
    if bool(kind.limit) != (match["limit"] is not None):
        raise UsageError(f"the rule {text!r} {'needs' if kind.limit else 'takes no'} limit: write {kind.form(match['name'])}")
    if match["span"] is not None and not kind.span_ms:
        raise UsageError(
            f"the rule {text!r} takes no `in`: write {kind.form(match['name'])}, and `for TIME` for how long it must hold"
        )
    span_ms = kind.span_ms if match["span"] is None else duration_ms(match["span"])
    if span_ms > _LONGEST_MS:
        raise UsageError(f"the rule {text!r}: the longest `in` is 7d")
    groups = tuple(each.strip() for each in (match["groups"] or "*").split(","))
    if "" in groups:
        raise UsageError(f"the rule {text!r}: a group after `on` has no name")
    return Rule(
        " ".join(text.split()),
        match["name"],
        _limit(text, match["limit"], kind.limit, duration_ms),
        span_ms,
        0 if match["hold"] is None else duration_ms(match["hold"]),
        groups,
    )


def _limit(text: str, limit: str | None, kind: str, duration_ms: Callable[[str], int]) -> int:
    if limit is None:
        return 0
    if kind == "time":
        return duration_ms(limit)
    digits = limit.replace("_", "")
    if not (digits.isdecimal() and digits.isascii()):
        raise UsageError(f"the rule {text!r}: {limit!r} is not a number of records")
    return int(digits)


def _is_known(row: Row) -> bool:
    """Whether the lag of a partition is known, and of now."""
    return row["lag"] is not None and row["status"] != UNMEASURED


def _unknown(rows: Sequence[Row]) -> str:
    """Why the lag of a group is not known; empty where it is."""
    unknown = [row for row in rows if not _is_known(row)]
    return f"{unknown[0]['topic']}-{unknown[0]['partition']}: {unknown[0]['why']}" if unknown else ""


def _of(
    row: Row, summary: str, value: float | None = None, marker: int | None = None, *, is_unknown: bool = False
) -> AlertFinding:
    return AlertFinding(row["group"], summary, value, row["topic"], row["partition"], marker, is_unknown)


def _name(row: Mapping[str, Any]) -> str:
    return f"{row['group']} on {row['topic']}-{row['partition']}"


_EXPLAINED = 20
"""So many alerts of a look at most are given what happened as they began: each reads a group's history."""


def explain(picture: WatchPicture, found: list[Alert]) -> None:
    """Of changes, have those that say from now on that a group is behind say what happened as that began, as far as is known."""
    begun = [
        at for at, each in enumerate(found) if each.resolved_ms is None and RULES[each.name].is_behind and not each.is_unknown
    ]
    for at in begun[:_EXPLAINED]:
        for spell in spells(picture.history, found[at].group, picture.now_ms, picture.now_ms + 1)[-1:]:
            told = "; ".join(filter(None, [*(each.text for each in spell.causes), spell.doubt]))
            if told and spell.to_ms is None:
                found[at] = replace(found[at], summary=f"{found[at].summary}; as it began: {told}")


STATE_VERSION = 1
UNKNOWN_HOLD_MS = 120_000
"""How long something must be unknown before that fires: a new group is measured by the next sample or the one after."""
_UNDELIVERED_AT_MOST = 1_000

PENDING, FIRING, RESOLVED = "pending", "firing", "resolved"


@frozen_in_order
class Alert:
    """One rule about one group, or a partition of it. ``fired_ms`` is None while it is pending, ``resolved_ms`` until it ends."""

    rule: str
    name: str
    group: str
    topic: str | None
    partition: int | None
    marker: int | None
    summary: str
    value: float | None
    is_unknown: bool
    since_ms: int
    fired_ms: int | None = None
    resolved_ms: int | None = None

    @property
    def key(self) -> tuple[Any, ...]:
        """What it is about."""
        return self.rule, self.group, self.topic, self.partition, self.marker

    @property
    def status(self) -> str:
        """``pending``, ``firing`` or ``resolved``."""
        return RESOLVED if self.resolved_ms is not None else PENDING if self.fired_ms is None else FIRING


@dataclass
class Alerts:
    """All alerts that are pending or firing, and the changes that a webhook has not taken yet."""

    live: dict[tuple[Any, ...], Alert] = field(default_factory=dict)
    undelivered: list[Alert] = field(default_factory=list)

    def update(
        self, found: Mapping[Rule, Sequence[AlertFinding]], now_ms: int, *, allow_unknown: bool = False, is_patient: bool = True
    ) -> list[Alert]:
        """Take up what rules found; the alerts that fire from now on or are resolved, in this order of their rules.

        An alert that fires is not resolved by becoming unknown. ``is_patient``: unknown things fire after `UNKNOWN_HOLD_MS` at
        the earliest; ``allow_unknown``: never. Alerts of rules that are no more end without a word.
        """
        changes: list[Alert] = []
        still: dict[tuple[Any, ...], Alert] = {}
        for rule, findings in found.items():
            for each in findings:
                fresh = _alert(rule, each, now_ms)
                before = self.live.get(fresh.key)
                if each.is_unknown and allow_unknown and (before is None or before.fired_ms is None):
                    continue
                alert = _going_on(before, fresh)
                unknown_ms = max(rule.hold_ms, UNKNOWN_HOLD_MS) if is_patient else 0
                hold_ms = unknown_ms if each.is_unknown else rule.hold_ms
                if alert.fired_ms is None and now_ms - alert.since_ms >= hold_ms:
                    alert = replace(alert, fired_ms=now_ms)
                    changes.append(alert)
                still[alert.key] = alert
        judged = {rule.text for rule in found}
        ended = [alert for key, alert in self.live.items() if key not in still and alert.rule in judged]
        changes += [replace(alert, resolved_ms=now_ms) for alert in ended if alert.fired_ms is not None]
        self.live = still
        return changes

    def firing(self) -> list[Alert]:
        """Those that fire, in the order of their rules."""
        return [alert for alert in self.live.values() if alert.fired_ms is not None]

    def deliver_later(self, changes: Iterable[Alert]) -> None:
        """Keep changes for a webhook; of very many the newest."""
        self.undelivered = [*self.undelivered, *changes][-_UNDELIVERED_AT_MOST:]


def _alert(rule: Rule, found: AlertFinding, now_ms: int) -> Alert:
    place = found.group, found.topic, found.partition, found.marker
    return Alert(rule.text, rule.name, *place, found.summary, found.value, found.is_unknown, since_ms=now_ms)


def _going_on(before: Alert | None, fresh: Alert) -> Alert:
    """The alert as it is seen now. One that was pending begins anew when it becomes known, or unknown."""
    if before is None or (before.fired_ms is None and before.is_unknown != fresh.is_unknown):
        return fresh
    return replace(fresh, since_ms=before.since_ms, fired_ms=before.fired_ms)


class AlertStateFile:
    """Where alerts are kept from run to run, so that none is told twice and none that was told ends unheard."""

    def __init__(self, path: Path) -> None:
        """Raises `UsageError` for -, which is no file."""
        check_named(path)
        self.path = path

    def load(self) -> Alerts:
        """What was kept; nothing where there is no file. Raises `UsageError` for a file of something else."""
        try:
            told = json.loads(self.path.read_text(encoding="utf-8"))
            if told["kgctl_watch_version"] != STATE_VERSION:
                raise UsageError(f"{self.path}: kept by another version of kgctl; remove it to begin anew")
            live = [Alert(**each) for each in told["alerts"]]
            return Alerts({alert.key: alert for alert in live}, [Alert(**each) for each in told["undelivered"]])
        except FileNotFoundError:
            return Alerts()
        except OSError as error:
            raise StorageError(f"{self.path}: {error.strerror or error}") from error
        except (ValueError, KeyError, TypeError, RecursionError):
            raise UsageError(f"{self.path} is not the state of a watch; --state names another file") from None

    def save(self, alerts: Alerts) -> None:
        """Write it, whole or not at all. Raises `StorageError`."""
        told = {
            "kgctl_watch_version": STATE_VERSION,
            "alerts": [asdict(alert) for alert in alerts.live.values()],
            "undelivered": [asdict(alert) for alert in alerts.undelivered],
        }
        draft = self.path.with_name(f".{self.path.name}.draft")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            draft.write_text(json.dumps(told), encoding="utf-8")
            draft.replace(self.path)
        except OSError as error:
            raise StorageError(f"{self.path}: {error.strerror or error}") from error
