"""The rules of a watch: ``lag > 1000 for 5m on payments*``. `RULES` is the only list of them.

A rule is judged on what the tables say of a moment. What it is about and could not be measured is a finding too, an unknown one:
no threshold holds on something that nobody knows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kgctl.errors import UsageError, did_you_mean
from kgctl.pipeline.answers.series import REBALANCES, RESETS, Row, rows_at, rows_between
from kgctl.pipeline.answers.standing import UNMEASURED, standings

if TYPE_CHECKING:
    from kgctl.pipeline.answers.history import History

_MINUTE_MS = 60_000
_GLOB = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a rule is about. ``marker`` tells events of the same place apart (the log offset of a reset)."""

    group: str
    summary: str
    value: float | None = None
    topic: str | None = None
    partition: int | None = None
    marker: int | None = None
    is_unknown: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """One ``--alert``, read. ``hold_ms``: how long it must hold before it fires; ``span_ms``: how far back events count."""

    text: str
    name: str
    limit: int = 0
    span_ms: int = 0
    hold_ms: int = 0
    groups: tuple[str, ...] = ("*",)

    def concerns(self, group: str) -> bool:
        """Whether it is about this group."""
        return any(fnmatchcase(group, pattern) for pattern in self.groups)

    def findings(self, picture: Picture) -> list[Finding]:
        """What holds now, of the groups that it is about."""
        kind = RULES[self.name]
        found = [each for each in kind.judge(picture, self) if self.concerns(each.group)]
        if kind.is_of_lag:
            missing = [name for name in self.groups if not _GLOB.search(name) and name not in picture.by_group]
            found += [Finding(name, f"of {name} no committed offset is known", is_unknown=True) for name in missing]
        return found


@dataclass(frozen=True, slots=True)
class RuleKind:
    """What a name means. ``limit``: ``count``, ``time``, or empty where none is taken; ``span_ms``: 0 where ``in`` is not taken.

    ``is_of_lag``: a group that is named, and of which no offset is known, is an unknown finding.
    """

    meaning: str
    judge: Callable[[Picture, Rule], Iterator[Finding]]
    limit: str = ""
    span_ms: int = 0
    is_of_lag: bool = True

    def form(self, name: str) -> str:
        """How it is written."""
        limit = {"count": " > N", "time": " > TIME"}.get(self.limit, "")
        return f"{name}{limit}{' [in TIME]' if self.span_ms else ''}"


class Picture:
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
    def generations(self) -> Mapping[str, Row]:
        """The last generation of each group that has one."""
        return {row["group"]: row for row in rows_at(self.history, REBALANCES, None, self.now_ms)}

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


def _lag(picture: Picture, rule: Rule) -> Iterator[Finding]:
    for group, rows in picture.by_group.items():
        if unknown := _unknown(rows):
            yield Finding(group, f"lag of {group} is not known: {unknown}", is_unknown=True)
        else:
            total = sum(row["lag"] for row in rows)
            if total > rule.limit:
                yield Finding(group, f"lag of {group} is {total}, over {rule.limit}", total)


def _partition_lag(picture: Picture, rule: Rule) -> Iterator[Finding]:
    for row in picture.standings:
        if row["status"] in (None, UNMEASURED):
            yield _of(row, f"lag of {_name(row)} is not known: {row['why']}", is_unknown=True)
        elif row["lag"] > rule.limit:
            yield _of(row, f"lag of {_name(row)} is {row['lag']}, over {rule.limit}", row["lag"])


def _time_lag(picture: Picture, rule: Rule) -> Iterator[Finding]:
    for group, rows in picture.by_group.items():
        unknown = _unknown(rows)
        known = [row["lag_ms"] for row in rows if row["lag_ms"] is not None]
        if unknown or len(known) < len(rows):
            yield Finding(group, f"time lag of {group} is not known: {unknown or 'too few samples'}", is_unknown=True)
        elif max(known) > rule.limit:
            seconds = max(known) / 1000
            yield Finding(group, f"time lag of {group} is {seconds:g} s, over {rule.limit / 1000:g} s", seconds)


