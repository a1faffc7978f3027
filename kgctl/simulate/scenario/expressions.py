"""What an expression is made of."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field
from typing import NamedTuple, Protocol, TypeAlias

from kgctl.model.values import frozen_in_order
from kgctl.simulate.scenario.metric import COUNT, PER_CENT, metric_kinds
from kgctl.simulate.scenario.quantities import parse_duration, parse_rate
from kgctl.simulate.scenario.vocabulary import did_you_mean


@frozen_in_order
class Number:
    """A number in the unit of the metrics: seconds, records a second, bytes, shares of 1. ``unit`` says which was written."""

    value: float
    unit: str = ""


@frozen_in_order
class Word:
    """A word that a metric may have as its value, as ``Stable``."""

    text: str


@frozen_in_order
class Metric:
    """A metric, with its filters as they are written; ``variant`` None: of the variant that is looked at."""

    name: str
    filters: tuple[str, ...] = ()
    variant: str | None = None
    at: int = 0


def key_of(metric: Metric) -> str:
    """A metric with its filters, as text: ``unavailable(cause rebalance)``."""
    return f"{metric.name}({', '.join(metric.filters)})" if metric.filters else metric.name


@frozen_in_order
class ScenarioSetting:
    """One of Kafka's settings, as the scenario has it; times are in seconds."""

    name: str
    variant: str | None = None


@frozen_in_order
class Negative:
    """Unary minus."""

    of: Node


@frozen_in_order
class Not:
    """Logical not."""

    of: Node


@frozen_in_order
class Binary:
    """``+ - * /``, a comparison, ``and`` or ``or``."""

    op: str
    left: Node
    right: Node


Node: TypeAlias = "Number | Word | Metric | ScenarioSetting | Negative | Not | Binary"

COMPARISONS = ("<", "<=", "==", "!=", ">=", ">")


def is_logical(node: Node) -> bool:
    """Whether the expression is true or false, rather than a number."""
    return isinstance(node, Not) or (isinstance(node, Binary) and node.op in (*COMPARISONS, "and", "or"))


def _looked_up(node: Node) -> Iterator[Metric | ScenarioSetting]:
    """What the expression names, from left to right."""
    if isinstance(node, Metric | ScenarioSetting):
        yield node
    elif isinstance(node, Negative | Not):
        yield from _looked_up(node.of)
    elif isinstance(node, Binary):
        yield from _looked_up(node.left)
        yield from _looked_up(node.right)


def metrics_of(node: Node) -> tuple[Metric, ...]:
    """Return every metric of the expression, from left to right."""
    return tuple(each for each in _looked_up(node) if isinstance(each, Metric))


def variants_of(node: Node) -> tuple[str, ...]:
    """Return the variants that the expression names, each once."""
    return tuple(dict.fromkeys(each.variant for each in _looked_up(node) if each.variant is not None))


KEYWORDS = ("and", "or", "not")
LONGEST = 2_000


class ExpressionError(ValueError):
    """An expression cannot be read; ``at`` is the column in it, from 0."""

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.at = at


def located(error: ExpressionError, text: str) -> str:
    """The error with its place in the expression; of a long one only what is around."""
    first, last = max(error.at - 40, 0), error.at + 40
    part = f"{'... ' * (first > 0)}{text[first:last]}{' ...' * (last < len(text))}" if len(text) > 100 else text
    return f"{error}, at letter {error.at + 1} of `{part}`"


class Token(NamedTuple):
    """``kind``: number, name, filters, op, text or end. ``filters`` is what stands in parentheses right behind a name."""

    kind: str
    text: str
    at: int


_DURATION = r"(?:\d+(?:\.\d+)?(?:us|ms|s|m|h|d))+"
_TOKEN = re.compile(
    rf"""\s*(?:
      (?P<number>(?:{_DURATION}|\d[\d_]*(?:\.\d+)?(?:%|[kMG]?/(?:sec|s|min|m|h)|(?:[kMG]|[KMG]i)?B)?)(?![\w.]))
    | (?P<name>[A-Za-z_]\w*(?:[.-][A-Za-z0-9_]\w*)*)
    | (?P<op><=|>=|==|!=|[<>+\-*/()])
    | (?P<text>'[^']*'|"[^"]*")
    )""",
    re.VERBOSE,
)


