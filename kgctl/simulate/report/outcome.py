"""What a finished simulation looks like to its reports: plain values, made by the runner from the runs of all seeds.

Times are integer microseconds of virtual time with 0 at the end of the warm-up, so that they read like the ``at:`` of the
scenario file; the warm-up itself is negative. Mappings keep the order of the file. Nothing here is rounded.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TypeAlias

from kgctl.model.values import frozen_in_order
from kgctl.simulate.scenario.metric import COUNT, SHARE, kind_of

Observed: TypeAlias = "float | str | bool | None"
"""What an expectation saw: a number, a state's name, whether something held, or nothing that could be computed."""


@frozen_in_order
class Spread:
    """One metric of one variant over the seeds. Infinite where it never came to an end (a time to stable).

    ``worst`` is the value that an expectation would be held against: the largest, or the smallest of a metric that is better
    when it is larger.
    """

    minimum: float
    median: float
    p95: float
    maximum: float
    per_seed: tuple[float, ...]
    worst: float


@frozen_in_order
class Segment:
    """One stretch of a partition's time. No owner: nobody consumed it, for ``cause``; two owners: both did.

    With an owner, ``cause`` says how it came to it, where that is known.
    """

    from_us: int
    to_us: int
    owners: tuple[str, ...] = ()
    cause: str = ""


@frozen_in_order
class Lane:
    """One partition from its creation to the end of the run: segments without holes, in the order of time."""

    topic: str
    partition: int
    segments: tuple[Segment, ...]

    @property
    def name(self) -> str:
        """Return the partition as Kafka's tools write it: ``orders-0``."""
        return f"{self.topic}-{self.partition}"


@frozen_in_order
class Mark:
    """Something that the scenario did, to be shown above the lanes: ``crash pay/7``."""

    at_us: int
    text: str


@frozen_in_order
class LagSeries:
    """Records of one topic that were written and not yet read: straight lines between ``(at_us, records)``."""

    topic: str
    points: tuple[tuple[int, float], ...]


@frozen_in_order
class Replicas:
    """How many pods of a set an autoscaler wanted, and how many of them ran a consumer, from each time on."""

    members: str
    wanted: tuple[tuple[int, int], ...]
    running: tuple[tuple[int, int], ...]


@frozen_in_order
class RunPicture:
    """One seed of one variant, drawn: who consumed what when. From ``from_us`` to ``to_us``.

    ``generations``: (time, generation or group epoch from then on); ``steps``: where the steps of rollouts begin.
    ``chosen``: why this seed and no other; "" where there is no other.
    """

    seed: int
    from_us: int
    to_us: int
    lanes: tuple[Lane, ...]
    marks: tuple[Mark, ...] = ()
    lag: tuple[LagSeries, ...] = ()
    replicas: tuple[Replicas, ...] = ()
    generations: tuple[tuple[int, int], ...] = ()
    steps: tuple[Mark, ...] = ()
    chosen: str = ""

    @property
    def caption(self) -> str:
        return f"seed {self.seed} ({self.chosen})" if self.chosen else f"seed {self.seed}"


@frozen_in_order
class VariantOutcome:
    """What came of one variant. Of the first seed are ``final_assignment``, {member: {topic: [partitions]}}, and
    ``longest_gaps``, {partition: seconds}, the longest first. ``assumptions``: what about -> what its runs went by.

    ``why``: the story of the worst moment of the seed in the picture, in lines. ``took_s``: of the machine's time, for all seeds.
    ``rehearsed``: what is made to happen in its runs; None: it is not told.
    """

    metrics: Mapping[str, Spread]
    final_assignment: Mapping[str, Mapping[str, Sequence[int]]] = field(default_factory=dict)
    picture: RunPicture | None = None
    why: tuple[str, ...] = ()
    took_s: float = field(default=0.0, compare=False)
    longest_gaps: Mapping[str, float] = field(default_factory=dict)
    assumptions: Mapping[str, str] = field(default_factory=dict)
    rehearsed: Sequence[str] | None = None


