"""What a play with real clients comes to, and what of it is kept: the metrics that are compared."""

from __future__ import annotations

from kgctl.admin.connect import ConnectionSettings, connect
from kgctl.cli.simulate.against import ClusterGroups
from kgctl.simulate.against.play import play
from kgctl.simulate.metrics.result import RunResult
from kgctl.simulate.scenario.model import Scenario
from tests.calibration.kinds import kinds_of

NAMES = ("generations", "unavailable", "max_gap", "moves", "duplicates")
Figures = dict[str, float]


def played(scenario: Scenario, bootstrap: str) -> Figures:
    """The metrics of `NAMES`, measured once on this cluster."""
    with connect(ConnectionSettings(bootstrap=bootstrap)) as admin, kinds_of(scenario) as kinds:
        connection = {"bootstrap.servers": bootstrap}
        found = RunResult(play(scenario, 1, kinds=kinds, connection=connection, cluster=ClusterGroups(admin), notice=print))
    return {name: float(found.metric(name) or 0) for name in NAMES}
