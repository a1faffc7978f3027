"""How a build is cut: every record is in one portion, in the order of the log."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgctl.pipeline.builds import cut
from kgctl.pipeline.builds.cut import Extent, portions_of, slices_of


def extents() -> st.SearchStrategy[list[Extent]]:
    one = st.tuples(st.integers(0, 3), st.integers(0, 40), st.integers(0, 30), st.integers(1, 31))
    return st.lists(one, min_size=1, max_size=6).map(
        lambda found: [
            Extent(str(number), partition, low, low + width, min(rows, width + 1))
            for number, (partition, low, width, rows) in enumerate(found)
        ]
    )


@given(extents())
def test_every_record_is_in_one_portion_and_none_behind_a_later_one(found: list[Extent]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cut, "PORTION_ROWS", 10)
        slices = slices_of(found, 4, 0)
        portions = {each: portions_of(found, each) for each in slices}

    assert [number for each in slices for number in range(*each)] == [0, 1, 2, 3]
    expected = sorted((each.path, offset) for each in found for offset in range(each.low, each.high + 1))
    parts = [part for many in portions.values() for portion in many for part in portion]
    assert sorted((part.path, offset) for part in parts for offset in range(part.low, part.high + 1)) == expected
    assert sum(part.rows for part in parts) == sum(each.rows for each in found)
    for many in portions.values():
        ends = [(max(part.high for part in portion), min(part.low for part in portion)) for portion in many]
        assert all(high < low for (high, _), (_, low) in pairwise(ends))
