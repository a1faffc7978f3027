"""A row of the tables of states: one change, and what brings it about."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

S_co = TypeVar("S_co", bound=Enum, covariant=True)


@dataclass(frozen=True, slots=True)
class Transition(Generic[S_co]):
    """From one state to another of the same kind. ``trigger`` is told in the README's diagrams."""

    source: S_co
    target: S_co
    trigger: str
