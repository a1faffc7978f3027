"""What every mapping of a scenario file has in common."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, PlainValidator, WithJsonSchema

from kgctl.simulate.scenario.model import RANDOM_DRIFT, Commit, CommitMode
from kgctl.simulate.scenario.patches import values_of
from kgctl.simulate.scenario.quantities import (
    Distribution,
    Wave,
    did_you_mean,
    parse_distribution,
    parse_duration,
    parse_ramp,
    parse_rate,
    parse_share,
    parse_sizes,
    parse_wave,
    shown,
)


class Section(BaseModel):
    """A mapping of the file: no keys but its own, no types but the right ones."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, arbitrary_types_allowed=True)


RateSteps: TypeAlias = tuple[tuple[int, int], ...]
"""(from, in microseconds after the warm-up; the rate in uHz), in order."""

_LARGEST_WEIGHT = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Keys:
    """``exponent`` for Zipf's law; ``weights`` as given; neither: even."""

    exponent: float | None = None
    weights: tuple[int, ...] = ()

    def for_partitions(self, count: int) -> tuple[int, ...]:
        """Shares of the partitions; empty for even."""
        if self.exponent is None:
            return self.weights
        return tuple(max(round(_LARGEST_WEIGHT / (rank**self.exponent)), 1) for rank in range(1, count + 1))


def parse_traffic(raw: Any) -> RateSteps | Wave:
    """What `parse_rates` takes, or ``sine(1000/s, 5000/s, 24h)``. Raises ValueError."""
    return parse_wave(raw) or parse_rates(raw)


def parse_rates(raw: Any) -> RateSteps:
    """Return the steps of a rate, of a ramp, or of ``{0s: RATE, 10m: ramp(RATE, RATE, 20m)}``.

    Raises:
        ValueError: it is none of them.
    """
    if isinstance(raw, str) and raw.strip().startswith("sine("):
        raise ValueError("sine(...) is a rate of traffic, from the beginning on; an event sets one rate")
    if not isinstance(raw, dict):
        return parse_ramp(raw) or ((0, parse_rate(raw)),)
    if not raw:
        raise ValueError("there is no rate")
    parts = [(parse_duration(key), parse_ramp(value) or ((0, parse_rate(value)),)) for key, value in raw.items()]
    steps = [(from_us + at_us, rate_uhz) for from_us, part in parts for at_us, rate_uhz in part]
    for (earlier, _), (later, _) in pairwise(steps):
        if later <= earlier:
            raise ValueError("the steps must be in the order of time, each time once")
    return tuple(steps) if steps[0][0] == 0 else ((0, 0), *steps)


def parse_keys(raw: Any) -> Keys:
    """``even``, ``zipf(1.1)`` or ``weights([3, 1, 1])``.

    Raises:
        ValueError: it is none of them.
    """
    if raw == "even":
        return Keys()
    if isinstance(raw, str):
        if match := re.fullmatch(r"\s*zipf\(\s*(\d+(?:\.\d+)?)\s*\)\s*", raw):
            if float(match.group(1)) > 10:
                raise ValueError("the exponent of zipf is at most 10")
            return Keys(exponent=float(match.group(1)))
        if match := re.fullmatch(r"\s*weights\(\s*\[?([\d\s,]+)\]?\s*\)\s*", raw):
            return _weights([int(part) for part in match.group(1).split(",") if part.strip()])
    if isinstance(raw, list) and raw and all(type(weight) is int for weight in raw):
        return _weights(raw)
    raise ValueError(f"must be even, zipf(1.1) or weights([3, 1, 1]), not {shown(raw)}")


def _weights(numbers: list[int]) -> Keys:
    if not numbers or min(numbers) < 0 or max(numbers) > _LARGEST_WEIGHT or sum(numbers) == 0:
        raise ValueError("weights are whole numbers of 0 or more, not all of them 0")
    return Keys(weights=tuple(numbers))


NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")

