"""The fewest moves, where not all members subscribe to the same topics."""

from __future__ import annotations

import pytest

from kgctl.simulate.metrics.result import run
from kgctl.simulate.scenario.load import load
from kgctl.yaml_files import read_yaml

FILE = """
kgctl: 1
name: unequal
duration: 120s
topics: {a: 2, b: 12}
members:
  x: {count: 2, subscribe: [a, b]}
  y: {count: 2, subscribe: [TOPICS]}
events:
  - {at: 20s, scale: x, to: 3}
"""


@pytest.mark.parametrize(("topics", "fewest"), [("a, b", 2), ("b", None)])
def test_they_are_known_where_all_read_the_same(topics: str, fewest: int | None) -> None:
    """Else more than quotas keep partitions where they are: a number would be a guess."""
    found = run(load(read_yaml(FILE.replace("TOPICS", topics), "f")).variants[0].scenario, 1)

    assert (found.metric("moves_min"), found.metric("excess_moves") is None) == (fewest, fewest is None)
