"""``report:`` of a file: what a sweep shows, which of its parameters along which metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kgctl.simulate.scenario.expressions import ExpressionError, Metric, Names, parse_expression
from kgctl.simulate.scenario.filters import Surroundings, wrong_filters_of
from kgctl.simulate.scenario.vocabulary import METRIC_SPECS
from kgctl.simulate.scenario.wording import did_you_mean
from kgctl.yaml_files import Path, Problem, Tree

_NO_NUMBERS = ("state",)


@dataclass(frozen=True, slots=True)
class Report:
    """``x``: the path of a parameter that is swept; None: the one with the most values. ``y`` empty: the usual metrics."""

    x: str | None = None
    y: tuple[Metric, ...] = ()


EMPTY_REPORT = Report()


def read_report(tree: Tree, around: Surroundings, problems: list[Problem]) -> Report:
    """The section of a file whose form is right; what contradicts the rest of it is added to ``problems``."""
    raw = tree.data.get("report") or {}
    swept = tuple(tree.data.get("sweep") or ())

    def wrong(path: Path, message: str) -> None:
        problems.append(Problem(tree.location(path), path, message))

    along = None
    if (name := raw.get("x")) is not None:
        try:
            along = parameter_named(name, swept)
        except ValueError as error:
            wrong(("report", "x"), str(error))
    found = []
    entries = raw.get("y") or []
    for index, text in enumerate([entries] if isinstance(entries, str) else entries):
        path: Path = ("report", "y") if isinstance(entries, str) else ("report", "y", index)
        try:
            found.append(metric_of(text, around))
        except ValueError as error:
            wrong(path, str(error))
    return Report(along, tuple(dict.fromkeys(found)))


def parameter_named(name: str, swept: Sequence[str]) -> str:
    """The path of a parameter by the path, or by the end of it that no other has: ``session.timeout.ms``, ``app.count``.

    Raises:
        ValueError: there is none, or there are several.
    """
    if not swept:
        raise ValueError(f"{name!r} is not swept: the file has no `sweep:`")
    found = [path for path in swept if path == name] or [path for path in swept if path.endswith(f".{name}")]
    if len(found) == 1:
        return found[0]
    if found:
        raise ValueError(f"{name!r} may be each of {', '.join(found)}; write the whole path")
    ends = [".".join(steps[start:]) for path in swept for steps in (path.split("."),) for start in range(len(steps))]
    near = did_you_mean(name, ends) or f"; swept: {', '.join(swept)}"
    raise ValueError(f"{name!r} is not swept{near}")


def metric_of(text: str, around: Surroundings) -> Metric:
    """A metric with its filters: ``max_gap``, ``unavailable(cause rebalance)``.

    Raises:
        ValueError: it is something else, or no number.
    """
    text = " ".join(text.split())
    known = [name for name in METRIC_SPECS if name not in _NO_NUMBERS]
    try:
        node = parse_expression(text, Names(METRIC_SPECS, ()))
    except ExpressionError as error:
        name = text.partition("(")[0].strip()
        if name.isidentifier() and name not in METRIC_SPECS:
            raise ValueError(f"there is no metric {name!r}{did_you_mean(name, known)}") from None
        raise ValueError(f"{error}, at letter {error.at + 1} of `{text}`") from None
    if not isinstance(node, Metric):
        raise ValueError(f"{text!r} is no metric; write one, such as max_gap or unavailable(cause rebalance)")
    if node.name in _NO_NUMBERS:
        raise ValueError(f"{node.name!r} is no number")
    for problem in wrong_filters_of(node, around):
        raise ValueError(problem)
    return Metric(node.name, node.filters)
