"""What a play with real clients comes to, and what of it is kept: the metrics that are compared."""

from __future__ import annotations

from kgctl.admin.connect import ConnectionSettings, connect
from kgctl.cli.simulate.against import ClusterGroups
from kgctl.simulate.against.fleet import ClientKind, ConfluentKafka
from kgctl.simulate.against.play import play
from kgctl.simulate.metrics.result import RunResult
from kgctl.simulate.scenario.model import Scenario
from tests.support.java_consumers import java_client

NAMES = ("generations", "unavailable", "max_gap", "moves", "duplicates")
Figures = dict[str, float]


def client_of(scenario: Scenario) -> ClientKind:
    """The client that the scenario's members have: librdkafka where all have it, Java's otherwise."""
    clients = {each.client for each in scenario.members}
    return ConfluentKafka() if clients == {ConfluentKafka.profile} else java_client()


def played(scenario: Scenario, bootstrap: str) -> Figures:
    """The metrics of `NAMES`, measured once on this cluster."""
    with connect(ConnectionSettings(bootstrap=bootstrap)) as admin:
        kind, connection = client_of(scenario), {"bootstrap.servers": bootstrap}
        found = RunResult(play(scenario, 1, kind=kind, connection=connection, cluster=ClusterGroups(admin), notice=print))
    return {name: float(found.metric(name) or 0) for name in NAMES}
