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
            raise ExpressionError(f"cannot read {text[at:].strip()[:20]!r}", at + len(text[at:]) - len(text[at:].lstrip()))
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
