"""What is kept of one run when it is over: small, and ready to be handed from one process to another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kgctl.simulate.report.outcome import Picture
from kgctl.simulate.scenario.expressions import Metric, Setting, Value


@dataclass(frozen=True, slots=True)
class Watched:
    """What came of a check that watches the run. ``at_us``: when it was decided, from the end of the warm-up."""

    passed: bool
    observed: Value
    at_us: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunValues:
    """One variant with one seed.

    ``metrics``: all that the JSON result has. ``named``: those that checks name, by `key_of`. ``watched``: by the check's
    number. ``stopped``: why it ended before its time; "" for a run that is complete. ``events`` is how many there were.
    ``took_s``: of the machine's time.
    """

    variant: str
    seed: int
    digest: str
    metrics: Mapping[str, float | None]
    named: Mapping[str, Value] = field(default_factory=dict)
    watched: Mapping[int, Watched] = field(default_factory=dict)
    final_assignment: Mapping[str, Mapping[str, list[int]]] = field(default_factory=dict)
    picture: Picture | None = None
    stopped: str = ""
    took_s: float = field(default=0.0, compare=False)
    events: int = 0


def key_of(metric: Metric) -> str:
    """A metric with its filters, as text: ``unavailable(cause rebalance)``."""
    return f"{metric.name}({', '.join(metric.filters)})" if metric.filters else metric.name


@dataclass(frozen=True, slots=True)
class SeedSource:
    """The values of one seed, for expressions over finished runs; ``settings`` by variant."""

    runs: Mapping[str, RunValues]
    settings: Mapping[str, Mapping[str, float | str]]
    variant: str

    def metric(self, metric: Metric) -> Value:
        """The metric's value at the end."""
        return self.runs[metric.variant or self.variant].named.get(key_of(metric))

    def setting(self, setting: Setting) -> Value:
        """The setting's value."""
        return self.settings[setting.variant or self.variant].get(setting.name)
