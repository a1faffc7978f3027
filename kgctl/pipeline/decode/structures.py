"""Whether many values are whole, found out in lock step by the tables that kgctl.serde reads one value with.

A step (a field, an element of an array, a tagged field) is taken by all rows at once, and rows that fail fall out. Few rows left
in a long loop are given to kgctl.serde instead, so that one long record does not cost a step for each of its elements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kgctl.pipeline.decode.cells import Bools, Cells, Int64s
from kgctl.serde.record_schema import Array, Blob, Codec, Fixed, Length, Nullable, Structure, Text, UuidBytes

ALONE = 8
"""Up to this many rows are not worth a step."""


class Walk:
    """Where each row stands. ``undecided`` rows are neither whole nor damaged yet: kgctl.serde is to read them."""

    def __init__(self, cells: Cells, starts: Int64s, ends: Int64s) -> None:
        self.cells = cells
        self.at, self.ends = starts.copy(), ends.copy()
        self.damaged: Bools = np.zeros(len(starts), np.bool_)
        self.undecided: Bools = np.zeros(len(starts), np.bool_)

    def keep(self, rows: Int64s, fine: Bools) -> Int64s:
        """``rows`` without those that are damaged."""
        if fine.all():
            return rows
        self.damaged[rows[~fine]] = True
        return rows[fine]

    def step(self, rows: Int64s, sizes: Int64s | int) -> Int64s:
        """Go on by so many bytes, 0 or more."""
        self.at[rows] += sizes
        return self.keep(rows, self.at[rows] <= self.ends[rows])

    def varint(self, rows: Int64s) -> tuple[Int64s, Int64s]:
        """(rows, values)."""
        values, self.at[rows] = self.cells.varints(self.at[rows], self.ends[rows])
        return self.keep(rows, values >= 0), values[values >= 0]

    def few(self, rows: Int64s) -> bool:
        """Whether so few rows are left that they are given up here."""
        if len(rows) > ALONE:
            return False
        self.undecided[rows] = True
        return True


def walk(cells: Cells, starts: Int64s, ends: Int64s, structure: Structure) -> tuple[Bools, Bools]:
    """(damaged, undecided) of the structures that begin at ``starts``. Bytes behind one do not matter."""
    found, rows = Walk(cells, starts, ends), np.arange(len(starts))
    if not found.few(rows):
        _skip(found, rows, structure)
    return found.damaged, found.undecided


def _skip(found: Walk, rows: Int64s, codec: Codec) -> Int64s:
    """Go over one value in each row; the rows that are still fine and decided."""
    return _SKIP[type(codec)](found, rows, codec) if len(rows) else rows


def _fixed(found: Walk, rows: Int64s, codec: Fixed | UuidBytes) -> Int64s:
    return found.step(rows, codec.size)


def _length(found: Walk, rows: Int64s, codec: Length) -> tuple[Int64s, Int64s]:
    if codec.flexible:
        rows, values = found.varint(rows)
        return rows, values - 1
    rows = found.step(rows, codec.plain.size)
    at = found.at[rows] - codec.plain.size
    return rows, (found.cells.int16s(at) if codec.plain.size == 2 else found.cells.int32s(at)).astype(np.int64)


def _text(found: Walk, rows: Int64s, codec: Text) -> Int64s:
    rows, sizes = _length(found, rows, codec.length)
    rows, sizes = _sized(found, rows, sizes, lowest=-1 if codec.nullable else 0)
    begins = found.at[rows] - sizes
    return found.keep(rows, found.cells.texts(begins, sizes)[1])


def _blob(found: Walk, rows: Int64s, codec: Blob) -> Int64s:
    return _sized(found, *_length(found, rows, codec.length), lowest=0)[0]


def _sized(found: Walk, rows: Int64s, sizes: Int64s, *, lowest: int) -> tuple[Int64s, Int64s]:
    """Go over so many bytes; -1, where allowed, is null and none."""
    fine = (sizes >= lowest) & (found.at[rows] + np.maximum(sizes, 0) <= found.ends[rows])
    sizes = np.maximum(sizes[fine], 0)
    rows = found.keep(rows, fine)
    return found.step(rows, sizes), sizes


def _array(found: Walk, rows: Int64s, codec: Array) -> Int64s:
    rows, counts = _length(found, rows, codec.length)
    fine = (counts >= -1) & (counts <= found.ends[rows] - found.at[rows])
    rows, counts = found.keep(rows, fine), counts[fine]
    if isinstance(codec.element, Fixed | UuidBytes):
        return found.step(rows, np.maximum(counts, 0) * codec.element.size)
    return _repeat(found, rows, counts, lambda going: _skip(found, going, codec.element))


def _repeat(found: Walk, rows: Int64s, counts: Int64s, one: Callable[[Int64s], Int64s]) -> Int64s:
    """Do ``one`` as often as each row's count says."""
    left = np.zeros(len(found.at), np.int64)
    left[rows] = counts
    going = rows[counts > 0]
    while len(going) and not found.few(going):
        left[going] -= 1
        one(going)
        going = going[(left[going] > 0) & ~found.damaged[going] & ~found.undecided[going]]
    return rows[~found.damaged[rows] & ~found.undecided[rows]]


def _structure(found: Walk, rows: Int64s, codec: Structure) -> Int64s:
    for _, field in codec.plain:
        rows = _skip(found, rows, field)
    if not codec.flexible or not len(rows):
        return rows
    rows, counts = found.varint(rows)
    return _repeat(found, rows, counts, lambda going: _tagged_field(found, going, codec))


def _tagged_field(found: Walk, rows: Int64s, codec: Structure) -> Int64s:
    rows, tags = found.varint(rows)
    tag_of = np.zeros(len(found.at), np.int64)
    tag_of[rows] = tags
    rows, sizes = found.varint(rows)
    behind = found.at[rows] + sizes
    fine = behind <= found.ends[rows]
    rows, behind = found.keep(rows, fine), behind[fine]
    for tag, (_, field) in codec.tagged.items():
        of_tag = tag_of[rows] == tag
        _inside(found, rows[of_tag], behind[of_tag], field)
    found.at[rows] = behind
    return rows


def _inside(found: Walk, rows: Int64s, behind: Int64s, codec: Codec) -> None:
    """A tagged field's value, which ends before ``behind``."""
    ends = found.ends[rows]
    found.ends[rows] = behind
    _skip(found, rows, codec)
    found.ends[rows] = ends


def _nullable(found: Walk, rows: Int64s, codec: Nullable) -> Int64s:
    rows, values = found.varint(rows)
    _skip(found, rows[values > 0], codec.structure)
    return rows[~found.damaged[rows] & ~found.undecided[rows]]


_SKIP: dict[type, Callable[[Walk, Int64s, Any], Int64s]] = {
    Fixed: _fixed,
    UuidBytes: _fixed,
    Text: _text,
    Blob: _blob,
    Array: _array,
    Structure: _structure,
    Nullable: _nullable,
}
