"""Waiting for several things."""

from __future__ import annotations

from collections.abc import Callable


class Countdown:
    """Calls ``then`` when `one` has been called so many times; for none at once."""

    def __init__(self, number: int, then: Callable[[], None]) -> None:
        self._left = number
        self._then = then
        if not number:
            then()

    def one(self, _: object = None) -> None:
        """One of them has happened."""
        self._left -= 1
        if self._left == 0:
            self._then()