DURATION_SCHEMA = {
    "anyOf": [{"type": "string", "pattern": r"^\s*((\d+(\.\d+)?)\s*(us|ms|s|m|h|d)\s*)+$"}, {"const": 0}],
    "description": "A duration: 500ms, 45s, 1m30s, 2h.",
}
DISTRIBUTION_SCHEMA = {
    "type": ["string", "integer"],
    "description": "A duration (45s), a range (20s..40s), normal(35s, 3s), lognormal(2ms, 1ms), exp(5m) or pareto(10ms, 1.5).",
}
SIZES_SCHEMA = {"type": ["string", "integer", "array"], "description": "Bytes: 500MB, 2GiB; or a list of them."}
RATE_SCHEMA = {"type": ["string", "number"], "description": "Records in a time: 1000/s, 2.5k/s, 90/m."}
SHARE_SCHEMA = {"type": ["string", "number"], "description": "A share: 0.1%."}
CONFIG_SCHEMA = {
    "type": "object",
    "description": "Kafka's own names; times may have a unit (45s), plain numbers are Kafka's.",
    "additionalProperties": {"type": ["string", "number", "boolean", "array"]},
}


def drift(raw: object) -> int:
    """How late each beat is, at most; ``random`` for phases that are never locked."""
    return RANDOM_DRIFT if raw == "random" else parse_duration(raw)


def start(raw: object) -> Distribution | None:
    """When the first start falls; None for ``never``."""
    return None if raw == "never" else parse_distribution(raw)


def run_length(raw: object) -> int | None:
    """A duration; None for ``auto``."""
    return None if raw == "auto" else parse_duration(raw)


def commit(raw: object) -> Commit:
    """``auto``, ``after-batch``, ``before-batch`` or ``every 5s``."""
    if isinstance(raw, str):
        head, _, rest = raw.strip().partition(" ")
        if head == "every" and rest:
            return Commit(mode=CommitMode.EVERY, interval_us=max(parse_duration(rest), 1))
        if head in ("auto", "after-batch", "before-batch") and not rest:
            return Commit(mode=CommitMode(head))
    known = ("auto", "after-batch", "before-batch", "every 5s")
    raise ValueError(f"must be one of {', '.join(known)}, not {shown(raw)}{did_you_mean(str(raw), known)}")


def restarts_on_failure(raw: object) -> bool:
    """``on_failure``."""
    if raw not in ("stay", "restart"):
        raise ValueError(f"must be stay or restart, not {shown(raw)}")
    return raw == "restart"


def leaves_on_stop(raw: object) -> bool:
    """``leave`` or ``none``."""
    if raw in ("leave", "none"):
        return raw == "leave"
    raise ValueError(f"must be leave or none, not {shown(raw)}")


def nanoseconds(raw: object) -> int:
    """A duration in nanoseconds, down to ``0.5us`` and ``500ns``."""
    if isinstance(raw, str) and (match := re.fullmatch(r"\s*(\d{1,15})\s*ns\s*", raw)):
        return int(match.group(1))
    if isinstance(raw, str) and (match := re.fullmatch(r"\s*(\d{1,9}\.\d{1,3})\s*us\s*", raw)):
        return round(float(match.group(1)) * 1_000)
    return parse_duration(raw) * 1_000


