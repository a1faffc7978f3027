"""Seeded randomness: one stream of numbers for each thing that draws; a change of one thing leaves the draws of others alone.

That makes variants of one seed comparable: the same pod boots as long in each.
"""

from __future__ import annotations

from random import Random  # noqa: TID251  # the one place where a run's seed becomes numbers
from uuid import UUID

from kgctl.member.api import Rng


class Randomness:
    """The streams of one seed."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def stream(self, *names: str) -> Rng:
        """A new stream for this name. Python seeds it by SHA-512 of the text: the same on every machine."""
        return Random(f"kgctl/{self._seed}/{'/'.join(names)}")  # noqa: S311  # a simulation, no secret


def draw_uuid(rng: Rng) -> UUID:
    """A random UUID of version 4."""
    return UUID(int=rng.getrandbits(128), version=4)
