"""The value of an expression, given where its metrics and settings come from."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

from kgctl.simulate.scenario.expressions.nodes import Binary, Metric, Negative, Node, Not, Number, Setting, Word

Value: TypeAlias = "float | str | bool | None"
"""None: there is none (a metric of something that never happened, a division by zero). Nothing holds for it, also not ``!=``."""


class Source(Protocol):
    """Where the values of names come from."""

    def metric(self, metric: Metric) -> Value:
        """The metric's value; None where it has none."""
        ...

    def setting(self, setting: Setting) -> Value:
        """The setting's value, times in seconds."""
        ...


_ARITHMETIC: Mapping[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
_ORDER: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def evaluate(node: Node, source: Source) -> Value:  # noqa: PLR0911  # one for each kind of node
    """The expression's value. ``and`` and ``or`` look at their right side only where it matters."""
    if isinstance(node, Number):
        return node.value
    if isinstance(node, Word):
        return node.text
    if isinstance(node, Metric):
        return source.metric(node)
    if isinstance(node, Setting):
        return source.setting(node)
    if isinstance(node, Not):
        return not evaluate(node.of, source)
    if isinstance(node, Negative):
        inner = evaluate(node.of, source)
        return None if inner is None or isinstance(inner, str) else -inner
    return _binary(node, source)


def _binary(node: Binary, source: Source) -> Value:
    left = evaluate(node.left, source)
    if node.op == "and" and not left:
        return False
    if node.op == "or" and left:
        return True
    right = evaluate(node.right, source)
    if node.op in ("and", "or"):
        return bool(right)
    if left is None or right is None:
        return None if node.op in _ARITHMETIC else False
    return apply(node.op, left, right)


def apply(op: str, left: float | str, right: float | str) -> Value:
    """``left op right`` of two values that are there."""
    if op in ("==", "!="):
        return (left == right) == (op == "==")
    if isinstance(left, str) or isinstance(right, str):
        return False if op in _ORDER else None
    if op in _ORDER:
        return _ORDER[op](left, right)
    if op == "/" and right == 0:
        return None
    return _ARITHMETIC[op](left, right)
