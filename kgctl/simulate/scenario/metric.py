"""What a metric is: one object with all that is known about it, made where the function is that works it out.

The functions stand above, in `kgctl.simulate.metrics`. Checks, reports, comparisons, sweeps and plays read the objects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, field, replace
from functools import cache
from importlib import import_module
from math import inf
from typing import Any, TypeAlias, TypeVar

from kgctl.model.values import frozen_in_order

Compute: TypeAlias = Callable[[Any, Any], "float | str | None"]
"""Works a metric out: of `kgctl.simulate.metrics.measured.Measured` and `kgctl.simulate.scenario.checks.Filters`."""
_C = TypeVar("_C", bound=Compute)


@frozen_in_order
class MetricUnit:
    """``symbol``: the unit that a number beside it may have; None: it is no number. ``is_time``: "never" may be its value.

    ``most``: no value is above that.
    """

    name: str
    symbol: str | None = ""
    is_time: bool = False
    most: float = inf


SECONDS = MetricUnit("seconds", "s", is_time=True)
PARTITION_SECONDS = MetricUnit("partition-seconds", "s")
TASK_SECONDS = MetricUnit("task-seconds", "s")
SHARE = MetricUnit("share", "%", most=1.0)
PER_CENT = MetricUnit("per cent", "%")
COUNT = MetricUnit("count")
RECORDS = MetricUnit("records")
PARTITIONS = MetricUnit("partitions")
BYTES = MetricUnit("bytes", "B")
STATE = MetricUnit("state", None)

TIME = ("after", "before", "during", "step")
WHERE = ("topic", "selector", *TIME)
BALANCE = ("topic", "selector", "at", "mean", "worst")


@frozen_in_order
class MetricSubject:
    """What a metric is about, which not every type of groups has.

    ``is_playable``: it is seen of real clients. ``is_stored``: its records are there whether any are written or not.
    """

    name: str
    is_playable: bool = False
    is_stored: bool = False


MEMBERS = MetricSubject("members, and the group that they are in", is_playable=True)
OWNERS = MetricSubject("partitions with one consumer each, who commits", is_playable=True)
TASKS = MetricSubject("tasks of an application, and their states", is_stored=True)
DELIVERIES = MetricSubject("records that are delivered, and delivered again until they are done")


@frozen_in_order
class MostOfRun:
    """What a run cannot exceed: how long it is measured, how many partitions it has; whether the number of its pods changes."""

    length_us: float = inf
    partitions: float = inf
    is_scaled: bool = True

    def window_s(self, filters: Any) -> float:
        """How long the part is that filters leave of it."""
        first_us = filters.after_us or 0
        last_us = self.length_us if filters.before_us is None else min(filters.before_us, self.length_us)
        return max(last_us - first_us, 0) / 1_000_000


Most: TypeAlias = Callable[[MostOfRun, Any], float]
"""The most that a metric can come to in a run with these limits, with these filters."""


def the_time(run: MostOfRun, filters: Any) -> float:
    """All of it."""
    return run.window_s(filters)


def the_time_of_all(run: MostOfRun, filters: Any) -> float:
    """All of it, for each partition."""
    return run.window_s(filters) * run.partitions


def nothing_unless_scaled(run: MostOfRun, filters: Any) -> float:
    """Nothing where the number of pods stays as it is, and no word says what else is counted."""
    return inf if run.is_scaled or filters.words else 0.0


@frozen_in_order
class MetricKind:
    """One metric, and the decorator that makes it of a function: of its name, with its docstring as ``help``.

    ``label`` and ``hint``: what a report calls it and says beside it. ``filters``: which kinds it takes; ``causes``: what
    ``cause`` takes. ``place``: its row in the table that is always shown, from 1; 0: shown where it is asked for. ``is_summary``:
    it stands in a result's list of metrics, without filters. ``counts_pods``: it is 0 of pods that there never were.
    ``is_of_records``: it tells nothing where none are written. ``is_grave``: what is better beside more of it is better for
    want of members. ``is_wait``: how long records wait, which decides about better and worse. ``is_of_gaps``: about time
    without a consumer, which has a cause that can be told. ``unmeasured``: the filters with which a play with real clients does
    not know it; ``is_playable`` False: it does not know it at all.
    ``about``: it tells something of groups that have that, and of no others. ``most``: what it cannot exceed in a run; None:
    what its unit cannot.
    """

    unit: MetricUnit
    filters: tuple[str, ...] = TIME
    _: KW_ONLY
    label: str = ""
    hint: str = ""
    causes: tuple[str, ...] = ()
    is_better_higher: bool = False
    place: int = 0
    is_summary: bool = True
    counts_pods: bool = False
    is_of_records: bool = False
    is_grave: bool = False
    is_wait: bool = False
    is_of_gaps: bool = False
    is_playable: bool = True
    about: MetricSubject = MEMBERS
    unmeasured: tuple[str, ...] = ()
    most: Most | None = None
    name: str = ""
    help: str = ""
    compute: Compute = field(default=lambda _, __: None)

    def bounds(self, run: MostOfRun, filters: Any) -> tuple[float, float] | None:
        """Between which numbers it lies whatever happens in a run; None: it is no number."""
        if self.unit is STATE:
            return None
        return 0.0, self.unit.most if self.most is None else self.most(run, filters)

    def __call__(self, compute: _C) -> _C:
        name = compute.__name__
        _KINDS[name] = replace(
            self,
            name=name,
            label=self.label or name,
            help=" ".join((compute.__doc__ or "").split()),
            compute=compute,
            is_of_records=self.is_of_records or (self.unit is RECORDS and not self.about.is_stored),
            is_playable=self.is_playable and self.about.is_playable,
            unmeasured=("step", *self.unmeasured),
        )
        return compute


metric = MetricKind
_KINDS: dict[str, MetricKind] = {}


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
