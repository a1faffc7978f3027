"""Reads an expression by recursive descent: or, and, not, comparison, sum, product, minus, value."""

from __future__ import annotations

from kgctl.simulate.scenario.expressions.names import Names
from kgctl.simulate.scenario.expressions.nodes import (
    COMPARISONS,
    Binary,
    Metric,
    Negative,
    Node,
    Not,
    Number,
    Setting,
    Word,
    is_logical,
)
from kgctl.simulate.scenario.expressions.tokens import KEYWORDS, ExpressionError, Token, tokens_of
from kgctl.simulate.scenario.values.durations import parse_duration
from kgctl.simulate.scenario.values.rates import parse_rate

_BYTES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_PERCENTAGES = ("thrash",)
_DEEPEST = 20


def parse_expression(text: str, names: Names) -> Node:
    """The expression that ``text`` is.

    Raises:
        ExpressionError: it is none, or has a name that stands for nothing here.
    """
    parser = _Parser(tokens_of(text), names)
    node = parser.disjunction()
    parser.expect_end()
    return node


def parse_check(text: str, names: Names) -> Node:
    """An expression that is true or false. Raises `ExpressionError`."""
    node = parse_expression(text, names)
    if not is_logical(node):
        raise ExpressionError("a check compares: write something like max_gap < 15s", 0)
    return node


class _Parser:
    def __init__(self, tokens: list[Token], names: Names) -> None:
        self.tokens = tokens
        self.names = names
        self.next = 0
        self.depth = 0

    def disjunction(self) -> Node:
        return self._logical("or", lambda: self._logical("and", self._negation))

    def expect_end(self) -> None:
        token = self._peek()
        if token.kind != "end":
            raise ExpressionError(f"did not expect {token.text!r} here", token.at)

    def _logical(self, op: str, part: object) -> Node:
        assert callable(part)
        start = self._peek().at
        left: Node = part()
        while self._peek()[:2] == ("name", op):
            self._take()
            right_at = self._peek().at
            right: Node = part()
            for node, at in ((left, start), (right, right_at)):
                if not is_logical(node):
                    raise ExpressionError(f"{op!r} joins comparisons, not numbers", at)
            left = Binary(op, left, right)
        return left

    def _negation(self) -> Node:
        if self._peek()[:2] != ("name", "not"):
            return self._comparison()
        self._take()
        at = self._peek().at
        inner = self._deeper(self._negation)
        if not is_logical(inner):
            raise ExpressionError("'not' stands before a comparison", at)
        return Not(inner)

    def _comparison(self) -> Node:
        left = self._sum()
        token = self._peek()
        if token.kind != "op" or token.text not in COMPARISONS:
            return left
        self._take()
        right = self._sum()
        _check_units(left, right, token.at)
        left, right = _in_percent(left, right), _in_percent(right, left)
        if self._peek().kind == "op" and self._peek().text in COMPARISONS:
            raise ExpressionError("one comparison at a time; join two by 'and'", self._peek().at)
        return Binary(token.text, left, right)

    def _sum(self) -> Node:
        return self._arithmetic(("+", "-"), lambda: self._arithmetic(("*", "/"), self._signed))

    def _arithmetic(self, ops: tuple[str, ...], part: object) -> Node:
        assert callable(part)
        start = self._peek().at
        left: Node = part()
        while self._peek().kind == "op" and self._peek().text in ops:
            op = self._take()
            right: Node = part()
            if is_logical(left) or is_logical(right) or isinstance(left, Word) or isinstance(right, Word):
                raise ExpressionError(f"{op.text!r} takes numbers", start)
            if op.text in ("+", "-"):
                _check_units(left, right, op.at)
            left = Binary(op.text, left, right)
        return left

    def _signed(self) -> Node:
        if self._peek()[:2] == ("op", "-"):
            self._take()
            return Negative(self._deeper(self._signed))
        return self._value()

    def _value(self) -> Node:
        token = self._take()
        if token.kind == "number":
            return _number(token)
        if token.kind == "text":
            return Word(token.text[1:-1])
        if token.kind == "name" and token.text not in KEYWORDS:
            filters = _split(self._take()) if self._peek().kind == "filters" else None
            return self.names.resolve(token.text, filters, token.at)
        if token[:2] == ("op", "("):
            inner = self._deeper(self.disjunction)
            if self._peek()[:2] != ("op", ")"):
                raise ExpressionError("a closing parenthesis is missing", self._peek().at)
            self._take()
            return inner
        what = repr(token.text) if token.text else "the end"
        raise ExpressionError(f"expected a number or a metric, not {what}", token.at)

    def _deeper(self, part: object) -> Node:
        assert callable(part)
        self.depth += 1
        if self.depth > _DEEPEST:
            raise ExpressionError("nested too deeply", self._peek().at)
        node: Node = part()
        self.depth -= 1
        return node

    def _peek(self) -> Token:
        return self.tokens[self.next]

    def _take(self) -> Token:
        token = self.tokens[self.next]
        if token.kind != "end":
            self.next += 1
        return token


def _split(token: Token) -> tuple[str, ...]:
    parts = tuple(" ".join(part.split()) for part in token.text.split(","))
    if "" in parts:
        raise ExpressionError("a filter is empty", token.at)
    return parts


def _number(token: Token) -> Number:
    text = token.text.replace("_", "")
    if text.endswith("%"):
        return Number(float(text[:-1]) / 100, "%")
    if "/" in text:
        return Number(parse_rate(text) / 1_000_000, "/s")
    for unit in sorted(_BYTES, key=len, reverse=True):
        if text.endswith(unit):
            return Number(float(text.removesuffix(unit)) * _BYTES[unit], "B")
    if text[-1].isalpha():
        try:
            return Number(parse_duration(text) / 1_000_000, "s")
        except ValueError as error:
            raise ExpressionError(str(error), token.at) from None
    return Number(float(text) if "." in text else int(text))


def _check_units(left: Node, right: Node, at: int) -> None:
    """A setting in milliseconds beside a number without a unit is nearly always a mistake by a factor of 1000."""
    for one, other in ((left, right), (right, left)):
        is_time = isinstance(one, Setting) and one.name.endswith(".ms")
        if is_time and isinstance(other, Number) and not other.unit and other.value:
            assert isinstance(one, Setting)
            raise ExpressionError(f"{one.name} is a time: give the number a unit, such as {other.value:g}ms", at)


def _in_percent(node: Node, other: Node) -> Node:
    """``thrash`` counts to 100; beside it, 50% is 50."""
    is_share = isinstance(node, Number) and node.unit == "%"
    if is_share and isinstance(other, Metric) and other.name in _PERCENTAGES:
        assert isinstance(node, Number)
        return Number(node.value * 100, "%")
    return node
