"""The fewest moves with unequal subscriptions, held against trying out everything."""

from __future__ import annotations

from itertools import product
from random import Random  # seeded cases

from kgctl.simulate.metrics.movement import Held, fewest_moves


def tried_out(partitions: list[Held], readers: dict[str, list[int]], members: int) -> int:
    best = None
    for choice in product(*(readers[topic] for _, topic in partitions)):
        loads = [choice.count(member) for member in range(members)]
        moved = sum(home != holder for (home, _), holder in zip(partitions, choice, strict=True))
        key = sum(load * load for load in loads), moved
        best = key if best is None else min(best, key)
    assert best is not None
    return best[1]


def test_as_trying_out_everything_finds_it() -> None:
    for seed in range(150):
        rng = Random(seed)
        members = rng.randint(2, 4)
        readers = {topic: sorted(rng.sample(range(members), rng.randint(1, members))) for topic in "abc"}
        partitions = [(rng.randint(-1, members - 1), rng.choice("abc")) for _ in range(rng.randint(1, 7))]
        assert fewest_moves(partitions, readers, members) == tried_out(partitions, readers, members), seed


def test_nobody_reads_a_topic() -> None:
    assert fewest_moves([(0, "gone"), (0, "a")], {"a": [0]}, 1) == 0
