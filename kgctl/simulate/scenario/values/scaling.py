"""Values of ``autoscale:``: scaling policies, windows, targets."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from kgctl.simulate.scenario.autoscale import ScaleMetric, ScalingPolicy
from kgctl.simulate.scenario.values.durations import format_duration, parse_duration
from kgctl.simulate.scenario.wording import shown

_POLICY = re.compile(r"\s*(\d{1,9})\s*(%|pods?)?\s+per\s+(\S+)\s*")
_LONGEST_PERIOD_US, _LONGEST_WINDOW_US = 1_800_000_000, 3_600_000_000


def policy(raw: object) -> ScalingPolicy:
    """``100% per 15s``, ``1 per 2m`` or ``4 pods per 1m``.

    Raises:
        ValueError: it is none, or one that Kubernetes refuses.
    """
    match = _POLICY.fullmatch(raw) if isinstance(raw, str) else None
    if match is None or not int(match.group(1)):
        raise ValueError(f"{shown(raw)} is no scaling policy; write one such as 100% per 15s or 1 per 2m")
    period_us = parse_duration(match.group(3))
    if not 1_000_000 <= period_us <= _LONGEST_PERIOD_US:
        raise ValueError(f"the period of a policy is 1s to 30m in Kubernetes, not {match.group(3)}")
    return ScalingPolicy(int(match.group(1)), match.group(2) == "%", period_us)


def policies(raw: object) -> tuple[ScalingPolicy, ...]:
    """One policy, or a list of them."""
    entries = raw if isinstance(raw, list) else [raw]
    if not entries:
        raise ValueError("there is no policy; to forbid a direction, write select: disabled")
    return tuple(policy(entry) for entry in entries)


def window(raw: object) -> int:
    """A stabilisation window."""
    length_us = parse_duration(raw)
    if length_us > _LONGEST_WINDOW_US:
        raise ValueError(f"a stabilisation window is at most 1h in Kubernetes, not {format_duration(length_us)}")
    return length_us


def period(raw: object) -> int:
    """How often something is done: more than 0."""
    length_us = parse_duration(raw)
    if not length_us:
        raise ValueError("must be more than 0s")
    return length_us


def records(raw: object) -> int:
    """Records for each pod."""
    if type(raw) is not int or raw < 1:
        raise ValueError(f"the target of lag is a number of records for each pod, such as 1000, not {shown(raw)}")
    return raw


def age(raw: object) -> int:
    """A time, in microseconds."""
    try:
        return period(raw)
    except ValueError:
        raise ValueError(f"the target of lag-age is a time, such as 30s, not {shown(raw)}") from None


def percent(raw: object) -> int:
    """Whole per cent."""
    match = re.fullmatch(r"\s*(\d{1,3})\s*%\s*", raw) if isinstance(raw, str) else None
    if match is None or not 1 <= int(match.group(1)) <= 100:
        raise ValueError(f"the target of cpu is a share of what a member can process, 1% to 100%, such as 70%, not {shown(raw)}")
    return int(match.group(1))


TARGETS: Mapping[ScaleMetric, Callable[[object], int]] = {
    ScaleMetric.LAG: records,
    ScaleMetric.LAG_AGE: age,
    ScaleMetric.CPU: percent,
}
"""Metric -> what reads its target. Each raises ValueError."""