def _with_status(status: str, words: str) -> Callable[[Picture, Rule], Iterator[Finding]]:
    def judge(picture: Picture, _: Rule) -> Iterator[Finding]:
        for row in picture.standings:
            if row["status"] == status:
                yield _of(row, f"{_name(row)} {words}, lag {row['lag']}", row["lag"])
            elif row["status"] in (None, UNMEASURED):
                yield _of(row, f"{_name(row)}: whether it {words} is not known: {row['why']}", is_unknown=True)

    return judge


def _unmeasured(picture: Picture, _: Rule) -> Iterator[Finding]:
    for row in picture.standings:
        if row["status"] in (None, UNMEASURED):
            yield _of(row, f"{_name(row)} is not measured: {row['why']}")


def _rebalances(picture: Picture, rule: Rule) -> Iterator[Finding]:
    for group, rows in picture.rebalances(rule.span_ms).items():
        if len(rows) > rule.limit:
            causes = ", ".join(dict.fromkeys(row["cause"] for row in rows))
            within = f"in {rule.span_ms // 1000} s"
            yield Finding(group, f"{group} rebalanced {len(rows)} times {within} ({causes}), over {rule.limit}", len(rows))


def _reset(picture: Picture, rule: Rule) -> Iterator[Finding]:
    for row in picture.resets(rule.span_ms):
        text = f"{_name(row)} went from {row['offset_before']} to {row['offset_after']} ({', '.join(row['evidence'])})"
        yield _of(row, text, row["records"], row["log_offset"])


def _empty(picture: Picture, _: Rule) -> Iterator[Finding]:
    for group, row in picture.generations.items():
        if row["members"] == 0 and row["cause"] != "group_deleted":
            yield Finding(group, f"{group} has no member")


def _gone(picture: Picture, rule: Rule) -> Iterator[Finding]:
    for group, row in picture.generations.items():
        at_ms = row["started_ms"] if row["started_ms"] is not None else row["stable_ms"]
        if row["cause"] == "group_deleted" and at_ms is not None and at_ms > picture.now_ms - rule.span_ms:
            yield Finding(group, f"{group} was deleted, or has expired", marker=row["log_offset"])


RULES: Mapping[str, RuleKind] = {
    "lag": RuleKind("a group has more records to read than N", _lag, "count"),
    "partition-lag": RuleKind("it has more than N to read of one partition", _partition_lag, "count"),
    "time-lag": RuleKind("the next record of one of its partitions has waited longer than TIME", _time_lag, "time"),
    "growing": RuleKind("its lag only grows (`WARN`)", _with_status("WARN", "is falling behind")),
    "stalled": RuleKind("its commits do not move (`STALL`)", _with_status("STALL", "is stalled")),
    "stopped": RuleKind("it commits no more (`STOP`)", _with_status("STOP", "has stopped")),
    "unmeasured": RuleKind("its lag is not known, or not measured often enough", _unmeasured),
    "rebalances": RuleKind(
        "it rebalanced more than N times in TIME (10m)", _rebalances, "count", 10 * _MINUTE_MS, is_of_lag=False
    ),
    "reset": RuleKind(
        "offsets were moved in a way that reading does not explain, in the last TIME (1h)",
        _reset,
        span_ms=60 * _MINUTE_MS,
        is_of_lag=False,
    ),
    "empty": RuleKind("it has no member", _empty, is_of_lag=False),
    "gone": RuleKind(
        "it was deleted, or has expired, in the last TIME (1d)", _gone, span_ms=24 * 60 * _MINUTE_MS, is_of_lag=False
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
    return Rule(
        " ".join(text.split()),
        match["name"],
        _limit(text, match["limit"], kind.limit, duration_ms),
        span_ms,
        0 if match["hold"] is None else duration_ms(match["hold"]),
        tuple(each.strip() for each in (match["groups"] or "*").split(",")),
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


def _unknown(rows: Sequence[Row]) -> str:
    """Why the lag of a group is not known; empty where it is."""
    unknown = [row for row in rows if row["status"] in (None, UNMEASURED)]
    return f"{unknown[0]['topic']}-{unknown[0]['partition']}: {unknown[0]['why']}" if unknown else ""


def _of(row: Row, summary: str, value: float | None = None, marker: int | None = None, *, is_unknown: bool = False) -> Finding:
    return Finding(row["group"], summary, value, row["topic"], row["partition"], marker, is_unknown)


def _name(row: Mapping[str, Any]) -> str:
    return f"{row['group']} on {row['topic']}-{row['partition']}"
