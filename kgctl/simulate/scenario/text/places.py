"""Where something stands in a file, and errors that say so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kgctl import errors

Path = tuple[str | int, ...]
"""The way to a value: keys, and numbers of list entries."""


@dataclass(frozen=True, slots=True)
class Place:
    """Line and column (both from 1) of a file; line 0: not of the file itself, as with ``--set``."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong (or doubtful) at a place. ``rule`` names the linter's rule; "" for errors of the language."""

    place: Place
    path: Path
    message: str
    severity: str = "error"
    rule: str = ""

    def __str__(self) -> str:
        where = path_text(self.path)
        return f"{self.place}: {where + ': ' if where else ''}{self.message}"


class ScenarioError(errors.UsageError):
    """A scenario file is wrong; ``problems`` has each thing that is, with its place."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(str(problems[0]))
        self.problems = tuple(problems)


def path_text(path: Path) -> str:
    """``events[2].at``."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def shown(value: object) -> str:
    """A value as a message names it, in the words of the file: ``'five'``, ``true``, ``a list``, ``nothing``."""
    if isinstance(value, dict | list):
        return f"{'a' if value else 'an empty'} {'mapping' if isinstance(value, dict) else 'list'}"
    if value is None or isinstance(value, bool):
        return "nothing" if value is None else str(value).lower()
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def did_you_mean(word: str, known: Iterable[str], *, list_up_to: int = 0) -> str:
    """``; did you mean 'members'?``, or the whole choice where it is small and nothing is near."""
    choice = list(known)
    is_small = 0 < len(choice) <= list_up_to
    return errors.did_you_mean(word, choice, quoted=True) or (f"; known: {', '.join(choice)}" if is_small else "")