@frozen_in_order
class Expectation:
    """One line of ``expect:``, for one variant.

    ``observed`` is the value of its left side where it was worst, None where the check could not be computed at all;
    ``note`` says more (the other side of a comparison, the moment at which an ``always`` broke, the file's ``why``).
    ``severity`` is ``fail`` or ``warn``; ``seed`` the one that ``replay``, a command line, runs again. ``is_unasked``: it is no
    line of the file but holds for every run, and is told where it does not: ``note`` says who, by which rule and when. It has
    passed where the file allows that.
    ``was_asked`` False: nothing came of it, for ``note``. ``held_in``: in how many seeds it held, where that was counted.
    """

    check: str
    variant: str
    passed: bool
    observed: Observed
    seed: int
    severity: str = "fail"
    replay: str = ""
    note: str = ""
    is_unasked: bool = False
    was_asked: bool = True
    held_in: int | None = None


@frozen_in_order
class Measured:
    """The same scenario, played with real clients. ``client``: which ones; ``runs``: how often each variant was played.

    ``expectations`` are those that can be measured; `notes` has the others. ``seed`` in them is the number of the play.
    """

    cluster: str
    client: str
    runs: int
    variants: Mapping[str, VariantOutcome]
    expectations: tuple[Expectation, ...] = ()
    notes: tuple[str, ...] = ()


@frozen_in_order
class Outcome:
    """A whole ``simulate run``. Without variants the one name is ``default``. ``measured``: what stands beside it.

    ``stopped``: what a limit has left out or cut short, so that not all that was asked is known; "" where all was run.
    """

    scenario: str
    question: str
    kgctl: str
    digest: str
    seeds: tuple[int, ...]
    variants: Mapping[str, VariantOutcome]
    expectations: tuple[Expectation, ...] = ()
    notes: tuple[str, ...] = ()
    measured: Measured | None = None
    stopped: str = ""

    @property
    def failures(self) -> tuple[Expectation, ...]:
        """What did not hold and was not merely a warning, neither simulated nor played."""
        played = () if self.measured is None else self.measured.expectations
        return tuple(each for each in (*self.expectations, *played) if not each.passed and each.severity == "fail")

    @property
    def troubles(self) -> tuple[Expectation, ...]:
        """Return what went wrong though nobody asked, which every report says first."""
        return tuple(each for each in self.expectations if each.is_unasked and not each.passed)

    @property
    def allowed(self) -> tuple[Expectation, ...]:
        """Return what went wrong though nobody asked, and fails nothing as the file allows it."""
        return tuple(each for each in self.expectations if each.is_unasked and each.passed)

    @property
    def asked(self) -> tuple[Expectation, ...]:
        """Return the expectations of the file, or of ``--check``."""
        return tuple(each for each in self.expectations if not each.is_unasked)

    @property
    def warnings(self) -> tuple[Expectation, ...]:
        return tuple(each for each in self.expectations if not each.passed and each.severity != "fail")


def show(metric: str, value: Observed) -> str:
    """A value of this metric as people read it: ``3.2s``, ``7,689``, ``never``."""
    if value is None:
        return "-"
    if isinstance(value, (str, bool)):
        return str(value).lower() if isinstance(value, bool) else value
    kind = kind_of(metric)
    unit = COUNT if kind is None else kind.unit
    if math.isinf(value):
        return "never" if unit.is_time else "infinite"
    if math.isnan(value):
        return "-"
    return f"{_seconds(value)}s" if unit.is_time else _share(value) if unit is SHARE else _amount(value)


def _seconds(value: float) -> str:
    if value != 0 and abs(value) < 0.0995:
        return _trimmed(f"{value:.3f}") if abs(value) >= 0.0005 else "<0.001"
    return _trimmed(f"{value:,.1f}")


def _amount(value: float) -> str:
    """Whole numbers as they are; others with one digit while that says something."""
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else _small(value)


def _small(value: float) -> str:
    return _trimmed(f"{value:.1f}") if abs(value) >= 0.95 else _trimmed(f"{value:.3g}")


def _share(value: float) -> str:
    return _trimmed(f"{value:.4f}")


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def duration(us: int) -> str:
    """A moment or a length of virtual time: ``-5s``, ``1m 30s``, ``2h``, ``0.25s``."""
    sign, us = ("-", -us) if us < 0 else ("", us)
    hours, rest = divmod(us, 3_600_000_000)
    minutes, rest = divmod(rest, 60_000_000)
    parts = [f"{hours}h"] * bool(hours) + [f"{minutes}m"] * bool(minutes)
    if rest or not parts:
        parts.append(f"{_trimmed(f'{rest / 1_000_000:.3f}')}s")
    return sign + " ".join(parts)
