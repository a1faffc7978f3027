"""An expression cut into its words. A name may have dots and hyphens inside: ``as-is.max_gap``, ``session.timeout.ms``."""

from __future__ import annotations

import re
from typing import NamedTuple

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
