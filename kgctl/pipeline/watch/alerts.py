"""Alerts: what a rule found, from its first sight over its firing to its end; kept between runs in a small file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from kgctl.errors import StorageError, UsageError
from kgctl.pipeline.watch.rules import Finding, Rule

STATE_VERSION = 1
UNKNOWN_HOLD_MS = 120_000
"""How long something must be unknown before that fires: a new group is measured by the next sample or the one after."""
_UNDELIVERED_AT_MOST = 1_000

PENDING, FIRING, RESOLVED = "pending", "firing", "resolved"


@dataclass(frozen=True, slots=True)
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
        self, found: Mapping[Rule, Sequence[Finding]], now_ms: int, *, allow_unknown: bool = False, is_patient: bool = True
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
                hold_ms = max(rule.hold_ms, UNKNOWN_HOLD_MS if each.is_unknown and is_patient else 0)
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


def _alert(rule: Rule, found: Finding, now_ms: int) -> Alert:
    place = found.group, found.topic, found.partition, found.marker
    return Alert(rule.text, rule.name, *place, found.summary, found.value, found.is_unknown, since_ms=now_ms)


def _going_on(before: Alert | None, fresh: Alert) -> Alert:
    """The alert as it is seen now. One that was pending begins anew when it becomes known, or unknown."""
    if before is None or (before.fired_ms is None and before.is_unknown != fresh.is_unknown):
        return fresh
    return replace(fresh, since_ms=before.since_ms, fired_ms=before.fired_ms)


class StateFile:
    """Where alerts are kept from run to run, so that none is told twice and none that was told ends unheard."""

    def __init__(self, path: Path) -> None:
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
        except (ValueError, KeyError, TypeError):
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
