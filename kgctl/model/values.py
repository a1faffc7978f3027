"""Frozen dataclasses that are as quick to make as others.

The interpreter's own ones set each field by a call, so that a request costs three times as much as it would otherwise, and the
simulator and the coordinator make millions. Here the type checker holds everybody to "nobody changes a field", and nothing is
left to do at run time.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from operator import attrgetter
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def frozen(cls: type[T]) -> type[T]:
    """A dataclass with slots and keyword-only fields, equal and hashed by its fields. Do not change any: mypy says so."""
    return dataclass(slots=True, kw_only=True, unsafe_hash=True)(cls)


@dataclass_transform(frozen_default=True)
def frozen_in_order(cls: type[T]) -> type[T]:
    """Return a dataclass as `frozen` does, but with fields that may be given by position."""
    return dataclass(slots=True, unsafe_hash=True)(cls)


E = TypeVar("E", bound=Enum)


def quick_enum(enum: type[E]) -> type[E]:
    """A decorator: the same class, with ``name``, ``value`` and hashes that need no Python code.

    No member may be named ``name`` or ``value``. Members that are texts or numbers hash as those do, which they are equal to.
    """
    type.__setattr__(enum, "name", property(attrgetter("_name_")))
    type.__setattr__(enum, "value", property(attrgetter("_value_")))
    base = next((kind for kind in (str, int) if kind in enum.__mro__), object)
    type.__setattr__(enum, "__hash__", base.__hash__)
    return enum
