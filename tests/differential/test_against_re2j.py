"""`kgctl.coordinator.re2` and RE2/J 1.8, which Apache Kafka's coordinator uses, asked about the same expressions and names."""

from __future__ import annotations

import random

import pytest

from tests.support.re2j import Re2j, answer, random_names, random_regex


@pytest.mark.parametrize(("seed", "expressions"), [(1, 300), pytest.param(5, 12_000, marks=pytest.mark.deep)])
def test_generated_expressions_match_the_same_names(re2j: Re2j, seed: int, expressions: int) -> None:
    source = random.Random(seed)
    different, refused, too_large = [], 0, 0
    for _ in range(expressions):
        regex, names = random_regex(source), random_names(source, 20)
        theirs, ours = re2j.answer(regex, names), answer(regex, names)
        refused += theirs[0] == "!"
        too_large += ours == "!too large"
        if ours not in (theirs, theirs[0], "!too large"):
            different.append((regex, theirs, ours))

    print(f"{expressions} expressions x 20 names, {refused} refused by both, {too_large} beyond the bound on programs")
    assert different == []
    assert too_large <= expressions // 1_000  # the one difference: 16 MB a program
    assert expressions * 0.3 < expressions - refused
