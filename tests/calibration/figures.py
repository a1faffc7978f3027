"""What a play with the Java client comes to, and what of it is kept: the metrics that are compared."""

from __future__ import annotations

from kgctl.admin.connect import ConnectionSettings, connect
from kgctl.cli.simulate.against import Groups
from kgctl.simulate.against.play import play
from kgctl.simulate.metrics.result import RunResult
from kgctl.simulate.scenario.model import Scenario
from tests.support.java_consumers import java_client

NAMES = ("generations", "unavailable", "max_gap", "moves", "duplicates")
Figures = dict[str, float]


def played(scenario: Scenario, bootstrap: str) -> Figures:
    """The metrics of `NAMES`, measured once with Java consumers on this cluster."""
    with connect(ConnectionSettings(bootstrap=bootstrap)) as admin:
        kind, connection = java_client(), {"bootstrap.servers": bootstrap}
        found = RunResult(play(scenario, 1, kind=kind, connection=connection, cluster=Groups(admin), notice=print))
    return {name: float(found.metric(name) or 0) for name in NAMES}
