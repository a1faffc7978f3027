"""Fewer points for a screen, without hiding anything that stands out: every point that is kept was there."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    Int64s: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
    Bools: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]


def extremes(values: Int64s, is_known: Bools, most: int) -> Int64s:
    """Which points to draw, ascending: all, or of each of ``most / 4`` stretches the first, the last, the highest and the lowest.

    Points of unknown value count as the lowest, so that a gap is not drawn over.
    """
    size = len(values)
    if size <= most:
        return np.arange(size)
    shown = np.where(is_known, values, -1)
    bounds = np.linspace(0, size, most // 4 + 1).astype(np.int64)
    kept = [bounds[:-1], bounds[1:] - 1]
    for begin, end in pairwise(bounds.tolist()):
        stretch = shown[begin:end]
        kept.append(np.array([begin + stretch.argmax(), begin + stretch.argmin()]))
    return np.unique(np.concatenate(kept))
