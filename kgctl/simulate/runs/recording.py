"""One run again, this time with all that only files want: its log of events, the coordinator's records, its picture.

A run of one seed is the same each time, so nothing of this needs to be kept while many seeds are run.
"""

from __future__ import annotations

from collections.abc import Callable

from kgctl.simulate.engine.cluster_state import ClusterState, cluster_state
from kgctl.simulate.engine.run import run
from kgctl.simulate.report.events_jsonl import EventLines
from kgctl.simulate.scenario.load import Variant


def write_events(scenario: str, variant: Variant, seed: int, write: Callable[[str], object]) -> None:
    """Run it, and hand its events as lines to ``write``, the line that names the run first."""
    lines = EventLines(write)
    lines.begin_run(scenario, variant.name, seed)
    run(variant.scenario, seed, observers=(lines,))


def final_state(variant: Variant, seed: int, *, with_all_commits: bool) -> ClusterState:
    """Run it, and answer what it leaves in its cluster."""
    return cluster_state(run(variant.scenario, seed, keeps_records=True, keeps_all_commits=with_all_commits).world)
