"""One row for each run: what it was, what came of it, and how to see it again if that was not good."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kgctl.simulate.metrics.registry import METRICS
from kgctl.simulate.runs.values import key_of
from kgctl.simulate.sweep.axes import typed
from kgctl.simulate.sweep.plan import Sweep

Value = str | int | float | None

BEFORE = ("variant", "seed", "digest")
AFTER = ("events", "expectations_passed", "expectations_failed", "failed_checks", "stopped", "error_code", "error", "replay")
WHOLE = ("seed", "events", "expectations_passed", "expectations_failed")
METRIC_NAMES = tuple(metric.name for metric in METRICS.values() if metric.is_summary)
"""The metrics that every row has, in the order of results; those that are asked for with filters follow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """A run. ``number``: its point's. ``error`` is None for a run that went to its end, whatever its expectations say.

    ``failed_checks``: the expectations that did not hold, joined by ``; ``. ``replay``: the command that runs it again, for one
    that failed, stopped early or broke an expectation.
    """

    number: int
    variant: str
    seed: int
    digest: str | None = None
    metrics: Mapping[str, Value] = field(default_factory=dict)
    events: int | None = None
    expectations_passed: int | None = None
    expectations_failed: int | None = None
    failed_checks: str | None = None
    stopped: str | None = None
    error_code: str | None = None
    error: str | None = None
    replay: str | None = None


class RowLayout:
    """The columns of a sweep: parameters, the run's name, metrics, and what came of it."""

    def __init__(self, sweep: Sweep) -> None:
        asked = (key_of(metric) for metric in sweep.metrics)
        self.metrics = tuple(dict.fromkeys((*METRIC_NAMES, *asked)))
        taken = {*BEFORE, *AFTER, *self.metrics}
        self.parameters = tuple(f"param.{axis.path}" if axis.path in taken else axis.path for axis in sweep.axes)
        self._values = [typed(axis) for axis in sweep.axes]
        self._points = sweep.points()
        self._order = {name: place for place, name in enumerate(sweep.variant_names)}

    def kinds(self) -> dict[str, type]:
        """Every column in its order, with what its values are where there are any."""
        parameters = {name: type(next(iter(values.values()))) for name, values in zip(self.parameters, self._values, strict=True)}
        before, after = ({name: int if name in WHOLE else str for name in names} for names in (BEFORE, AFTER))
        return {**parameters, **before, **dict.fromkeys(self.metrics, float), **after}

    def ordered(self, rows: Iterable[RunRow]) -> list[RunRow]:
        """The rows by point, variant and seed: the same for the same runs, whoever ran them."""
        return sorted(rows, key=lambda row: (row.number, self._order[row.variant], row.seed))

    def records(self, rows: Iterable[RunRow]) -> list[dict[str, Value]]:
        """Rows as tables have them."""
        return [self._record(row) for row in rows]

    def point(self, number: int) -> dict[str, Value]:
        """The parameters of a point."""
        texts = zip(self.parameters, self._values, self._points[number], strict=True)
        return {name: values[text] for name, values, text in texts}

    def _record(self, row: RunRow) -> dict[str, Value]:
        metrics = {name: row.metrics.get(name) for name in self.metrics}
        before, after = ({name: getattr(row, name) for name in names} for names in (BEFORE, AFTER))
        return {**self.point(row.number), **before, **metrics, **after}


def digest_of_rows(rows: Iterable[RunRow]) -> str:
    """One digest of all event logs, of rows in their order."""
    lines = "".join(f"{row.number}\t{row.variant}\t{row.seed}\t{row.digest or row.error_code}\n" for row in rows)
    return hashlib.sha256(lines.encode()).hexdigest()
