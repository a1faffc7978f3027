"""Enums whose members are as cheap as other objects.

The interpreter runs Python code whenever a member is hashed or tells its name or value, which adds up in the inner loops of the
coordinator, where members are keys.
"""

from __future__ import annotations

from enum import Enum
from operator import attrgetter
from typing import TypeVar

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
