"""The types of single values, with what JSON Schema says of them. Each turns the file's value into the run's."""

from __future__ import annotations

import re
from typing import Annotated, TypeAlias

from pydantic import PlainValidator, WithJsonSchema

from kgctl.simulate.scenario.distributions import Distribution
from kgctl.simulate.scenario.model import RANDOM_DRIFT, Commit, CommitMode
from kgctl.simulate.scenario.values.distributions import parse_distribution
from kgctl.simulate.scenario.values.durations import parse_duration
from kgctl.simulate.scenario.values.parameters import values_of
from kgctl.simulate.scenario.values.rates import parse_rate, parse_share
from kgctl.simulate.scenario.values.sizes import parse_sizes
from kgctl.simulate.scenario.wording import did_you_mean, shown

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
