"""One look of a watch after the other: bring the tables up to date, judge the rules, tell what has changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from kgctl.errors import InvariantViolation, KgctlError, NotFoundError
from kgctl.model.values import frozen_in_order
from kgctl.pipeline.answers.history import History
from kgctl.pipeline.watch.outlets import Metrics, NotTakenError, WatchState, Webhook
from kgctl.pipeline.watch.rules import Alert, AlertFinding, Alerts, AlertStateFile, Rule, WatchPicture, explain

if TYPE_CHECKING:
    from kgctl.pipeline.store.files import StoreLocation


@frozen_in_order
class Outside:
    """What a watch touches: ``build`` brings the tables up to date, ``notice`` tells people what went wrong."""

    build: Callable[[], object]
    now_ms: Callable[[], int]
    notice: Callable[[str], object]


@frozen_in_order
class WatchSettings:
    """``is_patient``: what is unknown gets some time before it fires. ``allow_unknown``: it never does."""

    rules: Sequence[Rule]
    allow_unknown: bool = False
    is_patient: bool = True


@dataclass
class Watch:
    """The rules of one cluster, with their alerts. ``fired`` counts alerts that began to fire in this run.

    A look that fails is told, counted, and made again when the next one is due: thresholds whose tables grow old become unknown,
    which is an alert of its own.
    """

    location: StoreLocation
    cluster: str
    settings: WatchSettings
    state: AlertStateFile
    outside: Outside
    webhook: Webhook | None = None
    metrics: Metrics | None = None
    alerts: Alerts = field(default_factory=Alerts)
    measured: WatchState = field(init=False)
    fired: int = 0
    _troubles: dict[str, str] = field(default_factory=dict)
    _failures: int = 0
    _webhook_failures: int = 0

    def __post_init__(self) -> None:
        """Take up the alerts of the run before. Raises as `AlertStateFile.load`."""
        self.alerts = self.state.load()
        self.measured = WatchState(self.cluster)

    def look(self, *, is_last: bool = False) -> list[Alert]:
        """Build, judge, tell; the alerts that fire from now on or are resolved. What fails is told and counted, never raised.
        ``is_last``: what is unknown fires now, as no other look will tell."""
        began_ms = self.outside.now_ms()
        built_ms = began_ms if self._tried("build", self.outside.build) else self.measured.built_ms
        changes: list[Alert] = []
        self._tried("rules", lambda: changes.extend(self._judge(began_ms, is_patient=self.settings.is_patient and not is_last)))
        self._deliver(changes)
        self._show(began_ms, built_ms)
        return changes

    def why_not(self) -> str:
        """What went wrong at the last look; empty where nothing did."""
        return "; ".join(self._troubles.values())

    def _judge(self, now_ms: int, *, is_patient: bool) -> list[Alert]:
        picture = WatchPicture(History.open(self.location, self.cluster), now_ms)
        self._tried("groups", partial(_require_groups, self.settings.rules if is_patient else (), picture))
        found: Mapping[Rule, Sequence[AlertFinding]] = {
            rule: rule.findings(picture, is_patient=is_patient) for rule in self.settings.rules
        }
        patience = {"allow_unknown": self.settings.allow_unknown, "is_patient": is_patient}
        changes = self.alerts.update(found, now_ms, **patience)
        self._tried("causes", partial(explain, picture, changes))  # without them the alerts are told all the same
        self.fired += sum(1 for alert in changes if alert.resolved_ms is None)
        unseen = picture.why_unseen
        members = [(group, None if unseen else row["members"]) for group, row in sorted(picture.generations.items())]
        self.measured = WatchState(self.cluster, picture.standings, members, looked_ms=now_ms, failures=self.measured.failures)
        return changes

    def _deliver(self, changes: Sequence[Alert]) -> None:
        """Hand changes to the webhook, with those that it has not taken before; they are kept until it has."""
        if self.webhook is not None:
            self.alerts.deliver_later(changes)
            self._tried("state", lambda: self.state.save(self.alerts))  # before the post: better twice than never
            if self.alerts.undelivered:
                self._tried("webhook", self._post)
        self._tried("state", lambda: self.state.save(self.alerts))

    def _post(self) -> None:
        assert self.webhook is not None
        try:
            self.webhook.send(self.cluster, self.alerts.undelivered)
        except NotTakenError as error:
            waiting = len(self.alerts.undelivered)
            raise KgctlError(f"{error.message}; {waiting} changes are kept for the next look") from None
        except KgctlError:
            self.alerts.undelivered = []
            raise
        self.alerts.undelivered = []

    def _show(self, began_ms: int, built_ms: int | None) -> None:
        self.measured = replace(
            self.measured,
            firing=self.alerts.firing(),
            built_ms=built_ms,
            look_ms=self.outside.now_ms() - began_ms,
            failures=self._failures,
            webhook_failures=self._webhook_failures,
            undelivered=len(self.alerts.undelivered),
        )
        metrics = self.metrics
        if metrics is not None:
            self._tried("metrics", lambda: metrics.show(self.measured))

    def _tried(self, what: str, do: Callable[[], object]) -> bool:
        """Whether it worked. The same trouble is told once, until it has worked again."""
        try:
            do()
        except InvariantViolation:
            raise
        except NotFoundError as error:  # a cluster without a group yet
            return self._told(what, error.message)
        except KgctlError as error:
            return self._told(what, error.message, is_failure=True)
        except Exception as error:  # noqa: BLE001 - whatever it is, the watch goes on
            return self._told(what, f"{type(error).__name__}: {' '.join(str(error).split())}", is_failure=True)
        self._troubles.pop(what, None)
        return True

    def _told(self, what: str, message: str, *, is_failure: bool = False) -> bool:
        if what == "webhook":
            self._webhook_failures += 1
        elif is_failure:
            self._failures += 1
        if self._troubles.get(what) != message:
            self._troubles[what] = message
            self.outside.notice(message)
        return False


def _require_groups(rules: Sequence[Rule], picture: WatchPicture) -> None:
    if nobody := {text: None for rule in rules for text in rule.of_nobody(picture).values()}:
        raise NotFoundError("; ".join(nobody))
