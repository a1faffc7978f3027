"""The linter's rules about expectations: those that hold, or fail, whatever happens."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import TypeAlias

from kgctl.simulate.lint.context import Bounds, Context, Doubts
from kgctl.simulate.scenario.expressions import (
    ARITHMETIC,
    COMPARISONS,
    Binary,
    Metric,
    Negative,
    Node,
    Not,
    Number,
    apply,
    key_of,
    metrics_of,
)
from kgctl.simulate.scenario.metric import metric_kinds
from kgctl.simulate.scenario.quantities import format_duration


def of_records_alone(context: Context) -> Doubts:
    """An expectation on records holds in a scenario that writes none, whatever happens."""
    if context.scenario.writes:
        return
    asked = [
        metric.name for check in context.checks for metric in metrics_of(check.node) if metric_kinds()[metric.name].is_of_records
    ]
    for name in dict.fromkeys(asked):
        yield ("expect",), f"nothing is written (`traffic`): what is expected of {name} holds or fails whatever happens"


def always_holding(context: Context) -> Doubts:
    """An expectation that says nothing of the run, or what every run does, or none."""
    for check in context.checks:
        if not metrics_of(check.node):
            yield ("expect",), f"{check.text!r} asks about no metric: it holds or fails whatever happens"
        elif check.variants is None or context.variant.name in check.variants:
            yield from ((("expect",), f"{check.text!r} {why}") for part in _parts(check.node) if (why := _in_vain(context, part)))


def of_a_run_without_events(context: Context) -> Doubts:
    """Expectations of a group at rest: nothing is done to it, and no batch takes any time."""
    scenario = context.scenario
    happens = scenario.events or scenario.nemesis or scenario.autoscale or not scenario.warmup_us
    takes_time = scenario.writes and any(members.rate_uhz is not None for members in scenario.members)
    if context.checks and context.is_lone and not happens and not takes_time:
        yield ("expect",), "nothing happens in this run: it has no events, and records take no time (process_time)"


def _parts(node: Node) -> Iterator[Node]:
    """What all has to hold."""
    if isinstance(node, Binary) and node.op == "and":
        yield from _parts(node.left)
        yield from _parts(node.right)
    else:
        yield node


def _in_vain(context: Context, node: Node) -> str:
    """Why a part of an expectation says nothing; "": it does."""
    if isinstance(node, Binary) and node.op in COMPARISONS:
        sides = [replace(side, at=0) if isinstance(side, Metric) else side for side in (node.left, node.right)]
        if sides[0] == sides[1]:
            return "compares a metric with itself"
    found = truths(node, context.bounds)
    if len(found) > 1:
        return ""
    within = dict.fromkeys(_within(context, metric) for metric in metrics_of(node))
    return f"{'holds' if True in found else 'fails'} whatever happens: {', '.join(filter(None, within))}"


def _within(context: Context, metric: Metric) -> str:
    """Between what a metric lies in every run, in words."""
    found = context.bounds(metric)
    if found is None:
        return ""
    name, most = key_of(metric), found[1]
    if math.isinf(most):
        return f"{name} is never below 0"
    is_time = metric_kinds()[metric.name].unit.is_time
    return f"{name} is at most {format_duration(round(most * 1_000_000)) if is_time else f'{most:,g}'}"


# --- what an expression can come to, each of its metrics within its bounds, for itself

ANYTHING = (-math.inf, math.inf)

BoundsOf: TypeAlias = "Callable[[Node], Bounds | None]"
"""Bounds of a metric, or of a setting; None: it is no number, or nothing is known of it."""


def truths(node: Node, bounds_of: BoundsOf) -> frozenset[bool]:
    """Whether it can be true, and whether it can be false; both where that is not known."""
    if isinstance(node, Not):
        return frozenset(not each for each in truths(node.of, bounds_of))
    if isinstance(node, Binary) and node.op in ("and", "or"):
        sides = product(truths(node.left, bounds_of), truths(node.right, bounds_of))
        return frozenset(all(pair) if node.op == "and" else any(pair) for pair in sides)
    if isinstance(node, Binary) and node.op in COMPARISONS:
        left, right = bounds(node.left, bounds_of), bounds(node.right, bounds_of)
        return _EITHER if left is None or right is None else _compared(node.op, left, right)
    return _EITHER


_EITHER = frozenset({True, False})
_TURNED = {">": "<", ">=": "<="}


def _compared(op: str, left: Bounds, right: Bounds) -> frozenset[bool]:
    if op in _TURNED:
        return _compared(_TURNED[op], right, left)
    if op in ("==", "!="):
        can_be = {left[0] <= right[1] and right[0] <= left[1]} | ({False} if left != right or left[0] != left[1] else set())
        return frozenset(each == (op == "==") for each in can_be)
    return frozenset({bool(apply(op, left[0], right[1])), bool(apply(op, left[1], right[0]))})


def bounds(node: Node, bounds_of: BoundsOf) -> Bounds | None:
    """Between which numbers its value lies."""
    if isinstance(node, Number):
        return node.value, node.value
    if isinstance(node, Negative):
        inner = bounds(node.of, bounds_of)
        return None if inner is None else (-inner[1], -inner[0])
    if isinstance(node, Binary):
        left, right = bounds(node.left, bounds_of), bounds(node.right, bounds_of)
        return None if left is None or right is None or node.op not in ARITHMETIC else _ends(node.op, left, right)
    return bounds_of(node)


def _ends(op: str, left: Bounds, right: Bounds) -> Bounds:
    """Of what grows or shrinks with each of its sides the ends are among those of the corners."""
    if op == "/" and right[0] <= 0 <= right[1]:
        return ANYTHING
    found = [apply(op, *corner) for corner in product(left, right)]
    numbers = [each for each in found if isinstance(each, int | float) and not math.isnan(each)]
    return (min(numbers), max(numbers)) if len(numbers) == len(found) else ANYTHING
