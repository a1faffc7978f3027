"""RE2's syntax: text becomes a tree, or `RegexSyntaxError` says what is wrong with it.

What RE2 leaves out for the sake of linear time (back references, look-around, possessive and atomic groups) is an error here
too. See https://github.com/google/re2/wiki/Syntax; where implementations differ, Kafka's (re2j) counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from kgctl.coordinator.regex import characters
from kgctl.coordinator.regex.escapes import Escape, Scanner, parse_class_escape, parse_literal_escape

MAX_REPEAT = 1000
MAX_DEPTH = 200


class RegexSyntaxError(ValueError):
    """The text is no expression of RE2's."""


class Assertion(Enum):
    """Something that holds between two characters."""

    BEGIN_TEXT = "begin of text"
    END_TEXT = "end of text"
    BEGIN_LINE = "begin of line"
    END_LINE = "end of line"
    WORD_BOUNDARY = "word boundary"
    NO_WORD_BOUNDARY = "no word boundary"


@dataclass(frozen=True, slots=True)
class Characters:
    """One character of a class."""

    mask: int


@dataclass(frozen=True, slots=True)
class Sequence:
    """One part after the other; without parts: the empty text."""

    parts: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several."""

    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """From ``low`` to ``high`` times (None: without end)."""

    node: Node
    low: int
    high: int | None
    weight: int
    """How many copies of something a program of this has at most."""


Node = Characters | Sequence | Choice | Repeat | Assertion


@dataclass(slots=True)
class _Flags:
    ignore_case: bool = False
    multi_line: bool = False
    dot_all: bool = False

    def copy(self) -> _Flags:
        return _Flags(self.ignore_case, self.multi_line, self.dot_all)


@dataclass(slots=True)
class _Group:
    """An open group: the options that are complete, the parts of the one under way, and the flags to go back to."""

    outer_flags: _Flags
    options: list[Node] = field(default_factory=list)
    parts: list[Node] = field(default_factory=list)
    last_is_repeat: bool = False

    def close(self) -> Node:
        self.options.append(Sequence(tuple(self.parts)))
        return self.options[0] if len(self.options) == 1 else Choice(tuple(self.options))


def parse(regex: str) -> Node:
    """The tree of an expression. Raises `RegexSyntaxError`."""
    return _Parser(regex).parse()


class _Parser:
    """Left to right with a stack of open groups; nothing recurses, however deep the text nests."""

    def __init__(self, regex: str) -> None:
        self.scanner = Scanner(regex)
        self.flags = _Flags()
        self.groups = [_Group(self.flags)]
        self.names: set[str] = set()

    def parse(self) -> Node:
        scanner = self.scanner
        while not scanner.at_end:
            if scanner.take("\\Q"):
                self._quoted()
            else:
                self._token()
        if len(self.groups) > 1:
            raise RegexSyntaxError("missing closing )")
        return self.groups[0].close()

    def _token(self) -> None:
        character = self.scanner.next()
        group = self.groups[-1]
        if character == "(":
            self._open()
        elif character == ")":
            self._close()
        elif character == "|":
            group.options.append(Sequence(tuple(group.parts)))
            group.parts.clear()
            group.last_is_repeat = False
        elif character in "*+?":
            self._repeat(*_OPERATORS[character])
        elif character == "{" and (bounds := self.scanner.repeat_bounds()) is not None:
            self._repeat(*bounds)
        else:
            self._add(self._atom(character))

    def _add(self, node: Node) -> None:
        self.groups[-1].parts.append(node)
        self.groups[-1].last_is_repeat = False

    def _characters(self, mask: int) -> Characters:
        return Characters(characters.fold_case(mask) if self.flags.ignore_case else mask)

    def _atom(self, character: str) -> Node:
        if character == ".":
            return Characters(characters.ANY if self.flags.dot_all else characters.ANY & ~characters.NEWLINE)
        if character == "^":
            return Assertion.BEGIN_LINE if self.flags.multi_line else Assertion.BEGIN_TEXT
        if character == "$":
            return Assertion.END_LINE if self.flags.multi_line else Assertion.END_TEXT
        if character == "[":
            return Characters(self._bracket())
        if character == "\\":
            return self._escape()
        return self._characters(characters.single(ord(character)))

    def _escape(self) -> Node:
        simple = {"A": Assertion.BEGIN_TEXT, "z": Assertion.END_TEXT}
        simple |= {"b": Assertion.WORD_BOUNDARY, "B": Assertion.NO_WORD_BOUNDARY}
        if self.scanner.peek() in simple:
            return simple[self.scanner.next()]
        mask = _checked(parse_class_escape(self.scanner))
        if mask is not None:
            return Characters(mask)
        code = _checked(parse_literal_escape(self.scanner))
        assert code is not None
        return self._characters(characters.single(code))

    def _quoted(self) -> None:
        text = self.scanner.until("\\E")
        for character in text:
            self._add(self._characters(characters.single(ord(character))))

    def _repeat(self, low: int, high: int | None) -> None:
        group = self.groups[-1]
        if not group.parts:
            raise RegexSyntaxError("missing argument to repetition operator")
        if group.last_is_repeat:
            raise RegexSyntaxError("invalid nested repetition operator")
        self.scanner.take("?")  # lazy or greedy: the same texts match
        if max(low, high or 0) > MAX_REPEAT or (high is not None and low > high):
            raise RegexSyntaxError("invalid repeat count")
        node = group.parts.pop()
        weight = weight_of(node) * max(low, high or 0, 1)
        if weight > MAX_REPEAT:
            raise RegexSyntaxError("invalid repeat count")
        self._add(Repeat(node, low, high, weight))
        group.last_is_repeat = True

    def _open(self) -> None:
        if len(self.groups) > MAX_DEPTH:
            raise RegexSyntaxError("expression nests too deeply")
        outer = self.flags
        if self.scanner.take("?") and not self._group_option():
            return
        self.groups.append(_Group(outer))
        if self.flags is outer:
            self.flags = outer.copy()

    def _group_option(self) -> bool:
        """What follows ``(?``; False when it is only flags for the rest of the group around."""
        if self.scanner.take("P<") or self.scanner.take("<"):
            self._name()
            return True
        flags, sign, seen = self.flags.copy(), True, False
        while True:
            character = self.scanner.next_or(")" if self.scanner.at_end else None)
            if character in _FLAG_NAMES:
                setattr(flags, _FLAG_NAMES[character], sign)
                seen = True
            elif character == "U":
                seen = True  # swaps greedy and lazy
            elif character == "-" and sign:
                sign, seen = False, False
            elif character in ":)" and (seen or sign) and not (self.scanner.at_end and character != ")"):
                break
            else:
                raise RegexSyntaxError("invalid or unsupported Perl syntax")
        if character == ")":
            if self.scanner.ran_out:
                raise RegexSyntaxError("missing argument to (?")
            self.flags = flags
            return False
        self.flags = flags
        return True

    def _name(self) -> None:
        name = self.scanner.until(">")
        if self.scanner.ran_out or not name or not all(c.isascii() and (c.isalnum() or c == "_") for c in name):
            raise RegexSyntaxError("invalid named capture")
        if name in self.names:
            raise RegexSyntaxError("duplicate capture group name")
        self.names.add(name)

    def _close(self) -> None:
        if len(self.groups) == 1:
            raise RegexSyntaxError("unexpected )")
        group = self.groups.pop()
        self.flags = group.outer_flags
        self._add(group.close())

    def _bracket(self) -> int:
        """A class in brackets, after the opening one."""
        scanner, mask = self.scanner, 0
        negated = scanner.take("^")
        is_first = True
        while is_first or scanner.peek() != "]":
            if scanner.at_end:
                raise RegexSyntaxError("missing closing ]")
            if not is_first and self._is_lone_hyphen():
                raise RegexSyntaxError("invalid character class range")
            mask |= self._bracket_item()
            is_first = False
        scanner.next()
        return characters.ANY & ~mask if negated else mask

    def _is_lone_hyphen(self) -> bool:
        """Whether a range without begin comes, as in ``[a-b-c]``: only at the ends a hyphen stands for itself."""
        ahead = self.scanner.peek(1)
        return self.scanner.peek() == "-" and ahead not in ("]", "") and (ahead != "-" or not self.scanner.peek(2))

    def _bracket_item(self) -> int:
        scanner = self.scanner
        if scanner.take("[:"):
            name = scanner.until(":]")
            positive = characters.POSIX.get(name.removeprefix("^"))
            if positive is None or scanner.ran_out:
                raise RegexSyntaxError("invalid character class range")
            mask = positive if not name.startswith("^") else characters.ANY & ~positive
            return self._characters(mask).mask
        if scanner.take("\\"):
            found = _checked(parse_class_escape(scanner))
            if found is not None:
                return found
            first = _checked(parse_literal_escape(scanner))
        else:
            first = ord(scanner.next())
        assert first is not None
        last = self._range_end(first)
        return self._characters(characters.span(first, last)).mask

    def _range_end(self, first: int) -> int:
        scanner = self.scanner
        if scanner.peek() != "-" or scanner.peek(1) in ("]", ""):
            return first
        scanner.next()
        last = _checked(parse_literal_escape(scanner)) if scanner.take("\\") else ord(scanner.next())
        if last is None or last < first:
            raise RegexSyntaxError("invalid character class range")
        return last


_OPERATORS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_FLAG_NAMES = {"i": "ignore_case", "m": "multi_line", "s": "dot_all"}


def _checked(escape: Escape) -> int | None:
    if escape.problem is not None:
        raise RegexSyntaxError(escape.problem)
    return escape.value


def weight_of(node: Node) -> int:
    """How many copies of something the program of a node has at most; RE2 limits it to 1000."""
    if isinstance(node, Repeat):
        return node.weight
    if isinstance(node, Sequence):
        return max((weight_of(part) for part in node.parts), default=1)
    return max(weight_of(option) for option in node.options) if isinstance(node, Choice) else 1
