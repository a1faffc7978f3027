"""Which parameters of a grid change anything at all."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import cast

import pytest

from kgctl.simulate.sweep.holding import idle_axes
from kgctl.simulate.sweep.plan import Axis, RunRow, Sweep, points_of

AXES = (Axis("a", ("1", "2")), Axis("b", ("x", "y")))
GRID = cast("Sweep", SimpleNamespace(axes=AXES, points=lambda: points_of(AXES)))


def rows(digests: str, lags: Sequence[int] = (0, 0, 0, 0)) -> list[RunRow]:
    told = enumerate(zip(digests, lags, strict=True))
    return [RunRow(number=n, variant="v", seed=1, digest=digest, metrics={"lag": lag}) for n, (digest, lag) in told]


@pytest.mark.parametrize(
    ("digests", "lags", "idle"),
    [
        ("pppp", (0, 0, 0, 0), ["a", "b"]),
        ("pqpq", (0, 0, 0, 0), ["a"]),
        ("ppqq", (0, 0, 0, 0), ["b"]),
        ("pppq", (0, 0, 0, 0), []),
        ("pppp", (0, 3, 0, 3), ["a"]),
    ],
)
def test_a_parameter_is_idle_with_which_every_run_is_the_same(digests: str, lags: Sequence[int], idle: list[str]) -> None:
    assert [*idle_axes(GRID, rows(digests, lags))] == idle


def test_of_one_value_alone_nothing_is_said() -> None:
    assert [*idle_axes(GRID, rows("pppp")[:1])] == []
    assert [*idle_axes(GRID, [])] == []
