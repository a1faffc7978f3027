"""How messages about a scenario name values and guess what was meant."""

from __future__ import annotations

from collections.abc import Iterable

from kgctl import errors


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
