"""Sorting by ranks against Python's own."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from kgctl.pipeline.decode.arrow import only_used, order_by, ranked, text_column

numbers = st.integers(-3, 3) | st.sampled_from([-(2**61), 2**61, 1_780_000_000_000])
texts = st.none() | st.sampled_from(["", "a", "b", "ab", "é", "\U0001f600", "\uffff"])


@given(st.lists(st.tuples(numbers, numbers, numbers), max_size=12))
def test_rows_by_three_columns(rows: list[tuple[int, int, int]]) -> None:
    columns = [np.array([row[place] for row in rows], np.int64) for place in range(3)]
    assert order_by(columns).tolist() == sorted(range(len(rows)), key=lambda at: rows[at])


@given(st.lists(texts, max_size=8), st.lists(texts, max_size=8), st.booleans())
def test_texts_as_ranks_and_back(first: list[str | None], second: list[str | None], is_plain: bool) -> None:
    chunks = [pa.array(found, pa.string()) for found in (first, second)]
    column = pa.chunked_array(chunks if is_plain else [chunk.dictionary_encode() for chunk in chunks])
    ranks, distinct = ranked(column)
    assert distinct.to_pylist() == sorted({each for each in first + second if each is not None}, key=str.encode)
    back = text_column(ranks, distinct)
    back.validate(full=True)
    assert back.to_pylist() == first + second


@given(st.lists(st.integers(-1, 4), max_size=6))
def test_texts_that_no_row_has_are_left_out(ranks: list[int]) -> None:
    every = pa.array(list("abcde"))
    renumbered, used = only_used(np.array(ranks, np.int64), every)
    assert text_column(renumbered, used).to_pylist() == text_column(np.array(ranks, np.int64), every).to_pylist()
    assert used.to_pylist() == sorted({"abcde"[rank] for rank in ranks if rank >= 0})
