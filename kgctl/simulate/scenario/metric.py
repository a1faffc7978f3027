"""What a metric is: one object with all that is known about it, made where the function is that works it out.

The functions stand above, in `kgctl.simulate.metrics`. Checks, reports, comparisons, sweeps and plays read the objects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, TypeAlias, TypeVar

Compute: TypeAlias = Callable[[Any, Any], "float | str | None"]
"""Works a metric out: of `kgctl.simulate.metrics.measured.Measured` and `kgctl.simulate.scenario.checks.Filters`."""
_C = TypeVar("_C", bound=Compute)


@dataclass(frozen=True, slots=True)
class MetricUnit:
    """``symbol``: the unit that a number beside it may have; None: it is no number. ``is_time``: "never" may be its value."""

    name: str
    symbol: str | None = ""
    is_time: bool = False


SECONDS = MetricUnit("seconds", "s", is_time=True)
PARTITION_SECONDS = MetricUnit("partition-seconds", "s")
SHARE = MetricUnit("share", "%")
PER_CENT = MetricUnit("per cent", "%")
COUNT = MetricUnit("count")
RECORDS = MetricUnit("records")
PARTITIONS = MetricUnit("partitions")
BYTES = MetricUnit("bytes", "B")
STATE = MetricUnit("state", None)

TIME = ("after", "before", "during", "step")
WHERE = ("topic", "selector", *TIME)
BALANCE = ("topic", "selector", "at", "mean", "worst")


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricKind:
    """One metric.

    ``label`` and ``hint``: what a report calls it and says beside it. ``filters``: which kinds it takes; ``causes``: what
    ``cause`` takes. ``place``: its row in the table that is always shown, from 1; 0: shown where it is asked for. ``is_summary``:
    it stands in a result's list of metrics, without filters. ``counts_pods``: it is 0 of pods that there never were.
    ``is_of_records``: it tells nothing where none are written. ``is_grave``: what is better beside more of it is better for
    want of members. ``is_of_gaps``: about time without a consumer, which has a cause that can be told. ``unmeasured``: the
    filters with which a play with real clients does not know it; ``is_playable`` False: it does not know it at all.
    """

    name: str
    unit: MetricUnit
    label: str
    hint: str
    help: str
    compute: Compute
    filters: tuple[str, ...]
    causes: tuple[str, ...]
    is_better_higher: bool
    place: int
    is_summary: bool
    counts_pods: bool
    is_of_records: bool
    is_grave: bool
    is_of_gaps: bool
    is_playable: bool
    unmeasured: tuple[str, ...]


_KINDS: dict[str, MetricKind] = {}


def metric(
    unit: MetricUnit,
    filters: tuple[str, ...] = TIME,
    *,
    label: str = "",
    hint: str = "",
    causes: tuple[str, ...] = (),
    is_better_higher: bool = False,
    place: int = 0,
    is_summary: bool = True,
    counts_pods: bool = False,
    is_of_records: bool = False,
    is_grave: bool = False,
    is_of_gaps: bool = False,
    is_playable: bool = True,
    unmeasured: tuple[str, ...] = (),
) -> Callable[[_C], _C]:
    """Make the decorated function a metric of its name; its docstring is the metric's help. See `MetricKind`."""

    def register(compute: _C) -> _C:
        name = compute.__name__
        _KINDS[name] = MetricKind(
            name=name,
            unit=unit,
            label=label or name,
            hint=hint,
            help=" ".join((compute.__doc__ or "").split()),
            compute=compute,
            filters=filters,
            causes=causes,
            is_better_higher=is_better_higher,
            place=place,
            is_summary=is_summary,
            counts_pods=counts_pods,
            is_of_records=is_of_records or unit is RECORDS,
            is_grave=is_grave,
            is_of_gaps=is_of_gaps,
            is_playable=is_playable,
            unmeasured=("step", *unmeasured),
        )
        return compute

    return register


@cache
def metric_kinds() -> Mapping[str, MetricKind]:
    """Every metric by its name, in the order in which results list them."""
    import_module("kgctl.simulate.metrics")  # by name: what works them out stands above this package
    return _KINDS


def kind_of(metric_text: str) -> MetricKind | None:
    """The kind of ``unavailable`` or ``unavailable(cause boot)``; None where there is no such metric."""
    return metric_kinds().get(metric_text.partition("(")[0].strip())


def headlines() -> list[MetricKind]:
    """The metrics that are always shown, in the order of their rows."""
    return sorted((kind for kind in metric_kinds().values() if kind.place), key=lambda kind: kind.place)
