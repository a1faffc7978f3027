"""Outcomes of simulations, written by hand."""

from __future__ import annotations

from dataclasses import replace

from kgctl.simulate.report.outcome import Expectation, LagSeries, Lane, Mark, Outcome, RunPicture, Segment, Spread, VariantOutcome

SECOND = 1_000_000


def spread(*values: float) -> Spread:
    """A metric that is better when it is smaller."""
    ordered = sorted(values)
    return Spread(ordered[0], ordered[len(ordered) // 2], ordered[-1], ordered[-1], values, ordered[-1])


def segments(*changes: tuple[int, str | tuple[str, ...]]) -> tuple[Segment, ...]:
    """From ``(until second, owner)``: "" or "?cause" for nobody."""
    found, start = [], 0
    for until, owner in changes:
        nobody = isinstance(owner, str) and (not owner or owner.startswith("?"))
        owners = () if nobody else (owner,) if isinstance(owner, str) else owner
        cause = owner[1:] if nobody and isinstance(owner, str) else ""
        found.append(Segment(start * SECOND, until * SECOND, owners, cause))
        start = until
    return tuple(found)


def picture() -> RunPicture:
    """Two partitions, two members, forty seconds: a restart."""
    lanes = (
        Lane("orders", 0, segments((11, "app-0"), (13, "?rebalance"), (25, "app-1"), (26, "?rebalance"), (40, "app-0"))),
        Lane("orders", 1, segments((11, "app-1"), (13, "?rebalance"), (24, "app-1"), (25, ("app-0", "app-1")), (40, "app-1"))),
    )
    lag = (LagSeries("orders", ((0, 0.0), (10 * SECOND, 0.0), (13 * SECOND, 3000.0), (16 * SECOND, 0.0), (40 * SECOND, 0.0))),)
    generations = ((0, 3), (13 * SECOND, 4), (26 * SECOND, 5))
    return RunPicture(1, 0, 40 * SECOND, lanes, (Mark(10 * SECOND, "restart app/0"),), lag, generations=generations)


def outcome() -> Outcome:
    """Two variants, three seeds; everything holds."""
    eager = {
        "rebalances": spread(2, 2, 2),
        "unavailable": spread(401.25, 380.0, 7689.4),
        "max_gap": spread(3.0, 3.2, 3.1),
        "moves": spread(10, 12, 11),
        "moves_min": spread(4, 4, 4),
        "collateral": spread(6400.0, 1.0, 2.0),
        "jain": spread(1.0, 0.99871, 1.0),
    }
    cooperative = {**eager, "unavailable": spread(1.5, 2.25, 1.0), "collateral": spread(0, 0, 0), "moves": spread(4, 4, 4)}
    variants = {
        "eager": VariantOutcome(eager, {"app-0": {"orders": [0, 1]}}, picture()),
        "cooperative": VariantOutcome(cooperative),
    }
    expectations = (
        Expectation("cooperative.collateral == 0", "cooperative", True, 0, 1, note="eager 6,400"),
        Expectation("max_gap < 15s", "eager", True, 3.2, 2),
        Expectation("max_gap < 15s", "cooperative", True, 3.2, 2),
    )
    return Outcome("tiny", "Who waits for a restart?", "0.5.0", "9f3a61c0" * 8, (1, 2, 3), variants, expectations)


def failing() -> Outcome:
    """The same with one expectation that does not hold, and one that warns."""
    held = outcome()
    replay = "kgctl simulate run tiny.yaml --variant eager --seed 2 --check 'max_gap < 3s'   # kgctl 0.5.0, digest 9f3a61c0"
    broken = (
        Expectation("max_gap < 3s", "eager", False, 3.2, 2, replay=replay, note="of orders-0"),
        Expectation("max_gap < 3s", "cooperative", True, 2.5, 1),
        Expectation("moves <= moves_min | spread > 1", "eager", False, 12, 2, severity="warn", replay=replay),
    )
    return replace(held, expectations=(*held.expectations, *broken))