def tokens_of(text: str) -> list[Token]:
    """The words, with an ``end`` at the end.

    Raises:
        ExpressionError: there is something that no word begins with, or the text is longer than 2000 letters.
    """
    if len(text) > LONGEST:
        raise ExpressionError(f"an expression has at most {LONGEST} letters", 0)
    found: list[Token] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            rest = text[at:].lstrip()
            hint = "; two values are compared by ==" if rest.startswith("=") else ""
            raise ExpressionError(f"cannot read {rest.rstrip()[:20]!r}{hint}", len(text) - len(rest))
        kind, at = match.lastgroup, match.end()
        found.append(Token(kind, match.group(kind), match.start(kind)))
        if kind == "name" and text[at : at + 1] == "(" and found[-1].text not in KEYWORDS:
            at = _filters(text, at, found)
    return [*found, Token("end", "", end)]


def _filters(text: str, at: int, found: list[Token]) -> int:
    close = text.find(")", at)
    if close < 0:
        raise ExpressionError("the parenthesis is never closed", at)
    found.append(Token("filters", text[at + 1 : close].strip(), at + 1))
    return close + 1


STATES = ("Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Assigning", "Reconciling")


@frozen_in_order
class Names:
    """The names that are known where an expression stands.

    ``short``: a name that stands for several variants in turn, as a group's does in a file with groups and variants -> these.
    """

    metrics: Collection[str]
    settings: Collection[str]
    variants: tuple[str, ...] = ()
    short: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def spelled_out(self, text: str) -> tuple[str, ...]:
        """Return the expressions that one with short names stands for: one for each variant, or each group; else the text alone.

        ``payments.max_gap < 5s`` is ``old-payments.max_gap < 5s`` and ``new-payments.max_gap < 5s``.

        Raises:
            ExpressionError: it cannot be cut into words.
        """
        names = [token for token in tokens_of(text) if token.kind == "name"] if self.short else []
        heads = [(token.at, *self._head(token.text)) for token in names]
        heads = [(at, head, found) for at, head, found in heads if found]
        many = max((len(found) for _, _, found in heads), default=0)
        if not many or any(len(found) not in (1, many) for _, _, found in heads):
            return (text,)
        chosen = ([(at, head, found[number % len(found)]) for at, head, found in heads] for number in range(many))
        return tuple(_replaced(text, changes) for changes in chosen)

    def _head(self, name: str) -> tuple[str, tuple[str, ...]]:
        first, _, rest = name.partition(".")
        if first in self.variants or name in self.settings or first not in self.short:
            return first, ()
        second = rest.partition(".")[0]
        both = [each for each in self.short[first] if each in self.short.get(second, ())]
        return (f"{first}.{second}", tuple(both)) if both else (first, self.short[first])

    def resolve(self, name: str, filters: tuple[str, ...] | None, at: int) -> Node:
        """What a name stands for.

        Raises:
            ExpressionError: nothing; with what is near.
        """
        head, dot, rest = name.partition(".")
        variant = head if dot and head in self.variants else None
        bare = rest if variant is not None else name
        if bare in self.metrics:
            return Metric(bare, filters or (), variant, at)
        if bare in self.settings and filters is None:
            return ScenarioSetting(bare, variant)
        if name in STATES and filters is None:
            return Word(name)
        raise ExpressionError(self._unknown(name, head if dot else "", rest, bare), at)

    def _unknown(self, name: str, head: str, rest: str, bare: str) -> str:
        if head and rest in self.metrics and bare == name:
            return f"there is no variant {head!r}{did_you_mean(head, self.variants, list_up_to=8)}"
        if "-" in bare and all(part in self.metrics for part in bare.split("-")):
            return f"{name!r} is one name; write spaces around a minus"
        known = [*self.metrics, *STATES] if "." not in bare else [*self.settings, *self.metrics]
        return f"unknown metric {name!r}{did_you_mean(bare, known)}"


def _replaced(text: str, changes: Sequence[tuple[int, str, str]]) -> str:
    """Return the text with other words at some places: (place, the word there, the new one), in order."""
    for at, old, new in reversed(changes):
        text = text[:at] + new + text[at + len(old) :]
    return text


