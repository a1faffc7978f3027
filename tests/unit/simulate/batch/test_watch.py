"""always, eventually and steady, moment by moment."""

from __future__ import annotations

from typing import Any

import pytest

from kgctl.simulate.batch.judge import watchers_for
from kgctl.simulate.recording.trace import Happened
from kgctl.simulate.scenario.checks import CheckReader
from kgctl.simulate.scenario.expressions import Names
from kgctl.yaml_files import Tree

S = 1_000_000


class Now:
    """A run in which ``lag`` has one value."""

    def __init__(self, lag: float) -> None:
        self.lag = lag

    def metric(self, name: str, filters: tuple[str, ...]) -> float:
        return self.lag


def watched(entry: dict[str, Any], steps: list[Any], end_s: int = 100) -> tuple[bool, Any, int | None]:
    """``steps``: (second, lag), or an event that ends."""
    problems: list[Any] = []
    tree = Tree("f", {"expect": [entry]})
    checks = CheckReader(tree, Names(("lag",), ()), problems, ("deploy",)).read()
    assert problems == []
    watcher = watchers_for(checks, "default", {})[0]
    lag = 0.0
    for at_s, what in steps:
        if isinstance(what, str):
            watcher.on_trace(Happened(at_s * S, what, "ends", "app"))
        else:
            lag = what
            watcher.on_step(at_s * S, Now(lag))
    found = watcher.result(end_s * S, Now(lag))
    return found.passed, found.observed, None if found.at_us is None else found.at_us // S


@pytest.mark.parametrize(
    ("entry", "steps", "expected"),
    [
        ({"always": "lag < 5"}, [(1, 2), (9, 4)], (True, 4, None)),
        ({"always": "lag < 5"}, [(-3, 9), (1, 2), (7, 6), (9, 4)], (False, 6, 7)),
        ({"eventually": "lag < 5"}, [(1, 9), (50, 2)], (True, 2, 50)),
        ({"eventually": "lag < 5", "within": "20s"}, [(1, 9), (50, 2)], (False, 2, None)),
        ({"eventually": "lag < 5", "after": "10s", "within": "20s"}, [(1, 2), (20, 9)], (True, 9, 10)),
        ({"eventually": "lag < 5", "after": "10s", "within": "20s"}, [(1, 2), (5, 9), (25, 1)], (True, 1, 25)),
        (
            {"eventually": "lag < 5", "after": "deploy", "within": "20s"},
            [(1, 2), (30, "deploy"), (30, 9), (51, 2)],
            (False, 2, None),
        ),
        (
            {"eventually": "lag < 5", "after": "last", "within": "20s"},
            [(1, "x"), (1, 2), (30, "y"), (30, 9), (50, 2)],
            (True, 2, 50),
        ),
        ({"eventually": "lag < 5", "after": "deploy"}, [(1, 2)], (False, 2, None)),
        ({"steady": "lag", "within": "5%", "last": "50s"}, [(0, 9), (40, 100), (70, 104)], (True, 0.0234, None)),
        ({"steady": "lag", "within": "1%", "last": "50s"}, [(0, 9), (40, 100), (70, 104)], (False, 0.0234, None)),
        ({"steady": "lag"}, [(0, 0)], (True, 0, None)),
    ],
)
def test_watcher_decides(entry: dict[str, Any], steps: list[Any], expected: tuple[Any, ...]) -> None:
    passed, observed, at_s = watched(entry, steps)
    assert (passed, round(observed, 3), at_s) == (expected[0], round(expected[1], 3), expected[2])
