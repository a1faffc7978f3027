"""Durations that vary, as text: ``5s``, ``0ms..100ms``, ``normal(35s, 3s)``, ``exp(5m)`` and others."""

from __future__ import annotations

import re

from kgctl.simulate.scenario.distributions import Constant, Distribution, Exponential, LogNormal, Normal, Pareto, Uniform
from kgctl.simulate.scenario.values.durations import cut_off, parse_duration

_CALL = re.compile(r"([a-z]+)\s*\(([^()]*)\)")
FORMS = "45s, 20s..40s, normal(35s, 3s), lognormal(2ms, 1ms), exp(5m) or pareto(10ms, 1.5)"
_ARGUMENTS = {"normal": 2, "lognormal": 2, "exp": 1, "pareto": 2}


def parse_distribution(raw: object) -> Distribution:
    """A duration, a range of them, or a distribution.

    Raises:
        ValueError: it is none.
    """
    if isinstance(raw, str):
        if match := _CALL.fullmatch(raw.strip()):
            return _call(match.group(1), [part.strip() for part in match.group(2).split(",")], raw)
        if ".." in raw:
            return _range(raw)
        if "(" in raw:
            raise ValueError(f"{raw!r} is no duration; write {FORMS}{cut_off(raw)}")
    return Constant(parse_duration(raw))


def _range(raw: str) -> Distribution:
    low_text, _, high_text = raw.partition("..")
    low, high = parse_duration(low_text.strip()), parse_duration(high_text.strip())
    if low > high:
        raise ValueError(f"{raw!r} ends before it begins")
    return Uniform(low, high)


def _call(name: str, arguments: list[str], raw: str) -> Distribution:
    from kgctl.simulate.scenario.wording import did_you_mean

    if name not in _ARGUMENTS:
        raise ValueError(f"unknown distribution {name!r}{did_you_mean(name, _ARGUMENTS, list_up_to=4)}")
    if len(arguments) != _ARGUMENTS[name]:
        raise ValueError(f"{name} takes {_ARGUMENTS[name]} values, not {len(arguments)}: {raw!r}")
    first = parse_duration(arguments[0])
    if name == "exp":
        return Exponential(first)
    if name == "pareto":
        return Pareto(first, _exponent(arguments[1]))
    return (Normal if name == "normal" else LogNormal)(first, parse_duration(arguments[1]))


def _exponent(text: str) -> float:
    if not re.fullmatch(r"\d+(\.\d+)?", text) or not 0.1 <= float(text) <= 100:
        raise ValueError(f"the exponent of pareto is a number between 0.1 and 100, not {text!r}")
    return float(text)