def interval(raw: object) -> int:
    """``1 per 5m``: the mean distance."""
    match = re.fullmatch(r"\s*(\d{1,6})\s*per\s*(\S+)\s*", raw) if isinstance(raw, str) else None
    if match is None or int(match.group(1)) == 0 or parse_duration(match.group(2)) == 0:
        raise ValueError(f"{shown(raw)} is no rate of faults; write one such as 1 per 5m")
    return max(parse_duration(match.group(2)) // int(match.group(1)), 1)


def config_text(raw: object) -> str:
    """A setting's value as a properties file has it; a duration with its unit is kept for `settings`."""
    if isinstance(raw, bool):
        return "true" if raw else "false"
    if isinstance(raw, list):
        return ",".join(config_text(entry) for entry in raw)
    if isinstance(raw, dict) or raw is None:
        raise ValueError(f"a setting has a number, a text or a list of them, not {shown(raw)}")
    return str(raw)


def config(raw: object) -> dict[str, str]:
    """Settings by name."""
    if not isinstance(raw, dict):
        raise ValueError(f"must be a mapping of Kafka's settings, not {shown(raw)}")
    return {name: config_text(value) for name, value in raw.items() if value is not None}


def regular_expression(raw: str) -> str:
    """One that a member can match topics with."""
    try:
        re.compile(raw)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{raw!r} is no regular expression: {error}") from None
    return raw


def subscription(raw: object) -> tuple[tuple[str, ...], str | None]:
    """Topics, and the regular expression: ``[a, b]``, ``a`` or ``"^regex"``."""
    if isinstance(raw, str) and not raw.startswith("^"):
        return (raw,), None
    if isinstance(raw, str):
        return (), regular_expression(raw)
    if isinstance(raw, list) and raw and all(isinstance(name, str) for name in raw):
        return tuple(raw), None
    raise ValueError(f"must be a list of topics, or a regular expression that begins with ^; not {shown(raw)}")


def metric_texts(raw: object) -> list[str]:
    """One metric, or a list of them, as text; which there are is known elsewhere."""
    entries = raw if isinstance(raw, list) else [raw]
    if not entries or not all(isinstance(entry, str) and entry.strip() for entry in entries):
        raise ValueError(f"must be a metric such as max_gap, or a list of them, not {raw!r}")
    return [str(entry) for entry in entries]


Duration: TypeAlias = Annotated[int, PlainValidator(parse_duration), WithJsonSchema(DURATION_SCHEMA)]
Varying: TypeAlias = Annotated[Distribution, PlainValidator(parse_distribution), WithJsonSchema(DISTRIBUTION_SCHEMA)]
Start: TypeAlias = Annotated[Distribution | None, PlainValidator(start), WithJsonSchema(DISTRIBUTION_SCHEMA)]
RunLength: TypeAlias = Annotated[int | None, PlainValidator(run_length), WithJsonSchema({"type": ["string", "integer"]})]
Rate: TypeAlias = Annotated[int, PlainValidator(parse_rate), WithJsonSchema(RATE_SCHEMA)]
Sizes: TypeAlias = Annotated[tuple[int, ...], PlainValidator(parse_sizes), WithJsonSchema(SIZES_SCHEMA)]
ShareOf: TypeAlias = Annotated[int, PlainValidator(parse_share), WithJsonSchema(SHARE_SCHEMA)]
Nanoseconds: TypeAlias = Annotated[int, PlainValidator(nanoseconds), WithJsonSchema({"type": ["string", "integer"]})]
Interval: TypeAlias = Annotated[int, PlainValidator(interval), WithJsonSchema({"type": "string", "pattern": "^.* per .*$"})]
Drift: TypeAlias = Annotated[int, PlainValidator(drift), WithJsonSchema({"type": ["string", "integer"]})]
Config: TypeAlias = Annotated[dict[str, str], PlainValidator(config), WithJsonSchema(CONFIG_SCHEMA)]
CommitText: TypeAlias = Annotated[
    Commit, PlainValidator(commit), WithJsonSchema({"type": "string", "pattern": "^(auto|after-batch|before-batch|every .+)$"})
]
OnFailure: TypeAlias = Annotated[bool, PlainValidator(restarts_on_failure), WithJsonSchema({"enum": ["stay", "restart"]})]
OnStop: TypeAlias = Annotated[bool, PlainValidator(leaves_on_stop), WithJsonSchema({"enum": ["leave", "none"]})]
Subscription: TypeAlias = Annotated[
    tuple[tuple[str, ...], str | None],
    PlainValidator(subscription),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}),
]
MetricTexts: TypeAlias = Annotated[
    list[str],
    PlainValidator(metric_texts),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}),
]
SweepValues: TypeAlias = Annotated[
    list[str], PlainValidator(values_of), WithJsonSchema({"anyOf": [{"type": "array", "minItems": 1}, {"type": "string"}]})
]
