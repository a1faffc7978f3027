"""A small sweep for tests: a crash, with a slow and a quick session timeout."""

from __future__ import annotations

from functools import partial

from kgctl.pipeline.engines import LocalEngine
from kgctl.simulate.scenario.load import DEFAULT, load
from kgctl.simulate.sweep.plan import RowLayout, RunRow, Sweep, axes_of, blocks_of, run_block
from kgctl.yaml_files import read_yaml

FILE = """\
kgctl: 1
name: crash
topics: {orders: 4}
members: {app: {count: 2}}
warmup: 30s
events: [{at: 0s, crash: app/1, for: 90s}]
variants: {slow: {group: {config: {session.timeout.ms: 45s}}}, quick: {group: {config: {session.timeout.ms: 10s}}}}
expect: [max_gap < 30s, {check: max_gap < 1s, severity: warn}]
"""


def sweep_of(*settings: str, seeds: tuple[int, ...] = (1, 2)) -> Sweep:
    """A sweep of the file above."""
    tree = read_yaml(FILE, "crash.yaml")
    axes, fixed = axes_of(tree, None, settings)
    loaded = load(tree, settings=fixed)
    return Sweep(
        tree=tree,
        name=loaded.name,
        axes=axes,
        fixed=fixed,
        variant_names=loaded.variant_names,
        has_variants=loaded.variant_names != (DEFAULT,),
        seeds=seeds,
        words=("kgctl", "simulate", "run", "crash file.yaml"),
    )


def rows_of(sweep: Sweep) -> list[RunRow]:
    """All of its rows, made in this process."""
    done = LocalEngine().map(partial(run_block, sweep), blocks_of(sweep, 1))
    return RowLayout(sweep).ordered(row for one in done for row in one.get())
