"""Reading an expression's text: a cursor, and what may follow a backslash."""

from __future__ import annotations

from dataclasses import dataclass

from kgctl.coordinator.regex import characters

_CONTROL = {"a": 7, "f": 12, "t": 9, "n": 10, "r": 13, "v": 11}
_MAX_CODE_POINT = 0x10FFFF


class Scanner:
    """A cursor over the text. ``ran_out`` is set when something that had to come did not."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self.ran_out = False

    @property
    def at_end(self) -> bool:
        """Whether everything is read."""
        return self._position >= len(self._text)

    def peek(self, ahead: int = 0) -> str:
        """The next character, or one further on; "" past the end."""
        position = self._position + ahead
        return self._text[position] if position < len(self._text) else ""

    def next(self) -> str:
        """Take the next character; "\\0" and ``ran_out`` past the end."""
        return self.next_or(None)

    def next_or(self, missing: str | None) -> str:
        """Take the next character, or ``missing`` past the end."""
        if self.at_end:
            self.ran_out = True
            return "\0" if missing is None else missing
        self._position += 1
        return self._text[self._position - 1]

    def take(self, expected: str) -> bool:
        """Take this text if it comes next."""
        if not self._text.startswith(expected, self._position):
            return False
        self._position += len(expected)
        return True

    def until(self, end: str) -> str:
        """Take everything up to ``end``, which is taken as well; all of the rest, and ``ran_out``, if it does not come."""
        found = self._text.find(end, self._position)
        start, self.ran_out = self._position, found < 0
        self._position = len(self._text) if found < 0 else found + len(end)
        return self._text[start : len(self._text) if found < 0 else found]

    def repeat_bounds(self) -> tuple[int, int | None] | None:
        """After a brace: ``n}``, ``n,}`` or ``n,m}``. For anything else None, and nothing is taken: the brace is a character."""
        start = self._position
        low = self._number()
        high: int | None = low
        if low is not None and self.take(","):
            high = None if self.peek() == "}" else self._number()
            if high is None and self.peek() != "}":
                low = None
        if low is None or not self.take("}"):
            self._position = start
            return None
        return low, high

    def _number(self) -> int | None:
        digits = ""
        while self.peek().isdecimal() and self.peek().isascii():
            digits += self.next()
        if not digits or (len(digits) > 1 and digits[0] == "0"):
            return None
        return min(int(digits[:9]), 1_000_000)


@dataclass(frozen=True, slots=True)
class Escape:
    """A class or a code point; None for "not one of these"; or a problem."""

    value: int | None = None
    problem: str | None = None


def parse_class_escape(scanner: Scanner) -> Escape:
    """After a backslash: ``d``, ``S``, ``pN``, ``P{Greek}`` and so on. Nothing is taken if it is no class."""
    letter = scanner.peek()
    if letter and letter.lower() in characters.PERL:
        scanner.next()
        mask = characters.PERL[letter.lower()]
        return Escape(mask if letter.islower() else characters.ANY & ~mask)
    if letter not in ("p", "P"):
        return Escape()
    scanner.next()
    name = scanner.until("}") if scanner.take("{") else scanner.next()
    negated = (letter == "P") != name.startswith("^")
    found = None if scanner.ran_out else characters.unicode_class(name.removeprefix("^"))
    if found is None:
        return Escape(problem="invalid character class range")
    return Escape(characters.ANY & ~found if negated else found)


def parse_literal_escape(scanner: Scanner) -> Escape:
    """After a backslash: a character that stands for itself, or for a control character, or a code in octal or hex."""
    letter = scanner.next()
    if scanner.ran_out:
        return Escape(problem="trailing backslash at end of expression")
    if letter in _CONTROL:
        return Escape(_CONTROL[letter])
    if letter == "x":
        return _hexadecimal(scanner)
    if "0" <= letter <= "7" and (letter == "0" or "0" <= scanner.peek() <= "7"):
        digits = letter
        while len(digits) < 3 and "0" <= scanner.peek() <= "7":
            digits += scanner.next()
        return Escape(int(digits, 8))
    if letter.isascii() and not letter.isalnum():
        return Escape(ord(letter))
    return Escape(problem=f"invalid escape sequence: \\{letter}")


def _hexadecimal(scanner: Scanner) -> Escape:
    digits = scanner.until("}") if scanner.take("{") else scanner.next() + scanner.next()
    problem = scanner.ran_out or not digits or any(digit not in "0123456789abcdefABCDEF" for digit in digits)
    code = -1 if problem else int(digits, 16)
    if not 0 <= code <= _MAX_CODE_POINT:
        return Escape(problem="invalid escape sequence: \\x")
    return Escape(code)
