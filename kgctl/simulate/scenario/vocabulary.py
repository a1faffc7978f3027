"""What the language takes from elsewhere: the kinds of events, and the metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kgctl.simulate.engine.events.event_run import EventKind


def event_kinds() -> Mapping[str, EventKind]:
    """Kinds of events, by name."""
    from kgctl.simulate.engine.events.registry import EVENT_KINDS

    return EVENT_KINDS


def metric_names() -> tuple[str, ...]:
    """Every metric that an expression may name."""
    from kgctl.simulate.metrics.registry import METRICS

    return tuple(METRICS)
