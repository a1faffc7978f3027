"""Conditions that are looked at while a run goes on: ``when:`` and ``abort_if:`` of events, ``always`` and ``eventually``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kgctl.simulate.scenario.expressions.evaluate import Value, evaluate
from kgctl.simulate.scenario.expressions.names import Names
from kgctl.simulate.scenario.expressions.nodes import Metric, Node, Setting
from kgctl.simulate.scenario.expressions.parser import parse_check
from kgctl.simulate.scenario.expressions.tokens import ExpressionError, located
from kgctl.simulate.scenario.wording import shown


@dataclass(frozen=True, slots=True)
class RunSource:
    """The values of one run, going on or finished: ``metrics`` is a `kgctl.simulate.metrics.registry.MetricView`."""

    metrics: Any
    settings: Mapping[str, float | str] = field(default_factory=dict)

    def metric(self, metric: Metric) -> Value:
        """The metric now."""
        value: Value = self.metrics.metric(metric.name, metric.filters)
        return value

    def setting(self, setting: Setting) -> Value:
        """The setting's value."""
        return self.settings.get(setting.name)


@dataclass(frozen=True, slots=True)
class Compiled:
    """A `Condition` of the model."""

    text: str
    node: Node
    settings: Mapping[str, float | str] = field(default_factory=dict)

    def holds(self, metrics: Any) -> bool:
        """Whether it is true now."""
        return bool(evaluate(self.node, RunSource(metrics, self.settings)))


def compiled(raw: object, names: Names) -> Compiled:
    """The condition of an event.

    Raises:
        ValueError: it is no expression, or names what is not there.
    """
    if not isinstance(raw, str):
        raise ValueError(f"a condition is a text such as `lag > 1000`, not {shown(raw)}")
    text = " ".join(raw.split())
    try:
        return Compiled(text, parse_check(text, Names(names.metrics, ())))
    except ExpressionError as error:
        raise ValueError(located(error, text)) from None
