"""RE2/J, the regular expressions of Apache Kafka's coordinator, as a partner for tests; and expressions to ask it about."""

from __future__ import annotations

import base64
import random
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from kgctl.coordinator.re2 import RegexSyntaxError, compiled
from tests.support.maven import compile_java, java_command

SOURCES = Path(__file__).parents[1] / "java" / "regex"


class Re2j:
    """One Java process that answers any number of questions."""

    def __init__(self, classes: str) -> None:
        self._process = subprocess.Popen(
            java_command(classes, "Match"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
        )

    def answer(self, regex: str, names: Sequence[str]) -> str:
        """``0`` or ``1`` a name (1: the whole name matches); or ``!`` and RE2/J's words for what is wrong with ``regex``."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        encoded = base64.b64encode(regex.encode()).decode()
        self._process.stdin.write(" ".join((encoded, *names)) + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().rstrip("\n")

    def close(self) -> None:
        """Ends the process."""
        self._process.communicate()


@pytest.fixture(scope="session")
def re2j() -> Iterator[Re2j]:
    """RE2/J 1.8, one process for the session."""
    classes = compile_java(SOURCES / "pom.xml", sorted(SOURCES.glob("*.java")))
    partner = Re2j(classes)
    try:
        yield partner
    finally:
        partner.close()


def answer(regex: str, names: Sequence[str]) -> str:
    """Our answer in the form of `Re2j.answer`, but ``!`` alone for an expression that is refused."""
    try:
        pattern = compiled(regex)
    except RegexSyntaxError as error:
        return "!too large" if str(error) == "expression too large" else "!"
    return "".join("1" if pattern.matches(name) else "0" for name in names)


_LITERALS = [
    "a",
    "b",
    "A",
    "k",
    "K",
    "s",
    "1",
    "2",
    "9",
    "-",
    "_",
    "orders",
    "x",
    "é",
    "\u017f",
    "\u212a",
    "日",
    " ",
    ",",
    "]",
    "}",
    "\n",
]
_ESCAPES = [*(f"\\{c}" for c in 'dDsSwWbBAzZCQEafnrtvGXRkgce.*+?()[]{}|^$\\-/_ "é'), "\\x41", "\\x{61}", "\\x{110000}", "\\x4"]
_ESCAPES += [
    "\\x",
    "\\x{",
    "\\0",
    "\\01",
    "\\101",
    "\\1",
    "\\12",
    "\\8",
    "\\pL",
    "\\PL",
    "\\p{Lu}",
    "\\p{^Lu}",
    "\\P{^Nd}",
    "\\pN",
]
_ESCAPES += [
    "\\p{Greek}",
    "\\p{Latin}",
    "\\P{Latin}",
    "\\p{Any}",
    "\\p{Foo}",
    "\\pX",
    "\\p{",
    "\\p",
    "\\p{Common}",
    "\\P{Common}",
]
_CLASSES = [
    f"[:{sign}{name}:]" for name in ("alnum", "alpha", "digit", "word", "punct", "xdigit", "upper", "foo") for sign in ("", "^")
]
_REPEATS = [
    "*",
    "+",
    "?",
    "*?",
    "+?",
    "??",
    "{2}",
    "{2,}",
    "{1,3}",
    "{0}",
    "{0,1}",
    "{3,2}",
    "{1001}",
    "{1000}",
    "{,2}",
    "{x}",
    "{2",
]
_REPEATS += ["**", "*+", "{2}{2}", "{02}", "{2}?", "{2,3}?"]
_GROUPS = [
    "(",
    "(?:",
    "(?i:",
    "(?i)",
    "(?s:",
    "(?m:",
    "(?m)",
    "(?-i)",
    "(?i-s:",
    "(?U:",
    "(?P<n>",
    "(?<n>",
    "(?P<m>",
    "(?P<é>",
    "(?P<>",
]
_GROUPS += ["(?P<n", "(?=", "(?!", "(?<=", "(?>", "(?#", "(?z)", "(?i", "(?-)", "(?--i)", "(?P=n)", "(?ii:", "(?P<1>", "(?-i-s:"]
_NAME_PARTS = ["a", "b", "A", "k", "K", "s", "S", "1", "2", "9", "-", "_", ".", "orders", "x", "bb", "ab", "01"]


def random_names(source: random.Random, count: int) -> list[str]:
    """Topic names of one to six parts, of the letters that `random_regex` uses."""
    return ["".join(source.choices(_NAME_PARTS, k=source.randint(1, 6))) for _ in range(count)]


def random_regex(source: random.Random) -> str:
    """An expression of RE2's syntax, now and then a broken one."""
    regex = _alternatives(source, 0)
    for _ in range(source.choices((0, 1, 2), (80, 15, 5))[0]):
        position = source.randrange(len(regex) + 1)
        regex = regex[:position] + source.choice((*_GROUPS, *_ESCAPES, *_REPEATS, *"()[]^-\\|")) + regex[position:]
    return regex


def _alternatives(source: random.Random, depth: int) -> str:
    return "|".join(_sequence(source, depth) for _ in range(source.choices((1, 2, 3), (70, 22, 8))[0]))


def _sequence(source: random.Random, depth: int) -> str:
    return "".join(_repeated(source, depth) for _ in range(source.choices((0, 1, 2, 3, 4, 5), (3, 22, 30, 25, 13, 7))[0]))


def _repeated(source: random.Random, depth: int) -> str:
    makers: list[Callable[[], str]] = [
        lambda: source.choice(_LITERALS),
        lambda: source.choice((".", ".", "^", "$")),
        lambda: source.choice(_ESCAPES),
        lambda: _bracket(source),
        lambda: f"{source.choice(_GROUPS)}{_alternatives(source, depth + 1)})" if depth < 4 else "a",
        lambda: f"\\Q{source.choice(_LITERALS)}{source.choice(('+', '.', '', 'a)'))}\\E",
    ]
    atom = source.choices(makers, (40, 15, 12, 16, 14, 3))[0]()
    return atom + (source.choice(_REPEATS) if source.random() < 0.3 else "")


def _bracket(source: random.Random) -> str:
    items = [_bracket_item(source) for _ in range(source.randint(0, 4))]
    negated, first, last = source.choice(("", "", "^")), source.choice(("", "", "", "]", "-")), source.choice(("", "", "", "-"))
    return f"[{negated}{first}{''.join(items)}{last}]"


def _bracket_item(source: random.Random) -> str:
    item = source.choice((source.choice(_LITERALS), source.choice(_ESCAPES), source.choice(_CLASSES), source.choice("az019A-^")))
    if source.random() < 0.35:
        item += "-" + source.choice(("z", "9", "Z", "b", "\\d", "]", "é", "\\x7a", "-"))
    return item
