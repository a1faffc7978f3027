"""Which records are bad."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kgctl.model.groups import TopicPartition
from kgctl.simulate.engine.context import Randomness
from kgctl.simulate.engine.share.poison import Poison


def poison(share_ppm: int, seed: int = 1) -> Poison:
    context: Any = SimpleNamespace(
        scenario=SimpleNamespace(topics=(SimpleNamespace(name="t", poison_ppm=share_ppm),)),
        ledger=SimpleNamespace(topic=["t"]),
        partitions=SimpleNamespace(names=[TopicPartition("t", 0)]),
        randomness=Randomness(seed),
    )
    return Poison(context)


def test_none_are_bad_but_those_that_were_said_to_be() -> None:
    found = poison(0)
    for offset in (7, 3, 7):
        found.add(0, offset)
    assert found.within(0, 0, 100) == [3, 7]
    assert (found.within(0, 4, 6), found.first(0, 4, 7), found.first(0, 8, 9)) == ([], 7, None)


def test_as_many_are_bad_as_the_topic_says() -> None:
    assert len(poison(100_000).within(0, 0, 99_999)) == pytest.approx(10_000, rel=0.05)
    assert poison(1_000_000).within(0, 5, 8) == [5, 6, 7, 8]


def test_the_same_are_bad_however_they_are_looked_at() -> None:
    whole, parts = poison(50_000), poison(50_000)
    assert [bad for first in range(0, 1_000, 10) for bad in parts.within(0, first, first + 9)] == whole.within(0, 0, 999)
    assert whole.within(0, 0, 999) != poison(50_000, seed=2).within(0, 0, 999)