_BYTES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}

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

    def _logical(self, op: str, part: Callable[[], Node]) -> Node:
        start = self._peek().at
        left = part()
        while self._peek()[:2] == ("name", op):
            self._take()
            right_at = self._peek().at
            right = part()
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
        _check_unit_of_metric(left, right, token.at)
        _check_unit_of_metric(right, left, token.at)
        left, right = _in_percent(left, right), _in_percent(right, left)
        if self._peek().kind == "op" and self._peek().text in COMPARISONS:
            raise ExpressionError("one comparison at a time; join two by 'and'", self._peek().at)
        return Binary(token.text, left, right)

    def _sum(self) -> Node:
        return self._arithmetic(("+", "-"), lambda: self._arithmetic(("*", "/"), self._signed))

    def _arithmetic(self, ops: tuple[str, ...], part: Callable[[], Node]) -> Node:
        start = self._peek().at
        left = part()
        while self._peek().kind == "op" and self._peek().text in ops:
            op = self._take()
            right = part()
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

    def _deeper(self, part: Callable[[], Node]) -> Node:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise ExpressionError("nested too deeply", self._peek().at)
        node = part()
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
        if not isinstance(one, ScenarioSetting) or not isinstance(other, Number):
            continue
        if one.name.endswith(".ms") and not other.unit and other.value:
            raise ExpressionError(f"{one.name} is a time: give the number a unit, such as {other.value:g}ms", at)


def _check_unit_of_metric(metric: Node, number: Node, at: int) -> None:
    """Refuse a time beside a count, a share beside a time and the like, which hold or fail whatever happens; and a time that may
    be meant in milliseconds."""
    kind = metric_kinds().get(metric.name) if isinstance(metric, Metric) else None
    if kind is None or kind.unit.symbol is None or not isinstance(number, Number):
        return
    if kind.unit.is_time and not number.unit and number.value:
        raise ExpressionError(f"{kind.name} is a time: give the number a unit, such as {number.value:g}s", at)
    if number.unit in ("", kind.unit.symbol):
        return
    what = "a plain number" if kind.unit is COUNT else f"in {kind.unit.name}"
    raise ExpressionError(f"{kind.name} is {what}, and {number.unit!r} beside it is another unit", at)


def _in_percent(node: Node, other: Node) -> Node:
    """``thrash`` counts to 100; beside it, 50% is 50."""
    kind = metric_kinds().get(other.name) if isinstance(other, Metric) else None
    if kind is not None and kind.unit is PER_CENT and isinstance(node, Number) and node.unit == "%":
        return Number(node.value * 100, "%")
    return node


Value: TypeAlias = "float | str | bool | None"
"""None: there is none (a metric of something that never happened, a division by zero). Nothing holds for it, not ``!=`` and
no ``not``: whether a comparison with it is true is not known either."""


class MetricSource(Protocol):
    """Gives the metrics of one run, unfinished or whole."""

    def metric(self, name: str, filters: Collection[str] = ()) -> float | str | None:
        """Return the value, or None where there is none."""
        ...


class Condition(Protocol):
    """An expression over a run so far (``when:``, ``abort_if:``)."""

    @property
    def text(self) -> str:
        """Return the condition as the file has it."""
        ...

    def holds(self, metrics: MetricSource) -> bool:
        """Return whether the condition is true now."""
        ...


class ValueSource(Protocol):
    """Gives an expression the values of its names."""

    def metric(self, metric: Metric) -> Value:
        """Return the metric's value, or None where it has none."""
        ...

    def setting(self, setting: ScenarioSetting) -> Value:
        """Return the setting's value, times in seconds."""
        ...


ARITHMETIC: Mapping[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
_ORDER: Mapping[str, Callable[[float, float], bool]] = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def evaluate(node: Node, source: ValueSource) -> Value:  # noqa: PLR0911  # one for each kind of node
    """The expression's value. ``and`` and ``or`` look at their right side only where it matters."""
    if isinstance(node, Number):
        return node.value
    if isinstance(node, Word):
        return node.text
    if isinstance(node, Metric):
        return source.metric(node)
    if isinstance(node, ScenarioSetting):
        return source.setting(node)
    if isinstance(node, Not):
        inner = evaluate(node.of, source)
        return None if inner is None else not inner
    if isinstance(node, Negative):
        inner = evaluate(node.of, source)
        return None if inner is None or isinstance(inner, str) else -inner
    return _binary(node, source)


def _binary(node: Binary, source: ValueSource) -> Value:
    left = evaluate(node.left, source)
    decides = {"and": False, "or": True}.get(node.op)
    if decides is not None and left is decides:
        return decides
    right = evaluate(node.right, source)
    if decides is not None:
        return decides if right is decides else None if left is None or right is None else not decides
    return None if left is None or right is None else apply(node.op, left, right)


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
    return ARITHMETIC[op](left, right)
